"""Real public descriptions, imported whole without changing anything.

Which ones is what `expected.json` says: its keys that begin with the name of a package are paths
below where the packages are installed.
"""

import concurrent.futures
import json

from imported import IMPORT_SECONDS_MAX, bring_in, same
from services import ENVIRONMENT

PACKAGES = {
    "openapi": ENVIRONMENT / "imports-node/node_modules",
    "wsdl": ENVIRONMENT / "imports-wsdl",
}
AGAIN = "@readme/oas-examples/3.0/json/petstore.json"
# Imports are one process each, and the machine has others to run.
AT_ONCE = 2
# Some descriptions leave out where the API is.
BASE_URL = ("--base-url", "https://api.example.com")


def kind_of(name):
    """What a description is written in; nothing where it is no file of a package."""
    if name.endswith("?wsdl") or name.startswith("httpbin"):
        return None
    return "wsdl" if name.endswith(".wsdl") else "openapi"


def whole(server, name, expectations):
    kind = kind_of(name)
    source = PACKAGES[kind] / name
    assert source.is_file(), f"{source} is not there"
    words = ("import", kind, str(source), "--toolset", "scratch", *BASE_URL, "--dry-run", "--json")
    done = server.run(*words, seconds_max=IMPORT_SECONDS_MAX)
    if done.returncode != 0 and not done.stdout.strip():
        expectations.of(name, done.stderr.strip())
        return
    report = json.loads(done.stdout)
    for entry in report["operations"]:
        assert entry["verdict"] != "skipped" or entry["reason"], f"no reason: {entry}"
    counts = report["counts"]
    same(
        counts["imported"] + counts["imported_with_notes"] + counts["skipped"],
        counts["operations"], "an operation without a verdict",
    )
    expectations.of(name, report)


def again(server):
    """The same description once more is no change at all."""
    source = PACKAGES["openapi"] / AGAIN
    first = bring_in(server, "openapi", source, "again", *BASE_URL, "--publish")
    same(first["counts"]["added"], first["counts"]["operations"] - first["counts"]["skipped"])
    second = bring_in(server, "openapi", source, "again", *BASE_URL, "--publish", "--accept-breaking")
    counts = second["counts"]
    same(counts["unchanged"], first["counts"]["added"])
    same((counts["added"], counts["changed"], counts["removed"], counts["held"]), (0, 0, 0, 0))
    same(second["version"], first["version"])


def run(report, server, chosen, expectations):
    names = [name for name in expectations.wanted if kind_of(name)]
    # The long ones first, so that nothing waits for them at the end.
    sizes = {name: (PACKAGES[kind_of(name)] / name) for name in names}
    names.sort(key=lambda name: -sizes[name].stat().st_size if sizes[name].is_file() else 0)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name in names:
            if not chosen or any(word in name for word in chosen):
                pool.submit(report.case, name, whole, server, name, expectations)
    if not chosen:
        report.case("imported again, nothing changes", again, server)

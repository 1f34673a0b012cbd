"""Imports descriptions of APIs into running ringways, and calls what came of them.

    run.py --binary PATH [--rewrite] [WORD...]

A WORD that is part of a group's name (httpbin soap descriptions sources) chooses groups, any other
word chooses cases by a part of their name. Every group has a ringway of its own. How many
operations of each description are imported, imported with notes and skipped is kept in
`expected.json`; `--rewrite` writes there what was found, for its difference to be looked at. Logs
of a run with a failure stay in tests/.environment/imports-logs.
"""

import json
import sys
import threading
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "runner"), str(TESTS / "clients")]
import description_cases  # noqa: E402: no __pycache__ in the source tree
import groups  # noqa: E402
import httpbin_cases  # noqa: E402
import soap_cases  # noqa: E402
import source_cases  # noqa: E402
from imported import EXPECTED, HERE, start, verdicts  # noqa: E402
from services import ENVIRONMENT, Httpbin, PortPrinter  # noqa: E402

LOGS = ENVIRONMENT / "imports-logs"


class Expectations:
    """The verdict counts that are checked in, by the name of the description."""

    def __init__(self, rewrite):
        self.wanted = json.loads(EXPECTED.read_text())
        self.found, self.rewrite, self._lock = {}, rewrite, threading.Lock()

    def of(self, name, found):
        """Compares; `found` is a report, or the words of an error."""
        found = found if isinstance(found, str) else verdicts(found)
        with self._lock:
            self.found[name] = found
        wanted = self.wanted.get(name)
        if not self.rewrite:
            assert found == wanted, f"{found}, not {wanted}"

    def write(self):
        lines = [
            f"  {json.dumps(name)}: {json.dumps(value)}"
            for name, value in (self.wanted | self.found).items()
        ]
        EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def run_httpbin(report, server, work, chosen, expect):
    httpbin = Httpbin(work / "httpbin.log")
    try:
        httpbin_cases.run(report, server, httpbin.port, chosen, expect)
    finally:
        httpbin.stop()


def run_soap(report, server, work, chosen, expect):
    python = ENVIRONMENT / "imports-spyne/bin/python"
    services = {}
    try:
        services["shop"] = PortPrinter([python, "-B", HERE / "shop.py"], work / "shop.log")
        library = ["node", HERE / "library.mjs", ENVIRONMENT / "imports-node"]
        services["library"] = PortPrinter(library, work / "library.log")
        ports = {name: service.port for name, service in services.items()}
        soap_cases.run(report, server, ports, chosen, expect)
    finally:
        for service in services.values():
            service.stop()


def run_descriptions(report, server, _work, chosen, expectations):
    description_cases.run(report, server, chosen, expectations)


def run_sources(report, server, work, chosen, _expect):
    source_cases.run(report, server, work, chosen)


GROUPS = {
    "descriptions": run_descriptions,
    "httpbin": run_httpbin,
    "soap": run_soap,
    "sources": run_sources,
}


def main():
    parser = groups.arguments("imports into ringway, called end to end")
    parser.add_argument("--rewrite", action="store_true")
    options = groups.parsed(parser)
    chosen, cases = groups.chosen(options.words, GROUPS)
    expectations = Expectations(options.rewrite)

    def report_of(group, folder, _shared):
        expect = expectations if group == "descriptions" else expectations.of
        return groups.run_group(
            group,
            lambda: start(options.binary, folder),
            lambda report, server: GROUPS[group](report, server, folder, cases, expect),
            cases,
        )

    code = groups.run("imports", LOGS, chosen, len(chosen), report_of)
    if options.rewrite:
        expectations.write()
    return code


if __name__ == "__main__":
    sys.exit(main())

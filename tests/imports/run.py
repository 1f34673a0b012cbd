"""Imports descriptions of APIs into running ringways, and calls what came of them.

    run.py --binary PATH [--rewrite] [WORD...]

A WORD that is part of a group's name (httpbin soap descriptions sources) chooses groups, any other
word chooses cases by a part of their name. Every group has a ringway of its own. How many
operations of each description are imported, imported with notes and skipped is kept in
`expected.json`; `--rewrite` writes there what was found, for its difference to be looked at. Logs
of a run with a failure stay in tests/.environment/imports-logs.
"""

import argparse
import concurrent.futures
import json
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "clients"))
import description_cases  # noqa: E402: no __pycache__ in the source tree
import httpbin_cases  # noqa: E402
import soap_cases  # noqa: E402
import source_cases  # noqa: E402
from imported import EXPECTED, HERE, start, verdicts  # noqa: E402
from report import Report, ends_cleanly, no_panics  # noqa: E402
from services import ENVIRONMENT, Httpbin, PortPrinter, StartError  # noqa: E402

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


def run_group(group, binary, folder, expectations, cases):
    report = Report(group)
    try:
        server = start(binary, folder)
    except (StartError, OSError) as error:
        report.line(f"FAIL starting ringway: {error}".replace("\n", " "))
        return report
    expect = expectations if group == "descriptions" else expectations.of
    try:
        GROUPS[group](report, server, folder, cases, expect)
        if not cases:
            report.case("ringway ends cleanly on SIGTERM", ends_cleanly, server)
            report.case("nothing panicked", no_panics, server)
    except (StartError, OSError) as error:
        report.line(f"FAIL services: {error}".replace("\n", " "))
    finally:
        server.stop()
    return report


def main():
    parser = argparse.ArgumentParser(description="imports into ringway, called end to end")
    parser.add_argument("--binary", required=True, type=Path)
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"{options.binary} is not there; build it first")
    naming = [word for word in options.words if any(word in group for group in GROUPS)]
    cases = [word for word in options.words if word not in naming]
    groups = [group for group in GROUPS if not naming or any(word in group for word in naming)]
    expectations = Expectations(options.rewrite)

    # A signal must still stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(LOGS, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="ringway-imports."))
    reports = None
    try:
        with concurrent.futures.ThreadPoolExecutor(len(groups)) as pool:
            waiting = [
                pool.submit(run_group, group, options.binary, work / group, expectations, cases)
                for group in groups
            ]
            reports = [future.result() for future in waiting]
    finally:
        if reports is None or any(report.failed for report in reports):
            ignored = shutil.ignore_patterns("data")
            shutil.copytree(work, LOGS, ignore=ignored, dirs_exist_ok=True)
            print(f"# logs are in {LOGS}", flush=True)
        shutil.rmtree(work, ignore_errors=True)
    if options.rewrite:
        expectations.write()
    passed = sum(report.passed for report in reports)
    failures = sum(report.failed for report in reports)
    print(f"# imports: {passed} passed, {failures} failed", flush=True)
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

"""A run of cases in groups: side by side, each in a folder of its own, logs kept on failure."""

import argparse
import concurrent.futures
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from report import Report
from services import StartError


def arguments(description, can_be_direct=False):
    """What every run takes; a run may add to it. A direct one leaves ringway out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("words", nargs="*")
    if can_be_direct:
        parser.add_argument("--direct", action="store_true")
    else:
        parser.set_defaults(direct=False)
    return parser


def parsed(parser):
    """The options, once it is sure that there is something to run."""
    options = parser.parse_intermixed_args()
    if not options.direct and not (options.binary and options.binary.is_file()):
        parser.error(f"{options.binary} is not there; build it first")
    return options


def chosen(words, groups):
    """What words choose: groups by a part of their name, cases by the rest."""
    naming = [word for word in words if any(word in group for group in groups)]
    cases = [word for word in words if word not in naming]
    return [group for group in groups if not naming or any(word in group for word in naming)], cases


def run_group(group, start, work, cases):
    """The report of a group: `start` gives its ringway, `work` runs the cases against it."""
    report = Report(group)
    try:
        server = start()
    except (StartError, OSError, subprocess.SubprocessError) as error:
        report.line(f"FAIL starting ringway: {error}".replace("\n", " "))
        return report
    try:
        work(report, server)
        if not cases:
            report.end(server)
    except (StartError, OSError) as error:
        report.line(f"FAIL services: {error}".replace("\n", " "))
    finally:
        server.stop()
    return report


def run(name, logs, groups, at_once, report_of, shared=None):
    """Runs the groups and prints what they come to; gives the exit code.

    `report_of(group, folder, what)` runs one group, in a folder that it has to make; `what` is what
    `shared(folder)` has started for all of them, which is stopped at the end.
    """
    # A signal must still stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(logs, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"ringway-{name}."))
    what, reports = None, None
    try:
        what = shared(work) if shared else None
        reports = _reports(
            groups, at_once, lambda group: report_of(group, work / _folder(group), what)
        )
    except StartError as error:
        print(f"FAIL services: {error}", flush=True)
        return 1
    finally:
        if what:
            what.stop()
        if reports is None or any(report.failed for report in reports):
            shutil.copytree(work, logs, ignore=shutil.ignore_patterns("data"), dirs_exist_ok=True)
            print(f"# logs are in {logs}", flush=True)
        shutil.rmtree(work, ignore_errors=True)
    passed = sum(report.passed for report in reports)
    failures = sum(report.failed for report in reports)
    print(f"# {name}: {passed} passed, {failures} failed", flush=True)
    return 1 if failures or passed == 0 else 0


def _folder(group):
    return re.sub(r"[^\w.]+", "-", group)


def _reports(groups, at_once, report_of):
    if at_once == 1:
        # Here a signal ends the one that runs.
        return [report_of(group) for group in groups]
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    try:
        waiting = [pool.submit(report_of, group) for group in groups]
        return [future.result() for future in waiting]
    finally:
        pool.shutdown(cancel_futures=True)

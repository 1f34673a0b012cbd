"""Runs the server scenarios of npm @modelcontextprotocol/conformance, both lines, through ringway.

    run.py --binary PATH [--upstream-era both|legacy|modern] [WORD...]
    run.py --direct      [--upstream-era both|legacy|modern] [--rewrite] [WORD...]

Behind ringway is the upstream fixture with what the scenarios ask for. It speaks all revisions,
then only the legacy ones, then only the modern one, so that every suite is run in front of its
own era and of the other; --upstream-era chooses one of the three. --direct leaves ringway out:
what fails then is the fixture's fault, and with --rewrite it writes the checks that passed to
`baseline.json`. A scenario passes when no check fails and every check that is written there was
made. A WORD that is part of a group's name chooses groups, any other word chooses scenarios. What
is excused, and why: excused.toml. Logs and the suite's own reports of groups with a failure stay
in tests/.environment/conformance-logs.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "runner"), str(HERE.parent / "upstream")]
import groups  # noqa: E402: no __pycache__ in the source tree
from behind import running, url_of  # noqa: E402
from report import Report  # noqa: E402
from services import ENVIRONMENT, StartError  # noqa: E402

LOGS = ENVIRONMENT / "conformance-logs"
PACKAGES = ENVIRONMENT / "conformance" / "node_modules"
BASELINE = HERE / "baseline.json"
NODE_MAJOR_MIN = 22
SUITE_SECONDS_MAX = 900

# Each group: the package's line, and the words that choose the scenarios and the wire.
SUITES = {
    "newest 2025-06-18": ("newest", ["--suite", "all", "--spec-version", "2025-06-18"]),
    "newest 2025-11-25": ("newest", ["--requirements", "2025-11-25"]),
    "newest 2026-07-28": ("newest", ["--requirements", "2026-07-28"]),
    "stable 2025-06-18": ("stable", ["--suite", "all", "--spec-version", "2025-06-18"]),
    "stable 2025-11-25": ("stable", ["--suite", "all", "--spec-version", "2025-11-25"]),
}
ERAS = ["both", "legacy", "modern"]
# Every suite in front of every era, by the name that it is reported under.
GROUPS = {
    suite if era == "both" else f"{suite}, upstream {era}": (era, suite)
    for era in ERAS
    for suite in SUITES
}


def speaks(era, suite):
    """Whether an upstream of this era can answer the suite without ringway."""
    return era in ("both", "modern" if suite.endswith("2026-07-28") else "legacy")


def is_asked(options, era, suite):
    """Whether the options, words apart, leave this group in."""
    is_era = options.upstream_era in (None, era)
    return is_era and (not options.direct or speaks(era, suite))


def node():
    """A Node.js that is new enough: what is on the path, or the one that was installed."""
    machine = {"aarch64": "arm64", "x86_64": "x64"}.get(platform.machine(), platform.machine())
    for candidate in (shutil.which("node"), PACKAGES / f"node-linux-{machine}" / "bin" / "node"):
        if not candidate or not os.access(candidate, os.X_OK):
            continue
        version = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if int((re.match(r"v(\d+)", version.stdout) or [0, 0])[1]) >= NODE_MAJOR_MIN:
            return candidate
    raise StartError(f"no Node.js of version {NODE_MAJOR_MIN} or newer")


def excused(era, suite, scenario, check):
    """Why a failed check is no failure; `None` when it is one."""
    for entry in tomllib.loads((HERE / "excused.toml").read_text())["excused"]:
        if (
            era in entry.get("upstream_era", [era])
            and suite in entry.get("suite", [suite])
            and scenario in entry["scenarios"]
            and check in entry.get("checks", [check])
        ):
            return entry["reason"]
    return None


def run_suite(suite, url, folder, scenarios):
    """Runs the package; gives the checks of each scenario that left a report."""
    line, words = SUITES[suite]
    program = PACKAGES / f"conformance-{line}" / "dist" / "index.js"
    chosen = [["--scenario", name] for name in scenarios] or [[]]
    with (folder / "suite.log").open("w") as log:
        for choice in chosen:
            # One scenario has no requirements around it, only the wire that it is run at.
            wire = ["--spec-version", suite.split()[1]] if choice else words
            subprocess.run(
                [node(), program, "server", "--url", url, *choice, *wire, "-o", folder],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False,
                timeout=SUITE_SECONDS_MAX,
            )
    found = {}
    reports = folder.glob("server-*/checks.json")
    for report in sorted(reports, key=lambda path: path.stat().st_mtime_ns):
        name = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.+", report.parent.name)
        found[name[1]] = json.loads(report.read_text())
    return found


def judge(report, era, suite, scenario, checks, wanted):
    """One line a scenario; gives the checks that passed."""
    of = {
        status: [check for check in checks if check["status"] == status]
        for status in ("SUCCESS", "FAILURE", "WARNING")
    }
    for check in of["WARNING"]:
        report.line(f"{scenario}: warning {check['id']}: {check.get('errorMessage', '')[:200]}")
    found = {check["id"] for check in of["SUCCESS"] + of["WARNING"]}
    troubles = [
        (check["id"], check.get("errorMessage") or check.get("description") or "")
        for check in of["FAILURE"]
    ]
    failed = {check for check, _ in troubles}
    # What does not fail only because it was not looked at is a failure as well.
    troubles += [(check, "was not checked") for check in wanted if check not in found | failed]
    failures, reasons = [], set()
    for check, message in troubles:
        reason = excused(era, suite, scenario, check)
        if reason is None:
            failures.append(f"{check}: {message[:300]}")
        else:
            reasons.add(reason)
    passed = len(of["SUCCESS"])
    if failures:
        report.line(f"FAIL {scenario}: {'; '.join(failures)}")
    elif reasons:
        report.line(f"{scenario}: {passed} checks passed, others are excused: {'; '.join(sorted(reasons))}")
    elif not passed:
        report.line(f"{scenario}: nothing was checked")
    else:
        report.line(f"ok {scenario}: {passed} checks")
    return sorted({check["id"] for check in of["SUCCESS"]})


def run_group(group, options, scenarios, folder, baseline):
    """The report of a group, and of each scenario the checks that passed."""
    report = Report(group)
    era, suite = GROUPS[group]
    binary = None if options.direct else options.binary
    passed = {}
    try:
        with running(era, binary, folder, "--offers", "conformance") as (upstream, server):
            url = url_of(server) if server else upstream.url
            found = run_suite(suite, url, folder, scenarios)
            wanted = baseline.get(suite, {})
            for scenario, checks in found.items():
                needed = wanted.get(scenario, [])
                passed[scenario] = judge(report, era, suite, scenario, checks, needed)
            asked = scenarios or ([] if options.rewrite else wanted)
            for scenario in set(asked) - set(found):
                report.line(f"FAIL {scenario}: it did not run")
            if server and not scenarios:
                report.end(server)
    except (StartError, OSError, subprocess.SubprocessError) as error:
        report.line(f"FAIL running the suite: {error}".replace("\n", " "))
    return report, passed


def shown(baseline):
    """The baseline as JSON, one line a scenario."""
    suites = [
        f"  {json.dumps(suite)}: {{\n"
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(ids)}" for name, ids in scenarios.items())
        + "\n  }"
        for suite, scenarios in baseline.items()
    ]
    return "{\n" + ",\n".join(suites) + "\n}\n"


def main():
    parser = groups.arguments("the public conformance suite against ringway", can_be_direct=True)
    parser.add_argument("--upstream-era", choices=ERAS)
    parser.add_argument("--rewrite", action="store_true")
    options = groups.parsed(parser)
    chosen, scenarios = groups.chosen(options.words, GROUPS)
    chosen = [group for group in chosen if is_asked(options, *GROUPS[group])]
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}

    def report_of(group, folder, _shared):
        report, passed = run_group(group, options, scenarios, folder, baseline)
        era, suite = GROUPS[group]
        if options.direct and options.rewrite and era == "both":
            baseline[suite] = {name: checks for name, checks in passed.items() if checks}
        return report

    code = groups.run("conformance", LOGS, chosen, 1, report_of)
    if options.rewrite and options.direct and not scenarios:
        BASELINE.write_text(shown(baseline))
    return code


if __name__ == "__main__":
    sys.exit(main())

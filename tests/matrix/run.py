"""The matrix: every official MCP client x an upstream MCP server of every revision x all that the
protocol can do, through ringway.

    run.py --binary PATH [WORD...]
    run.py --direct      [WORD...]

Every column, a client before an upstream, has an upstream fixture and a ringway of its own and
prints one line a cell. A cell that the protocol makes impossible passes when it fails in the way
that impossible.toml documents. A WORD that is part of a column's name (`py1/http before
2024-11-05`) chooses columns, any other word chooses rows. --direct leaves ringway out, for the
columns whose two sides speak the same. Logs of columns with a failure stay in
tests/.environment/matrix-logs.
"""

import argparse
import concurrent.futures
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "runner"), str(HERE.parent / "upstream")]
from behind import Upstream, ringway_before, url_of  # noqa: E402: no __pycache__ in the source tree
from report import Report, ends_cleanly, no_panics  # noqa: E402
from services import ENVIRONMENT, StartError  # noqa: E402

LOGS = ENVIRONMENT / "matrix-logs"
COLUMN_SECONDS_MAX = 240
# Columns mostly wait, so a few more of them than cores.
COLUMNS_AT_ONCE = 3
# Small pages, so that cursors have to be followed.
OPTIONS = ["--page", "7"]

SDKS = {
    "py1": [ENVIRONMENT / "mcp1/bin/python", "-B", HERE / "driver.py"],
    "py2": [ENVIRONMENT / "mcp2/bin/python", "-B", HERE / "driver.py"],
    "ts1": ["node", HERE / "driver.mjs", "v1"],
    "ts2": ["node", HERE / "driver.mjs", "v2"],
}
# Which eras and transports an SDK speaks.
CLIENTS = {
    f"{sdk}/{era}": ([*command], era)
    for sdk, command in SDKS.items()
    for era in ("http", "sse", *(["modern"] if sdk.endswith("2") else []))
}
UPSTREAMS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
IMPOSSIBLE = tomllib.loads((HERE / "impossible.toml").read_text())["cell"]


def speaks(era, upstream):
    """Whether a client of this kind can do without ringway."""
    eras = {"2024-11-05": "sse", "2026-07-28": "modern"}
    return era == eras.get(upstream, "http")


def impossible(client, upstream, row):
    """The entry that says why a cell cannot work; `None` when it has to."""
    for entry in IMPOSSIBLE:
        if (
            row in entry["rows"]
            and upstream in entry.get("upstreams", UPSTREAMS)
            and client in entry.get("clients", CLIENTS)
        ):
            return entry
    return None


def judge(report, client, upstream, line):
    """Turns what a driver says of a row into the cell's verdict."""
    verdict, _, rest = line.partition(" ")
    row, _, said = rest.partition(": ")
    entry = impossible(client, upstream, row) if verdict in ("ok", "FAIL") else None
    if entry is None:
        report.line(line)
    elif verdict == "ok":
        report.line(f"FAIL {row}: it works, though impossible.toml says: {entry['reason']}")
    elif re.search(entry["answer"], said):
        report.line(f"ok {row} (impossible: {entry['reason']})")
    else:
        wanted = entry["answer"]
        report.line(f"FAIL {row}: not answered as documented ({wanted}) but: {said}")


def add_tool(upstream, name):
    upstream.control("add_tool", name=name)
    upstream.control("list_changed", kind="tools")


def drive(report, client, upstream, url, folder, rows):
    """Runs one client program to its end, answering what it asks for."""
    command, era = CLIENTS[client]
    words = [*command, url, era]
    environment = os.environ | {"RINGWAY_TEST_CASES": "|".join(rows)}
    with (folder / "client.log").open("w") as log:
        program = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env=environment,
        )
    lines = queue.Queue()

    def follow():
        for line in program.stdout:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=follow, daemon=True).start()
    deadline = time.monotonic() + COLUMN_SECONDS_MAX
    try:
        while (line := lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            if not line.startswith("@add "):
                judge(report, client, upstream.revision, line)
                continue
            try:
                add_tool(upstream, line.removeprefix("@add "))
                answer = "done"
            except OSError as error:
                answer = repr(error).replace("\n", " ")
            program.stdin.write(answer + "\n")
            program.stdin.flush()
        program.wait(10)
    except (queue.Empty, subprocess.TimeoutExpired):
        report.line(f"FAIL the client program: still running after {COLUMN_SECONDS_MAX} s")
    except BrokenPipeError:
        pass
    finally:
        program.kill()
        program.wait()
    if program.returncode not in (0, -signal.SIGKILL):
        end = (folder / "client.log").read_text(errors="replace")[-800:]
        report.line(f"FAIL the client program: exit {program.returncode}: {end}".replace("\n", " "))


def run_column(client, revision, options, work, rows):
    report = Report(f"{client} before {revision}")
    folder = work / report.group.replace(" ", "-").replace("/", "-")
    folder.mkdir()
    upstream = server = None
    try:
        upstream = Upstream(revision, folder / "upstream.log", *OPTIONS)
        url = upstream.url
        if not options.direct:
            server = ringway_before(upstream, options.binary, folder / "ringway")
            url = url_of(server, "sse" if client.endswith("/sse") else "mcp")
        drive(report, client, upstream, url, folder, rows)
        if server and not rows:
            report.case("ringway ends cleanly on SIGTERM", ends_cleanly, server)
            report.case("nothing panicked", no_panics, server)
    except (StartError, OSError, subprocess.SubprocessError) as error:
        report.line(f"FAIL starting: {error}".replace("\n", " "))
    finally:
        for process in (server, upstream):
            if process:
                process.stop()
    return report


def main():
    parser = argparse.ArgumentParser(description="official MCP clients before MCP servers of all revisions")
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    if not options.direct and not (options.binary and options.binary.is_file()):
        parser.error(f"{options.binary} is not there; build it first")
    columns = [
        (client, upstream)
        for upstream in UPSTREAMS
        for client, (_, era) in CLIENTS.items()
        if not options.direct or speaks(era, upstream)
    ]
    names = [f"{client} before {upstream}" for client, upstream in columns]
    naming = [word for word in options.words if any(word in name for name in names)]
    rows = [word for word in options.words if word not in naming]
    # Words for either side narrow it: `py1 2024-11-05` is one SDK before one upstream.
    for side in (list(CLIENTS), UPSTREAMS):
        wanted = [word for word in naming if any(word in one for one in side)]
        if wanted:
            columns = [
                column for column in columns
                if any(word in one for word in wanted for one in column if one in side)
            ]

    # A signal must still stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(LOGS, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="ringway-matrix."))
    reports = None
    try:
        with concurrent.futures.ThreadPoolExecutor(COLUMNS_AT_ONCE) as pool:
            waiting = [pool.submit(run_column, *column, options, work, rows) for column in columns]
            reports = [future.result() for future in waiting]
    finally:
        if reports is None or any(report.failed for report in reports):
            shutil.copytree(
                work, LOGS, ignore=shutil.ignore_patterns("data"), dirs_exist_ok=True
            )
            print(f"# logs are in {LOGS}", flush=True)
        shutil.rmtree(work, ignore_errors=True)
    passed = sum(report.passed for report in reports)
    failures = sum(report.failed for report in reports)
    print(f"# matrix: {passed} passed, {failures} failed", flush=True)
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the official MCP clients, and a few exchanges on the bare wire, against ringway.

    run.py --binary PATH [WORD...]

A WORD that is part of a group's name (py1/http py1/sse py2/… ts1/… ts2/… wire) chooses groups, any
other word chooses cases by a part of their name. Every group has a ringway process, data folder
and port of its own, so groups run side by side and may kill theirs. Logs of groups with a failure
stay in tests/.environment/logs.
"""

import argparse
import concurrent.futures
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
import wire  # noqa: E402: no __pycache__ in the source tree
from report import Report, ends_cleanly, no_panics  # noqa: E402
from services import ENVIRONMENT, HERE, Httpbin, Ringway, StartError  # noqa: E402

LOGS = ENVIRONMENT / "logs"
GROUP_SECONDS_MAX = 240
# The Python SDK tries a lost standing stream once more, after this time, and then never again: a
# busy machine must have restarted ringway by then.
SDK_SETTINGS = {"runtime.mcp.sse": {"retry_ms": 5000}}
# Groups mostly wait for slow answers, so more of them than cores.
GROUPS_AT_ONCE = 5

CLIENTS = {
    "py1": [ENVIRONMENT / "mcp1/bin/python", "-B", HERE / "driver.py"],
    "py2": [ENVIRONMENT / "mcp2/bin/python", "-B", HERE / "driver.py"],
    "ts1": ["node", HERE / "driver.mjs", "v1"],
    "ts2": ["node", HERE / "driver.mjs", "v2"],
}
GROUPS = [f"{client}/{transport}" for client in CLIENTS for transport in ("http", "sse")] + ["wire"]


def drive(report, server, command, cases):
    """Runs one client program to its end, answering what it asks for."""
    environment = os.environ | {
        "RINGWAY_TEST_BASE": server.base,
        "RINGWAY_TEST_KEY": server.keys["assistant"],
        "RINGWAY_TEST_KEY_STRICT": server.keys["strict"],
        "RINGWAY_TEST_KEY_GOVERNED": server.keys["governed"],
        "RINGWAY_TEST_CASES": "|".join(cases),
    }
    with (server.folder / "client.log").open("w") as log:
        program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            env=environment,
        )
    lines = queue.Queue()

    def follow():
        for line in program.stdout:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=follow, daemon=True).start()
    wishes = {
        "@restart": server.kill_and_restart,
        "@notify": server.notify,
        "@unpublish": lambda: server.publish(False),
        "@publish": lambda: server.publish(True),
        "@prompt": lambda: server.set_prompt("Write before you read."),
    }
    deadline = time.monotonic() + GROUP_SECONDS_MAX
    try:
        while (line := lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            if line not in wishes:
                report.line(line)
                continue
            try:
                wishes[line]()
                answer = "done"
            except (StartError, OSError) as error:
                answer = repr(error).replace("\n", " ")
            program.stdin.write(answer + "\n")
            program.stdin.flush()
        program.wait(10)
    except (queue.Empty, subprocess.TimeoutExpired):
        report.line(f"FAIL the client program: still running after {GROUP_SECONDS_MAX} s")
    except BrokenPipeError:
        pass
    finally:
        program.kill()
        program.wait()
    if program.returncode not in (0, -signal.SIGKILL):
        end = (server.folder / "client.log").read_text(errors="replace")[-800:]
        report.line(f"FAIL the client program: exit {program.returncode}: {end}".replace("\n", " "))


def run_group(group, binary, folder, httpbin, cases):
    report = Report(group)
    extra = wire.SETTINGS if group == "wire" else SDK_SETTINGS
    try:
        server = Ringway(binary, folder, httpbin.port, extra)
    except (StartError, OSError, subprocess.SubprocessError) as error:
        report.line(f"FAIL starting ringway: {error}".replace("\n", " "))
        return report
    try:
        if group == "wire":
            wire.run(report, server, cases)
        else:
            client, transport = group.split("/")
            drive(report, server, [*CLIENTS[client], transport], cases)
        if not cases:
            report.case("ringway ends cleanly on SIGTERM", ends_cleanly, server)
            report.case("nothing panicked", no_panics, server)
    finally:
        server.stop()
    return report


def main():
    parser = argparse.ArgumentParser(description="official MCP clients against ringway")
    parser.add_argument("--binary", required=True, type=Path)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.binary.is_file():
        parser.error(f"{options.binary} is not there; build it first")
    naming = [word for word in options.words if any(word in group for group in GROUPS)]
    cases = [word for word in options.words if word not in naming]
    groups = [group for group in GROUPS if not naming or any(word in group for word in naming)]

    # A signal must still stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    shutil.rmtree(LOGS, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix="ringway-clients."))
    httpbin, reports = None, None
    try:
        httpbin = Httpbin(work / "httpbin.log")
        with concurrent.futures.ThreadPoolExecutor(GROUPS_AT_ONCE) as pool:
            waiting = [
                pool.submit(run_group, group, options.binary, work / group, httpbin, cases)
                for group in groups
            ]
            reports = [future.result() for future in waiting]
    except StartError as error:
        print(f"FAIL services: {error}", flush=True)
        return 1
    finally:
        if httpbin:
            httpbin.stop()
        if reports is None or any(report.failed for report in reports):
            shutil.copytree(
                work, LOGS, ignore=shutil.ignore_patterns("data"), dirs_exist_ok=True
            )
            print(f"# logs are in {LOGS}", flush=True)
        shutil.rmtree(work, ignore_errors=True)
    passed = sum(report.passed for report in reports)
    failures = sum(report.failed for report in reports)
    print(f"# clients: {passed} passed, {failures} failed", flush=True)
    return 1 if failures or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

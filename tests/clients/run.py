"""Runs the official MCP clients, and a few exchanges on the bare wire, against ringway.

    run.py --binary PATH [WORD...]

A WORD that is part of a group's name (py1/http py1/sse py2/… ts1/… ts2/… wire) chooses groups, any
other word chooses cases by a part of their name. Every group has a ringway process, data folder
and port of its own, so groups run side by side and may kill theirs. Logs of groups with a failure
stay in tests/.environment/logs.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runner"))
import groups  # noqa: E402: no __pycache__ in the source tree
import wire  # noqa: E402
from ringway import HERE, Ringway  # noqa: E402
from services import ENVIRONMENT, Httpbin, StartError  # noqa: E402

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


def run_cases(group, report, server, cases):
    if group == "wire":
        wire.run(report, server, cases)
    else:
        client, transport = group.split("/")
        drive(report, server, [*CLIENTS[client], transport], cases)


def main():
    parser = groups.arguments("official MCP clients against ringway")
    options, chosen, cases = groups.parsed(parser, GROUPS)

    def report_of(group, folder, httpbin):
        extra = wire.SETTINGS if group == "wire" else SDK_SETTINGS
        return groups.run_group(
            group,
            lambda: Ringway(options.binary, folder, httpbin.port, extra),
            lambda report, server: run_cases(group, report, server, cases),
            cases,
        )

    return groups.run(
        "clients", LOGS, chosen, GROUPS_AT_ONCE, report_of,
        shared=lambda work: Httpbin(work / "httpbin.log"),
    )


if __name__ == "__main__":
    sys.exit(main())

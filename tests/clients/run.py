"""Runs the official MCP clients, and a few exchanges on the bare wire, against ringway.

    run.py --binary PATH [WORD...]

A WORD that is part of a group's name (py1/http py1/sse py2/… ts1/… ts2/… wire) chooses groups, any
other word chooses cases by a part of their name. Every group has a ringway process, data folder
and port of its own, so groups run side by side and may kill theirs. Logs of groups with a failure
stay in tests/.environment/logs.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runner"))
import groups  # noqa: E402: no __pycache__ in the source tree
import programs  # noqa: E402
import wire  # noqa: E402
from ringway import HERE, Ringway  # noqa: E402
from services import ENVIRONMENT, Httpbin  # noqa: E402

LOGS = ENVIRONMENT / "logs"
# The Python SDK tries a lost standing stream once more, after this time, and then never again: a
# busy machine must have restarted ringway by then.
SDK_SETTINGS = {"runtime.mcp.sse": {"retry_ms": 5000}}
# Groups mostly wait for slow answers, so more of them than cores.
GROUPS_AT_ONCE = 5

CLIENTS = programs.sdks(HERE)
GROUPS = [f"{client}/{transport}" for client in CLIENTS for transport in ("http", "sse")] + ["wire"]


def drive(report, server, command, cases):
    """Runs one client program to its end, answering what it asks for."""
    wishes = {
        "@restart": server.kill_and_restart,
        "@notify": server.notify,
        "@unpublish": lambda: server.publish(False),
        "@publish": lambda: server.publish(True),
        "@prompt": lambda: server.set_prompt("Write before you read."),
    }
    doors = {
        "RINGWAY_TEST_BASE": server.base,
        "RINGWAY_TEST_KEY": server.keys["assistant"],
        "RINGWAY_TEST_KEY_STRICT": server.keys["strict"],
        "RINGWAY_TEST_KEY_GOVERNED": server.keys["governed"],
    }
    log = server.folder / "client.log"
    programs.drive(report, command, log, cases, wishes.get, more=doors)


def run_cases(group, report, server, cases):
    if group == "wire":
        wire.run(report, server, cases)
    else:
        client, transport = group.split("/")
        drive(report, server, [*CLIENTS[client], transport], cases)


def main():
    parser = groups.arguments("official MCP clients against ringway")
    options = groups.parsed(parser)
    chosen, cases = groups.chosen(options.words, GROUPS)

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

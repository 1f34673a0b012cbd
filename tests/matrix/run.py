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

import re
import subprocess
import sys
import tomllib
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "runner"), str(HERE.parent / "upstream")]
import groups  # noqa: E402: no __pycache__ in the source tree
import programs  # noqa: E402
from behind import running, url_of  # noqa: E402
from report import Report  # noqa: E402
from services import ENVIRONMENT, StartError  # noqa: E402

LOGS = ENVIRONMENT / "matrix-logs"
# Columns mostly wait, so a few more of them than cores.
COLUMNS_AT_ONCE = 3
BEFORE = " before "
# Small pages, so that cursors have to be followed.
OPTIONS = ["--page", "7"]

# Which eras and transports an SDK speaks.
CLIENTS = {
    f"{sdk}/{era}": ([*command], era)
    for sdk, command in programs.sdks(HERE).items()
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

    def wish(line):
        word, _, name = line.partition(" ")
        return (lambda: add_tool(upstream, name)) if word == "@add" else None

    programs.drive(
        report, [*command, url, era], folder / "client.log", rows, wish,
        line=lambda line: judge(report, client, upstream.revision, line),
    )


def run_column(column, binary, folder, rows):
    report = Report(column)
    client, _, revision = column.partition(BEFORE)
    try:
        with running(revision, binary, folder, *OPTIONS) as (upstream, server):
            url = upstream.url
            if server:
                url = url_of(server, "sse" if client.endswith("/sse") else "mcp")
            drive(report, client, upstream, url, folder, rows)
            if server and not rows:
                report.end(server)
    except (StartError, OSError, subprocess.SubprocessError) as error:
        report.line(f"FAIL starting: {error}".replace("\n", " "))
    return report


def main():
    about = "official MCP clients before MCP servers of all revisions"
    parser = groups.arguments(about, can_be_direct=True)
    options = groups.parsed(parser)
    columns = [
        f"{client}{BEFORE}{upstream}"
        for upstream in UPSTREAMS
        for client, (_, era) in CLIENTS.items()
        if not options.direct or speaks(era, upstream)
    ]
    columns, rows = groups.chosen(options.words, columns)
    # Words for either side narrow it: `py1 2024-11-05` is one SDK before one upstream.
    for side in (list(CLIENTS), UPSTREAMS):
        wanted = [word for word in options.words if any(word in one for one in side)]
        if wanted:
            columns = [
                column for column in columns
                if any(word in one for word in wanted for one in column.split(BEFORE) if one in side)
            ]
    binary = None if options.direct else options.binary
    return groups.run(
        "matrix", LOGS, columns, COLUMNS_AT_ONCE,
        lambda column, folder, _: run_column(column, binary, folder, rows),
    )


if __name__ == "__main__":
    sys.exit(main())

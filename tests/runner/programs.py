"""Client programs that run cases: they print a line for each, and ask the runner for what they
cannot do themselves."""

import os
import queue
import signal
import subprocess
import threading
import time

from services import ENVIRONMENT, StartError

SECONDS_MAX = 240


def sdks(folder):
    """The programs of the official SDKs, by short names: the drivers that are in this folder."""
    return {
        "py1": [ENVIRONMENT / "mcp1/bin/python", "-B", folder / "driver.py"],
        "py2": [ENVIRONMENT / "mcp2/bin/python", "-B", folder / "driver.py"],
        "ts1": ["node", folder / "driver.mjs", "v1"],
        "ts2": ["node", folder / "driver.mjs", "v2"],
    }


def drive(report, command, log, cases, wish, line=None, more=None):
    """Runs one client program to its end.

    `wish(text)` gives what is to be done for a line that asks for something, `None` for any other
    line, which goes to `line`, or into the report as it is. `cases` and `more` stand in the
    program's environment.
    """
    environment = os.environ | {"RINGWAY_TEST_CASES": "|".join(cases)} | (more or {})
    with log.open("w") as errors:
        program = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            env=environment,
        )
    lines = queue.Queue()

    def follow():
        for text in program.stdout:
            lines.put(text.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=follow, daemon=True).start()
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while (text := lines.get(timeout=max(0.1, deadline - time.monotonic()))) is not None:
            work = wish(text)
            if work is None:
                (line or report.line)(text)
                continue
            try:
                work()
                answer = "done"
            except (StartError, OSError) as error:
                answer = repr(error).replace("\n", " ")
            program.stdin.write(answer + "\n")
            program.stdin.flush()
        program.wait(10)
    except (queue.Empty, subprocess.TimeoutExpired):
        report.line(f"FAIL the client program: still running after {SECONDS_MAX} s")
    except BrokenPipeError:
        pass
    finally:
        program.kill()
        program.wait()
    if program.returncode not in (0, -signal.SIGKILL):
        end = log.read_text(errors="replace")[-800:]
        report.line(f"FAIL the client program: exit {program.returncode}: {end}".replace("\n", " "))

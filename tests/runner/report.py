"""What the cases of a group come to, line by line."""

import threading

from services import StartError


class Report:
    """One group's results, printed as they come, each line under the group's name."""

    _printing = threading.Lock()

    def __init__(self, group):
        self.group, self.passed, self.failed = group, 0, 0

    def line(self, text):
        """Takes `ok NAME` or `FAIL NAME: why`; anything else is shown as it is."""
        verdict, _, rest = text.partition(" ")
        if verdict == "ok":
            self.passed += 1
        elif verdict == "FAIL":
            self.failed += 1
        else:
            verdict, rest = "#", text
        # Answers quoted in a failure may hold anything; a line stays one line of text.
        rest = "".join(letter if letter.isprintable() else "?" for letter in rest)
        with self._printing:
            print(f"{verdict} {self.group}: {rest}", flush=True)

    def case(self, name, work, *arguments):
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001: a case must not end the others
            why = str(error) if isinstance(error, AssertionError | StartError) else repr(error)
            self.line(f"FAIL {name}: {why}".replace("\n", " "))
        else:
            self.line(f"ok {name}")

    def end(self, server):
        """Stops a ringway; two cases of every group that ran whole."""
        self.case("ringway ends cleanly on SIGTERM", _ends_cleanly, server)
        self.case("nothing panicked", _no_panics, server)


def _ends_cleanly(server):
    code = server.stop()
    assert code == 0, "it had to be killed" if code is None else f"exit code {code}"


def _no_panics(server):
    assert not server.panics(), server.panics()[0]

"""The upstream fixture (server.mjs) as a process, and a ringway in front of it."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from services import Server, StartError, end_of, stop

HERE = Path(__file__).resolve().parent
CATALOG = HERE / "catalog.toml"
LISTED_SECONDS_MAX = 20
ACCEPT = "application/json, text/event-stream"

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Upstream:
    """A running fixture; `revision` and more options are those of server.mjs."""

    def __init__(self, revision, log, *options):
        self.revision = revision
        command = ["node", HERE / "server.mjs", "--revision", revision, "--port", "0", *options]
        with log.open("w") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        word, _, self.url = self.process.stdout.readline().strip().partition(" ")
        if word != "listening":
            stop(self.process)
            raise StartError(f"the upstream did not start: {end_of(log)}")

    def control(self, word, **parameters):
        """Uses the side door."""
        query = urllib.parse.urlencode(parameters)
        url = urllib.parse.urljoin(self.url, f"/control/{word}?{query}")
        with _OPENER.open(urllib.request.Request(url, method="POST"), timeout=10):
            pass

    def state(self):
        url = urllib.parse.urljoin(self.url, "/control/state")
        with _OPENER.open(url, timeout=10) as answer:
            return json.load(answer)

    def stop(self):
        stop(self.process)
        self.process.stdout.close()


def ringway_before(upstream, binary, folder):
    """A ringway whose open client application sees the upstream; waits until its tools are there."""
    catalog = CATALOG.read_text().replace("http://127.0.0.1:8000/mcp", upstream.url)
    server = Server(binary, folder, {"catalog.toml": catalog})
    try:
        _wait_for_tools(url_of(server))
    except StartError:
        server.stop()
        raise
    return server


@contextlib.contextmanager
def running(revision, binary, folder, *options):
    """The fixture with these options, and a ringway before it unless `binary` is `None`."""
    folder.mkdir(parents=True)
    upstream = server = None
    try:
        upstream = Upstream(revision, folder / "upstream.log", *options)
        if binary:
            server = ringway_before(upstream, binary, folder / "ringway")
        yield upstream, server
    finally:
        for process in (server, upstream):
            if process:
                process.stop()


def url_of(server, transport="mcp"):
    return f"{server.base}/runtime/demo/everyone/{transport}"


def _wait_for_tools(url):
    deadline = time.monotonic() + LISTED_SECONDS_MAX
    answer = None
    while time.monotonic() < deadline:
        try:
            answer = _tools(url)
            if answer.get("result", {}).get("tools"):
                return
        except (urllib.error.URLError, OSError, ValueError) as error:
            answer = repr(error)
        time.sleep(0.1)
    raise StartError(f"no tools of the upstream are listed: {str(answer)[:300]}")


def _tools(url):
    """The tools as a legacy client sees them."""
    client = {"name": "ringway-tests", "version": "1.0.0"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    _, headers = _post(url, "initialize", hello)
    session = headers.get("Mcp-Session-Id")
    more = {"Mcp-Session-Id": session} if session else {}
    try:
        answer, _ = _post(url, "tools/list", {}, more)
    finally:
        if session:
            request = urllib.request.Request(url, headers=more, method="DELETE")
            with _OPENER.open(request, timeout=10):
                pass
    return answer


def _post(url, method, params, more=None):
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": ACCEPT, "Content-Type": "application/json", **(more or {})}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    with _OPENER.open(request, timeout=10) as answer:
        text = answer.read().decode()
        if answer.headers.get_content_type() == "text/event-stream":
            data = [line[5:] for line in text.splitlines() if line.startswith("data:")]
            text = next(line for line in reversed(data) if line.strip())
        return json.loads(text), answer.headers

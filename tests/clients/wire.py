"""Exchanges on the bare wire: what no SDK shows, and what must hold whatever a client does.

Every case talks to a ringway of this group's own (see ringway.py), over plain sockets, so that
half-read streams, torn requests and the exact bytes of an answer are in its hands.
"""

import contextlib
import http.client
import json
import socket
import time
import urllib.parse

# Short waits, so that the cases about slow clients need not be slow themselves.
SETTINGS = {
    "http": {"head_timeout_ms": 1500, "body_timeout_ms": 1500, "body_bytes_max": 262_144},
    "runtime.mcp.sse": {"keep_alive_seconds": 1, "post_stream_retention_seconds": 60},
}
BOTH = "application/json, text/event-stream"
EVENTS = "text/event-stream"
NEWEST = "2025-11-25"
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
SECONDS_MAX = 15


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {name.lower(): value for name, value in headers}

    @property
    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"HTTP {self.status} {self.body[:200]!r}"


class Endpoint:
    """One client application's URL, with the key that opens it."""

    def __init__(self, server, application="assistant", key=True):
        self.server, self.application = server, application
        self.key = server.keys.get(application) if key is True else key
        self.path = f"/runtime/demo/{application}/mcp"
        self.host = f"Host: 127.0.0.1:{server.port}"

    def headers(self, session=None, accept=BOTH, **more):
        headers = {"Accept": accept} if accept else {}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if session:
            headers["Mcp-Session-Id"] = session
        return headers | {name.replace("_", "-"): value for name, value in more.items()}

    def send(self, method, body=None, session=None, path=None, accept=BOTH, **more):
        """One request on a connection of its own, read to its end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=SECONDS_MAX)
        headers = self.headers(session, accept, **more)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request(method, path or self.path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())

    def post(self, body, session=None, **more):
        return self.send("POST", body, session, **more)

    def initialize(self, revision=NEWEST):
        answer = self.post(initialize(revision))
        assert answer.status == 200, answer
        session = answer.headers["mcp-session-id"]
        noted = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
        assert noted.status == 202 and noted.body == b"", noted
        return session

    def stream(self, method="GET", body=None, session=None, accept=EVENTS, **more):
        return Stream(self, method, body, self.headers(session, accept, **more))


class Stream:
    """An open event stream, read one event at a time."""

    def __init__(self, endpoint, method, body, headers, path=None):
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", endpoint.server.port, timeout=SECONDS_MAX
        )
        if body is not None:
            headers = headers | {"Content-Type": "application/json"}
            body = json.dumps(body).encode()
        self.connection.request(method, path or endpoint.path, body, headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status
        self.headers = {name.lower(): value for name, value in self.answer.getheaders()}

    def __enter__(self):
        assert self.status == 200, f"HTTP {self.status} {self.answer.read()[:200]!r}"
        return self

    def __exit__(self, *_):
        self.connection.close()

    def events(self):
        """Each event as (id, event, data); comments are passed over. Ends with the stream."""
        fields = {}
        while line := self.answer.readline():
            line = line.decode().rstrip("\r\n")
            if line:
                name, _, value = line.partition(":")
                if name:
                    value = value.removeprefix(" ")
                    fields[name] = fields[name] + "\n" + value if name == "data" and name in fields else value
            elif fields:
                if "data" in fields or "event" in fields:
                    yield fields.get("id"), fields.get("event"), fields.get("data", "")
                fields = {}

    def next_message(self):
        """The next event with data, as (id, text); None at the stream's end."""
        for event_id, _, data in self.events():
            if data:
                return event_id, data
        return None

    def comment(self):
        while line := self.answer.readline():
            if line.startswith(b":"):
                return line
        return None


def rpc(method, params=None, number=1):
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else message | {"params": params}


def initialize(revision=NEWEST):
    client = {"name": "wire", "version": "1"}
    return rpc("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": client})


def call(tool, arguments, number=1):
    return rpc("tools/call", {"name": tool, "arguments": arguments}, number)


def expect(answer, status, code=None):
    assert answer.status == status, f"wanted {status}: {answer}"
    if code is not None:
        assert answer.json["error"]["code"] == code, answer
        assert answer.json.get("id") is None or status in (200, 404), answer


def raw(server, request, end=False, most=65_536):
    """Bytes out, bytes in until the server closes, has answered, or says nothing more."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as peer:
        peer.sendall(request)
        if end:
            peer.shutdown(socket.SHUT_WR)
        received = b""
        while len(received) < most:
            try:
                piece = peer.recv(4096)
            except ConnectionResetError:
                break
            if not piece:
                break
            received += piece
        return received


def request_bytes(endpoint, body, *lines):
    head = [f"POST {endpoint.path} HTTP/1.1", *lines, f"Authorization: Bearer {endpoint.key}"]
    return "\r\n".join([*head, f"Accept: {BOTH}", "Content-Type: application/json", "", ""]).encode() + body


# --- the endpoint -------------------------------------------------------------------------------


def needs_a_key(server):
    nobody = Endpoint(server, key=None)
    for method in ("POST", "GET", "DELETE", "HEAD"):
        answer = nobody.send(method, rpc("ping") if method == "POST" else None)
        expect(answer, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer"), answer.headers
    expect(Endpoint(server, key="rw_000000000000_" + "A" * 43).post(rpc("ping")), 401)


def key_in_either_header(server):
    e = Endpoint(server)
    expect(Endpoint(server, key=None).post(rpc("ping"), X_Api_Key=e.key), 200)


def head_and_preflight(server):
    e = Endpoint(server)
    answer = e.send("HEAD")
    expect(answer, 204)
    assert "mcp-session-id" not in answer.headers, "HEAD opened a session"
    preflight = Endpoint(server, key=None).send(
        "OPTIONS", Origin=server.base, Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="mcp-session-id",
    )
    assert preflight.status in (200, 204), preflight
    assert "POST" in preflight.headers["access-control-allow-methods"], preflight.headers


def other_methods(server):
    answer = Endpoint(server).send("PUT", {})
    expect(answer, 405)
    assert {"POST", "GET", "DELETE"} <= set(answer.headers["allow"].replace(" ", "").split(","))


def negotiation(server):
    e = Endpoint(server)
    for asked in [*REVISIONS, "1999-01-01", "2026-07-28"]:
        given = e.post(initialize(asked)).json["result"]["protocolVersion"]
        assert given == (asked if asked in REVISIONS else NEWEST), f"{asked}: {given}"


def unknown_sessions(server):
    e = Endpoint(server)
    bodies = set()
    for method in ("POST", "GET", "DELETE"):
        body = rpc("ping") if method == "POST" else None
        answer = e.send(method, body, "nobody-knows-this-session-0000", accept=BOTH)
        expect(answer, 404)
        bodies.add(answer.body)
    other = Endpoint(server, "strict").initialize()
    answer = e.post(rpc("ping"), other)
    expect(answer, 404)
    assert bodies == {answer.body}, "another's session must read like an unknown one"


def session_required(server):
    strict = Endpoint(server, "strict")
    expect(strict.post(rpc("tools/list")), 400)
    expect(strict.post(rpc("tools/list"), strict.initialize()), 200)
    expect(Endpoint(server).post(rpc("tools/list")), 200)


def ended_session(server):
    e = Endpoint(server)
    session = e.initialize()
    expect(e.send("DELETE", session=session), 204)
    expect(e.send("DELETE", session=session), 404)
    expect(e.post(rpc("ping"), session), 404)
    expect(e.send("GET", session=session, accept=EVENTS), 404)


def kinds_of_answer(server):
    e = Endpoint(server)
    session = e.initialize()
    kinds = {
        "application/json": "application/json", EVENTS: EVENTS, BOTH: "application/json",
        "*/*": "application/json", None: "application/json",
        "application/json;q=0.2, TEXT/Event-Stream;q=0": "application/json",
    }
    for accept, kind in kinds.items():
        answer = e.post(rpc("ping"), session, accept=accept)
        expect(answer, 200)
        assert answer.headers["content-type"].startswith(kind), f"{accept}: {answer.headers}"
    expect(e.post(rpc("ping"), session, accept="text/html"), 406)
    expect(e.send("GET", session=session, accept="application/json"), 406)


def bad_messages(server):
    e = Endpoint(server)
    expect(e.post(b"{nonsense"), 400, -32700)
    expect(e.post({"hello": 1}), 400, -32600)
    expect(e.post({"jsonrpc": "2.0", "id": None, "method": "ping"}), 400, -32600)
    expect(e.post({"jsonrpc": "2.0", "id": [1], "method": "ping"}), 400, -32600)
    expect(e.post(b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}'), 400)
    expect(e.post(b"[" * 200_000), 400)
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 20_000
    expect(e.post(deep + b"1" + b"}" * 20_001), 400)
    expect(e.post(rpc("ping"), MCP_Protocol_Version="1999-01-01"), 400)
    expect(e.post(rpc("ping"), Origin="https://evil.example"), 403)
    # Only the head: an answer that comes before the body must not be lost to a reset.
    received = raw(server, request_bytes(e, b"", e.host, "Content-Length: 300000"))
    assert received.startswith(b"HTTP/1.1 413"), received[:100]
    expect(e.post(rpc("no/such/method")), 200, -32601)


def ids_come_back(server):
    e = Endpoint(server)
    for text in (b"7", b'"a\\u0041"', b"9007199254740993", b"123456789012345678901234567890"):
        answer = e.post(b'{"jsonrpc":"2.0","id":' + text + b',"method":"ping"}')
        expect(answer, 200)
        assert b'"id":' + text in answer.body, answer


def batches(server):
    e = Endpoint(server)
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    session = e.initialize("2025-03-26")
    answer = e.post([rpc("ping", number=1), note, rpc("tools/list", number="b")], session)
    expect(answer, 200)
    assert sorted(str(entry["id"]) for entry in answer.json) == ["1", "b"], answer
    expect(e.post([note, note], session), 202)
    assert e.post([], session).json["error"]["code"] == -32600
    expect(e.post([initialize("2025-03-26"), rpc("ping")]), 400)
    expect(e.post([rpc("ping")], e.initialize(), MCP_Protocol_Version=NEWEST), 400, -32600)


def modern_probe(server):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "server/discover"}
    answer = Endpoint(server).post(rpc("server/discover", {"_meta": meta}), **headers)
    expect(answer, 200)
    assert "2026-07-28" in answer.json["result"]["supportedVersions"], answer
    meta["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
    headers["MCP_Protocol_Version"] = "2099-01-01"
    answer = Endpoint(server).post(rpc("server/discover", {"_meta": meta}), **headers)
    expect(answer, 400)
    assert (answer.json["id"], answer.json["error"]["code"]) == (1, -32022), answer


def public_pages(server):
    nobody = Endpoint(server, key=None)
    for path in ("/", "/healthz", "/readyz"):
        expect(nobody.send("GET", path=path, accept="application/json"), 200)
    expect(nobody.send("GET", path="/nothing/here", accept=None), 404)
    expect(Endpoint(server).post(rpc("ping"), path="/mcp"), 200)
    expect(Endpoint(server).post(rpc("ping"), path=Endpoint(server).path + "/"), 200)


# --- framing ------------------------------------------------------------------------------------


def pipelining(server):
    e = Endpoint(server)
    both = b""
    for number in (1, 2, 3):
        body = json.dumps(rpc("ping", number=number)).encode()
        close = ("Connection: close",) if number == 3 else ()
        both += request_bytes(e, body, e.host, f"Content-Length: {len(body)}", *close)
    received = raw(server, both)
    places = [received.find(b'"id":%d' % number) for number in (1, 2, 3)]
    assert -1 not in places and places == sorted(places), received[:600]


def torn_bytes(server):
    e = Endpoint(server)
    body = json.dumps(rpc("ping")).encode()
    chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    message = request_bytes(e, chunked, e.host, "Transfer-Encoding: chunked", "Connection: close")
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in message:
            peer.sendall(bytes([byte]))
        received = b""
        while piece := peer.recv(4096):
            received += piece
    assert received.startswith(b"HTTP/1.1 200") and b'"result":{}' in received, received[:300]


def asks_to_continue(server):
    e = Endpoint(server)
    body = json.dumps(rpc("ping")).encode()
    lines = (e.host, f"Content-Length: {len(body)}", "Expect: 100-continue", "Connection: close")
    head = request_bytes(e, b"", *lines)
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as peer:
        peer.sendall(head)
        assert peer.recv(4096).startswith(b"HTTP/1.1 100"), "no 100 Continue"
        peer.sendall(body)
        assert peer.recv(4096).startswith(b"HTTP/1.1 200")


def half_closed(server):
    e = Endpoint(server)
    body = json.dumps(rpc("ping")).encode()
    message = request_bytes(e, body, e.host, f"Content-Length: {len(body)}")
    received = raw(server, message, end=True)
    assert received.startswith(b"HTTP/1.1 200"), received[:300]


def smuggling(server):
    e = Endpoint(server)
    body = b"0\r\n\r\n"
    ambiguous = {
        "both lengths": (e.host, "Content-Length: 5", "Transfer-Encoding: chunked"),
        "two lengths": (e.host, "Content-Length: 5", "Content-Length: 6"),
        "a signed length": (e.host, "Content-Length: +5"),
        "no host": ("Content-Length: 5",),
        "two hosts": (e.host, e.host, "Content-Length: 5"),
        "a folded line": (e.host, "X-A: 1\r\n 2", "Content-Length: 5"),
        "a space before the colon": (e.host, "Content-Length : 5"),
        "a bare line feed": (e.host + "\nX-A: 1", "Content-Length: 5"),
    }
    for what, lines in ambiguous.items():
        received = raw(server, request_bytes(e, body, *lines))
        assert received.startswith(b"HTTP/1.1 400"), f"{what}: {received[:100]!r}"
        assert received.count(b"HTTP/1.1 ") == 1, f"{what}: more than one answer"


def slow_heads(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as peer:
        peer.sendall(b"POST /mcp HTTP/1.1\r\nHost:")
        received = peer.recv(4096)
    assert received.startswith(b"HTTP/1.1 408"), received[:100]


def large_heads(server):
    received = raw(server, b"GET / HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 33_500 + b"\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 431"), received[:100]


# --- streams ------------------------------------------------------------------------------------


def slow_call_as_stream(server):
    e = Endpoint(server)
    session = e.initialize()
    with e.stream("POST", call("wait", {"seconds": 2.5}), session, BOTH) as stream:
        assert stream.headers["content-type"].startswith(EVENTS), stream.headers
        assert stream.headers["x-accel-buffering"] == "no", stream.headers
        assert "no-cache" in stream.headers["cache-control"], stream.headers
        first = next(stream.events())
        assert first[0] and first[2] == "", f"the first event must be a priming event: {first}"
        assert stream.comment(), "no keep-alive within 2.5 s where one is due every second"
        event_id, data = stream.next_message()
        assert event_id and json.loads(data)["id"] == 1, data
        assert stream.next_message() is None, "the stream must end with the response"


def no_priming_for_older_revisions(server):
    e = Endpoint(server)
    session = e.initialize("2025-06-18")
    with e.stream("POST", call("wait", {"seconds": 0.5}), session, BOTH) as stream:
        events = list(stream.events())
    assert len(events) == 1 and "result" in json.loads(events[0][2]), events


def standing_stream(server):
    e = Endpoint(server)
    session = e.initialize()
    with e.stream(session=session) as stream:
        assert stream.headers["content-type"].startswith(EVENTS)
        # A second one only when the first is gone.
        expect(e.send("GET", session=session, accept=EVENTS), 409)
        server.notify()
        event_id, data = stream.next_message()
        assert event_id and json.loads(data)["method"] == "notifications/tools/list_changed", data


def taken_over_by_its_reader(server):
    e = Endpoint(server)
    session = e.initialize()
    with e.stream(session=session) as stream:
        server.notify()
        event_id, _ = stream.next_message()
        with e.stream(session=session, Last_Event_ID=event_id) as again:
            server.notify()
            assert again.next_message(), "nothing on the stream that took over"


def dropped_call_goes_on(server):
    e = Endpoint(server)
    session = e.initialize()
    with e.stream("POST", call("wait", {"seconds": 1.5, "label": "kept"}, 9), session, BOTH) as stream:
        event_id = next(stream.events())[0]
    with e.stream(session=session, Last_Event_ID=event_id) as again:
        _, data = again.next_message()
    assert json.loads(data)["id"] == 9 and "kept" in data, data


def cancelled_call_does_not_answer(server):
    e = Endpoint(server)
    session = e.initialize()
    with e.stream("POST", call("wait", {"seconds": 3}, 5), session, BOTH) as stream:
        next(stream.events())
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
        expect(e.post(cancel, session), 202)
        begin = time.monotonic()
        assert stream.next_message() is None, "a cancelled call was answered"
        assert time.monotonic() - begin < 2.5, "the call was not cancelled, only silenced"


def restart(server, how):
    """Sessions and half-read streams over the end of the process, exactly the rest replayed."""
    e = Endpoint(server)
    session = e.initialize()
    with e.stream("POST", call("wait", {"seconds": 0.5, "label": "kept"}, 7), session, BOTH) as posted:
        primed = next(posted.events())[0]
        answered, answer = posted.next_message()
    with e.stream(session=session) as standing:
        seen = []
        for _ in range(3):
            server.notify()
            seen.append(standing.next_message())
        # The reader saw three; as far as the server can know from its request, one.
        how()
        expect(e.post(rpc("ping"), session), 200)
    with e.stream(session=session, Last_Event_ID=seen[0][0]) as again:
        replayed = [again.next_message(), again.next_message()]
        assert replayed == seen[1:], f"replayed {replayed}, not {seen[1:]}"
        server.notify()
        fresh = again.next_message()
        assert fresh[0] not in [event_id for event_id, _ in seen], "an event id was used twice"
    with e.stream(session=session, Last_Event_ID=primed) as again:
        assert again.next_message() == (answered, answer), "the answer was not replayed as it was"
    expect(e.send("DELETE", session=session), 204)
    how()
    expect(e.post(rpc("ping"), session), 404)


def old_transport(server):
    e = Endpoint(server)
    path = f"/runtime/demo/{e.application}/sse"
    with Stream(e, "GET", None, e.headers(accept=EVENTS), path) as stream:
        events = stream.events()
        _, kind, where = next(events)
        assert kind == "endpoint" and "://" not in where, (kind, where)
        where = urllib.parse.urljoin(path, where)
        expect(e.post(initialize("2024-11-05"), path=where), 202)
        _, kind, data = next(events)
        assert kind == "message", kind
        assert json.loads(data)["result"]["protocolVersion"] == "2024-11-05", data
        expect(Endpoint(server, key=None).post(rpc("ping"), path=where), 401)
        stranger = Endpoint(server, key=server.keys["strict"]).post(rpc("ping"), path=where)
        assert stranger.status in (401, 403, 404), stranger
        expect(e.post(call("wait", {"seconds": 0.3}, 3), path=where), 202)
        assert json.loads(next(events)[2])["id"] == 3
    deadline = time.monotonic() + SECONDS_MAX
    while e.post(rpc("ping"), path=where).status != 404:
        assert time.monotonic() < deadline, "the session outlives its stream"
        time.sleep(0.1)


def reader_that_stops(server):
    """A client that asks for much and reads nothing must not hold up another."""
    e = Endpoint(server)
    session = e.initialize()
    note = "x" * 60_000
    order = {"customer": {"full_name": "A"}, "lines": [{"product": "p", "count": 1}], "notes": [note]}
    body = json.dumps(call("place_order", {"order": order})).encode()
    line = f"Content-Length: {len(body)}"
    message = request_bytes(e, body, e.host, line, f"Mcp-Session-Id: {session}")
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS_MAX) as peer:
        peer.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(200):
                peer.send(message)
        for number in range(20):
            expect(e.post(rpc("ping", number=number), session), 200)


CASES = {
    "a key is needed on every method": needs_a_key,
    "a key in either header": key_in_either_header,
    "HEAD and preflight": head_and_preflight,
    "other methods": other_methods,
    "version negotiation": negotiation,
    "unknown sessions": unknown_sessions,
    "a session where one is required": session_required,
    "an ended session": ended_session,
    "kinds of answer": kinds_of_answer,
    "bad messages": bad_messages,
    "ids come back as they were": ids_come_back,
    "batches": batches,
    "the modern probe": modern_probe,
    "public pages": public_pages,
    "pipelining": pipelining,
    "torn bytes": torn_bytes,
    "100-continue": asks_to_continue,
    "a half-closed socket": half_closed,
    "smuggling": smuggling,
    "slow heads": slow_heads,
    "large heads": large_heads,
    "a slow call as a stream": slow_call_as_stream,
    "no priming for older revisions": no_priming_for_older_revisions,
    "the standing stream": standing_stream,
    "a stream taken over by its reader": taken_over_by_its_reader,
    "a dropped call goes on": dropped_call_goes_on,
    "a cancelled call": cancelled_call_does_not_answer,
    "the old transport": old_transport,
    "a reader that stops": reader_that_stops,
    "kill -9 with open streams": lambda server: restart(server, server.kill_and_restart),
    "SIGTERM with open streams": lambda server: restart(server, server.stop_and_restart),
}


def run(report, server, chosen):
    for name, work in CASES.items():
        if not chosen or any(word in name for word in chosen):
            report.case(name, work, server)

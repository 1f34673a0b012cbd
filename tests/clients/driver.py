"""Drives a running ringway with the official Python SDK, 1.x or 2.x, whichever is installed.

run.py starts it with `http` or `sse`, the server's address and keys in the environment. It prints
`ok NAME` or `FAIL NAME: why` for each case. A line `@restart` or `@notify` asks run.py to kill and
restart the server, or to have it announce a changed tool list; `@unpublish`, `@publish` and
`@prompt` change what the governed client application sees; run.py answers each with one line.
The calls come from calls.json, which driver.mjs reads too: what holds for one SDK holds for all.
"""

import asyncio
import contextlib
import importlib.metadata
import json
import os
import sys
import time
from pathlib import Path

V2 = int(importlib.metadata.version("mcp").split(".")[0]) >= 2
if V2:
    import httpx2 as httpx
    from mcp import Client
    from mcp import MCPError as RemoteError
else:
    from datetime import timedelta

    import httpx
    from mcp import ClientSession
    from mcp import McpError as RemoteError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

TRANSPORT = sys.argv[1]
BASE = os.environ["RINGWAY_TEST_BASE"]
KEYS = {
    "assistant": os.environ["RINGWAY_TEST_KEY"],
    "strict": os.environ["RINGWAY_TEST_KEY_STRICT"],
    "governed": os.environ["RINGWAY_TEST_KEY_GOVERNED"],
}
EXPECTED = json.loads((Path(__file__).parent / "calls.json").read_text())
CHOSEN = [word for word in os.environ.get("RINGWAY_TEST_CASES", "").split("|") if word]
NEWEST = "2025-11-25"
MODERN = "2026-07-28"
CASE_SECONDS_MAX = 40


def plain(model):
    """A pydantic model as the JSON it came from."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def url(application):
    return f"{BASE}/runtime/demo/{application}/{'sse' if TRANSPORT == 'sse' else 'mcp'}"


async def ask(line):
    """Asks run.py for something only the server's owner can do."""
    print(line, flush=True)
    answer = (await asyncio.to_thread(sys.stdin.readline)).strip()
    assert answer == "done", f"{line} was answered {answer!r}"


class Connection:
    """One connected client, and what was seen on the wire meanwhile."""

    def __init__(self):
        self.client = None
        self.version = self.server = self.instructions = self.capabilities = None
        self.session_ids = []
        self.posts = []
        self.changed = asyncio.Event()
        self.told = asyncio.Queue()

    async def on_message(self, message):
        root = getattr(message, "root", message)
        method = getattr(root, "method", None) or ""
        if method == "notifications/tools/list_changed":
            self.changed.set()
        if method.endswith("/list_changed"):
            self.told.put_nowait(method.split("/")[1])

    async def on_response(self, response):
        if session := response.headers.get("mcp-session-id"):
            self.session_ids.append(session)
        if response.request.method == "POST" and response.status_code == 200:
            self.posts.append(response.headers.get("content-type", ""))

    async def call(self, tool, arguments, seconds=None, progress=None):
        options = {}
        if seconds is not None:
            options["read_timeout_seconds"] = seconds if V2 else timedelta(seconds=seconds)
        if progress is not None:

            async def on_progress(value, _total, _message):
                progress.append(value)

            options["progress_callback"] = on_progress
        return plain(await self.client.call_tool(tool, arguments, **options))

    async def tool_list(self):
        return await self.list("tools")

    async def list(self, what):
        options = {"cache_mode": "refresh"} if V2 else {}
        return plain(await getattr(self.client, f"list_{what}")(**options))[what]

    async def read(self, uri):
        options = {"cache_mode": "refresh"} if V2 else {}
        contents = plain(await self.client.read_resource(uri, **options))["contents"]
        assert contents[0]["uri"] == uri, contents
        return contents[0]["text"]


@contextlib.asynccontextmanager
async def connected(application="assistant", key=None, mode="legacy"):
    connection = Connection()
    key = key or KEYS.get(application)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with contextlib.AsyncExitStack() as stack:
        if TRANSPORT == "sse":
            transport = sse_client(url(application), headers=headers)
        else:
            http = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(30, read=60),
                trust_env=False,
                event_hooks={"response": [connection.on_response]},
            )
            await stack.enter_async_context(http)
            transport = streamable_http_client(url(application), http_client=http)
        if V2:
            client = Client(transport, mode=mode, message_handler=connection.on_message)
            connection.client = await stack.enter_async_context(client)
            connection.version = client.protocol_version
            connection.server = plain(client.server_info)
            connection.capabilities = plain(client.server_capabilities)
            connection.instructions = client.instructions
        else:
            streams = await stack.enter_async_context(transport)
            session = ClientSession(streams[0], streams[1], message_handler=connection.on_message)
            connection.client = await stack.enter_async_context(session)
            greeting = plain(await session.initialize())
            connection.version = greeting["protocolVersion"]
            connection.server = greeting["serverInfo"]
            connection.capabilities = greeting["capabilities"]
            connection.instructions = greeting.get("instructions")
        yield connection


# --- what an answer must be ---------------------------------------------------------------------


def look_up(document, pointer):
    """The value a JSON pointer names, as a list of one; nothing when it is not there."""
    for part in pointer.split("/")[1:]:
        try:
            document = document[int(part)] if isinstance(document, list) else document[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return []
    return [document]


def judge(call, result):
    text = "\n".join(block.get("text", "") for block in result.get("content", []))
    shown = text[:300]
    assert bool(result.get("isError")) == call.get("error", False), f"isError is wrong: {shown}"
    for wanted in call.get("contains", []):
        assert wanted in text, f"{wanted!r} is not in {shown}"
    if "equals" not in call and "absent" not in call:
        return
    documents = [json.loads(text)]
    if "structuredContent" in result:
        documents.append(result["structuredContent"])
    for document in documents:
        for pointer, value in call.get("equals", {}).items():
            assert look_up(document, pointer) == [value], (
                f"{pointer} is {look_up(document, pointer)}, not {value!r}, in {shown}"
            )
        for pointer in call.get("absent", []):
            assert look_up(document, pointer) == [], f"{pointer} is in {shown}"


# --- cases --------------------------------------------------------------------------------------


async def handshake(c):
    assert c.version == NEWEST, c.version
    assert c.server["name"].lower() == "ringway", c.server
    assert "tools" in c.capabilities, c.capabilities
    assert "httpbin" in (c.instructions or ""), c.instructions
    if TRANSPORT == "http":
        session = c.session_ids[0]
        assert len(session) >= 22 and all("\x21" <= letter <= "\x7e" for letter in session), session


async def tool_list(c):
    tools = {tool["name"]: tool for tool in await c.tool_list()}
    assert sorted(tools) == sorted(EXPECTED["tools"]), sorted(tools)
    schema = tools["search"]["inputSchema"]
    assert schema["type"] == "object" and schema["required"] == ["text"], schema
    assert schema["properties"]["sort"]["enum"] == ["newest", "oldest"], schema
    assert schema["properties"]["limit"]["default"] == 10, schema
    assert "source" not in schema["properties"], "a constant is shown to clients"
    order = tools["place_order"]["inputSchema"]["properties"]["order"]
    assert "channel" not in order["properties"], "a constant is shown to clients"
    lines = order["properties"]["lines"]
    assert lines["type"] == "array" and "product" in lines["items"]["properties"], lines
    assert all(tool.get("description") for tool in tools.values())
    assert tools["search"]["annotations"]["readOnlyHint"] is True


async def other_lists(c):
    assert plain(await c.client.list_resources())["resources"] == []
    templates = plain(await c.client.list_resource_templates())["resourceTemplates"]
    assert [one["uriTemplate"] for one in templates] == EXPECTED["templates"], templates
    assert plain(await c.client.list_prompts())["prompts"] == []


async def ping(c):
    await c.client.send_ping()


async def unknown_tool(c):
    try:
        result = await c.call("no_such_tool", {})
    except RemoteError as error:
        assert error.error.code == -32602, error.error
    else:
        raise AssertionError(f"a result: {result}")


async def hidden_tool(c):
    try:
        result = await c.call(EXPECTED["hidden_tools"][0], {})
    except RemoteError as error:
        assert error.error.code == -32602, error.error
    else:
        raise AssertionError(f"a result: {result}")


async def large_answer(c):
    note = "0123456789abcdef" * 12_000
    order = {"customer": {"full_name": "A"}, "lines": [{"product": "p", "count": 1}], "notes": [note]}
    result = await c.call("place_order", {"order": order})
    judge({"equals": {"/json/order/notes/0": note}}, result)


async def parallel_calls(c):
    async def one(number):
        result = await c.call("search", {"text": f"call {number}", "limit": number})
        judge({"equals": {"/args/q": f"call {number}", "/args/limit": str(number)}}, result)

    await asyncio.gather(*(one(number) for number in range(20)))


async def parallel_slow_calls(c):
    begin = time.monotonic()
    calls = (c.call("wait", {"seconds": 1, "label": f"n{n}"}) for n in range(10))
    for number, result in enumerate(await asyncio.gather(*calls)):
        judge({"equals": {"/args/label": f"n{number}"}}, result)
    took = time.monotonic() - begin
    assert took < 6, f"ten waits of one second took {took:.1f} s: one after another"


async def progress(c):
    seen = []
    result = await c.call("wait", {"seconds": 1, "label": "watched"}, progress=seen)
    judge({"equals": {"/args/label": "watched"}}, result)
    assert seen == sorted(set(seen)), f"progress must rise: {seen}"


async def answer_kinds(c):
    await c.client.send_ping()
    assert c.posts[-1].startswith("application/json"), f"a ping was answered with {c.posts[-1]}"
    await c.call("wait", {"seconds": 1})
    assert c.posts[-1].startswith("text/event-stream"), f"a slow call came as {c.posts[-1]}"


async def abandoned_call(c):
    begin = time.monotonic()
    try:
        await c.call("wait", {"seconds": 8}, seconds=0.4)
    except RemoteError:
        pass
    else:
        raise AssertionError("the call did not time out")
    await c.client.send_ping()
    judge({"equals": {"/args/q": "after"}}, await c.call("search", {"text": "after"}))
    assert time.monotonic() - begin < 6, "the session was blocked by the abandoned call"


async def list_changed(c):
    """The standing stream opens in the background: announce until one announcement arrives."""
    c.changed.clear()
    deadline = time.monotonic() + 15
    while not c.changed.is_set():
        assert time.monotonic() < deadline, "no tools/list_changed arrived in 15 s"
        await ask("@notify")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(c.changed.wait(), 0.5)


async def session_ends():
    async with connected() as c:
        await c.client.send_ping()
        session = c.session_ids[0]
    headers = {
        "Authorization": f"Bearer {KEYS['assistant']}",
        "Accept": "application/json, text/event-stream",
        "Mcp-Session-Id": session,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.post(url("assistant"), json=body, headers=headers)
    assert answer.status_code == 404, f"the ended session was answered {answer.status_code}"


async def restart():
    if TRANSPORT == "sse":
        # There the stream is the session: what must work is coming back.
        async with connected() as c:
            await c.client.send_ping()
        await ask("@restart")
        async with connected() as c:
            judge({"equals": {"/args/q": "back"}}, await c.call("search", {"text": "back"}))
        return
    async with connected() as c:
        judge({"equals": {"/args/q": "before"}}, await c.call("search", {"text": "before"}))
        await ask("@restart")
        judge({"equals": {"/args/q": "after"}}, await c.call("search", {"text": "after"}))
        await c.client.send_ping()
        assert len(set(c.session_ids)) == 1, f"the session changed: {c.session_ids}"
        await list_changed(c)


async def automatic_mode():
    async with connected(mode="auto") as c:
        assert c.version == MODERN, c.version
        assert c.server["name"] == "ringway", c.server
        assert "completions" in c.capabilities, c.capabilities
        judge({"equals": {"/args/q": "auto"}}, await c.call("search", {"text": "auto"}))
        assert {tool["name"] for tool in await c.tools()} == set(EXPECTED["tools"])
        await unknown_tool(c)
        await parallel_calls(c)
        await parallel_slow_calls(c)
        await progress(c)
        for call in EXPECTED["calls"]:
            await expected_call(c, call)
        assert not c.session_ids, c.session_ids


async def subscribed():
    async with connected(mode="auto") as c:
        async with c.client.listen(tools_list_changed=True) as told:
            await ask("@notify")
            async with asyncio.timeout(10):
                async for _ in told:
                    break
        assert await c.tools()


async def open_application():
    async with connected("public") as c:
        judge({"equals": {"/args/q": "open"}}, await c.call("search", {"text": "open"}))


async def strict_application():
    async with connected("strict") as c:
        judge({"equals": {"/args/q": "strict"}}, await c.call("search", {"text": "strict"}))


async def refused(key, application="assistant"):
    try:
        async with asyncio.timeout(15), connected(application, key=key):
            pass
    except TimeoutError:
        raise AssertionError("connecting hung") from None
    except Exception:  # noqa: BLE001: each SDK wraps the refusal in its own way
        return
    raise AssertionError("connected with a key that must be refused")


async def wrong_key():
    await refused("rw_000000000000_" + "A" * 43)


async def key_of_another_application():
    await refused(KEYS["strict"])


# --- a governed catalog -------------------------------------------------------------------------

PROMPT = "A record is told by its number.\n\nAnswer in one sentence.\n\nRead before you write."
PROMPT_URI = "runtime://toolsets/records/system-prompt"


async def governed_tools(c):
    tools = {tool["name"]: tool for tool in await c.tool_list()}
    assert sorted(tools) == ["discover_tool_schema", "list_slides", "read_record"], sorted(tools)
    read = tools["read_record"]
    assert read["title"] == "read record", read
    assert sorted(read["inputSchema"]["properties"]) == ["filter_tag", "number"], read
    assert "description" not in json.dumps(read["inputSchema"]), read
    assert read["annotations"]["readOnlyHint"] is True, read
    assert read["_meta"]["io.ringway/safety"]["sideEffect"] == "read", read


async def discovered_schema(c):
    result = await c.call("discover_tool_schema", {"tool_id": "read_record"})
    properties = json.loads(result["content"][0]["text"])["inputSchema"]["properties"]
    assert properties["number"]["description"] == "The number of the record.", properties


async def prompts_and_resources(c):
    assert [prompt["name"] for prompt in await c.list("prompts")] == ["records"]
    prompt = plain(await c.client.get_prompt("records"))
    assert [message["content"]["text"] for message in prompt["messages"]] == [PROMPT], prompt
    assert [one["uri"] for one in await c.list("resources")] == [PROMPT_URI]
    assert await c.read(PROMPT_URI) == PROMPT
    schema = json.loads(await c.read("runtime://tools/read_record/schema"))
    assert schema["inputSchema"]["required"] == ["number"], schema


async def unknown_resource(c):
    try:
        text = await c.read("runtime://toolsets/httpbin/system-prompt")
    except RemoteError as error:
        assert error.error.code == -32002, error.error
    else:
        raise AssertionError(f"a resource: {text}")


async def denied_tool(c):
    try:
        result = await c.call("erase_record", {})
    except RemoteError as error:
        assert error.error.code == -32602, error.error
    else:
        raise AssertionError(f"a result: {result}")


async def structured_output(c):
    """The SDK itself checks the content against the output schema that was listed."""
    result = await c.call("read_record", {"number": "7", "filter_tag": "new"})
    expected = {"how": "GET", "filters": {"$filter[tag]": "new"}}
    assert result["structuredContent"] == expected, result
    assert json.loads(result["content"][0]["text"]) == expected, result


async def rest_of_a_result(c):
    first = await c.call("list_slides", {})
    assert len(first["structuredContent"]["slideshow"]["slides"]) == 1, first
    rest = first["_meta"]["io.ringway/rest"]
    assert rest["missing"]["rows"] == 1, rest
    part = json.loads(await c.read(rest["uri"]))["continues"][0]
    assert part["from"] == 1 and len(part["rows"]) == 1, part
    part = await c.call("list_slides", {"next": rest["next"]})
    assert not part.get("isError"), part


async def lists_change(c):
    """Each change is told once, of the lists it changes, and those are others then."""
    await list_changed(c)

    async def told():
        return await asyncio.wait_for(c.told.get(), 10)

    # What was announced to find out whether the stream is open.
    with contextlib.suppress(TimeoutError):
        while True:
            await asyncio.wait_for(c.told.get(), 1)
    for wish, is_there in (("@unpublish", False), ("@publish", True)):
        await ask(wish)
        assert await told() == "tools"
        names = [tool["name"] for tool in await c.tool_list()]
        assert ("list_slides" in names) == is_there, names
    await ask("@prompt")
    assert {await told(), await told()} == {"prompts", "resources"}
    text = await c.read(PROMPT_URI)
    assert text == PROMPT.replace("Read before you write.", "Write before you read."), text
    assert c.told.empty(), c.told


async def governed():
    async with connected("governed") as c:
        assert (c.instructions or "").startswith("Records, as httpbin tells them."), c.instructions
        await case("the tools of a governed catalog", governed_tools, c)
        await case("a schema that is discovered", discovered_schema, c)
        await case("prompts and resources", prompts_and_resources, c)
        await case("a resource of somebody else", unknown_resource, c)
        await case("a tool that a policy denies", denied_tool, c)
        await case("structured output under other names", structured_output, c)
        await case("the rest of a result", rest_of_a_result, c)
        await case("changed lists are told and read again", lists_change, c)


async def searching():
    async with connected("finder") as c:
        names = [tool["name"] for tool in await c.tool_list()]
        assert names == ["search_tools", "describe_tool", "call_tool", "list_slides"], names
        found = await c.call("search_tools", {"query": "read a record"})
        assert json.loads(found["content"][0]["text"])["tools"][0]["name"] == "read_record", found
        told = await c.call("describe_tool", {"name": "read_record"})
        assert "number" in json.loads(told["content"][0]["text"])["inputSchema"]["properties"], told
        arguments = {"name": "read_record", "arguments": {"number": 7}}
        result = await c.call("call_tool", arguments)
        assert json.loads(result["content"][0]["text"])["how"] == "GET", result


# --- running them -------------------------------------------------------------------------------


def leaves(error):
    """The causes inside exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]


async def case(name, work, *arguments):
    if CHOSEN and not any(word in name for word in CHOSEN):
        return
    try:
        async with asyncio.timeout(CASE_SECONDS_MAX):
            await work(*arguments)
    except BaseException as error:  # noqa: BLE001: a case must not end the others
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
            raise
        whys = [
            str(leaf) if isinstance(leaf, AssertionError) else repr(leaf) for leaf in leaves(error)
        ]
        print(f"FAIL {name}: {'; '.join(whys)}".replace("\n", " "), flush=True)
    else:
        print(f"ok {name}", flush=True)


async def expected_call(c, call):
    begin = time.monotonic()
    judge(call, await c.call(call["tool"], call["arguments"]))
    took_ms = (time.monotonic() - begin) * 1000
    assert took_ms <= call.get("within_ms", took_ms), f"took {took_ms:.0f} ms"


async def one_session():
    """Everything that one connection can show."""
    async with connected() as c:
        await case("handshake", handshake, c)
        await case("tool list", tool_list, c)
        await case("resource and prompt lists", other_lists, c)
        await case("ping", ping, c)
        for call in EXPECTED["calls"]:
            await case(call["name"], expected_call, c, call)
        await case("an unknown tool", unknown_tool, c)
        await case("a tool that is switched off", hidden_tool, c)
        await case("a large body both ways", large_answer, c)
        await case("twenty calls at once", parallel_calls, c)
        await case("slow calls side by side", parallel_slow_calls, c)
        await case("a slow call with progress", progress, c)
        await case("an abandoned call", abandoned_call, c)
        await case("tools/list_changed arrives", list_changed, c)
        if TRANSPORT == "http":
            await case("JSON when quick, SSE when slow", answer_kinds, c)


async def main():
    try:
        await one_session()
    except Exception as error:  # noqa: BLE001: the rest is still worth knowing
        whys = "; ".join(repr(leaf) for leaf in leaves(error)).replace("\n", " ")
        print(f"FAIL connecting and leaving: {whys}", flush=True)
    else:
        print("ok connecting and leaving", flush=True)
    if TRANSPORT == "http":
        await case("a closed client ends its session", session_ends)
        await case("a client application that wants sessions", strict_application)
    if V2 and TRANSPORT == "http":
        await case("auto mode speaks the revision without sessions", automatic_mode)
        await case("auto mode is told of changes it subscribes to", subscribed)
    await governed()
    await case("tools that are searched for", searching)
    await case("an open client application needs no key", open_application)
    await case("a wrong key is refused", wrong_key)
    await case("a key of another client application is refused", key_of_another_application)
    await case("kill -9 and restart", restart)


asyncio.run(main())

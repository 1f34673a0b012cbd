"""One column of the matrix with the official Python SDK, 1.x or 2.x, whichever is installed.

    driver.py URL http|sse|modern

`http` and `sse` are the transports of the legacy era, `modern` is 2026-07-28. It connects once
and tries everything that the protocol can do against the upstream fixture, whoever stands
between. It prints `ok THING` or `FAIL THING: why` for each. A line `@add NAME` asks run.py to
give the upstream one more tool and have it say so; run.py answers with one line. driver.mjs does
the same with the TypeScript SDKs.
"""

import asyncio
import base64
import contextlib
import importlib.metadata
import json
import os
import sys
import warnings

V2 = int(importlib.metadata.version("mcp").split(".")[0]) >= 2
if V2:
    import httpx2 as httpx
    import mcp_types as types
    from mcp import Client
else:
    import httpx
    from mcp import ClientSession, types
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

# Roots, sampling and logging are what is tested here, deprecated or not.
warnings.simplefilter("ignore")

URL, ERA = sys.argv[1:3]
MODERN = ERA == "modern"
CHOSEN = [word for word in os.environ.get("RINGWAY_TEST_CASES", "").split("|") if word]
SECONDS_MAX = 15
ARRIVES_SECONDS_MAX = 8
LEVELS = ["warning", "error", "critical", "alert", "emergency"]
PAGE = "https://example.com/sign-in"


def plain(model):
    """A pydantic model as the JSON it came from."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def text_of(result):
    return "\n".join(block.get("text", "") for block in result["content"])


def same(found, wanted):
    assert found == wanted, f"{json.dumps(found)}, not {json.dumps(wanted)}"


async def until(seconds, condition):
    """Asks again and again until what is asked for is there; says whether it came."""
    end = asyncio.get_running_loop().time() + seconds
    while not (found := await condition()):
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.1)
    return found


async def ask(line):
    print(line, flush=True)
    answer = (await asyncio.to_thread(sys.stdin.readline)).strip()
    assert answer == "done", f"{line} was answered {answer!r}"


class Column:
    def __init__(self):
        self.client = None
        self.logged, self.updated, self.changed, self.visited = [], [], [], []

    # --- what the client answers and hears ------------------------------------------------------

    async def elicit(self, _context, params):
        asked = plain(params)
        if asked.get("mode") == "url":
            self.visited.append(asked["url"])
            return types.ElicitResult(action="accept")
        wanted = asked["requestedSchema"]["properties"]
        same(list(wanted), ["name"])
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def complete(self, _context, params):
        said = plain(params)["messages"][0]["content"]
        said = said[0] if isinstance(said, list) else said
        content = types.TextContent(type="text", text=f"heard {said['text']}")
        return types.CreateMessageResult(role="assistant", model="test", content=content)

    async def roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    async def log(self, params):
        self.logged.append((params.level, params.data))

    async def hear(self, message):
        root = getattr(message, "root", message)
        method = getattr(root, "method", None) or ""
        if method == "notifications/resources/updated":
            self.updated.append(str(root.params.uri))
        elif method.endswith("/list_changed"):
            self.changed.append(method.split("/")[1])

    # --- connecting -----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connected(self):
        async with contextlib.AsyncExitStack() as stack:
            if ERA == "sse":
                transport = sse_client(URL)
            else:
                patience = httpx.Timeout(30, read=60)
                http = httpx.AsyncClient(timeout=patience, trust_env=False)
                await stack.enter_async_context(http)
                transport = streamable_http_client(URL, http_client=http)
            callbacks = {
                "elicitation_callback": self.elicit,
                "sampling_callback": self.complete,
                "list_roots_callback": self.roots,
                "logging_callback": self.log,
                "message_handler": self.hear,
            }
            if V2:
                mode = "auto" if MODERN else "legacy"
                client = Client(transport, mode=mode, **callbacks)
                self.client = await stack.enter_async_context(client)
                if MODERN:
                    same(client.protocol_version, "2026-07-28")
            else:
                streams = await stack.enter_async_context(transport)
                session = ClientSession(streams[0], streams[1], **callbacks)
                self.client = await stack.enter_async_context(session)
                await session.initialize()
            yield self

    async def call(self, tool, arguments=None, **options):
        return plain(await self.client.call_tool(tool, arguments or {}, **options))

    async def everything(self, method, member):
        """All pages of a list."""
        fresh = {"cache_mode": "refresh"} if V2 else {}
        found, more = [], {}
        while True:
            page = plain(await getattr(self.client, method)(**more, **({} if more else fresh)))
            found += page[member]
            if (cursor := page.get("nextCursor")) is None:
                return found
            more = {"cursor": cursor}

    @contextlib.asynccontextmanager
    async def listening(self, **filters):
        """Has changes delivered: by a subscription of its own in the modern era."""
        if not MODERN:
            for uri in filters.get("resource_subscriptions", []):
                await self.client.subscribe_resource(uri)
            yield
            return

        async def follow(subscription):
            async for event in subscription:
                kind = type(event).__name__
                if kind == "ResourceUpdated":
                    self.updated.append(str(event.uri))
                else:
                    self.changed.append(kind.removesuffix("ListChanged").lower())

        async with self.client.listen(**filters) as subscription:
            following = asyncio.create_task(follow(subscription))
            yield
            following.cancel()

    # --- the rows -------------------------------------------------------------------------------

    async def list(self):
        tools = await self.everything("list_tools", "tools")
        named = {tool["name"]: tool for tool in tools}
        missing = {"echo", "add", "slow", "ask", "wait", "touch"} - set(named)
        assert not missing, f"{sorted(missing)} are not in {sorted(named)}"
        same(named["echo"]["description"], "Gives back what it was given.")
        same(named["echo"]["inputSchema"]["required"], ["text"])

    async def called(self):
        said = "Grüße, 世界 \U0001f30d"
        result = await self.call("echo", {"text": said})
        same(text_of(result), said)
        failed = await self.call("fail", {"message": "no luck"})
        same((failed.get("isError"), text_of(failed)), (True, "no luck"))

    async def structured(self):
        same((await self.call("add", {"a": 1, "b": 2})).get("structuredContent"), {"sum": 3})

    async def progress(self):
        seen = []

        async def step(value, total, _message):
            seen.append((value, total))

        same(text_of(await self.call("slow", {"steps": 4}, progress_callback=step)), "4 steps done")
        same(seen, [(value, 4) for value in (1, 2, 3, 4)])

    async def log_messages(self):
        self.logged.clear()
        if MODERN:
            await self.call("log", meta={"io.modelcontextprotocol/logLevel": "warning"})
        else:
            await self.client.set_logging_level("warning")
            await self.call("log")

        async def complete():
            return len(self.logged) >= len(LEVELS)

        await until(ARRIVES_SECONDS_MAX, complete)
        same(self.logged, [(level, {"said": level}) for level in LEVELS])

    async def elicitation_form(self):
        same(text_of(await self.call("ask")), 'accept {"name":"Ada"}')

    async def elicitation_url(self):
        same(text_of(await self.call("ask_url")), "accept")
        same(self.visited, [PAGE])

    async def sampling(self):
        said = text_of(await self.call("sample", {"prompt": "hello"}))
        same(said, "the model said: heard hello")

    async def listed_roots(self):
        same(text_of(await self.call("list_roots")), "file:///work")

    async def cancel(self):
        label = f"{ERA} {os.getpid()}"
        before = getattr(self.client, "_request_id", None)
        running = asyncio.create_task(self.call("wait", {"seconds": 30, "label": label}))
        await asyncio.sleep(1)
        assert not running.done(), f"it did not wait: {running.result()}"
        if not V2:
            # The 1.x SDK has no word for it: the notification is made by hand.
            params = types.CancelledNotificationParams(requestId=before, reason="enough")
            notification = types.CancelledNotification(
                method="notifications/cancelled", params=params
            )
            await self.client.send_notification(types.ClientNotification(notification))
        running.cancel()

        async def told():
            return label in text_of(await self.call("cancelled"))

        assert await until(ARRIVES_SECONDS_MAX, told), "the upstream still waits"

    async def subscribe(self):
        uri = "test://watched"
        self.updated.clear()

        async def touched():
            # A subscription may take effect a little later than it is answered.
            if not self.updated:
                await self.call("touch")
                await asyncio.sleep(0.4)
            return self.updated

        async with self.listening(resource_subscriptions=[uri]):
            assert await until(ARRIVES_SECONDS_MAX, touched), "no update arrived"
        same(set(self.updated), {uri})

    async def list_changed(self):
        self.changed.clear()
        name = f"later_{os.getpid()}"

        async def told():
            return "tools" in self.changed

        async def listed():
            tools = await self.everything("list_tools", "tools")
            return name in [tool["name"] for tool in tools]

        async with self.listening(tools_list_changed=True):
            await ask(f"@add {name}")
            assert await until(ARRIVES_SECONDS_MAX, told), "no announcement arrived"
            assert await until(ARRIVES_SECONDS_MAX, listed), f"{name} is not listed"
        same(text_of(await self.call(name)), name)

    async def prompts(self):
        listed = await self.everything("list_prompts", "prompts")
        prompts = {prompt["name"]: prompt for prompt in listed}
        same([one["name"] for one in prompts["greeting"]["arguments"]], ["name", "tone"])
        arguments = {"name": "Ada", "tone": "formal"}
        result = plain(await self.client.get_prompt("greeting", arguments))
        same(result["messages"][0]["content"]["text"], "Greet Ada in a formal tone.")

    async def read(self, uri):
        fresh = {"cache_mode": "refresh"} if V2 else {}
        contents = plain(await self.client.read_resource(uri, **fresh))["contents"]
        same((len(contents), contents[0]["uri"]), (1, uri))
        return contents[0]

    async def resources(self):
        listed = [one["uri"] for one in await self.everything("list_resources", "resources")]
        assert "test://static/text" in listed, listed
        same((await self.read("test://static/text"))["text"], "static text")
        binary = await self.read("test://static/binary")
        assert base64.b64decode(binary["blob"]).startswith(b"\x89PNG"), binary

    async def templates(self):
        found = await self.everything("list_resource_templates", "resourceTemplates")
        assert "test://numbered/{number}" in [one["uriTemplate"] for one in found], found
        same(json.loads((await self.read("test://numbered/7"))["text"]), {"number": 7})

    async def completion(self):
        prompt = types.PromptReference(type="ref/prompt", name="greeting")
        template = types.ResourceTemplateReference(type="ref/resource", uri="test://numbered/{number}")
        for reference, argument, wanted in (
            (prompt, {"name": "tone", "value": "fr"}, ["friendly", "frosty"]),
            (template, {"name": "number", "value": "1"}, ["1", "12"]),
        ):
            result = plain(await self.client.complete(reference, argument))
            same(result["completion"]["values"], wanted)


ROWS = {
    "list": Column.list,
    "call": Column.called,
    "structured output": Column.structured,
    "progress": Column.progress,
    "log": Column.log_messages,
    "elicitation by form": Column.elicitation_form,
    "elicitation by URL": Column.elicitation_url,
    "sampling": Column.sampling,
    "roots": Column.listed_roots,
    "cancel": Column.cancel,
    "subscribe": Column.subscribe,
    "list changed": Column.list_changed,
    "prompts": Column.prompts,
    "resources": Column.resources,
    "templates": Column.templates,
    "completion": Column.completion,
}


def why(error):
    if isinstance(error, TimeoutError):
        return "no end in sight"
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(why(inner) for inner in error.exceptions)
    return str(error) if isinstance(error, AssertionError) else repr(error)


async def main():
    try:
        async with Column().connected() as column:
            for name, row in ROWS.items():
                if CHOSEN and not any(word in name for word in CHOSEN):
                    continue
                try:
                    await asyncio.wait_for(row(column), SECONDS_MAX)
                    print(f"ok {name}", flush=True)
                except Exception as error:  # noqa: BLE001: one row must not end the others
                    print(f"FAIL {name}: {why(error)}".replace("\n", " "), flush=True)
        print("ok connecting and leaving", flush=True)
    except BaseException as error:  # noqa: BLE001: an SDK raises groups of anything here
        print(f"FAIL connecting and leaving: {why(error)}".replace("\n", " "), flush=True)


asyncio.run(main())

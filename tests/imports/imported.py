"""Imports into a running ringway, and calls of what came of them."""

import base64
import decimal
import json
from pathlib import Path

import wire
from services import Server

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
IMPORT_SECONDS_MAX = 600
VERDICTS = ("operations", "imported", "imported_with_notes", "skipped")


def start(binary, folder):
    """A ringway with a tenant whose tools may reach this machine, and two client applications."""
    server = Server(binary, folder, {"catalog.toml": (HERE / "catalog.toml").read_text()})
    server.keys = {name: server.new_key(name) for name in ("assistant", "other")}
    return server


def bring_in(server, kind, source, toolset, *more):
    """One import; gives its report."""
    printed = server.command(
        "import", kind, str(source), "--toolset", toolset, "--json", *more,
        seconds_max=IMPORT_SECONDS_MAX,
    )
    return json.loads(printed)


def verdicts(report):
    return {name: report["counts"][name] for name in VERDICTS}


def told(report, key):
    """What the report says of one operation."""
    return next(entry for entry in report["operations"] if entry["operation"] == key)


def declare(server, text):
    """Applies a catalog file."""
    path = server.folder / "declared.toml"
    path.write_text(text)
    server.command("apply", str(path))


def assign(server, toolset, application="assistant"):
    """Gives the toolset to the client application."""
    lines = ('tenant = "demo"', f'client_application = "{application}"', f'toolset = "{toolset}"')
    declare(server, "\n".join(["[[assignment]]", *lines, ""]))


class Result:
    """What a tool answered. Numbers are exact: `Decimal` and `int`, never a float."""

    def __init__(self, answer):
        assert answer.status == 200, answer
        message = json.loads(answer.body, parse_float=decimal.Decimal)
        assert "result" in message, answer
        result = message["result"]
        self.is_error, self.content = result["isError"], result["content"]
        self.data = result.get("structuredContent")

    def __str__(self):
        return f"isError {self.is_error}: {json.dumps(self.content)[:600]}"

    @property
    def text(self):
        assert len(self.content) == 1 and self.content[0]["type"] == "text", self
        return self.content[0]["text"]

    @property
    def binary(self):
        """Media type and bytes of the only block, be it an image or a resource."""
        assert len(self.content) == 1, self
        block = self.content[0]
        if block["type"] == "resource":
            return block["resource"]["mimeType"], base64.b64decode(block["resource"]["blob"])
        return block["mimeType"], base64.b64decode(block["data"])


class Tools:
    """A session of a client application."""

    def __init__(self, server, application="assistant"):
        self.endpoint = wire.Endpoint(server, application)
        self.session = self.endpoint.initialize()

    def _post(self, body):
        return self.endpoint.post(body, self.session, accept="application/json")

    def listed(self):
        """Every tool by its name, over all pages."""
        tools, cursor = {}, None
        while True:
            message = wire.rpc("tools/list", {"cursor": cursor} if cursor else {})
            page = self._post(message).json["result"]
            tools |= {tool["name"]: tool for tool in page["tools"]}
            if not (cursor := page.get("nextCursor")):
                return tools

    def try_call(self, name, arguments=None):
        """Calls a tool. Arguments may be JSON text, for numbers that Python would round."""
        if isinstance(arguments, str):
            message = json.dumps(wire.call(name, {"": 0})).replace('{"": 0}', arguments)
            return Result(self._post(message.encode()))
        return Result(self._post(wire.call(name, arguments or {})))

    def call(self, name, arguments=None):
        result = self.try_call(name, arguments)
        assert not result.is_error, f"{name}: {result}"
        return result

    def error(self, name, arguments=None):
        """Calls a tool that must answer with an error; gives its text."""
        result = self.try_call(name, arguments)
        assert result.is_error, f"{name}: {result}"
        return result.text


def same(found, wanted, what=""):
    assert found == wanted, f"{what}: {found!r}, not {wanted!r}"

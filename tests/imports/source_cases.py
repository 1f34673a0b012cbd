"""Where descriptions come from (archives, directories, quickstart), what of them is taken, and what
becomes of them when they change."""

import http.server
import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
import zipfile

from imported import Tools, assign, bring_in, same, told
from services import ENVIRONMENT, START_SECONDS_MAX, free_port, stop

ONVIF = ENVIRONMENT / "imports-wsdl/onvif/wsdl"


class Echo:
    """A service that answers every request with what it was."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen = {
                    "method": self.command,
                    "target": self.path,
                    "type": self.headers.get("Content-Type"),
                    "body": sent.decode(errors="replace"),
                }
                body = json.dumps(seen).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_PATCH = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def shop(base, version=1):
    """A description in two files: version 2 has a path more, one less, and one type changed."""
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer"}}
    paths = {
        "/pets": {"get": {
            "operationId": "listPets", "summary": "Lists pets.", "tags": ["pets"],
            "parameters": [limit], "responses": {"200": {"description": "Pets."}},
        }},
        "/pets/{id}": {"$ref": "parts/pet.json#/one"},
        "/stock": {"get": {
            "operationId": "getStock", "summary": "The stock.", "tags": ["stock"],
            "responses": {"200": {"description": "Stock."}},
        }},
    }
    if version == 2:
        limit["schema"] = {"type": "boolean"}
        del paths["/stock"]
        paths["/orders"] = {"post": {
            "operationId": "placeOrder", "summary": "Places an order.", "tags": ["orders"],
            "requestBody": {"content": {"application/json": {"schema": {
                "type": "object", "properties": {"pet": {"type": "string"}}, "required": ["pet"],
            }}}},
            "responses": {"201": {"description": "Placed."}},
        }}
    pet = {"one": {"get": {
        "operationId": "getPet", "summary": "One pet.", "tags": ["pets"],
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "responses": {"200": {"description": "A pet."}},
    }}}
    root = {
        "openapi": "3.0.3", "info": {"title": "Pet Shop", "version": str(version)},
        "servers": [{"url": f"{base}/v1"}], "paths": paths,
    }
    return {"openapi.json": root, "parts/pet.json": pet}


def write(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    for name, document in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    return folder


def pack(archive, folder):
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                packed.write(path, path.relative_to(folder))
    return archive


def every_source(server, work, echo):
    """The same description as a file, a directory and an archive."""
    folder = write(work / "shop", shop(echo.base))
    archive = pack(work / "shop.zip", folder)
    for name, source in (("file", folder / "openapi.json"), ("folder", folder), ("archive", archive)):
        report = bring_in(server, "openapi", source, f"shop-{name}", "--publish")
        same(report["counts"]["imported"], 3, name)
        same([entry["tool"] for entry in report["operations"]], ["listPets", "getPet", "getStock"])
    assign(server, "shop-archive", "other")
    seen = Tools(server, "other").call("getPet", {"id": "a/b c"}).data
    same((seen["method"], seen["target"]), ("GET", "/v1/pets/a%2Fb%20c"))


def outside_of_its_folder(server, work, echo):
    """A file leads to no file beside its own folder, and to the network on demand alone."""
    files = shop(echo.base)
    files["openapi.json"]["paths"]["/pets/{id}"] = {"$ref": "../secret.json#/one"}
    folder = write(work / "outer/inner", files)
    shutil.copy(folder / "parts/pet.json", work / "outer/secret.json")
    report = bring_in(server, "openapi", folder / "openapi.json", "outside", "--dry-run")
    same(report["counts"]["imported"], 2)
    assert any("secret.json" in json.dumps(entry) for entry in report["operations"]), report
    files["openapi.json"]["paths"]["/pets/{id}"] = {"$ref": f"{echo.base}/remote.json#/one"}
    write(folder, files)
    report = bring_in(server, "openapi", folder / "openapi.json", "outside", "--dry-run")
    same(report["counts"]["imported"], 2)


def wsdl_archive(server, work):
    archive = pack(work / "onvif.zip", ONVIF)
    where = ("--root", "accesscontrol.wsdl", "--base-url", "http://127.0.0.1:9/onvif", "--dry-run")
    packed = bring_in(server, "wsdl", archive, "onvif", *where)
    loose = bring_in(server, "wsdl", ONVIF, "onvif", *where)
    same(packed["operations"], loose["operations"])
    counts = packed["counts"]
    assert counts["imported"] + counts["imported_with_notes"] > 5, counts
    asked = server.run("import", "wsdl", str(archive), "--toolset", "onvif", "--dry-run")
    assert asked.returncode != 0 and "--root" in asked.stderr, asked.stderr


def selection(server, work, echo):
    folder = write(work / "selected", shop(echo.base))
    for pattern, names in (
        ("tag:pets", ["listPets", "getPet"]),
        ("GET /pets*", ["listPets", "getPet"]),
        ("getS*", ["getStock"]),
    ):
        report = bring_in(server, "openapi", folder, "selected", "--select", pattern, "--dry-run")
        same([entry["tool"] for entry in report["operations"]], names, pattern)
        same(report["counts"]["not_selected"], 3 - len(names), pattern)
    nothing = server.run(
        "import", "openapi", str(folder), "--toolset", "selected", "--select", "nosuch*", "--dry-run"
    )
    assert nothing.returncode != 0, nothing.stdout


def second_version(server, work, echo):
    """Field report 66: three differences, the operator's names kept, nothing without consent."""
    folder = write(work / "versions", shop(echo.base))
    bring_in(server, "openapi", folder, "versions", "--publish")
    assign(server, "versions")
    before = Tools(server)
    same(before.call("listPets", {"limit": 3}).data["target"], "/v1/pets?limit=3")

    # The operator calls a field by a name of his own, and writes a description.
    catalog = json.loads(server.command("export", "--format", "json"))
    tool = next(
        tool for tool in catalog["tool"]
        if (tool["toolset"], tool["name"]) == ("versions", "listPets")
    )
    tool["description"] = "Every pet of the shop."
    tool["fields"][0]["exposed_field_name"] = "how_many"
    (work / "renamed.json").write_text(json.dumps({"tool": [tool]}))
    server.command("apply", str(work / "renamed.json"))
    same(Tools(server).call("listPets", {"how_many": 3}).data["target"], "/v1/pets?limit=3")

    write(folder, shop(echo.base, 2))
    dry = bring_in(server, "openapi", folder, "versions", "--dry-run")
    keys = {entry["operation"]: entry["change"] for entry in dry["operations"]}
    same(keys, {
        "GET /pets": "changed", "GET /pets/{id}": "unchanged", "POST /orders": "added",
        "GET /stock": "removed",
    })
    counts = dry["counts"]
    same((counts["added"], counts["changed"], counts["removed"]), (1, 1, 1))
    changed = told(dry, "GET /pets")
    assert changed["breaking"] and changed["waits_for"] == "--publish --accept-breaking", changed
    assert any("type" in json.dumps(part) for part in changed["parts"]), changed

    bring_in(server, "openapi", folder, "versions")
    held = Tools(server)
    same(set(held.listed()), {"listPets", "getPet", "getStock"})
    same(held.call("listPets", {"how_many": 3}).data["target"], "/v1/pets?limit=3")

    bring_in(server, "openapi", folder, "versions", "--publish")
    added = Tools(server)
    same(set(added.listed()), {"listPets", "getPet", "getStock", "placeOrder"})
    same(added.call("listPets", {"how_many": 3}).data["target"], "/v1/pets?limit=3")
    sent = added.call("placeOrder", {"pet": "cat"}).data
    same((sent["method"], sent["target"], sent["body"]), ("POST", "/v1/orders", '{"pet":"cat"}'))

    bring_in(server, "openapi", folder, "versions", "--publish", "--accept-breaking")
    accepted = Tools(server)
    listed = accepted.listed()
    same(set(listed), {"listPets", "getPet", "placeOrder"})
    same(listed["listPets"]["description"], "Every pet of the shop.")
    same(accepted.call("listPets", {"how_many": True}).data["target"], "/v1/pets?limit=true")
    last = bring_in(server, "openapi", folder, "versions", "--publish", "--accept-breaking")
    same((last["counts"]["added"], last["counts"]["changed"]), (0, 0))


def forms(server, work, echo):
    """Forms and uploads of Swagger 2.0, byte for byte."""
    def operation(name, media, fields):
        return {"post": {
            "operationId": name, "summary": name, "consumes": [media],
            "parameters": [{"in": "formData"} | field for field in fields],
            "responses": {"200": {"description": "Taken."}},
        }}

    text, number = {"name": "text", "type": "string"}, {"name": "number", "type": "integer"}
    many = {"name": "many", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}
    document = {
        "swagger": "2.0", "info": {"title": "Forms", "version": "1"},
        "host": echo.base.removeprefix("http://"), "schemes": ["http"], "basePath": "/",
        "paths": {
            "/form": operation("form", "application/x-www-form-urlencoded", [text, number, many]),
            "/upload": operation("upload", "multipart/form-data", [text, {"name": "file", "type": "file"}]),
        },
    }
    path = work / "forms.json"
    path.write_text(json.dumps(document))
    bring_in(server, "openapi", path, "forms", "--publish")
    assign(server, "forms")
    tools = Tools(server)
    sent = tools.call("form", {"text": "a b&c=é+", "number": 7, "many": ["x", "y z"]}).data
    same(sent["type"], "application/x-www-form-urlencoded")
    same(sent["body"], "text=a+b%26c%3D%C3%A9%2B&number=7&many=x&many=y+z")
    file = {"filename": "nöte.txt", "contentType": "text/plain", "base64": "aGVsbG8="}
    sent = tools.call("upload", {"text": "t", "file": file}).data
    kind, _, boundary = sent["type"].partition("; boundary=")
    same(kind, "multipart/form-data")
    parts = [part for part in sent["body"].split(f"--{boundary.strip(chr(34))}") if part.strip("-\r\n")]
    same(len(parts), 2)
    assert 'name="text"' in parts[0] and parts[0].endswith("\r\n\r\nt\r\n"), parts
    assert 'name="file"' in parts[1] and "Content-Type: text/plain\r\n" in parts[1], parts
    assert "nöte.txt" in parts[1] and parts[1].endswith("\r\n\r\nhello\r\n"), parts


def quickstart(server, work, echo):
    """One command from a description to an endpoint with its tools."""
    folder = write(work / "quick", shop(echo.base))
    port = free_port()
    command = [server.binary, "quickstart", "--api", folder / "openapi.json", "--data", work / "quick-data"]
    with (work / "quickstart.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{port}"], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, cwd=work, env=server.environment(),
        )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                opener.open(f"http://127.0.0.1:{port}/readyz", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                log = (work / "quickstart.log").read_text()
                assert process.poll() is None and time.monotonic() < deadline, log
                time.sleep(0.05)
        while not (text := (work / "quickstart.log").read_text()).count("3 of 3 operations"):
            assert time.monotonic() < deadline, text
            time.sleep(0.05)

        class Quick:
            keys = {"assistant": (work / "quick-data/quickstart.key").read_text().strip()}

        Quick.port = port
        tools = Tools(Quick)
        assert {"listPets", "getPet", "getStock"} <= set(tools.listed())
        same(tools.call("getPet", {"id": "7"}).data["target"], "/v1/pets/7")
    finally:
        code = stop(process)
    same(code, 0, "the end of quickstart")


def run(report, server, work, chosen):
    echo = Echo()
    cases = {
        "file, directory and archive": every_source,
        "outside of its folder": outside_of_its_folder,
        "a WSDL in an archive": lambda server, work, _: wsdl_archive(server, work),
        "selection": selection,
        "a second version": second_version,
        "forms and uploads": forms,
        "quickstart": quickstart,
    }
    try:
        for name, work_of_case in cases.items():
            if not chosen or any(word in name for word in chosen):
                report.case(name, work_of_case, server, work, echo)
    finally:
        echo.stop()

"""httpbin, imported from the Swagger 2.0 description it serves, and called end to end."""

import json
import time
import urllib.parse

from imported import Tools, assign, bring_in, declare, same
from services import ENVIRONMENT

PACKAGE = next((ENVIRONMENT / "httpbin/lib").glob("python3*/site-packages/httpbin"))

NAME_BYTES_MAX = 48


def connect(server, port, *more):
    """Sets the toolset's connection, as an operator would after an import."""
    lines = ["[[connection]]", 'tenant = "demo"', 'id = "httpbin"', *more]
    declare(server, "\n".join([*lines, f'base_url = "http://127.0.0.1:{port}"', ""]))


def prepare(server, port):
    base = f"http://127.0.0.1:{port}"
    report = bring_in(
        server, "openapi", f"{base}/spec.json", "httpbin", "--base-url", base, "--publish"
    )
    assign(server, "httpbin")
    return report


def every_operation_is_a_tool(tools, report):
    counts = report["counts"]
    listed = set(tools.listed())
    names = [entry["tool"] for entry in report["operations"] if "tool" in entry]
    # Longer names are cut for clients, with a hash of what was cut.
    same({name for name in names if len(name) <= NAME_BYTES_MAX} - listed, set())
    same(len(listed), counts["operations"] - counts["skipped"])
    reasons = {entry["reason"] for entry in report["operations"] if entry["verdict"] == "skipped"}
    same(reasons, {"no tool sends TRACE requests"})


def methods(tools):
    for method in ("get", "put", "post", "delete", "patch"):
        same(tools.call(f"{method}_anything").data["method"], method.upper())
        plain = tools.call(f"{method}_{method}").data
        assert plain["url"].endswith(f"/{method}") and plain["args"] == {}, plain


def values_in_paths(tools):
    for value in ("plain", "a b", "ä€𝄞", "50%", "a?b#c", "semi;colon", "a+b&c=d", "'\"<>"):
        for method in ("get", "put", "post", "delete", "patch"):
            url = tools.call(f"{method}_anything_by_anything", {"anything": value}).data["url"]
            # httpbin shows the path decoded once and encoded as it sees fit.
            found = urllib.parse.unquote(url.partition("/anything/")[2])
            same(found, value, method)
    for bad in ("", ".", "..", "a/../b"):
        text = tools.error("get_anything_by_anything", {"anything": bad})
        assert "anything" in text and "HTTP" not in text, text


def values_in_queries_and_headers(tools):
    for method in ("get", "post"):
        same(tools.call(f"{method}_response_headers", {"freeform": "a b&c=d"}).data["freeform"], "a b&c=d")
    headers = tools.call("get_cache").data["headers"]
    assert "If-None-Match" not in headers, headers
    assert "304" in tools.try_call("get_cache", {"If-None-Match": "x"}).text
    same(tools.call("get_etag_by_etag", {"etag": "v1", "If-None-Match": "v2"}).data["headers"]["If-None-Match"], "v2")
    assert "304" in tools.try_call("get_etag_by_etag", {"etag": "v1", "If-None-Match": "v1"}).text
    text = tools.error("get_etag_by_etag", {"etag": "v1", "If-Match": "v2"})
    assert text.startswith("HTTP 412"), text


def wrong_arguments(tools):
    for name, arguments in (
        ("get_cache_by_value", {"value": "sixty"}),
        ("get_cache_by_value", {}),
        ("get_anything", {"unknown": 1}),
        ("get_basic_auth_by_user_by_passwd", {"user": "u"}),
    ):
        text = tools.error(name, arguments)
        assert text.startswith("invalid arguments: "), text


def statuses(tools):
    for method in ("get", "put", "post", "delete", "patch"):
        for status in (400, 401, 403, 404, 409, 418, 422, 429, 500, 502, 503):
            text = tools.error(f"{method}_status_by_codes", {"codes": status})
            assert text.startswith(f"HTTP {status}"), text
        for status in (200, 201, 202, 204):
            tools.call(f"{method}_status_by_codes", {"codes": str(status)})
    assert "teapot" in tools.error("get_status_by_codes", {"codes": 418})


def encodings(tools):
    for name, word in (("gzip", "gzipped"), ("deflate", "deflated"), ("brotli", "brotli")):
        data = tools.call(f"get_{name}").data
        assert data[word] is True and data["method"] == "GET", data


def images(tools):
    for name, file, kind in (
        ("png", "pig_icon.png", "image/png"),
        ("jpeg", "jackal.jpg", "image/jpeg"),
        ("webp", "wolf_1.webp", "image/webp"),
        ("svg", "svg_logo.svg", "image/svg+xml"),
    ):
        found_kind, found = tools.call(f"get_image_{name}").binary
        assert found_kind.split(";")[0] == kind, found_kind
        wanted = (PACKAGE / "templates/images" / file).read_bytes()
        assert found == wanted, f"{name}: {len(found)} bytes, not the {len(wanted)} of the file"
    # It sends what is asked for, and nothing to those who want no image.
    kind, found = tools.call("get_image").binary
    assert kind == "image/webp" and found == (PACKAGE / "templates/images/wolf_1.webp").read_bytes(), kind


def other_bytes(tools):
    for name, size in (("get_bytes_by_n", 1), ("get_bytes_by_n", 3000), ("get_stream_bytes_by_n", 2500)):
        kind, found = tools.call(name, {"n": size}).binary
        assert kind == "application/octet-stream" and len(found) == size, (kind, len(found))
    _, found = tools.call("get_range_by_numbytes", {"numbytes": 30}).binary
    same(found, b"abcdefghijklmnopqrstuvwxyzabcd")
    _, found = tools.call("get_drip", {"numbytes": 7, "duration": 0.2, "delay": 0, "code": 200}).binary
    same(found, b"*" * 7)


def texts(tools):
    html = tools.call("get_html").text
    # The template engine leaves out the newline at the end of a file.
    same(html, (PACKAGE / "templates/moby.html").read_text().removesuffix("\n"))
    utf8 = tools.call("get_encoding_utf8").text
    assert "∮ E⋅da = Q" in utf8, utf8[:200]
    same(utf8, (PACKAGE / "templates/UTF-8-demo.txt").read_text().removesuffix("\n"))
    assert "Disallow: /deny" in tools.call("get_robots_txt").text
    assert "YOU SHOULDN'T BE HERE" in tools.call("get_deny").text
    same(tools.call("get_base64_by_value", {"value": "SFRUUEJJTiBpcyBhd2Vzb21l"}).text, "HTTPBIN is awesome")
    assert "<a href='/links/3/1'>" in tools.call("get_links_by_n_by_offset", {"n": 3, "offset": 0}).text
    lines = tools.call("get_stream_by_n", {"n": 3}).text.splitlines()
    same([json.loads(line)["id"] for line in lines], [0, 1, 2])


def documents(tools):
    same(tools.call("get_json").data["slideshow"]["slides"][0]["title"], "Wake up to WonderWidgets!")
    xml = tools.call("get_xml")
    assert "Wake up to WonderWidgets!" in xml.text, xml
    assert len(tools.call("get_uuid").data["uuid"]) == 36
    assert tools.call("get_user_agent").data["user-agent"].startswith("ringway/")
    same(tools.call("get_ip").data, {"origin": "127.0.0.1"})


def only_headers_of_ours(tools):
    headers = tools.call("get_headers").data["headers"]
    same(set(headers), {"Accept", "Accept-Encoding", "Host", "User-Agent"})


def redirects(tools, server, port):
    """Not followed unless the connection says so, and never to where the tenant may not go."""
    named = [
        ("get_redirect_by_n", {"n": 3}),
        ("get_relative_redirect_by_n", {"n": 2}),
        ("get_absolute_redirect_by_n", {"n": 2}),
    ]
    for name, arguments in named:
        assert tools.error(name, arguments).startswith("HTTP 302"), name
    connect(server, port, "follow_redirects = true")
    for name, arguments in named:
        assert tools.call(name, arguments).data["url"].endswith("/get"), name
    base = f"http://127.0.0.1:{port}"
    followed = tools.call("get_redirect_to", {"url": f"{base}/anything/x", "status_code": 307})
    assert followed.data["url"].endswith("/anything/x"), followed
    text = tools.error("get_redirect_to", {"url": "http://169.254.169.254/latest/meta-data"})
    assert "169.254.169.254" not in text.replace("http://169.254.169.254", ""), text
    cookies = tools.call("get_cookies_set_by_name_by_value", {"name": "a", "value": "b"})
    # There is no jar: what one answer sets, no later request sends.
    same(cookies.data, {"cookies": {}})
    connect(server, port)


def credentials(tools, server, port):
    same(tools.error("get_bearer").partition(".")[0].split(" from")[0], "HTTP 401 Unauthorized")
    user = {"user": "ada", "passwd": "an-open-sesame"}
    assert tools.error("get_basic_auth_by_user_by_passwd", user).startswith("HTTP 401")
    connect(
        server, port,
        'credentials = [{ kind = "basic", username = "ada", password = "an-open-sesame" }]',
    )
    same(tools.call("get_basic_auth_by_user_by_passwd", user).data["authenticated"], True)
    same(tools.call("get_hidden_basic_auth_by_user_by_passwd", user).data["user"], "ada")
    connect(server, port, 'credentials = [{ kind = "bearer", token = "a-token-of-some-length" }]')
    answer = tools.call("get_bearer")
    same(answer.data["authenticated"], True)
    assert "a-token-of-some-length" not in str(answer.content), answer
    key = 'name = "session", value = "a-cookie-of-some-length"'
    connect(server, port, f'credentials = [{{ kind = "api_key", place = "cookie", {key} }}]')
    cookies = tools.call("get_cookies")
    same(list(cookies.data["cookies"]), ["session"])
    assert "a-cookie-of-some-length" not in str(cookies.content), cookies
    connect(server, port)


def delays(tools):
    for method in ("get", "put", "post", "delete", "patch"):
        begin = time.monotonic()
        tools.call(f"{method}_delay_by_delay", {"delay": 0.3})
        assert time.monotonic() - begin >= 0.3, method


def run(report, server, port, chosen, expect):
    imported = {}
    report.case("httpbin is imported from its own description", lambda: imported.update(it=prepare(server, port)))
    if not imported:
        return
    tools = Tools(server)
    report.case("the verdicts of httpbin", expect, "httpbin/spec.json", imported["it"])
    cases = {
        "every operation is a tool": lambda: every_operation_is_a_tool(tools, imported["it"]),
        "methods": lambda: methods(tools),
        "values in paths": lambda: values_in_paths(tools),
        "values in queries and headers": lambda: values_in_queries_and_headers(tools),
        "wrong arguments": lambda: wrong_arguments(tools),
        "status codes": lambda: statuses(tools),
        "gzip, deflate and brotli": lambda: encodings(tools),
        "images": lambda: images(tools),
        "other bytes": lambda: other_bytes(tools),
        "texts": lambda: texts(tools),
        "documents": lambda: documents(tools),
        "only headers of ours": lambda: only_headers_of_ours(tools),
        "redirects": lambda: redirects(tools, server, port),
        "credentials": lambda: credentials(tools, server, port),
        "delays": lambda: delays(tools),
    }
    for name, work in cases.items():
        if not chosen or any(word in name for word in chosen):
            report.case(name, work)

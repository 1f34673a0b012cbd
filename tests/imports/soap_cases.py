"""Two SOAP services, imported from the WSDL they serve: spyne's (1.1) and npm soap's (1.2)."""

import json
from decimal import Decimal

from imported import Tools, assign, bring_in, declare, same, told

PLACED = "2024-02-29T12:30:00.25Z"


def fault(text):
    """What an error says of a fault."""
    head, _, details = text.partition("\n")
    assert "answered with a fault" in head, text
    return json.loads(details)


# --- spyne ---------------------------------------------------------------------------------------


def texts_and_lists(tools):
    greeting = "Hello, Ada & <b>„ß𝄞“"
    for times in (2, 1):
        answer = tools.call("say_hello", {"name": greeting[7:], "times": times})
        same(answer.data, {"say_helloResult": {"string": [greeting] * times}})
    same(tools.call("say_hello", {"name": "", "times": 1}).data["say_helloResult"]["string"], ["Hello, "])
    same(tools.call("say_hello", {"name": None, "times": 1}).data["say_helloResult"]["string"], ["Hello, None"])
    same(tools.call("say_hello", {"times": 1}).data["say_helloResult"]["string"], ["Hello, None"])
    none = tools.call("say_hello", {"name": "x", "times": 0}).data["say_helloResult"]
    # A list that is there and holds nothing is an empty list.
    same(none, {"string": []})


def orders(tools):
    order = (
        '{"number": 7, "placed": "%s", "urgent": true, "note": " two  spaces ",'
        ' "lines": {"Line": [{"sku": "a", "amount": 98765432109876543210, "price": 0.10}]}}' % PLACED
    )
    placed = tools.call("place", '{"order": %s}' % order).data["placeResult"]
    same(placed["number"], 12345678901234567890)
    same(placed["placed"], "2024-02-29T12:30:00.250000+00:00")
    same((placed["urgent"], placed["note"]), (True, " two  spaces "))
    line = {"sku": "a", "amount": 98765432109876543210, "price": Decimal("0.10")}
    same(placed["lines"], {"Line": [line]})
    same(str(placed["lines"]["Line"][0]["price"]), "0.10")
    for urgent in (False, None):
        placed = tools.call("place", {"order": {"urgent": urgent, "lines": {"Line": []}}}).data["placeResult"]
        same(placed.get("urgent"), urgent)
        same(placed["lines"], {"Line": []})
        assert "note" not in placed, placed
    assert not tools.call("place", {"order": None}).data.get("placeResult"), "an order of nothing"


def exact_decimals(tools):
    text = '{"lines": {"Line": [{"sku": "a", "amount": 3, "price": 1234567890123456789.123456789}]}}'
    same(str(tools.call("total", text).data["totalResult"]), "3703703670370370367.370370367")
    same(tools.call("total", {"lines": {"Line": []}}).data["totalResult"], 0)
    same(tools.call("total", {"lines": None}).data["totalResult"], 0)


def binary(tools):
    same(tools.call("reverse", {"data": "AAEC/w=="}).data["reverseResult"], "/wIBAA==")


def wrong_arguments(tools):
    for name, arguments in (
        ("place", {"order": {"urgent": "yes"}}),
        ("place", {"order": {"unknown": 1}}),
        ("place", {"order": {"lines": {"Line": [{"amount": 1}]}}}),
        ("total", {"lines": []}),
        ("reverse", {"data": 5}),
        ("say_hello", {"name": "a\u0000b", "times": 1}),
    ):
        text = tools.error(name, arguments)
        assert text.startswith("invalid arguments: "), text


def spyne_faults(tools):
    told_of = fault(tools.error("fail", {"what": "a & <b>"}))
    same((told_of["code"], told_of["reason"]), ("Client.NoSuchThing", "no such a & <b>"))
    assert "a &amp; &lt;b&gt;" in json.dumps(told_of["detail"]), told_of


# --- npm soap ------------------------------------------------------------------------------------


def both_ways_of_the_choice(tools):
    book = {"isbn": "978-3", "kind": "novel", "title": "A & B <C>", "author": ["Ada"], "published": "1999-12-31"}
    same(tools.call("Lend", {"reader": 1, "isbn": "978-3"}).data, {"book": [book], "until": "2030-01-02"})
    book |= {"isbn": "none", "title": "]]> & <t>"}
    same(tools.call("Lend", {"reader": 1, "title": "]]> & <t>"}).data["book"], [book])
    text = tools.error("Lend", {"reader": 1, "isbn": "1", "title": "t"})
    assert "isbn" in text and "title" in text and text.startswith("invalid arguments: "), text


def schema_says_it(tools, report):
    same(told(report, "Library.Lend")["verdict"], "imported")
    tool = tools.listed()["Lend"]
    same(tool["description"], "Lends a book to a reader.")
    same(tool["inputSchema"]["required"], ["reader"])
    same(set(tool["inputSchema"]["properties"]), {"reader", "isbn", "title"})


def soap12_faults(tools):
    told_of = fault(tools.error("Lend", {"reader": 0, "title": "t"}))
    same(told_of["code"], "Sender")
    same(told_of["subcodes"], ["{urn:ringway:library}NoSuchReader"])
    same(told_of["reason"], "reader 0 is not known")


def other_address(server, tools, port):
    """What a WSDL says of its address may be wrong; the operator's word counts."""
    text = '[[connection]]\ntenant = "demo"\nid = "library"\nbase_url = "http://127.0.0.1:{}/library"\n'
    declare(server, text.format(1))
    assert "cannot" in tools.error("Lend", {"reader": 1, "isbn": "1"}).lower()
    source = f"http://127.0.0.1:{port}/library?wsdl"
    right = ("--base-url", f"http://127.0.0.1:{port}/library", "--publish")
    bring_in(server, "wsdl", source, "library", *right)
    tools.call("Lend", {"reader": 1, "isbn": "1"})


def run(report, server, ports, chosen, expect):
    imported = {}

    def bring(name, source):
        imported[name] = bring_in(server, "wsdl", source, name, "--publish")
        assign(server, name)

    sources = {
        "shop": f"http://127.0.0.1:{ports['shop']}/?wsdl",
        "library": f"http://127.0.0.1:{ports['library']}/library?wsdl",
    }
    for name, source in sources.items():
        report.case(f"{name} is imported from the WSDL it serves", bring, name, source)
        if name not in imported:
            return
        report.case(f"the verdicts of {name}", expect, f"{name}?wsdl", imported[name])
    tools = Tools(server)
    cases = {
        "spyne: texts and lists": lambda: texts_and_lists(tools),
        "spyne: orders": lambda: orders(tools),
        "spyne: exact decimals": lambda: exact_decimals(tools),
        "spyne: binary": lambda: binary(tools),
        "spyne: wrong arguments": lambda: wrong_arguments(tools),
        "spyne: faults": lambda: spyne_faults(tools),
        "npm soap: both ways of the choice": lambda: both_ways_of_the_choice(tools),
        "npm soap: the schema says it": lambda: schema_says_it(tools, imported["library"]),
        "npm soap: faults": lambda: soap12_faults(tools),
        "npm soap: another address": lambda: other_address(server, tools, ports["library"]),
    }
    for name, work in cases.items():
        if not chosen or any(word in name for word in chosen):
            report.case(name, work)

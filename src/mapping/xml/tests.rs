//! Bodies without an envelope, byte for byte.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::json::guard;
use crate::mapping::{XmlBodies, XmlTypes};

const PROLOG: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The types of a zoo, as a catalog has them.
fn types() -> Value {
    let element = |name: &str, member: &str, holds: Value| json!({ "element": { "name": name, "member": member, "holds": holds } });
    json!({
        "Pet": {
            "attributes": [
                { "name": "id", "member": "id", "value": "integer" },
                { "name": "{urn:a}since", "prefix": "a", "member": "since", "value": "string" },
                { "name": "marks", "member": "marks", "value": { "list": "integer" } },
            ],
            "content": [
                element("name", "name", json!({ "value": "string" })),
                element("alive", "alive", json!({ "value": "boolean" })),
                element("weight", "weight", json!({ "value": "decimal" })),
                { "element": { "name": "photo", "member": "photos", "repeats": true,
                    "holds": { "value": "string" } } },
                element("tags", "tags", json!({ "list": { "name": "tag", "holds": { "type": "Tag" } } })),
                element("grid", "grid", json!({ "list": { "name": "row", "holds": { "list":
                    { "name": "cell", "nillable": true, "holds": { "value": "integer" } } } } })),
                element("extra", "extra", json!({ "map": { "name": "{urn:e}any", "prefix": "e",
                    "holds": { "value": "string" } } })),
                { "element": { "name": "owner", "member": "owner", "nillable": true,
                    "holds": { "type": "Tag" } } },
                element("child", "child", json!({ "type": "Pet" })),
            ],
        },
        "Tag": { "content": [element("{urn:t}label", "label", json!({ "value": "string" }))] },
    })
}

fn compiled(bodies: Value) -> Result<BodiesPlan, String> {
    let types: XmlTypes = of(types());
    let types = Arc::new(TypePlans::compile(&types).unwrap());
    let plan = BodiesPlan::compile(&types, &of::<XmlBodies>(bodies));
    plan.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

fn zoo(root: Value) -> BodiesPlan {
    compiled(json!({ "request": root, "response": root })).unwrap()
}

fn pet() -> BodiesPlan {
    zoo(json!({ "name": "pet", "holds": { "type": "Pet" } }))
}

fn pets() -> BodiesPlan {
    let item = json!({ "name": "pet", "holds": { "type": "Tag" } });
    zoo(json!({ "name": "{urn:p}pets", "prefix": "p", "holds": { "list": item } }))
}

fn written(plan: &BodiesPlan, value: &Value) -> Result<String, String> {
    let text = value.to_string();
    let written = plan.write(guard(text.as_bytes()).unwrap().root());
    let written = written.map_err(|error| error.to_string())?;
    let text = String::from_utf8(written).unwrap();
    Ok(text.strip_prefix(PROLOG).unwrap().to_owned())
}

fn read(plan: &BodiesPlan, text: &str) -> (String, u64) {
    let Message { json, dropped } = plan.read(text).unwrap();
    assert!(guard(&json).is_ok());
    (String::from_utf8(json).unwrap(), dropped)
}

const SPACES: &str = " xmlns:a=\"urn:a\" xmlns:e=\"urn:e\" xmlns:n3=\"urn:t\"";

#[test]
fn bodies_are_written_in_the_order_of_their_types() {
    for (value, attributes, content) in [
        (json!({}), "", ""),
        (json!({"name": "a<&b", "id": 7}), " id=\"7\"", "<name>a&lt;&amp;b</name>"),
        (
            json!({"weight": 1.5, "alive": true, "since": "\"x\"", "marks": [1, 2]}),
            " a:since=\"&quot;x&quot;\" marks=\"1 2\"",
            "<alive>true</alive><weight>1.5</weight>",
        ),
        (json!({"photos": ["x", "y"]}), "", "<photo>x</photo><photo>y</photo>"),
        (json!({"photos": []}), "", ""),
        (json!({"tags": []}), "", "<tags/>"),
        (
            json!({"tags": [{"label": "x"}, {}]}),
            "",
            "<tags><tag><n3:label>x</n3:label></tag><tag/></tags>",
        ),
        (
            json!({"grid": [[1, 2], []]}),
            "",
            "<grid><row><cell>1</cell><cell>2</cell></row><row/></grid>",
        ),
        (json!({"extra": {}}), "", "<extra/>"),
        (json!({"extra": {"b": "1", "a": "<"}}), "", "<extra><e:a>&lt;</e:a><e:b>1</e:b></extra>"),
        (json!({"child": {"child": {"id": 1}}}), "", "<child><child id=\"1\"/></child>"),
        (json!({"name": null, "tags": null}), "", ""),
    ] {
        let mut expected = format!("<pet{SPACES}{attributes}");
        let end = if content.is_empty() { "/>".to_owned() } else { format!(">{content}</pet>") };
        expected.push_str(&end);
        assert_eq!(written(&pet(), &value).unwrap(), expected, "{value}");
    }
}

#[test]
fn nil_is_declared_where_it_is_said() {
    let xsi = " xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";
    let expected = format!("<pet{SPACES}{xsi}><owner xsi:nil=\"true\"/></pet>");
    assert_eq!(written(&pet(), &json!({"owner": null})).unwrap(), expected);
}

#[test]
fn a_body_may_be_a_list_or_a_single_value() {
    let expected = "<p:pets xmlns:n3=\"urn:t\" xmlns:p=\"urn:p\"><pet><n3:label>x</n3:label></pet>\
                    <pet/></p:pets>";
    assert_eq!(written(&pets(), &json!([{"label": "x"}, {}])).unwrap(), expected);
    assert_eq!(read(&pets(), expected).0, r#"[{"label":"x"},{}]"#);
    let count = zoo(json!({ "name": "count", "holds": { "value": "integer" } }));
    assert_eq!(written(&count, &json!(12)).unwrap(), "<count>12</count>");
    assert_eq!(read(&count, "<count> 12 </count>").0, "12");
}

#[test]
fn what_cannot_be_written_is_named() {
    for (value, expected) in [
        (json!({"nmae": "x"}), "nmae: is unknown here"),
        (json!({"tags": {"label": "x"}}), "tags: expected an array, got an object"),
        (json!({"tags": [{"lable": "x"}]}), "tags[0].lable: is unknown here"),
        (json!({"extra": ["x"]}), "extra: expected an object, got an array"),
        (json!({"extra": {"a b": "x"}}), "extra.a b: is no name of an XML element"),
        (json!({"extra": {"a": {}}}), "extra.a: expected a single value"),
        (json!({"name": "a\u{1}"}), "name: the character U+0001"),
        (json!({"grid": [[{}]]}), "grid[0][0]: expected a single value"),
        (json!([]), "expected an object, got an array"),
    ] {
        let error = written(&pet(), &value).unwrap_err();
        assert!(error.contains(expected), "{value}: {error}");
    }
}

#[test]
fn answers_are_read_by_their_types() {
    let empty = r#""photos":[]"#;
    for (text, expected, dropped) in [
        ("<pet/>", format!("{{{empty}}}"), 0),
        ("<pet id='007'><name> a </name></pet>", format!(r#"{{"id":7,"name":" a ",{empty}}}"#), 0),
        ("<pet id='x'><alive>1</alive></pet>", format!(r#"{{"id":"x","alive":true,{empty}}}"#), 0),
        (
            "<pet xmlns:b='urn:a' b:since='y' marks='1 2'><weight>1.50</weight></pet>",
            format!(r#"{{"since":"y","marks":[1,2],"weight":1.50,{empty}}}"#),
            0,
        ),
        (
            "<pet><photo>x</photo><tags><tag><label>l</label></tag></tags></pet>",
            r#"{"photos":["x"],"tags":[{"label":"l"}]}"#.to_owned(),
            0,
        ),
        ("<pet><tags/></pet>", format!(r#"{{{empty},"tags":[]}}"#), 0),
        // Items of another name, where there are no others.
        ("<pet><tags><Tag/><Tag/></tags></pet>", format!(r#"{{{empty},"tags":[{{}},{{}}]}}"#), 0),
        ("<pet><tags><tag/><x/></tags></pet>", format!(r#"{{{empty},"tags":[{{}}]}}"#), 1),
        (
            "<pet xmlns:i='http://www.w3.org/2001/XMLSchema-instance'><grid><row><cell>1</cell>\
             <cell i:nil='true'/></row></grid><owner i:nil='1'/></pet>",
            format!(r#"{{{empty},"grid":[[1,null]],"owner":null}}"#),
            0,
        ),
        (
            "<pet><extra><b>1</b><a/><b>2</b></extra></pet>",
            format!(r#"{{{empty},"extra":{{"b":"1","a":""}}}}"#),
            1,
        ),
        // The root under another name, in a namespace.
        ("<Pet xmlns='urn:z'><name>x</name></Pet>", format!(r#"{{"name":"x",{empty}}}"#), 0),
        ("<pet><nmae>x</nmae></pet>", format!("{{{empty}}}"), 1),
    ] {
        assert_eq!(read(&pet(), text), (expected, dropped), "{text}");
    }
}

#[test]
fn what_is_not_described_is_not_read() {
    for (text, expected) in [
        ("<error><code>1</code></error>", Unreadable::Other),
        ("{}", pet().read("{}").unwrap_err()),
    ] {
        assert_eq!(pet().read(text).unwrap_err(), expected, "{text}");
    }
    let deep = |levels: usize| {
        format!("<pet>{}{}</pet>", "<child>".repeat(levels), "</child>".repeat(levels))
    };
    assert!(pet().read(&deep(DEPTH_MAX - 2)).is_ok());
    assert_eq!(pet().read(&deep(DEPTH_MAX + 1)).unwrap_err(), Unreadable::TooDeep);
    let request = json!({ "request": { "name": "pet", "holds": { "type": "Pet" } } });
    let unanswered = compiled(request).unwrap();
    assert!(!unanswered.answers());
    assert_eq!(unanswered.read("<pet/>").unwrap_err(), Unreadable::Other);
}

#[test]
fn what_is_written_is_read_again() {
    let value = json!({
        "id": 1, "since": "s", "marks": [1], "name": "n", "alive": false, "weight": 2.5,
        "photos": ["p"], "tags": [{"label": "l"}], "grid": [[1], []], "extra": {"k": "v"},
        "owner": null, "child": {"photos": [], "tags": []},
    });
    let text = written(&pet(), &value).unwrap();
    let (found, dropped) = read(&pet(), &text);
    assert_eq!((serde_json::from_str::<Value>(&found).unwrap(), dropped), (value, 0));
}

#[test]
fn roots_that_cannot_be_used_are_told() {
    let mut nested = json!({ "value": "string" });
    for _ in 0..CONTENT_DEPTH_MAX + 2 {
        nested = json!({ "list": { "name": "x", "holds": nested } });
    }
    for (root, expected) in [
        (json!({ "name": "a b", "holds": "any" }), "request: `a b` is no name of XML"),
        (json!({ "name": "a", "holds": { "type": "Cat" } }), "there is no type `Cat`"),
        (
            json!({ "name": "{urn:a}a", "prefix": "xmlns", "holds": "any" }),
            "request: `xmlns` is no prefix of XML",
        ),
        (json!({ "name": "a", "holds": nested }), "nest deeper than"),
        (
            json!({ "name": "a", "fixed": "x", "holds": { "type": "Tag" } }),
            "only an element that holds a value",
        ),
    ] {
        let error = compiled(json!({ "request": root })).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn prefixes_are_those_wished_for_where_they_are_free() {
    let root = |prefix: &str, item: &str| {
        let item = json!({ "name": "{urn:y}i", "prefix": item, "holds": { "value": "string" } });
        let list = json!({ "list": item });
        let root = json!({ "name": "{urn:x}r", "prefix": prefix, "holds": list });
        written(&zoo(root), &json!(["1"])).unwrap()
    };
    let expected = "<x:r xmlns:x=\"urn:x\" xmlns:y=\"urn:y\"><y:i>1</y:i></x:r>";
    assert_eq!(root("x", "y"), expected);
    for (prefix, item) in [("x", "x"), ("x", "xsi"), ("x", "n1"), ("x", "q7"), ("x", "a")] {
        assert_eq!(root(prefix, item), expected.replace("y:", "n5:").replace(":y=", ":n5="));
    }
}

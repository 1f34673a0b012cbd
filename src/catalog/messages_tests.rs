//! Tools whose messages are XML: what is refused, what is shared and what is taken over.

use std::sync::Arc;

use super::*;
use crate::catalog::fixture::{changed, entities, soap_service};
use crate::catalog::{Grace, Snapshot, ToolKind};
use crate::json::guard;

const GRACE: Grace = Grace { now_ms: 1_000, callable_ms: 500 };

fn service() -> String {
    soap_service("http://127.0.0.1:9000/shop", "", "1.1")
}

fn plan(snapshot: &Snapshot) -> &SoapPlan {
    let tool = snapshot.view("acme", "desk").unwrap().tool("order").unwrap();
    let ToolKind::Rest { messages: Some(messages), .. } = &tool.kind else { unreachable!() };
    messages.soap().unwrap()
}

#[test]
fn a_tool_of_a_soap_service_is_one_of_rest_with_messages() {
    let snapshot = Snapshot::compile(&entities(&service()), 1).unwrap();
    let tool = Arc::clone(snapshot.view("acme", "desk").unwrap().tool("order").unwrap());
    let ToolKind::Rest { request, messages: Some(soap), .. } = &tool.kind else { unreachable!() };
    let given = guard(br#"{"article":"a-1","count":2}"#).unwrap();
    let arguments = request.validate(Some(given.root())).unwrap();
    let sent = soap.wrap(request.build(&arguments)).unwrap();
    assert_eq!((&*sent.method, &*sent.target), ("POST", "/"));
    let body = String::from_utf8(sent.body.unwrap()).unwrap();
    let expected = "<n1:order><n1:sku>a-1</n1:sku><n1:count>2</n1:count></n1:order>";
    assert!(body.contains(expected), "{body}");
    let refused = guard(br#"{"article":"a\u0001"}"#).unwrap();
    let arguments = request.validate(Some(refused.root())).unwrap();
    let problem = soap.wrap(request.build(&arguments)).unwrap_err();
    assert!(problem.to_string().contains("sku: the character U+0001"), "{problem}");
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let problems = |text: &str| {
        let problems = Snapshot::compile(&entities(text), 1).err().unwrap_or_default();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let good = service();
    assert_eq!(problems(&good), "");
    let rest = good.replace("kind = \"soap\"", "kind = \"rest\"");
    let told = problems(&rest);
    assert!(told.contains("soap: only tools of a toolset of kind `soap`"), "{told}");
    let (before, after) = good.split_once("[tool.soap]").unwrap();
    let without = format!("{before}{}", &after[after.find("[[assignment]]").unwrap()..]);
    let told = problems(&without);
    assert!(told.contains("tool acme/shop/order: soap: is missing"), "{told}");
    for (from, to, expected) in [
        ("method = \"POST\"", "method = \"PUT\"", "method: operations of a SOAP service"),
        ("path = \"/\"", "path = \"/\"\nbody_format = \"form\"", "body_format: the body of a SOAP"),
        (
            "type = \"{urn:shop}Order\"",
            "type = \"{urn:shop}Gone\"",
            "tool acme/shop/order: soap: input, element `{urn:shop}order`: there is no type `{urn:shop}Gone`",
        ),
        (
            "name = \"{urn:shop}sku\"",
            "name = \"{urn:shop}s ku\"",
            "toolset acme/shop: xml_types: type `{urn:shop}Order`: `{urn:shop}s ku` is no name",
        ),
        ("action = \"urn:shop#order\"", "action = 'a\"b'", "soap: action: only printable"),
        (
            "fields = [",
            "fields = [{ source_field_name = \"SOAPAction\", location = \"header\" },",
            "field SOAPAction (header): calls of SOAP services set this header",
        ),
    ] {
        let told = problems(&good.replacen(from, to, 1));
        assert!(told.contains(expected), "{expected} in {told}");
        // One fault is told once, not again for each tool.
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn types_are_compiled_once_and_taken_over() {
    let text = service();
    let second = "[[tool]]\ntenant = \"acme\"\ntoolset = \"shop\"\nname = \"ping\"\n\
                  description = \"Pings\"\nmethod = \"POST\"\npath = \"/\"\n\
                  soap = { version = \"1.2\", input = { body = \"empty\" } }\n";
    let both = format!("{text}{second}");
    let first = entities(&both);
    let older = Snapshot::compile(&first, 1).unwrap();
    let view = older.view("acme", "desk").unwrap();
    let ToolKind::Rest { messages: Some(ping), .. } = &view.tool("ping").unwrap().kind else {
        unreachable!()
    };
    assert!(Arc::ptr_eq(plan(&older).types(), ping.types()));
    // Another title of the toolset changes no tool.
    let titled =
        changed(&first, &both.replace("kind = \"soap\"", "kind = \"soap\"\ntitle = \"S\""));
    let newer = Snapshot::recompile(&older, &titled, 2, GRACE).unwrap();
    assert!(std::ptr::eq(plan(&older), plan(&newer)));
    // Another type changes all of them.
    let retyped = changed(&first, &both.replace("value = \"integer\"", "value = \"decimal\""));
    let newest = Snapshot::recompile(&newer, &retyped, 3, GRACE).unwrap();
    assert!(!Arc::ptr_eq(plan(&newer).types(), plan(&newest).types()));
    let json = guard(br#"{"count":1.50}"#).unwrap();
    assert!(plan(&newer).write(json.root()).is_err() && plan(&newest).write(json.root()).is_ok());
    // What goes with its types stays callable within its grace time.
    let gone = changed(&retyped, &text.replace("value = \"integer\"", "value = \"decimal\""));
    let last = Snapshot::recompile(&newest, &gone, 4, GRACE).unwrap();
    assert!(last.view("acme", "desk").unwrap().deprecated("ping", 1_200).is_some());
}

/// A tool of an API that speaks XML without envelopes.
fn shelf() -> String {
    let service = service();
    let (before, _) = service.split_once("fields = [").unwrap();
    let (_, after) = service.split_once("[[assignment]]").unwrap();
    let before = before.replace("kind = \"soap\"", "kind = \"rest\"");
    format!(
        "{before}body_format = \"xml\"\nfields = [{{ source_field_name = \"sku\" }}]\n\
         [tool.xml]\nrequest = {{ name = \"order\", holds = {{ type = \"{{urn:shop}}Order\" }} }}\n\
         response = {{ name = \"placed\", holds = {{ value = \"integer\" }} }}\n[[assignment]]{after}"
    )
}

#[test]
fn a_tool_may_have_bodies_of_xml() {
    let snapshot = Snapshot::compile(&entities(&shelf()), 1).unwrap();
    let tool = Arc::clone(snapshot.view("acme", "desk").unwrap().tool("order").unwrap());
    let ToolKind::Rest { request, messages: Some(messages), .. } = &tool.kind else {
        unreachable!()
    };
    assert!(messages.soap().is_none());
    let given = guard(br#"{"sku":"a&b"}"#).unwrap();
    let arguments = request.validate(Some(given.root())).unwrap();
    let sent = messages.wrap(request.build(&arguments)).unwrap();
    assert_eq!(sent.content_type.as_deref(), Some("application/xml"));
    let expected = "<?xml version=\"1.0\" encoding=\"utf-8\"?><order xmlns:n1=\"urn:shop\">\
                    <n1:sku>a&amp;b</n1:sku></order>";
    assert_eq!(String::from_utf8(sent.body.unwrap()).unwrap(), expected);
    let accept = sent.headers.iter().find(|(name, _)| name == "Accept").unwrap();
    assert!(accept.1.starts_with("application/xml, "), "{accept:?}");
}

#[test]
fn bodies_of_xml_that_do_not_fit_are_refused() {
    let good = shelf();
    for (from, to, expected) in [
        ("body_format = \"xml\"", "", "xml.request: the body is no XML"),
        ("request = {", "#", "body_format \"xml\": the root element is missing"),
        (
            "body_format = \"xml\"",
            "body_format = \"xml\"\nbody_content_type = \"text/plain\"",
            "body_content_type \"text/plain\": is not one of XML",
        ),
        (
            "name = \"order\", holds",
            "name = \"or der\", holds",
            "xml: request: `or der` is no name",
        ),
        ("type = \"{urn:shop}Order\"", "type = \"Gone\"", "there is no type `Gone`"),
        ("fields = [{ source_field_name = \"sku\" }]", "", "no field is in the body"),
    ] {
        assert!(good.contains(from), "{from} in {good}");
        let told = Snapshot::compile(&entities(&good.replacen(from, to, 1)), 1).err();
        let told: Vec<String> = told.unwrap_or_default().iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].contains(expected), "{expected} in {told:?}");
    }
}

//! SOAP services: a tool's arguments arrive as an envelope, and envelopes and faults come back.

use serde_json::{Value, json};

use crate::harness::{Asked, Client, Plan, Ringway, Service, Setup, answer, call};

const XML: &[(&str, &str)] = &[("Content-Type", "text/xml; charset=utf-8")];

/// A shop that sells everything but what is `gone`, and is behind a proxy that knows no `proxy`.
fn shop(asked: &Asked) -> Plan {
    let body = String::from_utf8_lossy(&asked.body).into_owned();
    let envelope = |content: &str| {
        format!(
            "<?xml version='1.0'?>\n<S:Envelope xmlns:S='http://schemas.xmlsoap.org/soap/envelope/'>\
             <S:Body>{content}</S:Body></S:Envelope>"
        )
    };
    Plan::Answer(match &body {
        body if body.contains("<n1:sku>proxy<") => {
            let page = b"<html><head><title>No backend</title></head></html>";
            answer("503 Service Unavailable", &[("Content-Type", "text/html")], page)
        }
        body if body.contains("<n1:sku>gone<") => {
            let fault = "<S:Fault><faultcode>S:Client</faultcode><faultstring>Sold out</faultstring>\
                         <detail><left xmlns='urn:shop'>0</left></detail></S:Fault>";
            answer("500 Internal Server Error", XML, envelope(fault).as_bytes())
        }
        body if body.contains("<n1:sku>entities<") => {
            let bomb = "<!DOCTYPE a [<!ENTITY b 'bbbb'>]><a>&b;</a>";
            answer("200 OK", XML, bomb.as_bytes())
        }
        body if body.contains("<n1:sku>silent<") => answer("202 Accepted", &[], b""),
        _ => {
            let placed = "<orderResponse xmlns='urn:shop'><line><number>0012</number>\
                          <price currency='EUR'>9.90</price></line></orderResponse>";
            answer("200 OK", XML, envelope(placed).as_bytes())
        }
    })
}

fn server(service: &Service) -> Ringway {
    let element = |name: &str, holds: &str| {
        format!("name = '{{urn:shop}}{name}', member = '{name}', holds = {{ {holds} }}")
    };
    let catalog = format!(
        r#"
[[tenant]]
id = "shops"
egress_allowances = ["127.0.0.0/8"]
[[client_application]]
tenant = "shops"
id = "public"
open = true
[[connection]]
tenant = "shops"
id = "shop"
base_url = "{base}/service.asmx"
[[connection.credentials]]
kind = "ws_security"
username = "ada"
password = "s3cr3t-word"
[[toolset]]
tenant = "shops"
id = "shop"
kind = "soap"
connection = "shop"
[toolset.xml_types]
"{{urn:shop}}Order" = {{ content = [{{ element = {{ {count} }} }}, {{ element = {{ {sku} }} }}] }}
"{{urn:shop}}Placed" = {{ content = [{{ element = {{ {line}, repeats = true }} }}] }}
"{{urn:shop}}Line" = {{ content = [{{ element = {{ {number} }} }}, {{ element = {{ {price} }} }}] }}
"{{urn:shop}}Price" = {{ attributes = [{{ name = "currency", member = "currency", value = "string" }}], text = "decimal" }}
[[tool]]
tenant = "shops"
toolset = "shop"
name = "order"
description = "Orders something."
method = "POST"
path = "/"
fields = [{{ source_field_name = "sku", required = true }}, {{ source_field_name = "count", type = "integer" }}]
[tool.soap]
version = "1.1"
action = "urn:shop#order"
input = {{ body = {{ wrapped = {{ {order} }} }} }}
output = {{ body = {{ wrapped = {{ {response} }} }} }}
faults = [{{ {left} }}]
[[assignment]]
tenant = "shops"
client_application = "public"
toolset = "shop"
"#,
        base = service.base(),
        count = element("count", "value = 'integer'"),
        sku = element("sku", "value = 'string'"),
        line = element("line", "type = '{urn:shop}Line'"),
        number = element("number", "value = 'integer'"),
        price = element("price", "type = '{urn:shop}Price'"),
        order = element("order", "type = '{urn:shop}Order'"),
        response = element("orderResponse", "type = '{urn:shop}Placed'"),
        left = element("left", "value = 'integer'"),
    );
    Setup::new().catalog(&catalog).start()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_tool_speaks_to_a_soap_service() {
    let service = Service::start(shop);
    let server = server(&service);
    let client = Client::keyless(&server, "shops/public");
    let result = client.called("order", json!({ "sku": "a & b", "count": 2 }));
    let line = json!({ "number": 12, "price": { "currency": "EUR", "text": 9.90 } });
    assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), json!({ "line": [line] }));
    assert!(text(&result).contains("9.90"), "{result}");
    let asked = service.asked();
    assert_eq!((&*asked.method, &*asked.target), ("POST", "/service.asmx/"));
    assert_eq!(asked.header("SOAPAction"), Some("\"urn:shop#order\""));
    assert_eq!(asked.header("Content-Type"), Some("text/xml; charset=utf-8"));
    let body = String::from_utf8(asked.body).unwrap();
    let order = "<soap:Body><n1:order><n1:count>2</n1:count><n1:sku>a &amp; b</n1:sku></n1:order>\
                 </soap:Body></soap:Envelope>";
    assert!(body.ends_with(order), "{body}");
    assert!(body.contains("<wsse:Username>ada</wsse:Username>"), "{body}");
    assert!(body.contains("#PasswordText\">s3cr3t-word</wsse:Password>"), "{body}");
}

#[test]
fn faults_pages_and_silence_are_told_apart() {
    let service = Service::start(shop);
    let server = server(&service);
    let client = Client::keyless(&server, "shops/public");
    let fault = client.called("order", json!({ "sku": "gone" }));
    assert_eq!(fault["isError"], true);
    assert_eq!(
        text(&fault),
        "The service behind connection \"shop\" answered with a fault (Client): Sold out\n\
         {\"code\":\"Client\",\"reason\":\"Sold out\",\"detail\":{\"left\":0}}"
    );
    let page = client.called("order", json!({ "sku": "proxy" }));
    assert_eq!(page["isError"], true);
    assert!(text(&page).starts_with("HTTP 503") && text(&page).contains("No backend"), "{page}");
    let bomb = client.called("order", json!({ "sku": "entities" }));
    assert_eq!(bomb["isError"], true);
    assert!(text(&bomb).contains("no SOAP message that can be read"), "{bomb}");
    let silence = client.called("order", json!({ "sku": "silent" }));
    assert_ne!(silence["isError"], true, "{silence}");
    assert!(text(&silence).contains("202"), "{silence}");
}

#[test]
fn arguments_that_xml_cannot_hold_are_named_and_nothing_is_sent() {
    let service = Service::start(shop);
    let server = server(&service);
    let client = Client::keyless(&server, "shops/public");
    let posted = client.post(&call(1, "order", json!({ "sku": "a\u{1}" })));
    let answer = posted.json();
    assert!(answer.to_string().contains("sku: the character U+0001"), "{answer}");
    assert!(service.is_quiet());
}

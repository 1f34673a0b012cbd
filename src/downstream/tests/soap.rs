//! SOAP services: what is sent to them, and what their answers become.

use std::sync::{Arc, Mutex, mpsc};

use super::api::{Api, answer, raw_answer};
use super::support::{ENVIRONMENT, caller, caller_counted_by, failure, json, on_a_core, text};
use crate::catalog::{CompiledTool, ToolKind, fixture};
use crate::downstream::Called;
use crate::downstream::error::CallError;
use crate::json::guard;
use crate::mcp::ToolOutcome;
use crate::telemetry::{Metrics, ProcessFigures};

const V1_1: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const V1_2: &str = "http://www.w3.org/2003/05/soap-envelope";

fn tool(api: &Api, connection: &str, version: &str) -> Arc<CompiledTool> {
    let base = format!("http://{}/shop", api.address);
    let text = fixture::soap_service(&base, connection, version);
    Arc::clone(&fixture::view(&text).tool("order").unwrap().tool)
}

fn called(tool: &Arc<CompiledTool>, arguments: &str) -> Called {
    let ToolKind::Rest { request, messages: Some(messages), .. } = &tool.kind else {
        unreachable!()
    };
    let given = guard(arguments.as_bytes()).unwrap();
    let arguments = request.validate(Some(given.root())).unwrap();
    let sent = messages.wrap(request.build(&arguments)).unwrap();
    on_a_core(async { caller().run(tool, &sent, &ENVIRONMENT).await })
}

fn ordered(api: &Api) -> Result<ToolOutcome, CallError> {
    called(&tool(api, "", "1.1"), r#"{"article":"a"}"#).result
}

fn envelope(version: &str, body: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><e:Envelope xmlns:e=\"{version}\" xmlns:s=\"urn:shop\"><e:Body>\
         {body}</e:Body></e:Envelope>"
    )
}

const XML: &str = "Content-Type: text/xml; charset=utf-8\r\n";

/// An API that answers with this, and tells what it was asked.
fn telling(sent: impl Into<Vec<u8>>) -> (Api, mpsc::Receiver<String>) {
    let (told, asked) = mpsc::channel();
    let (sent, told) = (sent.into(), Mutex::new(told));
    let api = Api::start(move |_, talk| {
        while let Some(request) = talk.request() {
            told.lock().unwrap().send(request).unwrap();
            talk.say(&sent);
        }
    });
    (api, asked)
}

#[test]
fn both_versions_are_spoken() {
    let placed = "<s:orderResponse><s:number>007</s:number><s:more/></s:orderResponse>";
    for (version, namespace, kind, content_type) in [
        ("1.1", V1_1, "text/xml", "text/xml; charset=utf-8"),
        (
            "1.2",
            V1_2,
            "application/soap+xml",
            "application/soap+xml; charset=utf-8; action=\"urn:shop#order\"",
        ),
    ] {
        let (api, asked) = telling(answer(
            "200 OK",
            &format!("Content-Type: {kind}\r\n"),
            envelope(namespace, placed).as_bytes(),
        ));
        let outcome = called(&tool(&api, "", version), r#"{"count":2.0,"article":"a<b"}"#).result;
        assert_eq!(outcome, json("{\"number\":7,\"bill\":[]}"));
        let request = asked.recv().unwrap();
        assert!(request.starts_with("POST /shop/ HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("Content-Type: {content_type}\r\n")), "{request}");
        assert!(request.contains("Accept: application/soap+xml, text/xml, multipart/related\r\n"));
        assert_eq!(request.contains("SOAPAction: \"urn:shop#order\"\r\n"), version == "1.1");
        let body = "<n1:order><n1:sku>a&lt;b</n1:sku><n1:count>2</n1:count></n1:order></soap:Body>";
        assert!(request.contains(body) && request.contains(namespace), "{request}");
        assert!(!request.contains("soap:Header"), "{request}");
    }
}

#[test]
fn faults_are_failures_whatever_their_status() {
    let v1_1 = "<e:Fault><faultcode>e:Client</faultcode><faultstring>No such sku</faultstring>\
                <detail><s:gone>a</s:gone></detail></e:Fault>";
    let v1_2 = "<e:Fault><e:Code><e:Value>e:Receiver</e:Value><e:Subcode><e:Value>s:Busy</e:Value>\
                </e:Subcode></e:Code><e:Reason><e:Text xml:lang='en'>Later</e:Text></e:Reason>\
                </e:Fault>";
    let told_1_1 = "The service behind connection \"shop\" answered with a fault (Client): No such \
                    sku\n{\"code\":\"Client\",\"reason\":\"No such sku\",\
                    \"detail\":{\"gone\":\"a\"}}";
    let told_1_2 = "The service behind connection \"shop\" answered with a fault ({urn:shop}Busy): \
                    Later\n{\"code\":\"Receiver\",\"subcodes\":[\"{urn:shop}Busy\"],\
                    \"reason\":\"Later\"}";
    for (namespace, body, status, counted, told) in [
        (V1_1, v1_1, "500 Internal Server Error", 500, told_1_1),
        (V1_1, v1_1, "200 OK", 400, told_1_1),
        (V1_2, v1_2, "500 Internal Server Error", 500, told_1_2),
        (V1_2, v1_2, "200 OK", 500, told_1_2),
        (V1_2, v1_2, "400 Bad Request", 400, told_1_2),
    ] {
        let api = Api::answering(answer(status, XML, envelope(namespace, body).as_bytes()));
        let called = called(&tool(&api, "", "1.1"), r#"{"article":"a"}"#);
        assert_eq!(called.status, Some(counted), "{status}");
        assert_eq!(failure(called.result), told);
    }
}

#[test]
fn what_is_no_envelope_is_an_answer_like_any_other() {
    let page = b"<html><head><title>503 Service Unavailable</title></head></html>";
    let api =
        Api::answering(answer("503 Service Unavailable", "Content-Type: text/html\r\n", page));
    let told = failure(ordered(&api));
    assert!(told.starts_with("HTTP 503 Service Unavailable"), "{told}");
    assert!(told.contains("HTML page titled \"503 Service Unavailable\""), "{told}");
    // A message that came with an error is told by its status.
    let message = envelope(V1_1, "<s:orderResponse><s:number>1</s:number></s:orderResponse>");
    let api = Api::answering(answer("502 Bad Gateway", XML, message.as_bytes()));
    assert!(failure(ordered(&api)).starts_with("HTTP 502 Bad Gateway"));
    // With a success it must not pass for a result: the service owes a message.
    for body in ["not XML", "<a/>", "<a>"] {
        let api = Api::answering(answer("200 OK", XML, body.as_bytes()));
        let told = failure(ordered(&api));
        assert!(told.starts_with("HTTP 200 ") && told.contains("is no SOAP message"), "{told}");
        assert!(!told.contains(body), "{told}");
    }
    for status in ["202 Accepted", "200 OK"] {
        let api = Api::answering(answer(status, "", b""));
        assert!(text(ordered(&api)).contains(&format!("Done: HTTP {status}")));
    }
    let no_content = Api::answering("HTTP/1.1 204 No Content\r\n\r\n");
    assert!(text(ordered(&no_content)).contains("without content"));
}

#[test]
fn other_encodings_and_large_answers_are_read() {
    let message = |text: &str| {
        let body = format!("<s:orderResponse><s:bill>{text}</s:bill></s:orderResponse>");
        envelope(V1_1, &body)
    };
    let wide: Vec<u8> = message("é").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let api =
        Api::answering(raw_answer("200 OK", "Content-Type: text/xml; charset=utf-16\r\n", &wide));
    assert_eq!(ordered(&api), json("{\"bill\":[\"é\"]}"));
    let latin: Vec<u8> =
        message("é").chars().map(|next| u8::try_from(u32::from(next)).unwrap()).collect();
    let head = "Content-Type: text/xml; charset=\"iso-8859-1\"\r\n";
    let api = Api::answering(raw_answer("200 OK", head, &latin));
    assert_eq!(ordered(&api), json("{\"bill\":[\"é\"]}"));
    // Read on a worker.
    let long = "YWJj".repeat(100_000);
    let api = Api::answering(answer("200 OK", XML, message(&long).as_bytes()));
    assert_eq!(ordered(&api), json(&format!("{{\"bill\":[\"{long}\"]}}")));
}

#[test]
fn attachments_are_put_where_they_belong() {
    let include = |id: &str| {
        format!(
            "<s:bill><x:Include xmlns:x=\"http://www.w3.org/2004/08/xop/include\" \
             href=\"cid:{id}\"/></s:bill>"
        )
    };
    let bills = include("one@x") + &include("two%40x");
    let root = envelope(V1_1, &format!("<s:orderResponse>{bills}</s:orderResponse>"));
    let part = |head: &str, body: &[u8]| {
        [b"--b 1\r\n", head.as_bytes(), b"\r\n\r\n", body, b"\r\n"].concat()
    };
    let xop = "Content-Type: application/xop+xml; charset=UTF-8; type=\"text/xml\"\r\n\
               Content-ID: <root@x>";
    let body = [
        part("Content-ID: <one@x>\r\nContent-Type: image/png", b"\x00\xff\r\n--b"),
        part(xop, root.as_bytes()),
        part("Content-Transfer-Encoding: base64\r\nContent-ID: <two@x>", b"YW\r\nJj"),
        b"--b 1--\r\n".to_vec(),
    ]
    .concat();
    let head = "Content-Type: multipart/related; type=\"application/xop+xml\"; \
                start=\"<root@x>\"; boundary=\"b 1\"\r\n";
    let api = Api::answering(raw_answer("200 OK", head, &body));
    assert_eq!(ordered(&api), json("{\"bill\":[\"AP8NCi0tYg==\",\"YWJj\"]}"));
}

#[test]
fn users_prove_themselves_anew_with_every_call() {
    let placed = envelope(V1_1, "<s:orderResponse/>");
    let credential = |digest: bool| {
        format!(
            "[[connection.credentials]]\nkind = \"ws_security\"\nusername = \"ada\"\n\
             password = \"s3cr3t&word\"\ndigest = {digest}\n"
        )
    };
    let (api, asked) = telling(answer("200 OK", XML, placed.as_bytes()));
    let written = tool(&api, &credential(false), "1.1");
    assert_eq!(called(&written, r#"{"article":"a"}"#).result, json("{\"bill\":[]}"));
    let request = asked.recv().unwrap();
    let expected =
        "soap:mustUnderstand=\"1\"><wsse:UsernameToken><wsse:Username>ada</wsse:Username>";
    assert!(request.contains("<soap:Header><wsse:Security ") && request.contains(expected));
    assert!(request.contains("#PasswordText\">s3cr3t&amp;word</wsse:Password>"), "{request}");
    let digested = tool(&api, &credential(true), "1.2");
    let nonce = || {
        called(&digested, r#"{"article":"a"}"#).result.unwrap();
        let request = asked.recv().unwrap();
        assert!(!request.contains("s3cr3t") && request.contains("#PasswordDigest\">"));
        let (_, nonce) = request.split_once("#Base64Binary\">").unwrap();
        nonce.split_once('<').unwrap().0.to_owned()
    };
    let (first, second) = (nonce(), nonce());
    assert!(first != second && first.len() == 24, "{first} {second}");
    // Nobody is shown it, whoever repeats it.
    let fault = "<e:Fault><faultcode>e:Client</faultcode><faultstring>s3cr3t&amp;word is wrong\
                 </faultstring><detail>s3cr3t&amp;word</detail></e:Fault>";
    let api = Api::answering(answer("500 Error", XML, envelope(V1_1, fault).as_bytes()));
    let told = failure(called(&tool(&api, &credential(false), "1.1"), r#"{"article":"a"}"#).result);
    assert!(told.contains("[removed] is wrong") && !told.contains("s3cr3t"), "{told}");
}

#[test]
fn a_fault_counts_as_what_it_is() {
    let metrics = Metrics::new(1, 0, ProcessFigures::default);
    let core = metrics.core(0).unwrap();
    let fault = "<e:Fault><faultcode>e:Server</faultcode><faultstring>x</faultstring></e:Fault>";
    let api = Api::answering(answer("200 OK", XML, envelope(V1_1, fault).as_bytes()));
    let tool = tool(&api, "", "1.1");
    let ToolKind::Rest { request, messages: Some(messages), .. } = &tool.kind else {
        unreachable!()
    };
    let given = guard(br#"{"article":"a"}"#).unwrap();
    let sent =
        messages.wrap(request.build(&request.validate(Some(given.root())).unwrap())).unwrap();
    on_a_core(async {
        caller_counted_by(core, |_| {}).run(&tool, &sent, &ENVIRONMENT).await.result.unwrap()
    });
    let is_counted = |line: &str| line.contains("server_error") && line.ends_with(" 1");
    assert!(metrics.render().lines().any(is_counted));
}

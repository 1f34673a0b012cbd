//! Answers that are neither JSON nor UTF-8 text: pictures, recordings, documents, other character
//! sets.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Plan, Ringway, Service, Setup, answer, rpc};

const KINDS: [(&str, &str, usize); 5] = [
    ("picture", "image/png", 5_000),
    ("recording", "audio/mpeg; codecs=mp3", 5_000),
    ("document", "application/pdf", 5_000),
    ("film", "video/mp4", 200_000),
    ("poster", "image/jpeg", 1_500_000),
];

/// Every byte there is, over and over.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| u8::try_from(at * 7 % 256).unwrap()).collect()
}

fn service() -> Service {
    Service::start(|asked| {
        let found = KINDS.iter().find(|(name, ..)| asked.target == format!("/{name}"));
        Plan::Answer(match found {
            Some((_, media_type, count)) => {
                answer("200 OK", &[("Content-Type", media_type)], &bytes(*count))
            }
            None => answer(
                "200 OK",
                &[("Content-Type", "text/plain; charset=shift_jis")],
                b"\x93\xfa\x96\x7b",
            ),
        })
    })
}

fn start(service: &Service, rules: &str) -> (Ringway, Client) {
    let names = KINDS.iter().map(|(name, ..)| *name).chain(["text"]);
    let paths: Vec<(&str, String)> = names.map(|name| (name, format!("/{name}"))).collect();
    let tools: Vec<_> = paths.iter().map(|(name, path)| (*name, "GET", &**path, rules)).collect();
    let server = Setup::new().api(&service.base(), &tools).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    (server, client)
}

fn read(client: &Client, uri: &Value) -> Vec<u8> {
    let read = client.reply(&rpc(7, "resources/read", json!({"uri": uri})));
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["uri"], *uri);
    STANDARD.decode(contents["blob"].as_str().unwrap()).unwrap()
}

#[test]
fn files_arrive_byte_for_byte() {
    let service = service();
    let (_server, client) = start(&service, "");
    for (name, kind, media_type) in
        [("picture", "image", "image/png"), ("recording", "audio", "audio/mpeg")]
    {
        let result = client.called(name, json!({}));
        let block = &result["content"][0];
        assert_eq!((&block["type"], &block["mimeType"]), (&json!(kind), &json!(media_type)));
        assert_eq!(STANDARD.decode(block["data"].as_str().unwrap()).unwrap(), bytes(5_000));
    }
    let result = client.called("document", json!({}));
    let resource = &result["content"][0]["resource"];
    assert_eq!(resource["mimeType"], "application/pdf");
    assert_eq!(STANDARD.decode(resource["blob"].as_str().unwrap()).unwrap(), bytes(5_000));
    assert_eq!(read(&client, &resource["uri"]), bytes(5_000));
    for (name, media_type, count) in
        [("film", "video/mp4", 200_000), ("poster", "image/jpeg", 1_500_000)]
    {
        let result = client.called(name, json!({}));
        let link = &result["content"][0];
        assert_eq!(
            (&link["type"], &link["mimeType"]),
            (&json!("resource_link"), &json!(media_type))
        );
        assert_eq!(link["size"], count);
        assert_eq!(read(&client, &link["uri"]), bytes(count));
    }
    let result = client.called("text", json!({}));
    assert_eq!(result["content"][0]["text"], "日本");
}

#[test]
fn a_file_within_its_budget_or_as_a_link() {
    let service = service();
    let (_server, client) = start(&service, "budget = { bytes = 4096 }");
    let result = client.called("picture", json!({}));
    let link = &result["content"][0];
    assert_eq!(link["type"], "resource_link", "{result}");
    assert_eq!(read(&client, &link["uri"]), bytes(5_000));
}

#[test]
fn a_file_is_not_shown_where_fields_are_picked() {
    let service = service();
    let rules = "response_fields = [{ source_field_name = \"id\" }]";
    let (_server, client) = start(&service, rules);
    let result = client.called("document", json!({}));
    assert!(!result.to_string().contains("blob"), "{result}");
}

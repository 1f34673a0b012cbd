//! What an import makes of a WSDL is what messages are written and read by: every description of
//! the corpus, from its file to an envelope and back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringway::import::wsdl;
use ringway::import::{Description, Documents, Location, Options, Step};
use ringway::json::guard;
use ringway::mapping::soap::{Answer, SoapPlan};
use ringway::mapping::xml::{Attachments, TypePlans};
use ringway::mapping::{RequestPlan, SoapOperation};
use serde_json::{Map, Value, json};

fn imported(directory: &Path) -> Description {
    let root = Location::bundle("main.wsdl").unwrap();
    let mut documents = Documents::new();
    for _ in 0..20 {
        match wsdl::read(&documents, &root, &Options::default()).unwrap() {
            Step::Done(description) => return description,
            Step::Need(missing) => {
                for location in missing {
                    let path = location.bundle_path().map(|path| directory.join(path));
                    match path.and_then(|path| fs::read(path).ok()) {
                        Some(bytes) => documents.add(&location, bytes).unwrap(),
                        None => documents.refuse(&location, "it is not there".to_owned()).unwrap(),
                    }
                }
            }
        }
    }
    panic!("it never has enough");
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/wsdl");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.join("main.wsdl").exists()).collect()
}

/// A value that a schema takes, with everything in it that can be there.
fn sample(schema: &Value) -> Value {
    for word in ["anyOf", "oneOf"] {
        if let Some(Value::Array(ways)) = schema.get(word) {
            return sample(ways.first().unwrap());
        }
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return values.first().unwrap().clone();
    }
    if let Some(fixed) = schema.get("const") {
        return fixed.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match kind {
        Some("object") => {
            let members = schema.get("properties").and_then(Value::as_object);
            let members = members.into_iter().flatten();
            let members = members.filter(|(_, schema)| {
                schema.get("type").is_some() || schema.get("anyOf").is_some()
            });
            Value::Object(
                members.map(|(name, schema)| (name.clone(), sample(schema))).collect::<Map<_, _>>(),
            )
        }
        Some("array") => json!([sample(schema.get("items").unwrap_or(&Value::Null))]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("string") => match schema.get("description").and_then(Value::as_str) {
            Some(text) if text.contains("XML text") => json!("<x xmlns=\"urn:free\"/>"),
            _ => json!("AAAA"),
        },
        _ => json!({}),
    }
}

#[test]
fn every_imported_operation_is_written_and_read() {
    let mut written = 0;
    for directory in corpus() {
        let description = imported(&directory);
        let types = TypePlans::compile(&description.xml_types);
        let types = Arc::new(types.unwrap_or_else(|errors| panic!("{directory:?}: {errors:?}")));
        for operation in &description.operations {
            let Some(tool) = operation.verdict.tool() else { continue };
            let place = format!("{}, {}", directory.display(), operation.key);
            let Some(soap) = &tool.soap else { panic!("{place}: has no messages") };
            if let Err(errors) = SoapPlan::compile(&types, soap) {
                panic!("{place}: {errors:?}");
            }
            let request = RequestPlan::compile(
                "POST",
                &tool.path,
                &tool.fields,
                ringway::mapping::RequestBody::default(),
            )
            .unwrap();
            let arguments = sample(request.input_schema()).to_string();
            let arguments = guard(arguments.as_bytes()).unwrap();
            // Formats and patterns are more than a sample knows.
            let Ok(valid) = request.validate(Some(arguments.root())) else { continue };
            let sent = request.build(&valid).body.unwrap_or_else(|| b"{}".to_vec());
            // What is sent comes back.
            let echo = SoapOperation { output: Some(soap.input.clone()), ..soap.clone() };
            let plan = SoapPlan::compile(&types, &echo).unwrap();
            let envelope = match plan.write(guard(&sent).unwrap().root()) {
                Ok(envelope) => String::from_utf8(envelope).unwrap(),
                // Everything at once is more than a choice takes.
                Err(refused) if refused.to_string().contains("only one of these") => continue,
                Err(refused) => panic!("{place}: {refused}"),
            };
            written += 1;
            match plan.read(&envelope, &Attachments::default()).unwrap() {
                Answer::Message(message) => {
                    assert_eq!(message.dropped, 0, "{place}: {envelope}");
                    let read: Value = serde_json::from_slice(&message.json).unwrap();
                    let sent: Value = serde_json::from_slice(&sent).unwrap();
                    assert_eq!(read, sent, "{place}: {envelope}");
                }
                Answer::Fault(fault) => panic!("{place}: {fault:?}"),
            }
        }
    }
    println!("{written} messages");
    assert!(written > 5, "{written}");
}

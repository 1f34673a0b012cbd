use std::path::Path;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalog::{Kind, Origin, files};

const FORMATS: [ExportFormat; 3] = [ExportFormat::Toml, ExportFormat::Yaml, ExportFormat::Json];

fn read_back(text: &str, format: ExportFormat) -> Entities {
    let file = format!("export.{}", format.as_str());
    let (entities, problems) = files::read_text(Path::new(&file), text);
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    entities
}

/// JSON without `null`, which TOML cannot hold, and with numbers that it can.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number", |f| f.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        words().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Text that formats like to take for something else.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("yes"),
        Just("no"),
        Just("null"),
        Just("~"),
        Just("0123"),
        Just("1e3"),
        Just("- a"),
        Just("a: b"),
        Just("# no"),
        Just("'"),
        Just("\"\"\""),
        Just("2024-01-01"),
        Just("\u{85}"),
        Just("\u{2028}x"),
        Just(" lead"),
        Just("trail "),
        Just("|"),
        Just(">\n a\n"),
        Just("!tag"),
        Just("&a"),
        Just("*a"),
        Just("{x"),
        Just("\\"),
        Just(".inf"),
        Just("\r\n"),
        Just("\t"),
    ]
    .prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), words()]
}

fn catalog() -> impl Strategy<Value = Entities> {
    let id = "[a-z][a-z0-9_-]{0,5}";
    let rule = (text(), option::of(json_value()), option::of(vec(json_value(), 0..3)));
    let tool = (id, text(), vec(rule, 0..3), any::<bool>(), option::of(any::<bool>()));
    let headers = btree_map("[A-Za-z-]{1,8}", text(), 0..3);
    (id, option::of(text()), headers, vec(tool, 0..4)).prop_map(
        |(tenant, title, headers, tools)| {
            let mut entities = Entities::default();
            let mut put = |kind, mut content: Value| {
                content.as_object_mut().unwrap().retain(|_, value| !value.is_null());
                entities.put(kind, content, &Origin::new("test", 0)).unwrap();
            };
            put(Kind::Tenant, json!({ "id": tenant, "title": title, "allowed_origins": [] }));
            put(
                Kind::Connection,
                json!({ "tenant": tenant, "id": "api", "base_url": "http://h",
            "headers": headers, "connect_timeout_ms": 5 }),
            );
            put(
                Kind::Toolset,
                json!({ "tenant": tenant, "id": "set", "kind": "rest",
            "connection": "api", "description": title }),
            );
            put(
                Kind::Assignment,
                json!({ "tenant": tenant, "client_application": "c",
            "toolset": "set", "enabled": false }),
            );
            for (name, description, rules, enabled, hint) in tools {
                let rules: Vec<Value> = rules
                    .into_iter()
                    .map(|(source, default, allowed)| {
                        let mut rule = json!({ "source_field_name": source });
                        if let Some(default) = default {
                            rule["default"] = default;
                        }
                        if let Some(allowed) = allowed {
                            rule["enum"] = Value::from(allowed);
                        }
                        rule
                    })
                    .collect();
                let mut annotations = json!({});
                if let Some(hint) = hint {
                    annotations["read_only_hint"] = Value::from(hint);
                }
                put(
                    Kind::Tool,
                    json!({ "tenant": tenant, "toolset": "set", "name": name,
                "description": description, "method": "GET", "path": "/p", "fields": rules,
                "annotations": annotations, "enabled": enabled }),
                );
            }
            entities
        },
    )
}

proptest! {
    #[test]
    fn what_is_exported_is_read_back_unchanged(entities in catalog()) {
        for format in FORMATS {
            let text = export(&entities, format).unwrap();
            let back = read_back(&text, format);
            let changes = entities.changes(&back);
            prop_assert!(changes.is_empty(), "{:?} {:?}\n{}", format, changes, text);
            prop_assert_eq!(back.len(), entities.len());
            prop_assert_eq!(export(&back, format).unwrap(), text, "not the same text again");
        }
    }
}

fn with_default(default: &Value) -> Entities {
    let mut entities = Entities::default();
    let tool = json!({ "tenant": "a", "toolset": "b", "name": "c", "description": "d",
        "method": "GET", "path": "/", "fields": [{ "source_field_name": "x", "default": default }] });
    entities.put(Kind::Tool, tool, &Origin::new("test", 0)).unwrap();
    entities
}

#[test]
fn what_toml_cannot_hold_is_named_and_others_hold_it() {
    for default in [json!(null), json!([1, null]), json!({ "a": null }), json!(u64::MAX)] {
        let entities = with_default(&default);
        let error = export(&entities, ExportFormat::Toml).unwrap_err().to_string();
        assert!(error.starts_with("tool a/b/c cannot be written as toml: "), "{error}");
        assert!(error.ends_with("use yaml or json"), "{error}");
        for format in [ExportFormat::Yaml, ExportFormat::Json] {
            let text = export(&entities, format).unwrap();
            let changes = entities.changes(&read_back(&text, format));
            assert!(changes.is_empty(), "{default} {:?}\n{text}", changes[0].fields());
        }
    }
}

#[test]
fn large_numbers_come_back() {
    for default in [json!(i64::MAX), json!(i64::MIN), json!(1e300), json!(-0.0), json!(5e-324)] {
        let entities = with_default(&default);
        for format in FORMATS {
            let text = export(&entities, format).unwrap();
            let changes = entities.changes(&read_back(&text, format));
            assert!(changes.is_empty(), "{default} {:?}\n{text}", changes[0].fields());
        }
    }
}

#[test]
fn nothing_is_exported_as_nothing() {
    for format in FORMATS {
        let text = export(&Entities::default(), format).unwrap();
        assert!(read_back(&text, format).is_empty());
    }
}

#[test]
fn fields_are_in_the_order_of_the_model() {
    let entities = with_default(&json!("x"));
    let text = export(&entities, ExportFormat::Yaml).unwrap();
    let expected = "tool:\n  - tenant: \"a\"\n    toolset: \"b\"\n    name: \"c\"\n";
    assert!(text.starts_with(expected), "{text}");
    let text = export(&entities, ExportFormat::Toml).unwrap();
    assert!(text.starts_with("[[tool]]\ntenant = \"a\"\ntoolset = \"b\"\n"), "{text}");
}

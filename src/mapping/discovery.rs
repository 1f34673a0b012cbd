//! The placeholder of tools whose schema is not in the list.
//!
//! A lazy tool shows one property, [`SCHEMA_DISCOVERY`], that no tool really has. A model that
//! sends it alone has not looked the schema up yet; beside real arguments it means nothing.

use serde_json::{Value, json};

use crate::json::{Kind, OwnedRaw, Raw};

/// The name of the placeholder. No field of a mapping is ever exposed by it.
pub const SCHEMA_DISCOVERY: &str = "_schema_discovery";

/// The input schema of a lazy tool.
pub fn lazy_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            SCHEMA_DISCOVERY: {
                "type": "string",
                "description":
                    "Leave out. The input schema of this tool is not shown here: call \
                     discover_tool_schema with its tool_id first, then call this tool with the \
                     arguments described there.",
            },
        },
        "additionalProperties": true,
    })
}

/// What the placeholder says about the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    /// It is not there; the arguments are to be used as they came.
    Absent,
    /// There is nothing else: the client has to discover first.
    Alone,
    /// These are the arguments without it.
    Removed(OwnedRaw),
}

/// Looks for the placeholder. To be asked before anything else looks at the arguments, and only
/// for tools that are shown with it: it passes over all of them once.
pub fn discovery(arguments: Option<Raw<'_>>) -> Discovery {
    let Some(arguments) = arguments.filter(|raw| raw.kind() == Kind::Object) else {
        return Discovery::Absent;
    };
    if arguments.get(SCHEMA_DISCOVERY).is_none() {
        return Discovery::Absent;
    }
    let left = arguments.without(&[SCHEMA_DISCOVERY]);
    if left.as_raw().entries().next().is_some() {
        Discovery::Removed(left)
    } else {
        Discovery::Alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::guard;

    #[test]
    fn alone_is_told_from_real_arguments() {
        let of = |text: &str| discovery(Some(guard(text.as_bytes()).unwrap().root()));
        assert_eq!(discovery(None), Discovery::Absent);
        for text in
            ["{}", "null", "[]", "\"_schema_discovery\"", r#"{"a":{"_schema_discovery":1}}"#]
        {
            assert_eq!(of(text), Discovery::Absent, "{text}");
        }
        for text in [r#"{"_schema_discovery":""}"#, r#"{ "_schema\u005fdiscovery" : {"a":1} }"#] {
            assert_eq!(of(text), Discovery::Alone, "{text}");
        }
        let removed = |text: &str| Discovery::Removed(OwnedRaw::parse(text.as_bytes()).unwrap());
        for text in [
            r#"{"_schema_discovery":1,"a":1.50,"b":[1, 2]}"#,
            r#"{"a":1.50,"_schema_discovery":"x,y","b":[1, 2]}"#,
            r#"{"a" : 1.50, "b":[1, 2] ,"_schema_discovery":null }"#,
        ] {
            assert_eq!(of(text), removed(r#"{"a":1.50,"b":[1, 2]}"#), "{text}");
        }
    }

    #[test]
    fn a_lazy_schema_shows_the_placeholder_only() {
        let schema = lazy_schema();
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), [SCHEMA_DISCOVERY]);
        assert_eq!((&schema["type"], schema.get("required")), (&json!("object"), None));
    }
}

//! JSON Schemas of entities, taken from the model itself: what it reads is what is described.
//!
//! Serde tells a deserializer what it expects. [`Probe`] is a deserializer that only listens: it
//! goes one way into a type, notes what is expected there, and ends with an error. One run for each
//! field of each struct shows the whole.

use std::fmt;

use serde::{
    Deserialize,
    de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor, value},
};
use serde_json::{Map, Value, json};

use crate::catalog::{Assignment, ClientApplication, Connection, Kind, Tenant, Tool, Toolset};

/// Structs within structs, at most; the model has no type that holds itself.
const DEPTH_MAX: usize = 8;

/// The schema of an entity of a kind.
pub(super) fn of(kind: Kind) -> Value {
    let mut schema = match kind {
        Kind::Tenant => of_type::<Tenant>(),
        Kind::ClientApplication => of_type::<ClientApplication>(),
        Kind::Connection => of_type::<Connection>(),
        Kind::Toolset => of_type::<Toolset>(),
        Kind::Tool => of_type::<Tool>(),
        Kind::Assignment => of_type::<Assignment>(),
    };
    // Read as whatever it is, so that a wrong value is not quoted: the probe hears nothing there.
    if kind == Kind::Connection
        && let Some(headers) = schema.pointer_mut("/properties/headers")
    {
        *headers = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    }
    if kind == Kind::Connection
        && let Some(credentials) = schema.pointer_mut("/properties/credentials")
    {
        *credentials = credentials_schema();
    }
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("required".to_owned(), json!(kind.key_fields()));
    }
    schema
}

/// Each kind of credential has fields of its own; a secret is text, or says where it is.
fn credentials_schema() -> Value {
    let text = json!({ "type": "string" });
    let place = |name: &str| {
        json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name],
            "additionalProperties": false })
    };
    let secret = json!({ "oneOf": [
        text, place("environment"), place("file"), place("systemd_credential")
    ] });
    let kind = |kind: &str, fields: Value, required: &[&str]| {
        let mut properties = fields.as_object().cloned().unwrap_or_default();
        properties.insert("kind".to_owned(), json!({ "const": kind }));
        let required: Vec<&str> = ["kind"].iter().chain(required).copied().collect();
        json!({ "type": "object", "properties": properties, "required": required,
            "additionalProperties": false })
    };
    let kinds = [
        kind("basic", json!({ "username": text, "password": secret }), &["username", "password"]),
        kind("bearer", json!({ "token": secret }), &["token"]),
        kind(
            "api_key",
            json!({ "place": { "enum": ["header", "query", "cookie"] }, "name": text,
                "value": secret }),
            &["place", "name", "value"],
        ),
        kind(
            "oauth_client_credentials",
            json!({ "token_url": text, "client_id": text, "client_secret": secret,
                "scopes": { "type": "array", "items": text },
                "parameters": { "type": "object", "additionalProperties": text },
                "authentication": { "enum": ["basic", "post"] } }),
            &["token_url", "client_id", "client_secret"],
        ),
        kind(
            "ws_security",
            json!({ "username": text, "password": secret, "digest": { "type": "boolean" } }),
            &["username", "password"],
        ),
        kind("pass_through", json!({ "audience": text }), &["audience"]),
    ];
    json!({ "type": "array", "items": { "oneOf": kinds } })
}

fn of_type<'de, T: Deserialize<'de>>() -> Value {
    at::<T>(&mut Vec::new())
}

/// The schema of what is expected at the end of a way: the numbers of the fields to go into.
fn at<'de, T: Deserialize<'de>>(way: &mut Vec<usize>) -> Value {
    let mut noted = Noted { around: Vec::new(), expected: Expected::Anything };
    let _ = T::deserialize(Probe { way, noted: &mut noted });
    let inner = match noted.expected {
        Expected::Anything => json!({}),
        Expected::Type(name) => json!({ "type": name }),
        Expected::OneOf(words) => json!({ "type": "string", "enum": words }),
        Expected::Struct(fields) => {
            let mut properties = Map::new();
            for (number, field) in fields.iter().enumerate() {
                let schema = if way.len() < DEPTH_MAX {
                    way.push(number);
                    let schema = at::<T>(way);
                    way.pop();
                    schema
                } else {
                    json!({})
                };
                properties.insert((*field).to_owned(), schema);
            }
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
    };
    noted.around.iter().rev().fold(inner, |inner, around| match around {
        Around::List => json!({ "type": "array", "items": inner }),
        Around::Map => json!({ "type": "object", "additionalProperties": inner }),
    })
}

struct Noted {
    /// What is around it since the last struct, the outermost first.
    around: Vec<Around>,
    expected: Expected,
}

enum Around {
    List,
    Map,
}

enum Expected {
    Anything,
    Type(&'static str),
    OneOf(&'static [&'static str]),
    Struct(&'static [&'static str]),
}

/// Heard enough.
#[derive(Debug)]
struct Heard;

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("heard")
    }
}

impl std::error::Error for Heard {}

impl de::Error for Heard {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

struct Probe<'a> {
    way: &'a [usize],
    noted: &'a mut Noted,
}

impl Probe<'_> {
    fn hear<V>(self, expected: Expected) -> Result<V, Heard> {
        self.noted.expected = expected;
        Err(Heard)
    }
}

macro_rules! hear {
    ($($method:ident => $expected:expr;)+) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Heard> {
            self.hear($expected)
        }
    )+};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Heard;

    hear! {
        deserialize_any => Expected::Anything;
        deserialize_ignored_any => Expected::Anything;
        deserialize_bool => Expected::Type("boolean");
        deserialize_i8 => Expected::Type("integer");
        deserialize_i16 => Expected::Type("integer");
        deserialize_i32 => Expected::Type("integer");
        deserialize_i64 => Expected::Type("integer");
        deserialize_i128 => Expected::Type("integer");
        deserialize_u8 => Expected::Type("integer");
        deserialize_u16 => Expected::Type("integer");
        deserialize_u32 => Expected::Type("integer");
        deserialize_u64 => Expected::Type("integer");
        deserialize_u128 => Expected::Type("integer");
        deserialize_f32 => Expected::Type("number");
        deserialize_f64 => Expected::Type("number");
        deserialize_char => Expected::Type("string");
        deserialize_str => Expected::Type("string");
        deserialize_string => Expected::Type("string");
        deserialize_bytes => Expected::Type("string");
        deserialize_byte_buf => Expected::Type("string");
        deserialize_identifier => Expected::Type("string");
        deserialize_unit => Expected::Type("null");
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Heard> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Heard> {
        self.hear(Expected::Type("null"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Heard> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Heard> {
        self.noted.around.push(Around::List);
        visitor.visit_seq(Inside { probe: Some(self), key: "" })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Heard> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Heard> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Heard> {
        self.noted.around.push(Around::Map);
        visitor.visit_map(Inside { probe: Some(self), key: "key" })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Heard> {
        let Some((number, way)) = self.way.split_first() else {
            return self.hear(Expected::Struct(fields));
        };
        let key = fields.get(*number).copied().ok_or(Heard)?;
        // What is around the struct belongs to a shorter way.
        self.noted.around.clear();
        visitor.visit_map(Inside { probe: Some(Probe { way, noted: self.noted }), key })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Heard> {
        self.hear(Expected::OneOf(variants))
    }
}

/// The one item of a list, or the one value of a map or struct.
struct Inside<'a> {
    probe: Option<Probe<'a>>,
    key: &'static str,
}

impl<'de> SeqAccess<'de> for Inside<'_> {
    type Error = Heard;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Heard> {
        seed.deserialize(self.probe.take().ok_or(Heard)?).map(Some)
    }
}

impl<'de> MapAccess<'de> for Inside<'_> {
    type Error = Heard;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Heard> {
        seed.deserialize(value::StrDeserializer::new(self.key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Heard> {
        seed.deserialize(self.probe.take().ok_or(Heard)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_described_to_its_leaves() {
        let tool = of(Kind::Tool);
        assert_eq!(tool["type"], "object");
        assert_eq!(tool["additionalProperties"], false);
        assert_eq!(tool["required"], json!(["tenant", "toolset", "name"]));
        let properties = &tool["properties"];
        assert_eq!(properties["name"], json!({ "type": "string" }));
        assert_eq!(properties["enabled"], json!({ "type": "boolean" }));
        assert_eq!(properties["total_timeout_ms"], json!({ "type": "integer" }));
        assert_eq!(properties["method"]["enum"][0], "GET");
        let fields = &properties["fields"];
        assert_eq!(fields["type"], "array");
        let rule = &fields["items"]["properties"];
        assert_eq!(rule["default"], json!({}));
        assert_eq!(rule["required"], json!({ "type": "boolean" }));
        assert_eq!(rule["enum"], json!({ "type": "array", "items": {} }));
        let hints = &properties["annotations"]["properties"];
        assert_eq!(hints["read_only_hint"], json!({ "type": "boolean" }));
        let headers = &of(Kind::Connection)["properties"]["headers"];
        let strings = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(*headers, strings);
        let credentials = &of(Kind::Connection)["properties"]["credentials"]["items"]["oneOf"];
        assert_eq!(credentials[1]["properties"]["kind"]["const"], "bearer");
        assert_eq!(credentials[1]["required"], json!(["kind", "token"]));
    }
}

//! Field rules: what an operator writes to map one field of an API.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::ParameterStyle;
use crate::json::Kind;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// Text. Dates and other formats are texts.
    String,
    /// A whole number, however it is written: `10`, `1e1`, `10.0`.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An object.
    Object,
    /// An array.
    Array,
    /// A file of a request's body: its name, content type and bytes, or the URI of a resource.
    File,
}

impl FieldType {
    /// The word of JSON Schema.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::File => "file",
        }
    }

    /// Whether a value of this kind can be of this type.
    pub(super) const fn fits(self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::String | Self::File, Kind::String)
                | (Self::Integer | Self::Number, Kind::Number)
                | (Self::Boolean, Kind::Bool)
                | (Self::Object | Self::File, Kind::Object)
                | (Self::Array, Kind::Array)
        )
    }

    /// Whether it is one value and not what holds several.
    pub(super) const fn is_one(self) -> bool {
        !matches!(self, Self::Object | Self::Array)
    }

    pub(super) const fn is_scalar(self) -> bool {
        !matches!(self, Self::Object | Self::Array | Self::File)
    }
}

/// Where a field goes in the request. The order is also that of precedence: when fields of
/// several places have one name, the first keeps it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// Into a `{placeholder}` of the path; arrays as `a,b`.
    Path,
    /// Into the query string; arrays as `name=a&name=b`.
    Query,
    /// Into a header; arrays as `a,b`.
    Header,
    /// Into the `Cookie` header; arrays as `name=a,b`.
    Cookie,
    /// Into the body.
    #[default]
    Body,
}

impl Location {
    /// The word used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
            Self::Body => "body",
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The mapping of one field between the API and the tool.
///
/// In the body, `source_field_name` is a [`FieldPath`](super::FieldPath). Elsewhere it is the name
/// of the parameter as it stands on the wire (`filter[status]`, `X-Request-Id`), with `[*]` at its
/// end as another way to say that the parameter is an array.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key that operators write")]
pub struct FieldRule {
    /// Where the field is on the side of the API.
    pub source_field_name: String,
    /// What the tool calls the field; the last name of the source when absent. Only the field
    /// itself is renamed: objects and arrays around it are kept, under the names that their own
    /// rules give them. A name that models cannot write is shown as one that they can: `$filter[a]`
    /// is `filter_a`, one longer than [`KEY_BYTES_MAX`](super::KEY_BYTES_MAX) or taken by another
    /// field ends with a hash of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed_field_name: Option<String>,
    /// Where the field goes in the request. Responses know only the body.
    #[serde(default)]
    pub location: Location,
    /// What the field holds. When absent: an object where other rules name its members, an array
    /// where the source ends with `[*]`, else a string. Of an answer, a single value that is said
    /// here is held to: an object in its place is not given.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub field_type: Option<FieldType>,
    /// A format of JSON Schema (`date-time`, `uuid`), told to the client and not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// How a parameter, or a field of a form, that is an array or an object is written; by its
    /// location where absent: `form` in query and cookie, `simple` in path and header. Objects in a
    /// form are JSON text where neither this nor `explode` is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<ParameterStyle>,
    /// Whether each item or member of a parameter is written apart; where absent, of `form` only, and
    /// not in a cookie. With `space_delimited` and `pipe_delimited` it is the same as `form`, and
    /// `deep_object` and `json` do not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explode: Option<bool>,
    /// Leaves characters as they are in a query value that separate the parts of a URL, as far as
    /// the value stays one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_reserved: bool,
    /// The content type of the field's part in a `multipart` body. With one of JSON an array is one
    /// part of JSON, else it is a part for each item. A file says itself what it is, and may be of one
    /// of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Headers of the field's part in a `multipart` body, beside its content type. A
    /// `Content-Disposition` stands in place of the one that a form has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub part_headers: BTreeMap<String, String>,
    /// Whether `null` is a value, that a JSON body is sent. Else, and in all other places, it is the
    /// same as an absent field.
    #[serde(default, skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// What the items of an array hold; a string when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array_item_type: Option<FieldType>,
    /// Whether a call must have the field. Path fields always are. An object without a rule of its
    /// own is required when one of its members is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
    /// What the API takes when the field is absent. The client is told; see `send_default`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Sends `default` when the call does not have the field. Without it an absent field stays
    /// absent and the API applies its own default.
    #[serde(default, skip_serializing_if = "is_false")]
    pub send_default: bool,
    /// A value that is always sent. The client neither sees nor sets the field.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub constant: Option<Value>,
    /// The client neither sees nor sets the argument, and it is never sent. Only of tools of MCP
    /// servers, which say themselves what arguments there are: elsewhere the rule is left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Shows an integer or a number to the client as a text of its digits and sends it to the API as
    /// the number: most clients round what is larger than 2^53 or has many decimals. Of an array
    /// it is said for the items.
    #[serde(default, skip_serializing_if = "is_false")]
    pub as_string: bool,
    /// A JSON Schema of 2020-12 that stands in place of `type`, `format`, `enum`,
    /// `array_item_type` and `additional_properties`. Where the source ends with `[*]` it is that
    /// of the items. Its `$ref`s point into itself and must not go round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The values that are allowed; of the items where the field is an array.
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Value>>,
    /// The header in which clients of 2026-07-28 repeat the argument, without `Mcp-Param-` in front:
    /// for whatever routes requests by it. Of a string, an integer or a boolean, in no array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_header: Option<String>,
    /// What the field means, told to the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `additionalProperties` of an object, or of the objects in an array: a boolean or a schema,
    /// passed on as it is. Of an answer, such an object keeps the members that no rule names, unless
    /// it is `false` or absent; see [`ResponsePlan`](super::ResponsePlan).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<Value>,
}

impl FieldRule {
    /// A rule with everything else at its default: an optional string.
    pub fn new(source_field_name: impl Into<String>, location: Location) -> Self {
        Self { source_field_name: source_field_name.into(), location, ..Self::default() }
    }

    /// The first key that says again what a raw schema has to say.
    pub(super) fn beside_schema(&self) -> Option<&'static str> {
        let said = [
            ("type", self.field_type.is_some()),
            ("format", self.format.is_some()),
            ("enum", self.allowed.is_some()),
            ("array_item_type", self.array_item_type.is_some()),
            ("additional_properties", self.additional_properties.is_some()),
            ("as_string", self.as_string),
        ];
        said.into_iter().find_map(|(key, is_said)| is_said.then_some(key))
    }

    /// How errors name the rule: `order.id (body)`.
    pub(super) fn name(&self) -> String {
        format!("{} ({})", self.source_field_name, self.location)
    }
}

/// A `null` that was written is a value: `constant: null` sends one.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is that of serde")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_read_from_files() {
        let written = json!({
            "source_field_name": "order.lines[*].sku", "exposed_field_name": "article",
            "location": "body", "type": "string", "format": "uuid", "required": true,
            "enum": ["a"], "description": "d", "default": "a", "send_default": true,
            "as_string": true, "schema": {"type": "string"},
        });
        let rule: FieldRule = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(rule.field_type, Some(FieldType::String));
        assert_eq!(serde_json::to_value(&rule).unwrap(), written);
        let null: FieldRule =
            serde_json::from_value(json!({"source_field_name": "a", "constant": null})).unwrap();
        assert_eq!(null.constant, Some(Value::Null));
        let short: FieldRule = toml::from_str("source_field_name = \"a\"").unwrap();
        assert_eq!(short, FieldRule::new("a", Location::Body));
    }

    #[test]
    fn unknown_keys_and_words_are_errors() {
        for text in [
            "source_field_name = \"a\"\nrequird = true",
            "source_field_name = \"a\"\nlocation = \"boddy\"",
            "source_field_name = \"a\"\ntype = \"text\"",
            "location = \"body\"",
        ] {
            assert!(toml::from_str::<FieldRule>(text).is_err(), "{text}");
        }
    }
}

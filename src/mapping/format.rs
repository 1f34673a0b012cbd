//! How parameters and bodies are written: what the field rules of an operator may say of it.

use serde::{Deserialize, Serialize};

use super::Requirement;

/// How a parameter that is an array or an object is written (OpenAPI 3.1, section 4.8.12.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParameterStyle {
    /// `a,b`: the default of path and header.
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a;name=b`
    Matrix,
    /// `name=a&name=b`: the default of query and cookie.
    Form,
    /// `name=a%20b`
    SpaceDelimited,
    /// `name=a|b`
    PipeDelimited,
    /// `name[key]=a`
    DeepObject,
    /// The value as JSON text: a parameter with `content` of a JSON type.
    Json,
}

/// What the body of a request is, as its tool says.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestBody<'a> {
    /// How the fields are written.
    pub format: BodyFormat,
    /// What it is called; what the format says where absent.
    pub content_type: Option<&'a str>,
    /// What its fields have to keep to together.
    pub requires: &'a [Requirement],
}

/// How the body fields of a request are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFormat {
    /// JSON.
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data`: a part for each field.
    Multipart,
    /// XML, as `xml` of the tool says.
    Xml,
    /// The one field as it is.
    Text,
    /// The bytes of the one field, which is a file.
    Binary,
}

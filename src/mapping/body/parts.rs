//! Bodies of several parts: forms, and what has no fields but parts in their order.
//!
//! Of a form (RFC 7578) a part is known by its name. Of `multipart/mixed` and `multipart/related` it
//! is known by its place and by what its headers say: each tells its content type, and none is given
//! a `Content-Disposition` that its rule does not have.

use std::sync::Arc;

use super::{BodyField, MULTIPART, USUAL_BOUNDARY};
use crate::http::multipart::{Boundary, PartHead, PartWriter, parameter};
use crate::http::{is_field_name, is_framing};
use crate::mapping::{FieldRule, MappingError, media};

/// Most headers of one part, and how long they are together.
const HEADERS_MAX: usize = 16;
const HEADERS_BYTES_MAX: usize = 4096;
/// What a part is that says nothing.
const TEXT: &str = "text/plain; charset=utf-8";

/// Which kind of parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum PartsKind {
    #[default]
    Form,
    Mixed,
    Related(Related),
}

/// What the content type of `multipart/related` says of its root (RFC 2387 section 3), which is the
/// first part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Related {
    /// What the root is; as its own head says where absent.
    root: Option<Box<str>>,
    start: Option<Box<str>>,
    start_info: Option<Box<str>>,
}

impl PartsKind {
    /// The kind of a content type; `None` where parts of that type are not written.
    pub(super) fn of(given: Option<&str>) -> Option<Self> {
        let Some(given) = given else { return Some(Self::Form) };
        let said = |name: &str| {
            let value = parameter(given, name).filter(|value| !value.is_empty());
            value.map(|value| value.into_owned().into_boxed_str())
        };
        Some(match media::essence(given).to_ascii_lowercase().as_str() {
            MULTIPART => Self::Form,
            "multipart/mixed" => Self::Mixed,
            "multipart/related" => {
                let root = said("type").filter(|root| media::is_media_type(root));
                Self::Related(Related {
                    root,
                    start: said("start"),
                    start_info: said("start-info"),
                })
            }
            _ => return None,
        })
    }

    /// What most bodies of this kind are called.
    pub(super) fn usual(&self) -> Arc<str> {
        let kind = match self {
            Self::Form => MULTIPART,
            Self::Mixed => "multipart/mixed",
            Self::Related(_) => "multipart/related",
        };
        [kind, "; boundary=", USUAL_BOUNDARY].concat().into()
    }
}

impl Related {
    fn name(&self, content_type: &mut String, root: &str) {
        let root = self.root.as_deref().unwrap_or(root);
        let said = [
            ("type", Some(root).filter(|root| !root.is_empty())),
            ("start", self.start.as_deref()),
            ("start-info", self.start_info.as_deref()),
        ];
        for (name, value) in said {
            let Some(value) = value else { continue };
            content_type.push_str("; ");
            content_type.push_str(name);
            content_type.push_str("=\"");
            for character in value.chars() {
                if matches!(character, '"' | '\\') {
                    content_type.push('\\');
                }
                content_type.push(character);
            }
            content_type.push('"');
        }
    }

    /// The root has the name that the content type gives it: `Content-ID: <start>`.
    fn content_id(&self) -> Option<String> {
        let start = self.start.as_deref()?;
        Some(if start.starts_with('<') { start.to_owned() } else { format!("<{start}>") })
    }
}

/// A header of a part: its name and its value.
pub(super) type PartHeader = (Box<str>, Box<str>);

/// The headers that the rule of a part has.
pub(super) fn headers_of(rule: &FieldRule) -> Result<Box<[PartHeader]>, MappingError> {
    let refuse = |problem| Err(MappingError::Rule { field: rule.name(), problem });
    let bytes: usize = rule.part_headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if rule.part_headers.len() > HEADERS_MAX || bytes > HEADERS_BYTES_MAX {
        return refuse("part_headers are more than 16, or longer than 4 KiB together");
    }
    let mut problems = rule.part_headers.iter().filter_map(|(name, value)| problem(name, value));
    if let Some(problem) = problems.next() {
        return refuse(problem);
    }
    let pairs = rule.part_headers.iter();
    Ok(pairs.map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect())
}

/// What keeps a header from being one of a part; `None` when nothing does.
pub(crate) fn problem(name: &str, value: &str) -> Option<&'static str> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if !is_field_name(name) || value.chars().any(char::is_control) {
        return Some(
            "part_headers has a name that is none of a header, or a value with control characters",
        );
    }
    if is("Content-Type") {
        return Some("part_headers: what a part is called is said by content_type");
    }
    let is_plain = ["binary", "8bit"].iter().any(|known| value.eq_ignore_ascii_case(known));
    let is_coded = is("Content-Transfer-Encoding") && !is_plain;
    (is_coded || is_framing(name))
        .then_some("part_headers has one that says how the bytes are written; remove it")
}

/// Writes the parts of one body.
#[derive(Debug)]
pub(super) struct Parts<'k> {
    writer: PartWriter,
    kind: &'k PartsKind,
    /// What the first part is, once it is begun.
    root: Option<Box<str>>,
}

impl<'k> Parts<'k> {
    /// A body of about this size.
    pub(super) fn new(kind: &'k PartsKind, bytes: usize) -> Self {
        Self { writer: PartWriter::new(bytes), kind, root: None }
    }

    /// Begins the part of a field; its content is to be appended to what is given.
    pub(super) fn part(
        &mut self,
        field: &BodyField,
        name: &str,
        filename: Option<&str>,
        content_type: Option<&str>,
    ) -> &mut Vec<u8> {
        let headers = &field.headers;
        if *self.kind == PartsKind::Form {
            return self.writer.part(PartHead {
                name: Some(name),
                filename,
                content_type,
                headers,
            });
        }
        let content_type = content_type.unwrap_or(TEXT);
        let is_root = self.root.is_none();
        let head = PartHead { content_type: Some(content_type), headers, ..PartHead::default() };
        if !is_root {
            return self.writer.part(head);
        }
        self.root = Some(media::essence(content_type).into());
        let is_id = |(name, _): &PartHeader| name.eq_ignore_ascii_case("Content-ID");
        match self.kind {
            PartsKind::Related(related) if !headers.iter().any(is_id) => {
                let id = related.content_id().map(|id| ("Content-ID".into(), id.into()));
                let headers: Vec<PartHeader> = headers.iter().cloned().chain(id).collect();
                self.writer.part(PartHead { headers: &headers, ..head })
            }
            _ => self.writer.part(head),
        }
    }

    /// The body and what it is called. `usual` is that of its kind.
    pub(super) fn finish(self, usual: &Arc<str>) -> (Vec<u8>, Arc<str>) {
        let (body, boundary) = self.writer.finish();
        let content_type = match self.kind {
            PartsKind::Related(related) => {
                let mut content_type = replaced(usual, &boundary);
                related.name(&mut content_type, self.root.as_deref().unwrap_or_default());
                content_type.into()
            }
            _ if boundary.as_str() == USUAL_BOUNDARY => Arc::clone(usual),
            _ => replaced(usual, &boundary).into(),
        };
        (body, content_type)
    }
}

fn replaced(usual: &str, boundary: &Boundary) -> String {
    usual.replace(USUAL_BOUNDARY, boundary.as_str())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;

//! What comes beside a message.

use std::borrow::Cow;

/// The parts that came with a message, by their content ids.
#[derive(Debug, Default)]
pub struct Attachments<'a> {
    parts: Vec<(Box<str>, Cow<'a, [u8]>)>,
}

impl<'a> Attachments<'a> {
    /// Adds the part of this content id, with or without its angle brackets.
    pub fn add(&mut self, content_id: &str, bytes: impl Into<Cow<'a, [u8]>>) {
        let id = content_id.trim();
        let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
        self.parts.push((id.into(), bytes.into()));
    }

    pub(in crate::mapping) fn find(&self, id: &str) -> Option<&[u8]> {
        self.parts.iter().find(|(known, _)| **known == *id).map(|(_, bytes)| &**bytes)
    }

    pub(in crate::mapping) fn bytes(&self) -> usize {
        self.parts.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

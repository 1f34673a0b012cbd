//! Members that many records have in common, written once and copied into each of them.

use std::fmt;

use super::line::{NAME_BYTES_MAX, TEXT_BYTES_MAX, optional, text, write_hex};

/// Who asks, and over whose view: one for all calls of a caller.
#[derive(Clone, PartialEq, Eq)]
pub struct Asker(Box<[u8]>);

/// The tool a call is of: one for all calls of it in a view.
#[derive(Clone, PartialEq, Eq)]
pub struct Subject(Box<[u8]>);

impl Asker {
    /// `caller` as far as it is known, and how far it is `trust`ed.
    pub fn new(
        tenant: &str,
        client_application: &str,
        caller: &str,
        trust: Option<&'static str>,
    ) -> Self {
        let mut out = Vec::with_capacity(160);
        text(&mut out, b",\"tenant\":", tenant, NAME_BYTES_MAX);
        text(&mut out, b",\"client_application\":", client_application, NAME_BYTES_MAX);
        text(&mut out, b",\"caller\":", caller, TEXT_BYTES_MAX);
        optional(&mut out, b",\"trust\":", trust, NAME_BYTES_MAX);
        Self(out.into())
    }

    pub(super) fn members(&self) -> &[u8] {
        &self.0
    }
}

impl Subject {
    /// The tool by the name clients see, its toolset, the operation's own name where it differs,
    /// and the hash of the tool's schemas.
    pub fn new(
        tool: &str,
        toolset: &str,
        source_name: Option<&str>,
        schema_hash: &[u8; 32],
    ) -> Self {
        let mut out = Vec::with_capacity(240);
        text(&mut out, b",\"tool\":", tool, TEXT_BYTES_MAX);
        text(&mut out, b",\"toolset\":", toolset, NAME_BYTES_MAX);
        optional(&mut out, b",\"source_name\":", source_name, TEXT_BYTES_MAX);
        out.extend_from_slice(b",\"schema_hash\":\"");
        write_hex(&mut out, schema_hash);
        out.push(b'"');
        Self(out.into())
    }

    pub(super) fn members(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asker").field(&String::from_utf8_lossy(&self.0)).finish()
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subject").field(&String::from_utf8_lossy(&self.0)).finish()
    }
}

//! `server/discover`: what the server speaks and offers (MCP 2026-07-28).

use super::refusal::write_supported;
use super::{Offers, Revision, ServerInfo};
use crate::catalog::View;
use crate::json;
use crate::rpc::ResultBody;

/// The result, without its ending.
pub(super) fn discovered(view: &View, server: &ServerInfo) -> ResultBody {
    let room = 512 + view.instructions.as_ref().map_or(0, |text| text.len() * 9 / 8);
    let mut out = Vec::with_capacity(room);
    out.extend_from_slice(b"{\"supportedVersions\":");
    write_supported(&mut out);
    out.extend_from_slice(b",\"capabilities\":");
    Offers::of(view, Revision::V20260728).write_capabilities(&mut out, server.tells_changes);
    if let Some(instructions) = &view.instructions {
        out.extend_from_slice(b",\"instructions\":");
        json::write_string(&mut out, instructions);
    }
    out.push(b'}');
    ResultBody::Owned(out)
}

//! `server/discover`: what the server speaks and offers (MCP 2026-07-28).

use super::ServerInfo;
use super::refusal::write_supported;
use crate::catalog::View;
use crate::json;
use crate::rpc::ResultBody;

/// The result, without its ending.
pub(super) fn discovered(view: &View, server: &ServerInfo) -> ResultBody {
    let mut upstreams = view.upstreams().iter();
    let subscribes = server.tells_changes && upstreams.any(|server| server.definitions.subscribes);
    let tells = server.tells_changes;
    let changes = if tells { "\"listChanged\":true" } else { "" };
    let updates = if subscribes { ",\"subscribe\":true" } else { "" };
    // Who logs is an upstream server; this one has nothing to say to clients that way.
    let logs = if view.upstreams().is_empty() { "" } else { ",\"logging\":{}" };
    let room = 512 + view.instructions.as_ref().map_or(0, |text| text.len() * 9 / 8);
    let mut out = Vec::with_capacity(room);
    out.extend_from_slice(b"{\"supportedVersions\":");
    write_supported(&mut out);
    let capabilities = format!(
        ",\"capabilities\":{{\"tools\":{{{changes}}},\"resources\":{{{changes}{updates}}},\
         \"prompts\":{{{changes}}},\"completions\":{{}}{logs}}}"
    );
    out.extend_from_slice(capabilities.as_bytes());
    if let Some(instructions) = &view.instructions {
        out.extend_from_slice(b",\"instructions\":");
        json::write_string(&mut out, instructions);
    }
    out.push(b'}');
    ResultBody::Owned(out)
}

//! Pages of a list.
//!
//! A cursor is the place of the next entry, tied to the names of the list it was made for: of a
//! list that has changed since, it is refused, and the client starts again. Clients must take it as
//! it is. It holds no secret: a made-up one shows a part of the client's own list.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::catalog::{ToolShape, View};
use crate::json::{self, Kind, Raw};
use crate::rpc::{ResultBody, RpcError};

const CURSOR_BYTES: usize = 12;
const CURSOR_CHARS: usize = 16;

/// One page of the tools; all of them where `page_size` is 0 or none is left for a second page.
pub(super) fn tools(
    view: &View,
    shape: ToolShape,
    page_size: usize,
    params: Option<Raw<'_>>,
) -> Result<ResultBody, RpcError> {
    let count = view.list_len();
    let cursor = cursor_of(params)?;
    if cursor.is_none() && (page_size == 0 || count <= page_size) {
        return Ok(ResultBody::Shared(view.tools_list(shape).clone()));
    }
    let list = fingerprint(view);
    let start = match cursor {
        None => 0,
        // A cursor is given out for a place inside the list only.
        Some(cursor) => decode(&cursor, list)
            .filter(|start| (1..count).contains(start))
            .ok_or_else(bad_cursor)?,
    };
    let page_size = if page_size == 0 { count } else { page_size };
    let end = start.saturating_add(page_size).min(count);
    let page = || (start..end).filter_map(|place| view.list_entry(place));
    let bytes: usize = page().map(|tool| tool.fragment(shape).len() + 1).sum();
    let mut out = Vec::with_capacity(bytes + 64);
    out.extend_from_slice(b"{\"tools\":[");
    for (index, tool) in page().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(tool.fragment(shape));
    }
    out.push(b']');
    if end < count {
        out.extend_from_slice(b",\"nextCursor\":");
        json::write_string(&mut out, &encode(end, list));
    }
    out.push(b'}');
    Ok(ResultBody::Owned(out))
}

/// A list without entries. No cursor was ever given out for it.
pub(super) fn empty(list: &'static [u8], params: Option<Raw<'_>>) -> Result<ResultBody, RpcError> {
    match cursor_of(params)? {
        None => Ok(ResultBody::Static(list)),
        Some(_) => Err(bad_cursor()),
    }
}

/// An empty text is a cursor too (never one of ours); `null` is none.
fn cursor_of(params: Option<Raw<'_>>) -> Result<Option<Cow<'_, str>>, RpcError> {
    let Some(params) = params else { return Ok(None) };
    let cursor = params.get("cursor").filter(|cursor| cursor.kind() != Kind::Null);
    match cursor {
        None => Ok(None),
        Some(cursor) => cursor.as_str().map(Some).ok_or_else(bad_cursor),
    }
}

fn bad_cursor() -> RpcError {
    RpcError::invalid_params(
        "this cursor is not valid, or the list has changed: list from the start again",
    )
}

fn encode(start: usize, list: u64) -> String {
    let mut bytes = [0; CURSOR_BYTES];
    bytes[..8].copy_from_slice(&list.to_be_bytes());
    // A view has far fewer tools.
    bytes[8..].copy_from_slice(&(start as u32).to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode(cursor: &str, list: u64) -> Option<usize> {
    if cursor.len() != CURSOR_CHARS {
        return None;
    }
    let mut bytes = [0; CURSOR_BYTES];
    URL_SAFE_NO_PAD.decode_slice(cursor, &mut bytes).ok()?;
    let start = bytes.strip_prefix(&list.to_be_bytes())?;
    usize::try_from(u32::from_be_bytes(start.try_into().ok()?)).ok()
}

/// Of the names in their order (FNV-1a): the same on every node and after a restart.
fn fingerprint(view: &View) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    view.list_entries()
        .fold(0xcbf2_9ce4_8422_2325, |hash, tool| step(tool.name().bytes().fold(hash, step), 0))
}

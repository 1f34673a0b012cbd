//! Pages of a list.
//!
//! A cursor is the place of the next entry, tied to the names of the list it was made for: of a
//! list that has changed since, it is refused, and the client starts again. Clients must take it as
//! it is. It holds no secret: a made-up one shows a part of the client's own list.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::templates;
use crate::catalog::{ListEntry, ToolShape, View};
use crate::json::{self, Kind, Raw};
use crate::rpc::{ResultBody, RpcError};

const CURSOR_BYTES: usize = 12;
const CURSOR_CHARS: usize = 16;

/// A list of which a page can be had.
pub(super) trait List {
    /// What the result calls its entries.
    const MEMBER: &'static str;

    /// How many entries there are.
    fn len(&self) -> usize;

    /// What an entry is called: its identity over the life of a cursor.
    fn name(&self, place: usize) -> &str;

    /// Writes an entry: a JSON object.
    fn write(&self, place: usize, out: &mut Vec<u8>);

    /// The finished result with all entries.
    fn whole(&self) -> ResultBody;
}

/// The tools of a view.
pub(super) struct Tools<'a>(pub(super) &'a View, pub(super) ToolShape);

impl List for Tools<'_> {
    const MEMBER: &'static str = "tools";

    fn len(&self) -> usize {
        self.0.list_len()
    }

    fn name(&self, place: usize) -> &str {
        self.0.list_entry(place).map_or("", ListEntry::name)
    }

    fn write(&self, place: usize, out: &mut Vec<u8>) {
        if let Some(entry) = self.0.list_entry(place) {
            out.extend_from_slice(entry.fragment(self.1));
        }
    }

    fn whole(&self) -> ResultBody {
        ResultBody::Shared(self.0.tools_list(self.1).clone())
    }
}

/// The prompts of a view.
pub(super) struct Prompts<'a>(pub(super) &'a View, pub(super) ToolShape);

impl List for Prompts<'_> {
    const MEMBER: &'static str = "prompts";

    fn len(&self) -> usize {
        self.0.prompts().len() + self.0.upstream_prompts().len()
    }

    fn name(&self, place: usize) -> &str {
        match own_or_offered(self.0.prompts(), self.0.upstream_prompts(), place) {
            (Some(own), _) => own.name.as_str(),
            (None, Some(offered)) => &offered.prompt.name,
            (None, None) => "",
        }
    }

    fn write(&self, place: usize, out: &mut Vec<u8>) {
        match own_or_offered(self.0.prompts(), self.0.upstream_prompts(), place) {
            (Some(own), _) => own.write_prompt(out, self.1),
            (None, Some(offered)) => offered.write(out, self.1),
            (None, None) => {}
        }
    }

    fn whole(&self) -> ResultBody {
        ResultBody::Shared(self.0.prompts_list(self.1).clone())
    }
}

/// The resources of a view.
pub(super) struct Resources<'a>(pub(super) &'a View, pub(super) ToolShape);

impl List for Resources<'_> {
    const MEMBER: &'static str = "resources";

    fn len(&self) -> usize {
        self.0.prompts().len() + self.0.upstream_resources().len()
    }

    fn name(&self, place: usize) -> &str {
        match own_or_offered(self.0.prompts(), self.0.upstream_resources(), place) {
            (Some(own), _) => &own.uri,
            (None, Some(offered)) => offered.uri(),
            (None, None) => "",
        }
    }

    fn write(&self, place: usize, out: &mut Vec<u8>) {
        match own_or_offered(self.0.prompts(), self.0.upstream_resources(), place) {
            (Some(own), _) => own.write_resource(out, self.1),
            (None, Some(offered)) => offered.write(out, self.1),
            (None, None) => {}
        }
    }

    fn whole(&self) -> ResultBody {
        ResultBody::Shared(self.0.resources_list(self.1).clone())
    }
}

/// The resource templates of a view.
pub(super) struct Templates<'a>(pub(super) &'a View, pub(super) ToolShape);

impl List for Templates<'_> {
    const MEMBER: &'static str = "resourceTemplates";

    fn len(&self) -> usize {
        templates::own(self.0).len() + self.0.upstream_templates().len()
    }

    fn name(&self, place: usize) -> &str {
        match own_or_offered(templates::own(self.0), self.0.upstream_templates(), place) {
            (Some(own), _) => own.uri_template,
            (None, Some(offered)) => offered.uri(),
            (None, None) => "",
        }
    }

    fn write(&self, place: usize, out: &mut Vec<u8>) {
        match own_or_offered(templates::own(self.0), self.0.upstream_templates(), place) {
            (Some(own), _) => own.write(out, self.1),
            (None, Some(offered)) => offered.write(out, self.1),
            (None, None) => {}
        }
    }

    fn whole(&self) -> ResultBody {
        let mut out = Vec::with_capacity(1_024);
        write_page(self, 0..self.len(), &mut out);
        out.push(b'}');
        ResultBody::Owned(out)
    }
}

/// What is at a place of a list whose own entries stand before those of upstream servers.
fn own_or_offered<'a, T, U>(
    own: &'a [T],
    offered: &'a [U],
    place: usize,
) -> (Option<&'a T>, Option<&'a U>) {
    let behind = place.checked_sub(own.len());
    (own.get(place), behind.and_then(|behind| offered.get(behind)))
}

/// One page of a list; all of it where `page_size` is 0 or none is left for a second page.
pub(super) fn page<L: List>(
    list: &L,
    page_size: usize,
    params: Option<Raw<'_>>,
) -> Result<ResultBody, RpcError> {
    let count = list.len();
    let cursor = cursor_of(params)?;
    if cursor.is_none() && (page_size == 0 || count <= page_size) {
        return Ok(list.whole());
    }
    let identity = fingerprint(list);
    let start = match cursor {
        None => 0,
        // A cursor is given out for a place inside the list only.
        Some(cursor) => decode(&cursor, identity)
            .filter(|start| (1..count).contains(start))
            .ok_or_else(bad_cursor)?,
    };
    let page_size = if page_size == 0 { count } else { page_size };
    let end = start.saturating_add(page_size).min(count);
    let mut out = Vec::with_capacity(1_024);
    write_page(list, start..end, &mut out);
    if end < count {
        out.extend_from_slice(b",\"nextCursor\":");
        json::write_string(&mut out, &encode(end, identity));
    }
    out.push(b'}');
    Ok(ResultBody::Owned(out))
}

/// Entries of a list, in an object that stays open.
fn write_page<L: List>(list: &L, places: Range<usize>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(L::MEMBER.as_bytes());
    out.extend_from_slice(b"\":[");
    for (index, place) in places.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        list.write(place, out);
    }
    out.push(b']');
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

/// Of the names in their order (FNV-1a), and of what is listed: the same on every node and after a
/// restart.
fn fingerprint<L: List>(list: &L) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let of_kind = L::MEMBER.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (0..list.len()).fold(of_kind, |hash, place| step(list.name(place).bytes().fold(hash, step), 0))
}

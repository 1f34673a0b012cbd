//! What can be taken from an entry of an upstream server's list: members of the kind they have to
//! be, as they were written. What is of another kind is left out, because a reader that holds an
//! entry to its form refuses the whole list.

use super::{DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX};
use crate::json::{self, Kind, OwnedRaw, Raw, write_string};

/// Icons of one entry.
const ICONS_MAX: usize = 16;
/// Bytes of the icons of one entry: some are whole pictures.
const ICONS_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the `_meta` of one entry.
const META_BYTES_MAX: usize = 16 * 1024;

/// A text for people or models.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    key: &'static str,
    bytes_max: usize,
}

pub(super) const TITLE: Text = Text { key: "title", bytes_max: TITLE_BYTES_MAX };
pub(super) const DESCRIPTION: Text = Text { key: "description", bytes_max: DESCRIPTION_BYTES_MAX };

/// A text of an entry, cut where it is too long.
pub(super) fn text(entry: Raw<'_>, text: Text, notes: &mut Vec<String>) -> Option<Box<str>> {
    let Text { key, bytes_max } = text;
    let said = entry.get(key)?.as_str()?;
    if said.len() <= bytes_max {
        return Some(said.into());
    }
    notes.push(format!("its {key} is cut to {bytes_max} bytes"));
    Some(said.get(..said.floor_char_boundary(bytes_max)).unwrap_or_default().into())
}

/// The value without the blanks between its parts.
pub(super) fn compact(raw: Raw<'_>) -> OwnedRaw {
    let mut out = Vec::with_capacity(raw.text().len());
    json::write_raw(&mut out, raw);
    // A checked text without its blanks is one.
    OwnedRaw::parse(&out).unwrap_or_else(|_| raw.to_owned())
}

/// The object with this member, in place of one of that name or at its end.
pub(super) fn with_member(object: Raw<'_>, name: &str, value: &[u8]) -> OwnedRaw {
    let mut out = Vec::with_capacity(object.text().len() + name.len() + value.len() + 8);
    let mut is_there = false;
    out.push(b'{');
    let next = |out: &mut Vec<u8>, name: &str, value: &[u8]| {
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(out, name);
        out.push(b':');
        out.extend_from_slice(value);
    };
    for (other, old) in object.entries() {
        let is_it = other == name;
        is_there |= is_it;
        next(&mut out, &other, if is_it { value } else { old.text().as_bytes() });
    }
    if !is_there {
        next(&mut out, name, value);
    }
    out.push(b'}');
    // Members of a checked object and a value are a checked object.
    OwnedRaw::parse(&out).unwrap_or_else(|_| object.to_owned())
}

/// How deep a value nests.
pub(super) fn depth(raw: Raw<'_>) -> usize {
    let (mut depth, mut deepest, mut in_string) = (0_usize, 0, false);
    let mut bytes = raw.text().bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// The icons of an entry as an array; `None` where there is none that may be shown. Consumers must
/// refuse those of other schemes (MCP 2025-11-25, icons), so they are not passed on.
pub(super) fn icons(entry: Raw<'_>) -> Option<Box<str>> {
    let is_good = |icon: &Raw<'_>| {
        let source = icon.get("src").and_then(Raw::as_str);
        source.is_some_and(|source| {
            ["https:", "http:", "data:"].iter().any(|scheme| {
                source.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            })
        })
    };
    let mut out = vec![b'['];
    for icon in entry.get("icons")?.items().filter(is_good).take(ICONS_MAX) {
        if out.len() + icon.text().len() > ICONS_BYTES_MAX {
            break;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        json::write_raw(&mut out, icon);
    }
    out.push(b']');
    (out.len() > 2).then(|| String::from_utf8(out).unwrap_or_default().into())
}

/// The members of an entry's `_meta`, one behind the other, but for those that are not the server's
/// to say; `None` where there is none.
pub(super) fn meta(entry: Raw<'_>, is_ours: impl Fn(&str) -> bool) -> Option<Box<str>> {
    let meta = entry.get("_meta").filter(|meta| meta.text().len() <= META_BYTES_MAX)?;
    let mut out = Vec::new();
    for (name, value) in meta.entries().filter(|(name, _)| !is_ours(name)) {
        if !out.is_empty() {
            out.push(b',');
        }
        write_string(&mut out, &name);
        out.push(b':');
        json::write_raw(&mut out, value);
    }
    (!out.is_empty()).then(|| String::from_utf8(out).unwrap_or_default().into())
}

/// A member of an entry, where it is of this kind.
pub(super) fn member<'a>(entry: Raw<'a>, key: &str, kind: Kind) -> Option<Raw<'a>> {
    entry.get(key).filter(|value| value.kind() == kind)
}

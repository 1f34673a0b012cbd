//! The note of a call's stream: the ids it answers, so that a restart can answer them in its place.

use crate::{
    json,
    rpc::{Id, Reply, RpcError},
};

/// Marks the note of a single request, and of a batch.
const SINGLE: u8 = b's';
const BATCH: u8 = b'b';
/// Ids are JSON texts, in which a line break cannot stand.
const SEPARATOR: u8 = b'\n';

/// The note of one request.
pub(crate) fn single(id: Id<'_>) -> Vec<u8> {
    let mut note = vec![SINGLE];
    note.extend_from_slice(id.text().as_bytes());
    note
}

/// The note of a batch.
pub(crate) fn batch<'a>(ids: impl Iterator<Item = Id<'a>>) -> Vec<u8> {
    let mut note = vec![BATCH];
    for (at, id) in ids.enumerate() {
        if at > 0 {
            note.push(SEPARATOR);
        }
        note.extend_from_slice(id.text().as_bytes());
    }
    note
}

/// The payload that answers every id of the note with `error`; nothing for a note that was too
/// long to be kept.
pub(crate) fn refusal(note: &[u8], error: &RpcError) -> Option<Vec<u8>> {
    let (kind, ids) = note.split_first()?;
    let replies: Vec<Reply> = ids
        .split(|byte| *byte == SEPARATOR)
        .filter_map(|id| Id::of(json::guard(id).ok()?.root()))
        .map(|id| Reply::new(id.to_owned_id(), Err(error.clone())))
        .collect();
    let mut payload = Vec::new();
    match (*kind, replies.as_slice()) {
        (SINGLE, [reply]) => reply.write(&mut payload),
        (BATCH, [_, ..]) => crate::rpc::write_batch(&mut payload, &replies),
        _ => return None,
    }
    Some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> RpcError {
        RpcError { code: -32603, message: "lost".into(), data: None }
    }

    #[test]
    fn ids_come_back_as_they_came() {
        let single = refusal(b"s\"a\\nb\"", &lost()).unwrap();
        let expected = br#"{"jsonrpc":"2.0","id":"a\nb","error":{"code":-32603,"message":"lost"}}"#;
        assert_eq!(single, expected);
        let batch = refusal(b"b1\n\"x\"", &lost()).unwrap();
        let text = String::from_utf8(batch).unwrap();
        assert!(text.starts_with(r#"[{"jsonrpc":"2.0","id":1,"#) && text.contains(r#""id":"x""#));
    }

    #[test]
    fn what_is_no_note_answers_nothing() {
        for note in [&b""[..], b"s", b"b", b"x1", b"s1\n2"] {
            assert!(refusal(note, &lost()).is_none(), "{note:?}");
        }
    }
}

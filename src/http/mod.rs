//! HTTP/1.1 without sockets: bytes in, messages out, and back.
//!
//! Invariants worth naming:
//!
//! - A reader's outcome never depends on how the bytes were cut into reads, and its work is linear
//!   in them: a head that comes byte by byte is scanned once, a chunked body is decoded in place.
//! - Every length is bounded: head, fields, target, body, chunk extensions, trailers, SSE lines.
//! - Wherever two parsers could disagree about where a message ends, the message is refused, not
//!   guessed at. After a refusal the connection is of no more use.
//! - Written heads cannot be injected into: a field with a line break or NUL never gets out.
//!
//! This room must not hold sockets, clocks or threads, and knows nothing of routes or MCP.
//!
//! ```text
//! request   response     the two readers
//! head body chunked      end and fields of a head; where a body ends; chunked framing
//! write                  heads and chunks out
//! accept origin percent  what some field values mean
//! mirrored               values of a body that stand in a header too
//! sse                    event streams, both ways
//! multipart              bodies of several parts, both ways
//! ```

pub mod accept;
mod body;
mod buffer;
mod chunked;
mod error;
mod field;
mod head;
mod known;
pub mod mirrored;
pub mod multipart;
pub mod origin;
mod percent;
mod request;
mod response;
pub mod sse;
mod write;

pub use error::HttpError;
pub use field::{is_field_name, is_framing, is_token_byte};
pub use known::Known;
pub use percent::{decode_segment, query_pairs};
pub use request::{Method, Progress, RequestReader, RequestView};
pub use response::{ResponseProgress, ResponseReader};
pub use write::{
    BodyLength, CONTINUE, HeadRefused, LAST_CHUNK, chunk, reason, write_request_head,
    write_response_head,
};

/// Longest request target read; longer ones are answered with 414.
pub const TARGET_BYTES_MAX: usize = 8 * 1024;

/// Most bytes of chunk extensions, and as many of trailers, that one message may carry.
pub const CHUNK_OVERHEAD_BYTES_MAX: usize = 16 * 1024;

/// Most interim (1xx) responses skipped before the answer.
pub const INTERIM_RESPONSES_MAX: usize = 8;

/// What a reader accepts before it refuses a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest head, from the first line to the empty one.
    pub head_bytes_max: usize,
    /// Most header fields in a head; 250 is the most any setting can allow.
    pub headers_max: usize,
    /// Longest body, after chunked framing is taken off.
    pub body_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_bytes_max: 32 * 1024, headers_max: 100, body_bytes_max: 4 * 1024 * 1024 }
    }
}

impl Limits {
    /// The limits with which positions fit the readers' indexes.
    fn clamped(self) -> Self {
        Self {
            head_bytes_max: self.head_bytes_max.min(1024 * 1024),
            headers_max: self.headers_max.min(head::HEADERS_CEILING),
            ..self
        }
    }
}

//! What can be wrong with a message, and the status that tells a client so.

use thiserror::Error;

/// Why a message was refused. After one of these the connection's framing is unknown: answer, then
/// close.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The request line is not `METHOD target HTTP/1.x`.
    #[error("the request line is malformed; expected `METHOD target HTTP/1.1`")]
    RequestLine,
    /// The status line of a response is not `HTTP/1.x status reason`.
    #[error("the status line is malformed; expected `HTTP/1.1 status reason`")]
    StatusLine,
    /// A version other than 1.0 and 1.1.
    #[error("only HTTP/1.0 and HTTP/1.1 are spoken here")]
    Version,
    /// The target is neither a path nor a URL of this host, or holds bytes no URL may hold.
    #[error("the request target is malformed; expected a path in visible ASCII")]
    Target,
    /// The target is longer than [`super::TARGET_BYTES_MAX`].
    #[error("the request target is longer than {limit} bytes")]
    TargetTooLong {
        /// Longest target read.
        limit: usize,
    },
    /// A header name or value holds a forbidden byte, is folded, or lacks its colon.
    #[error("a header field is malformed")]
    Header,
    /// A line of the head ends in a line feed without carriage return.
    #[error("a line ends in LF; lines of HTTP end in CRLF")]
    BareLineFeed,
    /// More than one empty line before the message.
    #[error("the message starts with empty lines")]
    LeadingLines,
    /// The head is longer than the configured limit.
    #[error("the message head is longer than {limit} bytes")]
    HeadTooLarge {
        /// Longest head read.
        limit: usize,
    },
    /// The head has more header fields than the configured limit.
    #[error("the message has more than {limit} header fields")]
    TooManyHeaders {
        /// Most header fields read.
        limit: usize,
    },
    /// An HTTP/1.1 request without Host.
    #[error("the Host header is missing")]
    HostMissing,
    /// More than one Host.
    #[error("the Host header is repeated")]
    HostRepeated,
    /// Host is not `name[:port]`.
    #[error("the Host header is malformed; expected `name` or `name:port`")]
    Host,
    /// The target is a URL whose authority is not that of Host.
    #[error("the host of the request target is not that of the Host header")]
    HostMismatch,
    /// Both Content-Length and Transfer-Encoding: the classic of request smuggling.
    #[error("Content-Length and Transfer-Encoding exclude each other")]
    BothLengths,
    /// Content-Length is repeated or not a plain decimal number.
    #[error("Content-Length must be given once, as a decimal number")]
    ContentLength,
    /// Transfer-Encoding is repeated, malformed, does not end in chunked, or came with HTTP/1.0.
    #[error("Transfer-Encoding is malformed; only `chunked` with HTTP/1.1 is read")]
    TransferEncoding,
    /// A transfer coding besides chunked.
    #[error("no transfer coding but `chunked` is supported")]
    TransferCoding,
    /// The chunked framing of a body is broken.
    #[error("the chunked body is malformed")]
    Chunk,
    /// Chunk extensions or trailers beyond [`super::CHUNK_OVERHEAD_BYTES_MAX`].
    #[error("chunk extensions or trailers are longer than {limit} bytes")]
    ChunkOverhead {
        /// Most bytes of either read for one message.
        limit: usize,
    },
    /// The body is, or is announced to be, longer than the configured limit.
    #[error("the body is longer than {limit} bytes")]
    BodyTooLarge {
        /// Longest body read.
        limit: usize,
    },
    /// An Expect other than `100-continue`.
    #[error("no expectation but `100-continue` is supported")]
    Expectation,
    /// The message did not arrive in time. Reported by whoever holds the clock, never by a reader.
    #[error("the request did not arrive in time")]
    TimedOut,
    /// The peer closed the connection before the first byte of a response: a retry is safe to
    /// consider.
    #[error("the server closed the connection without an answer")]
    Closed,
    /// The peer closed the connection in the middle of a message.
    #[error("the connection was closed in the middle of the message")]
    Truncated,
    /// A response of status 101: nobody asked for another protocol.
    #[error("the server switched protocols without being asked")]
    SwitchedProtocols,
    /// More interim (1xx) responses than [`super::INTERIM_RESPONSES_MAX`].
    #[error("more than {limit} interim responses before the answer")]
    InterimResponses {
        /// Most interim responses skipped.
        limit: usize,
    },
    /// Bytes arrived before any request was sent.
    #[error("the server sent bytes that answer no request")]
    Unsolicited,
}

impl HttpError {
    /// Status of the answer to the client. What only a downstream server can cause is 502.
    pub fn status(&self) -> u16 {
        match self {
            Self::RequestLine
            | Self::Target
            | Self::Header
            | Self::BareLineFeed
            | Self::LeadingLines
            | Self::HostMissing
            | Self::HostRepeated
            | Self::Host
            | Self::HostMismatch
            | Self::BothLengths
            | Self::ContentLength
            | Self::TransferEncoding
            | Self::Chunk
            | Self::ChunkOverhead { .. }
            | Self::Truncated => 400,
            Self::TimedOut => 408,
            Self::BodyTooLarge { .. } => 413,
            Self::TargetTooLong { .. } => 414,
            Self::Expectation => 417,
            Self::HeadTooLarge { .. } | Self::TooManyHeaders { .. } => 431,
            Self::TransferCoding => 501,
            Self::StatusLine
            | Self::Closed
            | Self::SwitchedProtocols
            | Self::InterimResponses { .. }
            | Self::Unsolicited => 502,
            Self::Version => 505,
        }
    }
}

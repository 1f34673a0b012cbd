//! Where a message's body ends (RFC 9112 section 6.3), with no room for two opinions.

use super::{
    HttpError, Known, Limits,
    buffer::MessageBuffer,
    chunked::ChunkDecoder,
    field::is_token_byte,
    head::{Fields, list_members},
};

/// What the head announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    /// Neither length nor coding.
    Nothing,
    /// Content-Length.
    Length(u64),
    /// Transfer-Encoding: chunked.
    Chunked,
}

/// Reads the framing fields of a head. Everything ambiguous is refused.
pub(super) fn announced(
    fields: &Fields,
    whole: &[u8],
    is_http_10: bool,
) -> Result<Announced, HttpError> {
    let length = fields.value(Known::ContentLength, whole);
    let Some(coding) = fields.value(Known::TransferEncoding, whole) else {
        let Some(length) = length else { return Ok(Announced::Nothing) };
        if fields.is_repeated(Known::ContentLength) {
            return Err(HttpError::ContentLength);
        }
        return content_length(length).map(Announced::Length);
    };
    if length.is_some() {
        return Err(HttpError::BothLengths);
    }
    // HTTP/1.0 knows no transfer codings: whoever sends one may frame by something else.
    if is_http_10 || fields.is_repeated(Known::TransferEncoding) {
        return Err(HttpError::TransferEncoding);
    }
    if coding.eq_ignore_ascii_case(b"chunked") {
        return Ok(Announced::Chunked);
    }
    Err(refused_coding(coding))
}

/// Digits only: no sign, no list, no white space, nothing a u64 cannot hold.
fn content_length(value: &[u8]) -> Result<u64, HttpError> {
    if value.is_empty() {
        return Err(HttpError::ContentLength);
    }
    value
        .iter()
        .try_fold(0_u64, |length, byte| {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
            length.checked_mul(10)?.checked_add(u64::from(digit))
        })
        .ok_or(HttpError::ContentLength)
}

/// A well-formed list that ends in one chunked names codings that are not supported here; anything
/// else has no reliable length.
fn refused_coding(value: &[u8]) -> HttpError {
    let is_chunked = |member: &[u8]| member.eq_ignore_ascii_case(b"chunked");
    let (mut members, mut chunked, mut last_is_chunked) = (0, 0, false);
    for member in list_members(value) {
        if !member.iter().copied().all(is_token_byte) {
            return HttpError::TransferEncoding;
        }
        members += 1;
        last_is_chunked = is_chunked(member);
        chunked += usize::from(last_is_chunked);
    }
    if members > 1 && chunked == 1 && last_is_chunked {
        HttpError::TransferCoding
    } else {
        HttpError::TransferEncoding
    }
}

/// A body that is being read. Positions count from the first byte of the message.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// There is none.
    None,
    /// It has this many bytes.
    Length(usize),
    /// It comes in chunks; `decoded_end` is behind the payload so far.
    Chunked { decoder: ChunkDecoder, decoded_end: usize },
    /// It ends when the connection does.
    UntilClose,
}

/// The ends of a body and of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Framed {
    /// Behind the last byte of the decoded body.
    pub(super) body_end: usize,
    /// Behind the last byte of the message as it was sent.
    pub(super) message_end: usize,
}

impl Body {
    /// A body of `length` bytes, refused at once where it is over the limit.
    pub(super) fn of_length(length: u64, limits: &Limits) -> Result<Self, HttpError> {
        let limit = limits.body_bytes_max;
        match usize::try_from(length) {
            Ok(length) if length <= limit => Ok(Self::Length(length)),
            _ => Err(HttpError::BodyTooLarge { limit }),
        }
    }

    /// A chunked body behind a head of `head_end` bytes.
    pub(super) fn chunked(head_end: usize) -> Self {
        Self::Chunked { decoder: ChunkDecoder::new(), decoded_end: head_end }
    }

    /// Reads on; `None` as long as bytes are missing. Chunked bodies are compacted as they come,
    /// so a message never holds more memory than its payload.
    pub(super) fn advance(
        &mut self,
        buffer: &mut MessageBuffer,
        head_end: usize,
        limits: &Limits,
    ) -> Result<Option<Framed>, HttpError> {
        let body_bytes_max = limits.body_bytes_max;
        match self {
            Self::None => Ok(Some(Framed { body_end: head_end, message_end: head_end })),
            // Known only where a response might have been read in parts.
            Self::Length(length) if *length > body_bytes_max => {
                Err(HttpError::BodyTooLarge { limit: body_bytes_max })
            }
            Self::Length(length) => {
                let end = head_end + *length;
                let is_whole = buffer.message().len() >= end;
                Ok(is_whole.then_some(Framed { body_end: end, message_end: end }))
            }
            Self::Chunked { decoder, decoded_end } => {
                let decoded = decoder.decode(buffer.message_mut(), *decoded_end, body_bytes_max)?;
                *decoded_end = decoded.written;
                if decoded.is_done {
                    let message_end = decoded.read;
                    return Ok(Some(Framed { body_end: decoded.written, message_end }));
                }
                buffer.truncate(decoded.written);
                Ok(None)
            }
            Self::UntilClose => {
                if buffer.message().len().saturating_sub(head_end) > body_bytes_max {
                    return Err(HttpError::BodyTooLarge { limit: body_bytes_max });
                }
                Ok(None)
            }
        }
    }

    /// Moves what is there of the body to `out`, so that it takes no room here, whatever its length
    /// in all. The message's end once the body has ended; none for one that lasts until the
    /// connection does.
    pub(super) fn take(
        &mut self,
        buffer: &mut MessageBuffer,
        head_end: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<Framed>, HttpError> {
        let ended = |message_end| Ok(Some(Framed { body_end: head_end, message_end }));
        match self {
            Self::None => ended(head_end),
            Self::Length(left) => {
                let there = buffer.message().get(head_end..).unwrap_or_default();
                let taken = there.len().min(*left);
                out.extend_from_slice(there.get(..taken).unwrap_or_default());
                *left -= taken;
                if *left == 0 {
                    return ended(head_end + taken);
                }
                buffer.truncate(head_end);
                Ok(None)
            }
            Self::Chunked { decoder, decoded_end } => {
                let from = *decoded_end;
                let decoded = decoder.decode(buffer.message_mut(), from, usize::MAX)?;
                let taken = buffer.message().get(head_end..decoded.written);
                out.extend_from_slice(taken.unwrap_or_default());
                *decoded_end = head_end;
                if decoded.is_done {
                    return ended(decoded.read);
                }
                buffer.truncate(head_end);
                Ok(None)
            }
            Self::UntilClose => {
                out.extend_from_slice(buffer.message().get(head_end..).unwrap_or_default());
                buffer.truncate(head_end);
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &str, is_http_10: bool) -> Result<Announced, HttpError> {
        let text = format!("{lines}\r\n");
        let mut storage = [httparse::EMPTY_HEADER; 8];
        let headers = match httparse::parse_headers(text.as_bytes(), &mut storage) {
            Ok(httparse::Status::Complete((_, headers))) => headers,
            other => panic!("{other:?}"),
        };
        let mut fields = Fields::default();
        fields.index(text.as_bytes(), headers);
        announced(&fields, text.as_bytes(), is_http_10)
    }

    #[test]
    fn reads_plain_framing() {
        assert_eq!(of("", false), Ok(Announced::Nothing));
        assert_eq!(of("content-length: 0\r\n", false), Ok(Announced::Length(0)));
        assert_eq!(of("Content-Length:\t 0042 \r\n", true), Ok(Announced::Length(42)));
        assert_eq!(
            of("content-length: 18446744073709551615\r\n", false),
            Ok(Announced::Length(u64::MAX))
        );
        assert_eq!(of("Transfer-Encoding: Chunked\r\n", false), Ok(Announced::Chunked));
    }

    #[test]
    fn refuses_what_two_parsers_could_read_differently() {
        use HttpError::{BothLengths, ContentLength, TransferCoding, TransferEncoding};
        let cases = [
            ("content-length: +1\r\n", ContentLength),
            ("content-length: -1\r\n", ContentLength),
            ("content-length: 1, 1\r\n", ContentLength),
            ("content-length: 1 1\r\n", ContentLength),
            ("content-length: 0x10\r\n", ContentLength),
            ("content-length: 1.0\r\n", ContentLength),
            ("content-length: 1_0\r\n", ContentLength),
            ("content-length:\r\n", ContentLength),
            ("content-length: 18446744073709551616\r\n", ContentLength),
            ("content-length: 1\r\ncontent-length: 1\r\n", ContentLength),
            ("content-length: 1\r\nx: y\r\nContent-Length: 2\r\n", ContentLength),
            ("content-length: 1\r\ntransfer-encoding: chunked\r\n", BothLengths),
            ("transfer-encoding: identity\r\ncontent-length: 1\r\n", BothLengths),
            ("transfer-encoding: gzip, chunked\r\n", TransferCoding),
            ("transfer-encoding: gzip\r\n", TransferEncoding),
            ("transfer-encoding: identity\r\n", TransferEncoding),
            ("transfer-encoding: chunked, gzip\r\n", TransferEncoding),
            ("transfer-encoding: chunked, chunked\r\n", TransferEncoding),
            ("transfer-encoding: chunked,\r\n", TransferEncoding),
            ("transfer-encoding: \"chunked\"\r\n", TransferEncoding),
            ("transfer-encoding: xchunked\r\n", TransferEncoding),
            ("transfer-encoding: chunked;q=1\r\n", TransferEncoding),
            ("transfer-encoding:\r\n", TransferEncoding),
            ("transfer-encoding: chunked\r\nx: y\r\nTransfer-Encoding: x\r\n", TransferEncoding),
        ];
        for (lines, error) in cases {
            assert_eq!(of(lines, false), Err(error), "{lines:?}");
        }
        assert_eq!(of("transfer-encoding: chunked\r\n", true), Err(TransferEncoding));
    }
}

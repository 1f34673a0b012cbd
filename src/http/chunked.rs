//! The chunked transfer coding (RFC 9112 section 7.1), decoded where it stands.
//!
//! A state machine looks at every framing byte once; payload is moved in bulk, and not at all
//! where it is in place already. Extensions and trailers are checked for form, bounded and
//! dropped.

use super::{CHUNK_OVERHEAD_BYTES_MAX, HttpError, field::is_token_byte};

/// Hexadecimal digits of a chunk size; sixteen fill a u64.
const SIZE_DIGITS_MAX: u8 = 16;

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Size { digits: u8 },
    Extension,
    SizeLineFeed,
    Data { left: usize },
    DataReturn,
    DataLineFeed,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
    Done,
}

/// Takes chunked framing off a body.
#[derive(Debug, Clone)]
pub(super) struct ChunkDecoder {
    step: Step,
    size: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
    body_bytes: usize,
}

/// How far one call got: positions in the slice it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decoded {
    /// Behind the last raw byte used.
    pub(super) read: usize,
    /// Behind the last payload byte.
    pub(super) written: usize,
    /// Whether the body, trailers included, is complete.
    pub(super) is_done: bool,
}

impl ChunkDecoder {
    /// A decoder at the start of a body.
    pub(super) fn new() -> Self {
        Self {
            step: Step::Size { digits: 0 },
            size: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            body_bytes: 0,
        }
    }

    /// Decodes `bytes[from..]`, moving payload down to where `from` was. Stops at the end of the
    /// body.
    pub(super) fn decode(
        &mut self,
        bytes: &mut [u8],
        from: usize,
        body_bytes_max: usize,
    ) -> Result<Decoded, HttpError> {
        let (mut read, mut written) = (from, from);
        while read < bytes.len() && self.step != Step::Done {
            if let Step::Data { left } = self.step {
                let take = left.min(bytes.len() - read);
                if read != written {
                    bytes.copy_within(read..read + take, written);
                }
                read += take;
                written += take;
                self.body_bytes += take;
                self.step =
                    if take == left { Step::DataReturn } else { Step::Data { left: left - take } };
            } else {
                self.framing(bytes[read], body_bytes_max)?;
                read += 1;
            }
        }
        Ok(Decoded { read, written, is_done: self.step == Step::Done })
    }

    /// One byte of framing.
    fn framing(&mut self, byte: u8, body_bytes_max: usize) -> Result<(), HttpError> {
        self.step = match (self.step, byte) {
            (Step::Size { digits }, _) => self.size_byte(digits, byte, body_bytes_max)?,
            (Step::Extension, b'\r') => Step::SizeLineFeed,
            (Step::Extension, _) => {
                count(&mut self.extension_bytes)?;
                visible(byte, Step::Extension)?
            }
            (Step::SizeLineFeed, b'\n') if self.size == 0 => Step::TrailerStart,
            // The size was held against the body limit, which is a usize.
            (Step::SizeLineFeed, b'\n') => Step::Data { left: self.size as usize },
            (Step::DataReturn, b'\r') => Step::DataLineFeed,
            (Step::DataLineFeed, b'\n') => {
                self.size = 0;
                Step::Size { digits: 0 }
            }
            (Step::TrailerStart, b'\r') => Step::LastLineFeed,
            (Step::TrailerStart | Step::TrailerName, _) if is_token_byte(byte) => {
                count(&mut self.trailer_bytes)?;
                Step::TrailerName
            }
            (Step::TrailerName, b':') => Step::TrailerValue,
            (Step::TrailerValue, b'\r') => Step::TrailerLineFeed,
            (Step::TrailerValue, _) => {
                count(&mut self.trailer_bytes)?;
                visible(byte, Step::TrailerValue)?
            }
            (Step::TrailerLineFeed, b'\n') => Step::TrailerStart,
            (Step::LastLineFeed, b'\n') => Step::Done,
            _ => return Err(HttpError::Chunk),
        };
        Ok(())
    }

    /// One byte of a chunk's size, or what ends it. White space before an extension is legal to
    /// refuse.
    fn size_byte(
        &mut self,
        digits: u8,
        byte: u8,
        body_bytes_max: usize,
    ) -> Result<Step, HttpError> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            if digits == SIZE_DIGITS_MAX {
                return Err(HttpError::Chunk);
            }
            self.size = self.size << 4 | u64::from(digit);
            let room = body_bytes_max.saturating_sub(self.body_bytes);
            if self.size > room as u64 {
                return Err(HttpError::BodyTooLarge { limit: body_bytes_max });
            }
            return Ok(Step::Size { digits: digits + 1 });
        }
        match byte {
            b'\r' if digits > 0 => Ok(Step::SizeLineFeed),
            b';' if digits > 0 => Ok(Step::Extension),
            _ => Err(HttpError::Chunk),
        }
    }
}

/// Counts one byte that carries nothing for us.
fn count(bytes: &mut usize) -> Result<(), HttpError> {
    *bytes += 1;
    if *bytes > CHUNK_OVERHEAD_BYTES_MAX {
        return Err(HttpError::ChunkOverhead { limit: CHUNK_OVERHEAD_BYTES_MAX });
    }
    Ok(())
}

/// Stays at `step` for a byte that may stand in a field value.
fn visible(byte: u8, step: Step) -> Result<Step, HttpError> {
    if byte == b'\t' || (byte >= b' ' && byte != 0x7f) { Ok(step) } else { Err(HttpError::Chunk) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The payload and what is left, decoded whole; checked to be the same when cut at every
    /// point.
    fn decode(text: &[u8], limit: usize) -> Result<(Vec<u8>, Vec<u8>, bool), HttpError> {
        let whole = decode_pieces(&[text], limit);
        for cut in 0..=text.len() {
            let (left, right) = text.split_at(cut);
            assert_eq!(decode_pieces(&[left, right], limit), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(decode_pieces(&bytes, limit), whole, "byte by byte");
        whole
    }

    fn decode_pieces(
        pieces: &[&[u8]],
        limit: usize,
    ) -> Result<(Vec<u8>, Vec<u8>, bool), HttpError> {
        let mut decoder = ChunkDecoder::new();
        let (mut payload, mut rest, mut is_done) = (Vec::new(), Vec::new(), false);
        for piece in pieces {
            if is_done {
                rest.extend_from_slice(piece);
                continue;
            }
            let from = payload.len();
            payload.extend_from_slice(piece);
            let decoded = decoder.decode(&mut payload, from, limit)?;
            rest.extend_from_slice(&payload[decoded.read..]);
            payload.truncate(decoded.written);
            is_done = decoded.is_done;
        }
        Ok((payload, rest, is_done))
    }

    #[test]
    fn decodes_good_bodies() {
        let cases: [(&str, &str, &str, bool); 9] = [
            ("0\r\n\r\n", "", "", true),
            ("5\r\nhello\r\n0\r\n\r\nGET", "hello", "GET", true),
            ("5;a=b;c=\"d e\"\r\nhello\r\n00\r\n\r\n", "hello", "", true),
            ("1\r\na\r\nA\r\n0123456789\r\n0;x\r\n\r\n", "a0123456789", "", true),
            ("0\r\nX-Sum: 1\r\nY:\r\n\r\nrest", "", "rest", true),
            ("0000000000000003\r\nabc\r\n0\r\n\r\n", "abc", "", true),
            ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "", true),
            ("5\r\nhel", "hel", "", false),
            ("5\r\nhello\r\n0\r\n", "hello", "", false),
        ];
        for (text, payload, rest, is_done) in cases {
            let expected = Ok((payload.as_bytes().to_vec(), rest.as_bytes().to_vec(), is_done));
            assert_eq!(decode(text.as_bytes(), 64), expected, "{text:?}");
        }
    }

    #[test]
    fn refuses_bad_framing() {
        let cases = [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1 \r\na\r\n",
            "1\na\n",
            "1\r\na\n",
            "1\r\nab\r\n",
            "1;\n",
            "1;a\rb\r\n",
            "1;\0\r\n",
            "1\r\na\r\r\n",
            ";a\r\n",
            "0\r\n\n",
            "0\r\nGET / HTTP/1.1\r\n\r\n",
            "0\r\n a: b\r\n\r\n",
            "0\r\na : b\r\n\r\n",
            "0\r\na: b\n\r\n",
            "0\r\n: b\r\n\r\n",
            "0\r\na: \x01\r\n\r\n",
            "0\r\n\rX",
            "00000000000000000\r\n\r\n",
        ];
        for text in cases {
            assert_eq!(decode(text.as_bytes(), 64), Err(HttpError::Chunk), "{text:?}");
        }
    }

    #[test]
    fn bounds_the_body_before_it_arrives() {
        let too_large = Err(HttpError::BodyTooLarge { limit: 4 });
        assert_eq!(decode(b"5\r\n", 4), too_large);
        assert_eq!(decode(b"3\r\nabc\r\n2\r\n", 4), too_large);
        assert_eq!(decode(b"ffffffffffffffff\r\n", 4), too_large);
        assert!(decode(b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", 4).is_ok());
        let everything = decode_pieces(&[b"ffffffffffffffff\r\nabc"], usize::MAX);
        assert_eq!(everything, Ok((b"abc".to_vec(), Vec::new(), false)));
    }

    #[test]
    fn bounds_extensions_and_trailers() {
        let extension = |length| format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(length));
        let trailer = |length| format!("0\r\nx:{}\r\n\r\n", "y".repeat(length));
        let limit = CHUNK_OVERHEAD_BYTES_MAX;
        let refused = Err(HttpError::ChunkOverhead { limit });
        assert!(decode_pieces(&[extension(limit).as_bytes()], 64).is_ok());
        assert_eq!(decode_pieces(&[extension(limit + 1).as_bytes()], 64), refused);
        assert!(decode_pieces(&[trailer(limit - 1).as_bytes()], 64).is_ok());
        assert_eq!(decode_pieces(&[trailer(limit).as_bytes()], 64), refused);
        let many = "1;x\r\na\r\n".repeat(limit + 1);
        assert_eq!(decode_pieces(&[many.as_bytes()], usize::MAX), refused);
    }
}

//! Undoing the content codings of an answer.
//!
//! Invariants: the decoded bytes never exceed the caller's limit, whatever the input claims (each
//! layer is held to it, so a bomb inside a bomb costs no more than one); a body that ends early is
//! an error and never a shorter answer; an unknown coding is an error and never passed on as if it
//! were text. A decoder that panics on hostile input counts as malformed input.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use flate2::{Decompress, FlushDecompress, Status};
use smallvec::SmallVec;
use thiserror::Error;

/// What a request says it can read, best first.
pub(crate) const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// How many codings one answer may be wrapped in.
const CODINGS_MAX: usize = 3;
/// How many gzip members or zstd frames one body may be cut into.
const SECTIONS_MAX: usize = 1024;
/// RFC 9659: a content coding of zstd stays within a window of 8 MiB.
const ZSTD_WINDOW_BYTES_MAX: u64 = 8 * 1024 * 1024;
const BROTLI_INPUT_BYTES: usize = 4096;
const GROWTH_BYTES_MIN: usize = 4096;

/// Why a body could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ContentError {
    /// A coding nobody here can undo.
    #[error("unknown content encoding {name:?} (understood: {ACCEPT_ENCODING})")]
    Unknown {
        /// The coding as the API wrote it, shortened.
        name: String,
    },
    /// More layers than anybody honest sends.
    #[error("more than {CODINGS_MAX} content encodings in one answer")]
    TooMany,
    /// The body unpacks to more than may be held.
    #[error(
        "the {coding} body unpacks to more than {bytes_max} bytes (downstream.decoded_bytes_max)"
    )]
    TooLarge {
        /// The layer that outgrew the limit.
        coding: &'static str,
        /// The limit.
        bytes_max: usize,
    },
    /// The bytes are not what the header says.
    #[error("the body is not valid {coding}")]
    Malformed {
        /// The layer that could not be read.
        coding: &'static str,
    },
    /// The bytes end before the coding does.
    #[error("the {coding} body ends early")]
    Truncated {
        /// The layer that was cut.
        coding: &'static str,
    },
}

/// One content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    fn parse(token: &str) -> Result<Option<Self>, ContentError> {
        // RFC 9110 8.4.1: names are case-insensitive and x-gzip is gzip.
        const NAMES: [(&str, Option<Coding>); 6] = [
            ("gzip", Some(Coding::Gzip)),
            ("x-gzip", Some(Coding::Gzip)),
            ("deflate", Some(Coding::Deflate)),
            ("br", Some(Coding::Brotli)),
            ("zstd", Some(Coding::Zstd)),
            ("identity", None),
        ];
        NAMES
            .iter()
            .find(|(name, _)| token.eq_ignore_ascii_case(name))
            .map(|&(_, coding)| coding)
            .ok_or_else(|| ContentError::Unknown { name: token.chars().take(32).collect() })
    }
}

/// The codings of one body, in the order they were applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Codings(SmallVec<[Coding; CODINGS_MAX]>);

impl Codings {
    /// Adds what one `Content-Encoding` header names.
    pub(crate) fn add(&mut self, value: &[u8]) -> Result<(), ContentError> {
        let text = String::from_utf8_lossy(value);
        for token in text.split(',').map(str::trim).filter(|token| !token.is_empty()) {
            if let Some(coding) = Coding::parse(token)? {
                if self.0.len() == CODINGS_MAX {
                    return Err(ContentError::TooMany);
                }
                self.0.push(coding);
            }
        }
        Ok(())
    }

    /// Whether the body is already plain.
    pub(crate) fn is_identity(&self) -> bool {
        self.0.is_empty()
    }

    /// The plain body, at most `bytes_max` long.
    pub(crate) fn decode(&self, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, ContentError> {
        let mut plain: Option<Vec<u8>> = None;
        for &coding in self.0.iter().rev() {
            let input = plain.as_deref().unwrap_or(body);
            // Nothing was sent, so nothing was encoded: what many servers do for an empty answer.
            if input.is_empty() {
                return Ok(Vec::new());
            }
            plain = Some(decode_layer(coding, input, bytes_max)?);
        }
        Ok(plain.unwrap_or_else(|| body.to_vec()))
    }
}

fn decode_layer(coding: Coding, input: &[u8], bytes_max: usize) -> Result<Vec<u8>, ContentError> {
    let mut output = Output { bytes: Vec::new(), bytes_max, coding: coding.name() };
    // The decoders assert in places on what their input may not be; that is the API's fault, not
    // the core's.
    let decoded = catch_unwind(AssertUnwindSafe(|| match coding {
        Coding::Gzip => gzip(input, &mut output),
        Coding::Deflate => deflate(input, &mut output),
        Coding::Brotli => brotli(input, &mut output),
        Coding::Zstd => zstd(input, &mut output),
    }));
    match decoded {
        Ok(Ok(())) => Ok(output.bytes),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ContentError::Malformed { coding: coding.name() }),
    }
}

/// Decoded bytes under their limit.
struct Output {
    bytes: Vec<u8>,
    bytes_max: usize,
    coding: &'static str,
}

impl Output {
    fn too_large(&self) -> ContentError {
        ContentError::TooLarge { coding: self.coding, bytes_max: self.bytes_max }
    }

    fn malformed(&self) -> ContentError {
        ContentError::Malformed { coding: self.coding }
    }

    fn truncated(&self) -> ContentError {
        ContentError::Truncated { coding: self.coding }
    }

    /// Everything `reader` has, one byte past the limit at most.
    fn read_from(&mut self, reader: impl Read) -> Result<(), ContentError> {
        let room = (self.bytes_max - self.bytes.len()) as u64;
        match reader.take(room + 1).read_to_end(&mut self.bytes) {
            Ok(_) if self.bytes.len() > self.bytes_max => Err(self.too_large()),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.truncated()),
            Err(_) => Err(self.malformed()),
        }
    }
}

fn gzip(mut input: &[u8], output: &mut Output) -> Result<(), ContentError> {
    const MAGIC: &[u8] = &[0x1f, 0x8b];
    // RFC 1952 2.2: a file is a series of members. Padding behind the last one is ignored, as
    // browsers do.
    for member in 0.. {
        if member > 0 && !input.starts_with(MAGIC) {
            break;
        }
        if member == SECTIONS_MAX {
            return Err(output.malformed());
        }
        let mut decoder = flate2::bufread::GzDecoder::new(input);
        output.read_from(&mut decoder)?;
        input = decoder.into_inner();
    }
    Ok(())
}

/// RFC 9110 8.4.1.2 means zlib; some servers send the bare stream instead, so both are read.
fn deflate(input: &[u8], output: &mut Output) -> Result<(), ContentError> {
    if !looks_like_zlib(input) {
        return inflate(Decompress::new(false), input, output);
    }
    match inflate(Decompress::new(true), input, output) {
        Err(ContentError::Malformed { .. }) => {
            output.bytes.clear();
            inflate(Decompress::new(false), input, output)
        }
        other => other,
    }
}

/// RFC 1950 2.2: method 8 in the low nibble, and the first two bytes divide by 31.
fn looks_like_zlib(input: &[u8]) -> bool {
    matches!(*input, [first, second, ..]
        if first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31))
}

fn inflate(mut stream: Decompress, input: &[u8], output: &mut Output) -> Result<(), ContentError> {
    loop {
        let room = output.bytes_max + 1 - output.bytes.len();
        let growth = output.bytes.len().max(GROWTH_BYTES_MIN).min(room);
        output.bytes.reserve(growth);
        let consumed = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let rest = input.get(consumed..).unwrap_or_default();
        let before = output.bytes.len();
        let status = stream
            .decompress_vec(rest, &mut output.bytes, FlushDecompress::None)
            .map_err(|_| output.malformed())?;
        if output.bytes.len() > output.bytes_max {
            return Err(output.too_large());
        }
        if status == Status::StreamEnd {
            return Ok(());
        }
        let stalled = output.bytes.len() == before && stream.total_in() == consumed as u64;
        if stalled {
            return Err(output.truncated());
        }
    }
}

fn brotli(input: &[u8], output: &mut Output) -> Result<(), ContentError> {
    use brotli_decompressor::BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW;

    let mut decoder = brotli_decompressor::Decompressor::new(input, BROTLI_INPUT_BYTES);
    // RFC 7932 knows windows up to 16 MiB; the extension beyond them reserves as much as it likes.
    decoder.set_parameter(BROTLI_DECODER_PARAM_LARGE_WINDOW, 0);
    output.read_from(decoder)
}

fn zstd(mut input: &[u8], output: &mut Output) -> Result<(), ContentError> {
    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

    let mut frames = ruzstd::decoding::FrameDecoder::new();
    frames.set_max_window_size(ZSTD_WINDOW_BYTES_MAX);
    // RFC 8878 3.1: frames and skippable frames follow each other.
    for _ in 0..SECTIONS_MAX {
        if input.is_empty() {
            return Ok(());
        }
        match frames.reset(&mut input) {
            Ok(()) => zstd_frame(&mut frames, &mut input, output)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                input = input.get(length as usize..).ok_or_else(|| output.truncated())?;
            }
            Err(_) => return Err(output.malformed()),
        }
    }
    Err(output.malformed())
}

fn zstd_frame(
    frames: &mut ruzstd::decoding::FrameDecoder,
    input: &mut &[u8],
    output: &mut Output,
) -> Result<(), ContentError> {
    use ruzstd::decoding::BlockDecodingStrategy::UptoBlocks;

    while !frames.is_finished() {
        // One block holds at most 128 KiB, so memory stays near the limit.
        frames
            .decode_blocks(&mut *input, UptoBlocks(1))
            .map_err(|_| if input.is_empty() { output.truncated() } else { output.malformed() })?;
        output.read_from(&mut *frames)?;
    }
    output.read_from(&mut *frames)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use proptest::prelude::*;

    use super::*;

    const PLAIN: &[u8] = br#"{"message":"hello, brotli","items":[1,2,3,1.50]}"#;
    /// `PLAIN`, by the reference encoder.
    const BROTLI: &str = "8b17807b226d657373616765223a2268656c6c6f2c2062726f746c69222c226974656d73\
                          223a5b312c322c332c312e35305d7d03";
    /// 64 MiB of zeros, by the reference encoder.
    const BROTLI_BOMB: &str = "\
        cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c302\
        00ddfb3ffeffffc13f0110870500baf77ffcffff837f02200e0b0074effff8ffff07ff04\
        401c1600e8defff1ffff0ffe0980382c00d0bdffe3ffff1ffc1300715800a07bff37";

    fn unhex(text: &str) -> Vec<u8> {
        (0..text.len() / 2)
            .map(|index| u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).unwrap())
            .collect()
    }

    fn gzipped(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn raw_deflate(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn zstandard(plain: &[u8]) -> Vec<u8> {
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        ruzstd::encoding::compress_to_vec(plain, level)
    }

    fn codings(header: &str) -> Codings {
        let mut codings = Codings::default();
        codings.add(header.as_bytes()).unwrap();
        codings
    }

    fn decode(header: &str, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, ContentError> {
        codings(header).decode(body, bytes_max)
    }

    /// Every coding with `PLAIN` in it.
    fn samples() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            ("gzip", gzipped(PLAIN)),
            ("X-GZip", gzipped(PLAIN)),
            ("deflate", zlib(PLAIN)),
            ("deflate", raw_deflate(PLAIN)),
            ("br", unhex(BROTLI)),
            ("zstd", zstandard(PLAIN)),
        ]
    }

    #[test]
    fn every_coding_gives_the_plain_body_back() {
        for (name, body) in samples() {
            assert_eq!(decode(name, &body, 1 << 20).unwrap(), PLAIN, "{name}");
            assert_eq!(decode(name, &body, PLAIN.len()).unwrap(), PLAIN, "{name}: exact limit");
        }
        assert!(codings("identity, ").is_identity());
        assert_eq!(decode("identity", PLAIN, 1000).unwrap(), PLAIN);
    }

    #[test]
    fn one_byte_over_the_limit_is_refused_and_the_limit_named() {
        for (name, body) in samples() {
            let error = decode(name, &body, PLAIN.len() - 1).unwrap_err();
            assert!(matches!(error, ContentError::TooLarge { .. }), "{name}: {error}");
            assert!(error.to_string().contains(&format!("{} bytes", PLAIN.len() - 1)));
        }
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0; 16 << 20];
        let bombs = [
            ("gzip", gzipped(&zeros)),
            ("deflate", zlib(&zeros)),
            ("deflate", raw_deflate(&zeros)),
            ("zstd", zstandard(&zeros)),
            ("br", unhex(BROTLI_BOMB)),
            ("gzip, gzip", gzipped(&gzipped(&zeros))),
        ];
        for (name, body) in bombs {
            let error = decode(name, &body, 1 << 20).unwrap_err();
            assert!(matches!(error, ContentError::TooLarge { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn a_cut_body_is_an_error_at_every_length() {
        for (name, body) in samples() {
            for length in 1..body.len() {
                assert!(decode(name, &body[..length], 1 << 20).is_err(), "{name} cut at {length}");
            }
            assert_eq!(decode(name, b"", 1 << 20).unwrap(), b"", "{name}: nothing sent");
        }
    }

    #[test]
    fn several_sections_and_padding_are_read() {
        let mut gzip = gzipped(b"one");
        gzip.extend(gzipped(b" two"));
        gzip.extend([0; 16]);
        assert_eq!(decode("gzip", &gzip, 100).unwrap(), b"one two");

        let mut zstd = zstandard(b"one");
        zstd.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]); // a skippable frame
        zstd.extend(zstandard(b" two"));
        assert_eq!(decode("zstd", &zstd, 100).unwrap(), b"one two");
        let many = gzipped(b"").repeat(SECTIONS_MAX + 1);
        assert_eq!(decode("gzip", &many, 100), Err(ContentError::Malformed { coding: "gzip" }));
    }

    #[test]
    fn a_zstd_frame_with_a_huge_window_is_refused() {
        // Magic, a descriptor without content size, and a window of 128 MiB.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00];
        assert!(decode("zstd", &frame, 1 << 20).is_err());
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        // gzip: four bytes of checksum, then four of length; zlib: the checksum ends it.
        for (name, mut body, back) in [("gzip", gzipped(PLAIN), 5), ("deflate", zlib(PLAIN), 1)] {
            let index = body.len() - back;
            body[index] ^= 1;
            assert!(decode(name, &body, 1000).is_err(), "{name}");
        }
    }

    #[test]
    fn codings_are_undone_in_reverse_and_bounded() {
        assert_eq!(decode("deflate, gzip", &gzipped(&zlib(PLAIN)), 1000).unwrap(), PLAIN);
        let mut two_headers = codings("deflate");
        two_headers.add(b"gzip").unwrap();
        assert_eq!(two_headers, codings("deflate,gzip"));
        assert_eq!(Codings::default().add(b"gzip,gzip,gzip,gzip"), Err(ContentError::TooMany));
        let error = Codings::default().add(b"compress").unwrap_err();
        assert!(error.to_string().contains("\"compress\""), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_within_the_limit(
            which in 0..4_usize, body in prop::collection::vec(any::<u8>(), 0..600)
        ) {
            let name = ["gzip", "deflate", "br", "zstd"][which];
            if let Ok(plain) = decode(name, &body, 4096) {
                prop_assert!(plain.len() <= 4096);
            }
        }

        #[test]
        fn damaged_bodies_decode_or_fail_within_the_limit(
            which in 0..6_usize, place in any::<prop::sample::Index>(), flip in 1..=255_u8
        ) {
            let (name, mut body) = samples().swap_remove(which);
            let index = place.index(body.len());
            body[index] ^= flip;
            if let Ok(plain) = decode(name, &body, 4096) {
                prop_assert!(plain.len() <= 4096);
            }
        }
    }
}

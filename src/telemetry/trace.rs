//! `traceparent` of W3C Trace Context: which trace a request belongs to, and which span asked.

use super::ExecutionId;

/// `00-` trace id `-` parent id `-` flags.
const TEXT_BYTES: usize = 55;
const VERSION_FORBIDDEN: u8 = 0xff;
/// The caller may have recorded its part of the trace.
const SAMPLED: u8 = 0x01;

/// The place of a call in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

/// A `traceparent` in its text form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceText([u8; TEXT_BYTES]);

impl TraceText {
    /// The text.
    pub fn as_str(&self) -> &str {
        // Digits and hyphens only.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl TraceParent {
    /// Reads a header's value; `None` for what section 3.2.2 of the recommendation calls invalid.
    /// Of a later version the part that this one knows is read.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(TEXT_BYTES)?;
        let version = *hex::<1>(known.get(..2)?)?.first()?;
        let is_whole = if version == 0 {
            rest.is_empty()
        } else {
            !matches!(rest, [other, ..] if *other != b'-')
        };
        let has_marks = [2, 35, 52].iter().all(|place| known.get(*place) == Some(&b'-'));
        if version == VERSION_FORBIDDEN || !is_whole || !has_marks {
            return None;
        }
        let trace = hex::<16>(known.get(3..35)?)?;
        let span = hex::<8>(known.get(36..52)?)?;
        let flags = *hex::<1>(known.get(53..55)?)?.first()?;
        (trace != [0; 16] && span != [0; 8]).then_some(Self { trace, span, flags: flags & SAMPLED })
    }

    /// What the execution sends on: the trace it came in, else one of its own that has the
    /// execution's id. The span is the execution's either way.
    pub fn of(execution: ExecutionId, incoming: Option<Self>) -> Self {
        let id = execution.to_bytes();
        let mut span = [0; 8];
        // Random but for the variant, which keeps it from being zero.
        span.copy_from_slice(&id[8..]);
        match incoming {
            Some(parent) => Self { span, ..parent },
            None => Self { trace: id, span, flags: SAMPLED },
        }
    }

    /// The header's value.
    pub fn text(self) -> TraceText {
        let mut text = [b'-'; TEXT_BYTES];
        write_hex(&mut text[..2], &[0]);
        write_hex(&mut text[3..35], &self.trace);
        write_hex(&mut text[36..52], &self.span);
        write_hex(&mut text[53..], &[self.flags]);
        TraceText(text)
    }
}

/// Lower case only, as the recommendation has it.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = *byte << 4 | value;
        }
    }
    Some(bytes)
}

fn write_hex(out: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::telemetry::ExecutionIds;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_one_is_continued_with_a_new_span() {
        let incoming = TraceParent::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(incoming.text().as_str(), GOOD);
        let execution = ExecutionIds::new(1).next(1_796_000_000_000);
        let sent = TraceParent::of(execution, Some(incoming)).text();
        assert_eq!(sent.as_str()[..36], GOOD[..36]);
        assert_ne!(sent.as_str()[36..52], GOOD[36..52]);
        assert!(sent.as_str().ends_with("-01") && TraceParent::parse(&sent.0).is_some());
    }

    #[test]
    fn without_one_the_trace_has_the_id_of_the_execution() {
        let execution = ExecutionIds::new(1).next(1_796_000_000_000);
        let sent = TraceParent::of(execution, None).text();
        let trace = execution.to_string().replace('-', "");
        assert_eq!(sent.as_str()[3..35], trace);
        assert!(TraceParent::parse(&sent.0).is_some());
    }

    #[test]
    fn what_is_not_valid_is_none() {
        let later = GOOD.replacen("00", "cc", 1);
        assert!(TraceParent::parse(later.as_bytes()).is_some());
        assert!(TraceParent::parse(format!("{later}-more").as_bytes()).is_some());
        for bad in [
            String::new(),
            GOOD[1..].to_owned(),
            format!("{GOOD}-more"),
            format!("{later}.more"),
            GOOD.replacen("00", "ff", 1),
            GOOD.replace('a', "A"),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace('-', "_"),
            GOOD.replace("-01", "-0x"),
        ] {
            assert!(TraceParent::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = TraceParent::parse(&bytes);
        }
    }
}

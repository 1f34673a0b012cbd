//! The header fields this product asks for, found in one comparison each.

macro_rules! known {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// A header field with a fixed place in the index of every head.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $variant),+
        }

        impl Known {
            /// Every known field, in the order of their places.
            pub const ALL: &'static [Known] = &[$(Known::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The field's name in lower case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Known::$variant => $name),+
                }
            }
        }
    };
}

known! {
    Host = "host",
    ContentLength = "content-length",
    ContentType = "content-type",
    TransferEncoding = "transfer-encoding",
    Connection = "connection",
    Expect = "expect",
    Accept = "accept",
    Authorization = "authorization",
    ApiKey = "x-api-key",
    Origin = "origin",
    McpSessionId = "mcp-session-id",
    McpProtocolVersion = "mcp-protocol-version",
    LastEventId = "last-event-id",
    CorrelationId = "x-correlation-id",
    ContentEncoding = "content-encoding",
    RetryAfter = "retry-after",
    Location = "location",
    TraceParent = "traceparent",
    McpMethod = "mcp-method",
    McpName = "mcp-name",
}

impl Known {
    /// The field called `name`, in any case.
    #[inline]
    pub fn of(name: &[u8]) -> Option<Self> {
        let known = Self::candidate(name)?;
        is_name(name, known.name().as_bytes()).then_some(known)
    }

    /// The one field that length and leading letters leave.
    #[inline]
    fn candidate(name: &[u8]) -> Option<Self> {
        let first = name.first()? | 0x20;
        Some(match (name.len(), first) {
            (4, b'h') => Self::Host,
            (6, b'a') => Self::Accept,
            (6, b'o') => Self::Origin,
            (6, b'e') => Self::Expect,
            (8, b'l') => Self::Location,
            (9, b'x') => Self::ApiKey,
            (8, b'm') => Self::McpName,
            (10, b'c') => Self::Connection,
            (10, b'm') => Self::McpMethod,
            (11, b'r') => Self::RetryAfter,
            (11, b't') => Self::TraceParent,
            (12, b'c') => Self::ContentType,
            (13, b'a') => Self::Authorization,
            (13, b'l') => Self::LastEventId,
            (14, b'c') => Self::ContentLength,
            (14, b'm') => Self::McpSessionId,
            (16, b'c') => Self::ContentEncoding,
            (16, b'x') => Self::CorrelationId,
            (17, b't') => Self::TransferEncoding,
            (20, b'm') => Self::McpProtocolVersion,
            _ => return None,
        })
    }
}

/// Whether `name` is `lower` in any case; both have the same length, of at least four bytes. Eight
/// bytes are compared at once, the last ones overlapping: a head has a dozen names, and a loop
/// over their bytes would cost more than parsing them.
#[inline]
fn is_name(name: &[u8], lower: &[u8]) -> bool {
    let (Some(name_end), Some(lower_end)) = (name.last_chunk::<8>(), lower.last_chunk::<8>())
    else {
        return is_short_name(name, lower);
    };
    let mut difference = differing_bits(*name_end, *lower_end);
    let (mut name, mut lower) = (name, lower);
    while let (Some((name_eight, name_rest)), Some((lower_eight, lower_rest))) =
        (name.split_first_chunk::<8>(), lower.split_first_chunk::<8>())
    {
        difference |= differing_bits(*name_eight, *lower_eight);
        (name, lower) = (name_rest, lower_rest);
    }
    difference == 0
}

/// The same for names of four to seven bytes: both ends make eight.
#[inline]
fn is_short_name(name: &[u8], lower: &[u8]) -> bool {
    let ends = |text: &[u8]| {
        let (first, last) = (*text.first_chunk::<4>()?, *text.last_chunk::<4>()?);
        Some([first[0], first[1], first[2], first[3], last[0], last[1], last[2], last[3]])
    };
    match (ends(name), ends(lower)) {
        (Some(name), Some(lower)) => differing_bits(name, lower) == 0,
        _ => false,
    }
}

/// Where eight bytes differ. Only where `lower` has a letter (bit 0x40) is the case bit of `name`
/// let go.
#[inline]
fn differing_bits(name: [u8; 8], lower: [u8; 8]) -> u64 {
    let (name, lower) = (u64::from_ne_bytes(name), u64::from_ne_bytes(lower));
    let letters = (lower & 0x4040_4040_4040_4040) >> 1;
    (name | letters) ^ lower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_field_is_found_in_any_case_at_its_own_place() {
        for (place, known) in Known::ALL.iter().copied().enumerate() {
            assert_eq!(known as usize, place);
            assert_eq!(Known::of(known.name().as_bytes()), Some(known));
            assert_eq!(Known::of(known.name().to_ascii_uppercase().as_bytes()), Some(known));
            assert_eq!(known.name(), known.name().to_ascii_lowercase());
        }
    }

    #[test]
    fn other_names_are_not_known() {
        for name in ["", "x", "hosu", "ost", "content-lengtH ", "content_length", "accept\0"] {
            assert_eq!(Known::of(name.as_bytes()), None, "{name:?}");
        }
        // One byte off in every place and by every bit.
        for known in Known::ALL {
            for place in 0..known.name().len() {
                for bit in 0..8 {
                    let mut name = known.name().as_bytes().to_vec();
                    name[place] ^= 1 << bit;
                    let is_case = name.eq_ignore_ascii_case(known.name().as_bytes());
                    assert_eq!(Known::of(&name) == Some(*known), is_case, "{name:?}");
                }
            }
        }
    }
}

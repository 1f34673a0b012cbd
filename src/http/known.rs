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
    McpMethod = "mcp-method",
    McpName = "mcp-name",
    LastEventId = "last-event-id",
    CorrelationId = "x-correlation-id",
    AccessControlRequestMethod = "access-control-request-method",
    AccessControlRequestHeaders = "access-control-request-headers",
    ContentEncoding = "content-encoding",
    RetryAfter = "retry-after",
    Location = "location",
    AcceptEncoding = "accept-encoding",
    UserAgent = "user-agent",
    Cookie = "cookie",
    SetCookie = "set-cookie",
    KeepAlive = "keep-alive",
    WwwAuthenticate = "www-authenticate",
    ForwardedFor = "x-forwarded-for",
    ForwardedHost = "x-forwarded-host",
    ForwardedProto = "x-forwarded-proto",
}

impl Known {
    /// The field called `name`, in any case.
    #[inline]
    pub fn of(name: &[u8]) -> Option<Self> {
        let first = name.first()? | 0x20;
        Self::of_length(name.len()).iter().copied().find(|known| {
            let text = known.name().as_bytes();
            text[0] == first && name.eq_ignore_ascii_case(text)
        })
    }

    /// The fields whose name has `length` bytes: never more than a handful to compare.
    #[inline]
    fn of_length(length: usize) -> &'static [Self] {
        match length {
            4 => &[Self::Host],
            6 => &[Self::Accept, Self::Origin, Self::Expect, Self::Cookie],
            8 => &[Self::McpName, Self::Location],
            9 => &[Self::ApiKey],
            10 => &[
                Self::Connection,
                Self::UserAgent,
                Self::KeepAlive,
                Self::SetCookie,
                Self::McpMethod,
            ],
            11 => &[Self::RetryAfter],
            12 => &[Self::ContentType],
            13 => &[Self::Authorization, Self::LastEventId],
            14 => &[Self::ContentLength, Self::McpSessionId],
            15 => &[Self::AcceptEncoding, Self::ForwardedFor],
            16 => &[
                Self::CorrelationId,
                Self::ContentEncoding,
                Self::WwwAuthenticate,
                Self::ForwardedHost,
            ],
            17 => &[Self::TransferEncoding, Self::ForwardedProto],
            20 => &[Self::McpProtocolVersion],
            29 => &[Self::AccessControlRequestMethod],
            30 => &[Self::AccessControlRequestHeaders],
            _ => &[],
        }
    }
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
    }
}

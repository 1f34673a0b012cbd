//! Protocol revisions.

use std::fmt;

/// A revision of the protocol that this runtime speaks. Ordered by age.
///
/// It is a property of a session, where there are sessions, so it lives here; `mcp::Revision` is the
/// same type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Revision {
    /// HTTP+SSE.
    V20241105,
    /// Streamable HTTP and batches; assumed where nothing else is known.
    V20250326,
    /// Structured results, no batches.
    V20250618,
    /// Priming events, tool errors for invalid arguments.
    V20251125,
    /// Without sessions: each request stands alone, and a client is asked by the result of its own
    /// request.
    V20260728,
}

impl Revision {
    /// The newest of all.
    pub const NEWEST: Self = Self::V20260728;
    /// The newest that begins with `initialize`.
    pub const NEWEST_WITH_SESSIONS: Self = Self::V20251125;
    /// What a request speaks that says nothing and has no session.
    pub const ASSUMED: Self = Self::V20250326;
    /// All, the oldest first.
    pub const ALL: [Self; 5] =
        [Self::V20241105, Self::V20250326, Self::V20250618, Self::V20251125, Self::V20260728];

    /// Reads the text that names a revision.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.text().as_bytes() == text)
    }

    /// Whether it is of the era without sessions (MCP 2026-07-28, versioning).
    pub const fn is_modern(self) -> bool {
        matches!(self, Self::V20260728)
    }

    /// The text that names it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::V20241105 => "2024-11-05",
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    /// Its code in a record.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::V20241105 => 1,
            Self::V20250326 => 2,
            Self::V20250618 => 3,
            Self::V20251125 => 4,
            Self::V20260728 => 5,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.code() == code)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_codes_come_back() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.to_string().as_bytes()), Some(revision));
            assert_eq!(Revision::from_code(revision.code()), Some(revision));
        }
        assert!(Revision::ALL.is_sorted());
        assert_eq!(Revision::ALL.last(), Some(&Revision::NEWEST));
        for text in ["", "2024-10-07", "2025-11-25 ", "2026-07-29", "1999-01-01"] {
            assert_eq!(Revision::parse(text.as_bytes()), None);
        }
        assert_eq!(Revision::from_code(0), None);
    }
}

//! Who a request is made by.

use std::fmt;

use super::KeyId;

/// Who a request is made by, once that is settled.
///
/// Sessions are bound to it; its text form goes into their records and ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caller {
    /// The holder of an API key.
    Key(KeyId),
    /// Anybody: the client application is open.
    Open,
    /// Whoever may use the admin socket.
    Operator,
}

impl Caller {
    /// Reads back what `Display` wrote.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "open" => Some(Self::Open),
            "operator" => Some(Self::Operator),
            _ => text.strip_prefix("key:").and_then(KeyId::parse).map(Self::Key),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(formatter, "key:{id}"),
            Self::Open => formatter.write_str("open"),
            Self::Operator => formatter.write_str("operator"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_read_back() {
        let key = Caller::Key(KeyId::parse("0123456789ab").unwrap());
        for caller in [key, Caller::Open, Caller::Operator] {
            assert_eq!(Caller::parse(&caller.to_string()), Some(caller));
        }
        for bad in ["", "key:", "key:0123456789a", "key:0123456789au", "Open", "key"] {
            assert_eq!(Caller::parse(bad), None, "{bad:?}");
        }
    }
}

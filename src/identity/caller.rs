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
    fn text_forms_differ_and_never_change() {
        let key = Caller::Key(KeyId::parse("0123456789ab").unwrap());
        let texts = [key, Caller::Open, Caller::Operator].map(|caller| caller.to_string());
        assert_eq!(texts, ["key:0123456789ab", "open", "operator"]);
    }
}

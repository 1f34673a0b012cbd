//! A text that must not be shown.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text that must not be shown: its `Debug` is masked. Written out only where it is kept or sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Hides `text`.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text itself: for the wire.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The usual message of a wrong type quotes the value.
        let text = String::deserialize(deserializer);
        text.map(|text| Self(text.into())).map_err(|_| D::Error::custom("expected text"))
    }
}

//! Values where the empty text means "not set": TOML has no null, and an environment variable can
//! only be emptied. Used as `#[serde(with = "optional")]`.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// A value with a text form.
pub(super) trait Text: Sized {
    /// Reads a text that is not empty.
    fn read(text: &str) -> Result<Self, String>;
    /// The text it is read from.
    fn text(&self) -> String;
}

impl Text for PathBuf {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }

    fn text(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}

impl Text for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl Text for SocketAddr {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| address_help(text))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// What to write where an address and port are asked for.
pub(super) fn address_help(text: impl Display) -> String {
    format!("`{text}` is not an address and port such as 127.0.0.1:8420 or [::1]:8420")
}

#[expect(clippy::ref_option, reason = "the shape serde asks of a `with` module")]
pub(super) fn serialize<T, S>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Text,
    S: Serializer,
{
    serializer.serialize_str(&value.as_ref().map(Text::text).unwrap_or_default())
}

pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Text,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    if text.is_empty() { Ok(None) } else { T::read(&text).map(Some).map_err(D::Error::custom) }
}

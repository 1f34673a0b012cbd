//! What stands in the credentials of a new connection until the operator has written his own.
//!
//! The same for every kind of description: a name that he has to replace is a plain word that no API
//! knows, a secret is a variable of the environment that the report names.

use crate::catalog::{SecretReference, SecretSource};

/// In place of a user's name.
pub(super) const USERNAME: &str = "username";
/// In place of the name of an OAuth client.
pub(super) const CLIENT_ID: &str = "client-id";
/// Longest name of a variable.
const VARIABLE_CHARS_MAX: usize = 100;

/// The secret that is in a variable.
pub(super) fn from_environment(variable: &str) -> SecretSource {
    SecretSource::Elsewhere(SecretReference::Environment(variable.to_owned()))
}

/// A name in capitals, as the environment has them.
pub(super) fn variable(text: &str) -> String {
    let parts: Vec<String> = text
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_ascii_uppercase)
        .collect();
    let mut name: String = parts.join("_").chars().take(VARIABLE_CHARS_MAX).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name.insert_str(0, "API_");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named_after_anything() {
        for (text, expected) in [
            ("Größen-Shop WS_SECURITY_PASSWORD", "GR_EN_SHOP_WS_SECURITY_PASSWORD"),
            ("1Password token", "API_1PASSWORD_TOKEN"),
            ("世界", "API_"),
            (&"x".repeat(300), &"X".repeat(VARIABLE_CHARS_MAX)),
        ] {
            assert_eq!(variable(text), expected);
        }
    }
}

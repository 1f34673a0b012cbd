//! What a caller is told who is not let in, and what the log is told.

use thiserror::Error;

use super::{KeyId, KeyRefusal};

/// Why a request is refused before it is looked at. `Display` is the reason for the log; the client
/// gets [`Refusal::client_text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// There is none, and the client application is not open.
    #[error("no credential")]
    NoCredential,
    /// Two different ones, or a repeated header.
    #[error("more than one credential")]
    Ambiguous,
    /// A header that holds no token.
    #[error("malformed credential")]
    Malformed,
    /// The key was not accepted.
    #[error("{0}")]
    Key(KeyRefusal),
}

impl Refusal {
    /// The HTTP status: RFC 6750 section 3.1.
    pub fn status(self) -> u16 {
        match self {
            Self::Ambiguous => 400,
            Self::NoCredential | Self::Malformed | Self::Key(_) => 401,
        }
    }

    /// The reason as the log and the metrics name it: one of a few words that never change.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NoCredential => "no_credential",
            Self::Ambiguous => "ambiguous_credential",
            Self::Malformed => "malformed_credential",
            Self::Key(refusal) => refusal.reason(),
        }
    }

    /// The id of the key that was presented, where what was presented had one: for the log.
    pub fn key_id(self) -> Option<KeyId> {
        match self {
            Self::NoCredential | Self::Ambiguous | Self::Malformed => None,
            Self::Key(refusal) => refusal.key_id(),
        }
    }

    /// What the client may know.
    pub fn client_text(self) -> &'static str {
        match self {
            Self::NoCredential => {
                "This endpoint needs an API key: send it as \"Authorization: Bearer <key>\" \
                 or \"X-Api-Key: <key>\"."
            }
            Self::Ambiguous => "The request carries more than one credential: send one.",
            Self::Malformed | Self::Key(_) => "The API key is not valid for this endpoint.",
        }
    }

    /// The value of `WWW-Authenticate`: RFC 6750 section 3. A request without a credential gets no
    /// error code, as the RFC asks.
    pub fn challenge(self) -> &'static str {
        match self {
            Self::NoCredential => "Bearer realm=\"ringway\"",
            Self::Ambiguous => {
                "Bearer realm=\"ringway\", error=\"invalid_request\", \
                 error_description=\"More than one credential\""
            }
            Self::Malformed | Self::Key(_) => {
                "Bearer realm=\"ringway\", error=\"invalid_token\", \
                 error_description=\"The API key is not valid for this endpoint\""
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_cannot_tell_refused_keys_apart_and_logs_can() {
        let id = KeyId::parse("0123456789ab").unwrap();
        let reasons = [
            KeyRefusal::Malformed,
            KeyRefusal::Unknown { id },
            KeyRefusal::WrongSecret { id },
            KeyRefusal::Expired { id },
            KeyRefusal::Revoked { id },
            KeyRefusal::Foreign { id },
        ]
        .map(Refusal::Key);
        for reason in reasons {
            assert_eq!(reason.status(), 401);
            assert_eq!(reason.challenge(), Refusal::Malformed.challenge());
            assert_eq!(reason.client_text(), Refusal::Malformed.client_text());
        }
        let logged: std::collections::HashSet<String> =
            reasons.iter().map(ToString::to_string).collect();
        assert_eq!(logged.len(), reasons.len());
        let all = [Refusal::NoCredential, Refusal::Ambiguous, Refusal::Malformed];
        let names: std::collections::HashSet<_> =
            all.into_iter().chain(reasons).map(Refusal::reason).collect();
        assert_eq!(names.len(), all.len() + reasons.len());
        assert!(names.iter().all(|name| !name.contains("0123456789ab")));
        assert!(reasons[1..].iter().all(|reason| reason.key_id() == Some(id)));
        assert_eq!((reasons[0].key_id(), Refusal::Malformed.key_id()), (None, None));
    }

    #[test]
    fn challenges_follow_rfc_6750() {
        assert_eq!(Refusal::NoCredential.challenge(), "Bearer realm=\"ringway\"");
        assert!(Refusal::Malformed.challenge().contains("error=\"invalid_token\""));
        assert!(Refusal::Ambiguous.challenge().contains("error=\"invalid_request\""));
        assert_eq!(Refusal::Ambiguous.status(), 400);
    }
}

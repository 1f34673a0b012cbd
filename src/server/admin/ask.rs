//! A request of an operator, taken apart and judged as far as its form goes.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Trouble, condition::Condition, openapi, routes::Operation};
use crate::{
    catalog::{Action, EntityName, Kind},
    http::{self, RequestView},
    json,
    server::{connection::Plane, operators::Operator, publication::Intent},
};

/// Largest body that is not a whole catalog.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest comment, in characters.
const COMMENT_CHARACTERS_MAX: usize = 1000;

/// What was asked. No `Debug`: the body may hold secrets.
pub(super) struct Ask {
    /// The names in the path.
    pub(super) names: Vec<String>,
    /// The parameters, none of them unknown.
    query: Vec<(String, String)>,
    /// The body, as it was sent.
    pub(super) body: Vec<u8>,
    /// Who asks.
    pub(super) operator: Operator,
    /// On what condition.
    pub(super) condition: Condition,
}

impl Ask {
    /// Takes a request apart.
    pub(super) fn of(
        plane: Plane,
        operation: Operation,
        names: Vec<String>,
        request: &RequestView<'_>,
    ) -> Result<Self, Trouble> {
        let known = openapi::parameters(operation);
        let mut query: Vec<(String, String)> = Vec::new();
        for (name, value) in http::query_pairs(request.query().unwrap_or_default()) {
            if !known.iter().any(|parameter| parameter.name == name) {
                let known: Vec<&str> = known.iter().map(|parameter| parameter.name).collect();
                let known =
                    if known.is_empty() { "there is none".into() } else { known.join(", ") };
                let name: String = name.chars().take(40).collect();
                return Err(bad(format!("no parameter {name:?} here: {known}")));
            }
            if query.iter().any(|(other, _)| *other == name) {
                return Err(bad(format!("the parameter {name} stands twice")));
            }
            query.push((name.into_owned(), value.into_owned()));
        }
        if request.body().len() > BODY_BYTES_MAX && operation != Operation::Apply {
            let message = format!("the body is larger than {BODY_BYTES_MAX} bytes");
            return Err(Trouble::new(413, message));
        }
        Ok(Self {
            names,
            query,
            body: request.body().to_vec(),
            operator: Operator::of(plane, request).map_err(bad)?,
            condition: Condition::of(request).map_err(bad)?,
        })
    }

    /// A parameter as it was sent.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is `true` or `false`; `false` where absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Trouble> {
        match self.text(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(bad(format!("{name}: expected true or false"))),
        }
    }

    /// A parameter that is a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Trouble> {
        let parse =
            |text: &str| text.parse().map_err(|_| bad(format!("{name}: expected a number")));
        self.text(name).map(parse).transpose()
    }

    /// The body as JSON of a known shape.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Trouble> {
        serde_json::from_slice(&self.body).map_err(|error| bad(error.to_string()))
    }

    /// The body as a JSON object. One that says two things of the same key is refused: which of them
    /// was meant, nobody knows.
    pub(super) fn object(&self) -> Result<Value, Trouble> {
        json::guard(&self.body).map_err(|error| bad(error.to_string()))?;
        let value: Value = self.json()?;
        if value.is_object() { Ok(value) } else { Err(bad("expected a JSON object".to_owned())) }
    }

    /// The entity of a kind that the path names.
    pub(super) fn entity(&self, kind: Kind) -> EntityName {
        EntityName { kind, key: self.names.join("/") }
    }

    /// The change that the parameters ask for. Not for a core: see [`Operator::author`].
    pub(super) fn intent(&self, action: Action) -> Result<Intent, Trouble> {
        let comment = comment(self.text("comment").unwrap_or_default())?;
        let dry_run = self.flag("dry_run")?;
        Ok(Intent { action, author: self.operator.author(), comment, dry_run, expected: None })
    }
}

/// A comment, if it can be one.
pub(super) fn comment(text: &str) -> Result<String, Trouble> {
    let is_bad = |character: char| character.is_control() && character != '\n';
    if text.chars().count() > COMMENT_CHARACTERS_MAX || text.contains(is_bad) {
        return Err(bad(format!(
            "comment: expected at most {COMMENT_CHARACTERS_MAX} characters without control \
             characters"
        )));
    }
    Ok(text.to_owned())
}

pub(super) fn bad(message: String) -> Trouble {
    Trouble::new(400, message)
}

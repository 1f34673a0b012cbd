//! Conditions of a change, so that two operators cannot overwrite each other (RFC 9110, 13.1).

use crate::{
    catalog::{Document, EntityName},
    http::RequestView,
    server::{change_error::ChangeError, operators::header},
};

/// Most tags in one condition.
const TAGS_MAX: usize = 32;

/// On what state of an entity a request is to be obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    /// None was given.
    None,
    /// `If-Match: *`: it exists.
    Exists,
    /// `If-Match: "..."`: it is one of these.
    IsOneOf(Vec<String>),
    /// `If-None-Match: *`: it does not exist.
    IsAbsent,
    /// `If-None-Match: "..."`: it is none of these.
    IsNoneOf(Vec<String>),
}

/// What an entity is called in `ETag`.
pub(super) fn etag(document: &Document) -> String {
    format!("\"{}\"", document.tag())
}

impl Condition {
    /// Of a request.
    ///
    /// # Errors
    /// It has both conditions, or one that cannot be read.
    pub(super) fn of(request: &RequestView<'_>) -> Result<Self, String> {
        let text = |name: &str| {
            let value = header(request, name)?;
            Some(std::str::from_utf8(value).unwrap_or_default().trim())
        };
        match (text("if-match"), text("if-none-match")) {
            (None, None) => Ok(Self::None),
            (Some("*"), None) => Ok(Self::Exists),
            (None, Some("*")) => Ok(Self::IsAbsent),
            (Some(list), None) => tags(list).map(Self::IsOneOf),
            (None, Some(list)) => tags(list).map(Self::IsNoneOf),
            (Some(_), Some(_)) => Err("send If-Match or If-None-Match, not both".to_owned()),
        }
    }

    /// Whether an entity that is to be changed may be; `needed` says that there must be a condition.
    pub(super) fn check(
        &self,
        name: &EntityName,
        current: Option<&Document>,
        needed: bool,
    ) -> Result<(), ChangeError> {
        let tag = current.map(Document::tag);
        let is_met = match (self, &tag) {
            (Self::None, Some(_)) if needed => {
                return Err(ChangeError::Unconditional(name.clone()));
            }
            (Self::None, _)
            | (Self::Exists, Some(_))
            | (Self::IsAbsent | Self::IsNoneOf(_), None) => true,
            (Self::IsOneOf(tags), Some(tag)) => tags.contains(tag),
            (Self::IsNoneOf(tags), Some(tag)) => !tags.contains(tag),
            (Self::Exists | Self::IsOneOf(_), None) => {
                return Err(ChangeError::Conflict(format!(
                    "there is no {name} any more: leave out If-Match to create it"
                )));
            }
            (Self::IsAbsent, Some(_)) => {
                return Err(ChangeError::Conflict(format!(
                    "{name} exists already: read it and send its ETag as If-Match to change it"
                )));
            }
        };
        if is_met {
            return Ok(());
        }
        Err(ChangeError::Conflict(format!(
            "{name} is not what it was when you read it: somebody else changed it meanwhile; read \
             it again"
        )))
    }

    /// Whether who reads has this already.
    pub(super) fn has(&self, document: &Document) -> bool {
        matches!(self, Self::IsNoneOf(tags) if tags.contains(&document.tag()))
    }
}

/// The tags of a list. Weak ones never name the same content here, so they are left out.
fn tags(list: &str) -> Result<Vec<String>, String> {
    let mut tags = Vec::new();
    for item in list.split(',').map(str::trim) {
        let quoted = item.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match quoted {
            Some(tag) if !tag.contains('"') => tags.push(tag.to_owned()),
            _ if item.starts_with("W/\"") => {}
            _ => return Err("a condition must be * or tags in double quotes".to_owned()),
        }
        if tags.len() > TAGS_MAX {
            return Err(format!("more than {TAGS_MAX} tags in a condition"));
        }
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{Entities, Kind, Origin};

    #[test]
    fn lists_of_tags_are_read() {
        let read = |list| tags(list).ok();
        assert_eq!(read("\"a\""), Some(vec!["a".to_owned()]));
        assert_eq!(read("\"a\" , \"b\""), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(read("W/\"a\", \"b\""), Some(vec!["b".to_owned()]));
        for bad in ["", "a", "\"a", "\"a\"\"b\"", "\"a\",", "*, \"a\""] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(read(&vec!["\"a\""; 100].join(",")), None);
    }

    #[test]
    fn conditions_decide() {
        let mut entities = Entities::default();
        let put = entities.put(Kind::Tenant, json!({ "id": "a" }), &Origin::new("t", 0));
        let name = put.unwrap();
        let document = entities.document(&name).unwrap();
        let tag = document.tag();
        let status = |condition: &Condition, current: Option<&Document>, needed| match condition
            .check(&name, current, needed)
        {
            Ok(()) => 200,
            Err(ChangeError::Conflict(_)) => 412,
            Err(ChangeError::Unconditional(_)) => 428,
            Err(other) => panic!("{other}"),
        };
        let (good, bad) = (vec![tag], vec!["x".to_owned()]);
        let table = [
            (Condition::None, 428, 200, 200),
            (Condition::Exists, 200, 200, 412),
            (Condition::IsOneOf(good.clone()), 200, 200, 412),
            (Condition::IsOneOf(bad.clone()), 412, 412, 412),
            (Condition::IsOneOf(Vec::new()), 412, 412, 412),
            (Condition::IsAbsent, 412, 412, 200),
            (Condition::IsNoneOf(good), 412, 412, 200),
            (Condition::IsNoneOf(bad), 200, 200, 200),
        ];
        for (condition, needed, free, absent) in table {
            let found = (
                status(&condition, Some(&document), true),
                status(&condition, Some(&document), false),
                status(&condition, None, true),
            );
            assert_eq!(found, (needed, free, absent), "{condition:?}");
        }
    }
}

//! What becomes of the types of XML messages when their API is imported again.
//!
//! All tools of a toolset share its types, so a type that changes changes every tool that uses it:
//! it moves with consent or not at all.

use super::Consent;
use crate::mapping::{XmlParticle, XmlType, XmlTypes};

/// Most names told.
const NAMES_MAX: usize = 10;

/// What becomes of them.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// All types, those that are there and those that come.
    pub(super) merged: XmlTypes,
    /// The first of those that change.
    pub(super) changed: Vec<String>,
    /// What the change waits for.
    pub(super) waits_for: Option<&'static str>,
}

/// Lays the described types over those that are there.
pub(super) fn merge(
    before: Option<&XmlTypes>,
    described: &XmlTypes,
    is_published: bool,
    consent: Consent,
) -> Outcome {
    let Some(before) = before else {
        return Outcome { merged: described.clone(), ..Outcome::default() };
    };
    let mut outcome = Outcome { merged: before.clone(), ..Outcome::default() };
    let mut breaks = false;
    for (name, new) in &described.0 {
        match before.0.get(name) {
            Some(old) if old != new => {
                breaks = breaks || !is_extension(old, new);
                if outcome.changed.len() < NAMES_MAX {
                    outcome.changed.push(name.to_string());
                }
            }
            _ => {}
        }
        outcome.merged.0.insert(name.clone(), new.clone());
    }
    let is_free = !is_published || outcome.changed.is_empty();
    outcome.waits_for = match (is_free, breaks) {
        (false, true) if !(consent.publish && consent.accept_breaking) => {
            Some("--publish --accept-breaking")
        }
        (false, false) if !consent.publish => Some("--publish"),
        _ => None,
    };
    outcome
}

/// Whether the new type only has more that need not be there.
fn is_extension(old: &XmlType, new: &XmlType) -> bool {
    let same_kind =
        old.base == new.base && old.is_abstract == new.is_abstract && old.text == new.text;
    let kept = old.attributes.iter().all(|attribute| new.attributes.contains(attribute));
    let mut rest = old.content.iter().peekable();
    for particle in &new.content {
        if rest.peek() == Some(&particle) {
            rest.next();
            continue;
        }
        let is_optional = matches!(
            particle,
            XmlParticle::Element(element) if !element.required && element.fixed.is_none()
        );
        if !is_optional {
            return false;
        }
    }
    same_kind && kept && rest.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::{XmlContent, XmlElement, XmlName, XmlValue};

    fn types(elements: &[(&str, bool)]) -> XmlTypes {
        let element = |(name, required): &(&str, bool)| {
            XmlParticle::Element(XmlElement {
                name: XmlName::new("", name),
                prefix: None,
                member: (*name).into(),
                holds: XmlContent::Value(XmlValue::String),
                repeats: false,
                required: *required,
                nillable: false,
                fixed: None,
            })
        };
        let content = elements.iter().map(element).collect();
        let one = XmlType { content, ..XmlType::default() };
        XmlTypes([(XmlName::new("urn:x", "T"), one)].into())
    }

    #[test]
    fn types_that_change_wait_for_consent_where_tools_are_published() {
        let consent = |publish, accept_breaking| Consent { publish, accept_breaking };
        let old = types(&[("a", true), ("b", false)]);
        let more = types(&[("a", true), ("c", false), ("b", false)]);
        let must = types(&[("a", true), ("c", true), ("b", false)]);
        let less = types(&[("a", true)]);
        for (new, is_published, consent, waits_for) in [
            (&old, true, consent(false, false), None),
            (&more, false, consent(false, false), None),
            (&more, true, consent(false, false), Some("--publish")),
            (&more, true, consent(true, false), None),
            (&must, true, consent(true, false), Some("--publish --accept-breaking")),
            (&less, true, consent(true, false), Some("--publish --accept-breaking")),
            (&less, true, consent(true, true), None),
        ] {
            let outcome = merge(Some(&old), new, is_published, consent);
            assert_eq!(outcome.waits_for, waits_for, "{new:?} {consent:?}");
            assert_eq!(&outcome.merged, new);
        }
        // Types that the description no longer has stay: tools may use them.
        let outcome = merge(Some(&old), &XmlTypes::default(), true, consent(false, false));
        assert_eq!((outcome.merged, outcome.waits_for), (old, None));
    }
}

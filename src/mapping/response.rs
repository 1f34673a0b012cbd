//! Answers: what of them is given, from the names of the API to those of the tool.
//!
//! A result holds what rules name and nothing else: an operator hides a field by not naming it. So
//! an answer of another shape than the rules say must not show what the right shape would hide:
//!
//! - Where one object is meant and an array comes, each item is picked from; where an array is meant
//!   and one object comes, it is picked from like an item. Rows are never dropped.
//! - A single value where an object with named members is meant, and an object where a single value
//!   is said (`type`, `array_item_type`), become `null`; the whole answer becomes `{}`. `null`
//!   itself stays. How many values that were is told: [`Translated::withheld`].
//! - A rule without `type`, of an object or array without rules for members, or with a raw schema
//!   gives its field whole, whatever it holds.
//! - An answer of which nothing could be given says so: [`Translated::is_nothing`].
//! - What is not JSON has no fields; see [`ResponsePlan::picks`].
//!
//! With [`Unmapped::Keep`] nothing of this holds: fields are renamed and everything else passes.

use super::translate::{Direction, Step, Tally, Unmapped};
use super::{FieldRule, FieldType, Location, MappingError, MappingErrors, check_count, shape};
use crate::json::Raw;

/// The compiled rules for the answers of one tool: what of an answer is given, and under which
/// names. With [`Unmapped::Drop`] only fields that rules name are given, whatever shape an answer
/// has: an array where an object is meant is picked from item by item, and what cannot be picked from
/// is `null`, or `{}` where it is the whole answer. With [`Unmapped::Keep`] the rest passes.
#[derive(Debug, Default)]
pub struct ResponsePlan {
    /// `None` where answers pass as they are.
    step: Option<Step>,
    picks: bool,
}

/// An answer in the words of the tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Translated {
    /// The answer: fields that rules name, under exposed names, in the order of the API.
    pub json: Vec<u8>,
    /// The API sent something, and nothing of it is of a field that rules name.
    pub is_nothing: bool,
    /// How many values are left out although rules name them, because they have another shape than
    /// the rules say and could hold what is to be hidden.
    pub withheld: u64,
}

impl ResponsePlan {
    /// Compiles the rules; without any, answers pass as they are.
    ///
    /// # Errors
    ///
    /// Names every rule that does not fit and what to change.
    pub fn compile(rules: &[FieldRule], unmapped: Unmapped) -> Result<Self, MappingErrors> {
        check_count(rules)?;
        let mut errors = MappingErrors::default();
        for rule in rules {
            let mut refuse = |problem| {
                errors.note::<()>(Err(MappingError::Response { field: rule.name(), problem }));
            };
            if rule.location != Location::Body {
                refuse("answers are mapped from the body only; set location to \"body\"");
            }
            let is_file = [rule.field_type, rule.array_item_type].contains(&Some(FieldType::File));
            if is_file {
                refuse("answers have no fields that are files; change type");
            }
            let is_styled = rule.style.is_some() || rule.explode.is_some() || rule.allow_reserved;
            let is_part = rule.content_type.is_some() || !rule.part_headers.is_empty();
            if is_styled || is_part {
                refuse(
                    "style, explode, allow_reserved, content_type and part_headers mean nothing \
                     here; remove them",
                );
            }
            if rule.mcp_header.is_some() {
                refuse("mcp_header means nothing here; remove it");
            }
            if rule.constant.is_some() || rule.send_default {
                refuse("constant and send_default mean nothing here; remove them");
            }
        }
        if rules.is_empty() {
            return Ok(Self::default());
        }
        let root = shape::body(rules, &mut errors);
        errors.check()?;
        let step = Step::compile(&root, rules, Direction::Response(unmapped))?;
        let step = Some(step).filter(|step| !step.is_plain());
        Ok(Self { picks: step.is_some() && unmapped == Unmapped::Drop, step })
    }

    /// Whether something of an answer can be left out. What has no fields to pick, such as a text,
    /// must then not be shown: nobody knows what it holds.
    pub const fn picks(&self) -> bool {
        self.picks
    }

    /// The answer under exposed names, in one pass over its text.
    ///
    /// Values are exact text. A field that passes without a rule stays out where its name is what
    /// another field of the object was renamed to: the mapped field has it.
    pub fn translate(&self, body: Raw<'_>) -> Translated {
        let mut json = Vec::with_capacity(body.text().len() + 32);
        let Some(step) = &self.step else {
            json.extend_from_slice(body.text().as_bytes());
            return Translated { json, is_nothing: false, withheld: 0 };
        };
        let mut tally = Tally::default();
        step.write(body, &mut json, &mut tally);
        if tally.withheld > 0 && json == b"null" {
            json.clear();
            json.extend_from_slice(b"{}");
        }
        let is_nothing = !tally.given && (tally.left_out || tally.withheld > 0);
        Translated { json, is_nothing: self.picks && is_nothing, withheld: tally.withheld }
    }
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

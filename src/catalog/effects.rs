//! What a call of a tool does to the world, as far as it can be known before the call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::SideEffectBy;
use super::{Annotations, SideEffect, Tool, ToolMethod};
use crate::mapping::RequestPlan;

/// What the calls of a tool do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effects {
    /// Where no argument says something else.
    pub(super) base: SideEffect,
    pub(super) by_argument: Option<EffectByArgument>,
}

/// The argument that decides what a call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectByArgument {
    /// Its exposed name; a path where it stands in an object.
    pub argument: Box<str>,
    /// What a call does by the argument's text; any other value does what the tool does.
    pub values: BTreeMap<String, SideEffect>,
    /// What a call without the argument does: the API may take a default.
    pub absent: SideEffect,
}

impl Effects {
    /// What is said, else what annotations say, else what HTTP says about the method (RFC 9110
    /// section 9.2), with the argument that decides where there is one.
    pub(super) fn compile(tool: &Tool, request: &RequestPlan, faults: &mut Vec<String>) -> Self {
        let base = tool.side_effect.unwrap_or_else(|| by_method(tool.annotations, tool.method));
        let has_argument = |path: &str| request.has_single_argument(path);
        Self::of(base, tool.side_effect_by.as_ref(), request.input_schema(), has_argument, faults)
    }

    /// `base`, and the argument that decides where there is one.
    pub(super) fn of(
        base: SideEffect,
        by: Option<&SideEffectBy>,
        input: &Value,
        has_argument: impl Fn(&str) -> bool,
        faults: &mut Vec<String>,
    ) -> Self {
        let by_argument = by.and_then(|by| {
            let SideEffectBy { argument, values } = by;
            if !has_argument(argument) {
                let shown = super::names::shortened(argument);
                faults.push(format!(
                    "side_effect_by.argument: no single field is exposed as {shown:?}"
                ));
                return None;
            }
            if let Some(value) = unlisted(input, argument, values) {
                let shown = super::names::shortened(value);
                faults.push(format!("side_effect_by.values: the argument is never {shown:?}"));
            }
            let default = declared_default(input, argument);
            let absent = default.and_then(|text| values.get(&text)).copied().unwrap_or(base);
            let (argument, values) = (argument.as_str().into(), values.clone());
            Some(EffectByArgument { argument, values, absent })
        });
        Self { base, by_argument }
    }

    /// The worst a call may do.
    pub(super) fn worst(&self) -> SideEffect {
        let by_argument = self.by_argument.iter().flat_map(EffectByArgument::possible);
        by_argument.fold(self.base, SideEffect::max)
    }
}

impl EffectByArgument {
    /// All that the argument may say.
    pub(super) fn possible(&self) -> impl Iterator<Item = SideEffect> + '_ {
        self.values.values().copied().chain(std::iter::once(self.absent))
    }

    /// What a call does that sends this text for the argument; `base` where it is not listed.
    pub(super) fn of_text(&self, base: SideEffect, sent: Option<&str>) -> SideEffect {
        match sent {
            None => self.absent,
            Some(text) => self.values.get(text).copied().unwrap_or(base),
        }
    }
}

/// The schema of the field at a path of exposed names.
fn field_at<'a>(input: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(input, |at, name| at.get("properties")?.get(name))
}

/// A value that the field, which lists its values, cannot have: mistyped, it would be taken for
/// less than it is.
fn unlisted<'a>(
    input: &Value,
    path: &str,
    values: &'a BTreeMap<String, SideEffect>,
) -> Option<&'a str> {
    let listed = field_at(input, path)?.get("enum")?.as_array()?;
    let is_listed =
        |text: &str| listed.iter().any(|one| text_of(one).is_some_and(|one| one == text));
    values.keys().map(String::as_str).find(|text| !is_listed(text))
}

/// What the API is said to take where a call does not have the field.
fn declared_default(input: &Value, path: &str) -> Option<String> {
    text_of(field_at(input, path)?.get("default")?)
}

/// A single value as its text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn by_method(said: Annotations, method: Option<ToolMethod>) -> SideEffect {
    use ToolMethod::{Delete, Get, Head};
    match (said.read_only_hint, said.destructive_hint, method) {
        (Some(true), ..) | (None, None | Some(false), Some(Get | Head)) => SideEffect::Read,
        (_, Some(true), _) | (_, None, Some(Delete)) => SideEffect::Destructive,
        _ => SideEffect::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::RequestBody;

    fn compiled(more: &str) -> (Effects, Vec<String>) {
        let text = format!(
            "tenant = 'acme'\ntoolset = 'pets'\nname = 'do'\ndescription = 'x'\npath = '/'\n{more}"
        );
        let tool: Tool = toml::from_str(&text).unwrap();
        let plan = RequestPlan::compile(
            tool.method.unwrap().as_str(),
            &tool.path,
            &tool.fields,
            RequestBody::default(),
        )
        .unwrap();
        let mut faults = Vec::new();
        (Effects::compile(&tool, &plan, &mut faults), faults)
    }

    #[test]
    fn method_and_annotations_say_it_where_nothing_else_does() {
        for (more, expected) in [
            ("method = 'GET'", SideEffect::Read),
            ("method = 'HEAD'", SideEffect::Read),
            ("method = 'POST'", SideEffect::Write),
            ("method = 'PUT'", SideEffect::Write),
            ("method = 'DELETE'", SideEffect::Destructive),
            ("method = 'POST'\nannotations = { read_only_hint = true }", SideEffect::Read),
            ("method = 'GET'\nannotations = { read_only_hint = false }", SideEffect::Write),
            ("method = 'PUT'\nannotations = { destructive_hint = true }", SideEffect::Destructive),
            ("method = 'DELETE'\nannotations = { destructive_hint = false }", SideEffect::Write),
            ("method = 'GET'\nannotations = { destructive_hint = false }", SideEffect::Read),
            ("method = 'DELETE'\nside_effect = 'write'", SideEffect::Write),
        ] {
            let (effects, faults) = compiled(more);
            assert_eq!((effects.base, faults.len()), (expected, 0), "{more}");
        }
    }

    #[test]
    fn an_argument_may_decide() {
        const BY: &str = "method = 'POST'\n\
             side_effect_by = { argument = 'do', values = { show = 'read', drop = 'destructive' } }\n";
        let (effects, faults) = compiled(&format!("{BY}fields = [{{ source_field_name = 'do' }}]"));
        assert!(faults.is_empty(), "{faults:?}");
        let by = effects.by_argument.as_ref().unwrap();
        let of = |sent| by.of_text(effects.base, sent);
        assert_eq!(of(Some("show")), SideEffect::Read);
        assert_eq!(of(Some("drop")), SideEffect::Destructive);
        assert_eq!(of(Some("other")), SideEffect::Write);
        assert_eq!(of(None), SideEffect::Write);
        assert_eq!(effects.worst(), SideEffect::Destructive);

        let field = "fields = [{ source_field_name = 'do', default = 'drop' }]";
        let (effects, faults) = compiled(&format!("{BY}{field}"));
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(effects.by_argument.unwrap().absent, SideEffect::Destructive);

        let (effects, faults) = compiled(BY);
        assert_eq!(effects.by_argument, None);
        assert_eq!(faults.len(), 1);

        for (listed, count) in [("'show', 'drop', 'keep'", 0), ("'show', 'keep'", 1)] {
            let field = format!("fields = [{{ source_field_name = 'do', enum = [{listed}] }}]");
            let (_, faults) = compiled(&format!("{BY}{field}"));
            assert_eq!(faults.len(), count, "{faults:?}");
        }
    }
}

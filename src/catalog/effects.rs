//! What a call of a tool does to the world, as far as it can be known before the call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::SideEffectBy;
use super::{Annotations, SideEffect, Tool, ToolMethod};
use crate::json::{Kind, Raw};

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
    /// Its exposed name.
    pub argument: Box<str>,
    /// What a call does by the argument's text; any other value does what the tool does.
    pub values: BTreeMap<String, SideEffect>,
    /// What a call without the argument does: the API may take a default.
    pub absent: SideEffect,
}

impl Effects {
    /// What is said, else what annotations say, else what HTTP says about the method (RFC 9110
    /// section 9.2), with the argument that decides where there is one in the schema.
    pub(super) fn compile(tool: &Tool, input: &Value, faults: &mut Vec<String>) -> Self {
        let base = tool.side_effect.unwrap_or_else(|| by_method(tool.annotations, tool.method));
        let by_argument = tool.side_effect_by.as_ref().and_then(|by| {
            let SideEffectBy { argument, values } = by;
            let property = input.get("properties").and_then(|all| all.get(argument));
            let Some(property) = property else {
                let shown = super::names::shortened(argument);
                faults.push(format!(
                    "side_effect_by.argument: no field at the top is exposed as {shown:?}"
                ));
                return None;
            };
            let default = property.get("default").and_then(Value::as_str);
            let absent = default.and_then(|text| values.get(text)).copied().unwrap_or(base);
            Some(EffectByArgument {
                argument: argument.as_str().into(),
                values: values.clone(),
                absent,
            })
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

    /// What a call with these arguments does; `base` where its value is not listed. Where the
    /// argument is there twice the worse counts: which one the API takes is its own business.
    pub(super) fn of_call(&self, base: SideEffect, arguments: Option<Raw<'_>>) -> SideEffect {
        let of_text = |text: &str| self.values.get(text).copied().unwrap_or(base);
        let entries = arguments.filter(|all| all.kind() == Kind::Object).into_iter();
        let given = entries
            .flat_map(Raw::entries)
            .filter(|(name, _)| **name == *self.argument)
            .map(|(_, value)| match value.kind() {
                Kind::Null => self.absent,
                Kind::String => of_text(&value.as_str().unwrap_or_default()),
                _ => of_text(value.text()),
            });
        given.max().unwrap_or(self.absent)
    }
}

fn by_method(said: Annotations, method: ToolMethod) -> SideEffect {
    match (said.read_only_hint, said.destructive_hint, method) {
        (Some(true), ..) => SideEffect::Read,
        (_, Some(true), _) => SideEffect::Destructive,
        (None, None, ToolMethod::Get | ToolMethod::Head) => SideEffect::Read,
        (None, Some(false), ToolMethod::Get | ToolMethod::Head) => SideEffect::Read,
        (_, None, ToolMethod::Delete) => SideEffect::Destructive,
        _ => SideEffect::Write,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::OwnedRaw;

    fn tool(more: &str) -> Tool {
        let text = format!(
            "tenant = 'acme'\ntoolset = 'pets'\nname = 'do'\ndescription = 'x'\npath = '/'\n{more}"
        );
        toml::from_str(&text).unwrap()
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
            let mut faults = Vec::new();
            let effects = Effects::compile(&tool(more), &json!({}), &mut faults);
            assert_eq!((effects.base, faults.len()), (expected, 0), "{more}");
        }
    }

    #[test]
    fn an_argument_may_decide() {
        let tool = tool(
            "method = 'POST'\n\
             side_effect_by = { argument = 'do', values = { show = 'read', drop = 'destructive' } }",
        );
        let input = json!({"properties": {"do": {"type": "string"}}});
        let mut faults = Vec::new();
        let effects = Effects::compile(&tool, &input, &mut faults);
        let by = effects.by_argument.as_ref().unwrap();
        let of = |text: &str| {
            let arguments = OwnedRaw::parse(text.as_bytes()).unwrap();
            by.of_call(effects.base, Some(arguments.as_raw()))
        };
        assert_eq!(of(r#"{"do":"show"}"#), SideEffect::Read);
        assert_eq!(of(r#"{"do":"dr\u006fp"}"#), SideEffect::Destructive);
        assert_eq!(of(r#"{"do":"other"}"#), SideEffect::Write);
        assert_eq!(of(r#"{"do":5}"#), SideEffect::Write);
        assert_eq!(of("{}"), SideEffect::Write);
        assert_eq!(by.of_call(effects.base, None), SideEffect::Write);
        assert_eq!(effects.worst(), SideEffect::Destructive);

        let input = json!({"properties": {"do": {"default": "drop"}}});
        let effects = Effects::compile(&tool, &input, &mut faults);
        assert_eq!(effects.by_argument.unwrap().absent, SideEffect::Destructive);
        assert!(faults.is_empty());
        let effects = Effects::compile(&tool, &json!({}), &mut faults);
        assert_eq!(effects.by_argument, None);
        assert_eq!(faults.len(), 1);
    }
}

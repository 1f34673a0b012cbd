//! What an entry of the book is about.

use std::fmt;

use super::hidden::visible;
use crate::catalog::{Definition, DefinitionKind};

/// What an entry of the book is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// What the server tells models about itself.
    Instructions,
    /// Something it lists, by its kind and its name or URI.
    Listed(DefinitionKind, Box<str>),
}

impl Subject {
    /// Of something that is listed.
    pub fn of(definition: &Definition) -> Self {
        Self::Listed(definition.kind, definition.name.clone())
    }

    /// The word for its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Listed(DefinitionKind::Tool, _) => "tool",
            Self::Listed(DefinitionKind::Prompt, _) => "prompt",
            Self::Listed(DefinitionKind::Resource, _) => "resource",
            Self::Listed(DefinitionKind::ResourceTemplate, _) => "resource_template",
        }
    }

    /// Its name or URI; empty for what has none.
    pub fn name(&self) -> &str {
        match self {
            Self::Instructions => "",
            Self::Listed(_, name) => name,
        }
    }

    /// That which [`Self::kind`] and [`Self::name`] tell.
    pub fn parse(kind: &str, name: &str) -> Option<Self> {
        let kind = match kind {
            "instructions" => return name.is_empty().then_some(Self::Instructions),
            "tool" => DefinitionKind::Tool,
            "prompt" => DefinitionKind::Prompt,
            "resource" => DefinitionKind::Resource,
            "resource_template" => DefinitionKind::ResourceTemplate,
            _ => return None,
        };
        Some(Self::Listed(kind, name.into()))
    }

    /// What people call it by, where it is called by name.
    pub(super) fn called(&self) -> Option<(DefinitionKind, &str)> {
        match self {
            Self::Listed(kind @ (DefinitionKind::Tool | DefinitionKind::Prompt), name) => {
                Some((*kind, name))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())?;
        match self {
            Self::Instructions => Ok(()),
            Self::Listed(_, name) => write!(f, " {}", visible(name)),
        }
    }
}

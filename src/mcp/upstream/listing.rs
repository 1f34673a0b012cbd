//! Lists of a server over all their pages (MCP, pagination).
//!
//! A cursor is whatever the server says it is; the empty string is one too. A list that does not
//! end, ends here: at a cursor that was there before, and at the bounds.

use std::collections::HashSet;

use super::headers::faulty_headers;
use crate::catalog::{Definition, DefinitionKind, canonical_hash};
use crate::json::{Kind, Raw};

/// Longest name, URI or cursor.
const NAME_BYTES_MAX: usize = 4096;
const CURSOR_BYTES_MAX: usize = 16 * 1024;
/// Pages of one list.
const PAGES_MAX: usize = 1000;
/// What is said about one list.
const NOTES_MAX: usize = 20;

/// How much of a server's lists is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListingLimits {
    /// Entries of one list.
    pub entries_max: usize,
    /// Bytes of the entries of one list.
    pub bytes_max: usize,
}

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPage {
    /// At this cursor.
    At(Box<str>),
    /// Nowhere.
    End,
}

/// One list, page by page.
#[derive(Debug)]
pub struct Listing {
    kind: DefinitionKind,
    limits: ListingLimits,
    is_modern: bool,
    definitions: Vec<Definition>,
    names: HashSet<Box<str>>,
    cursors: HashSet<Box<str>>,
    pages: usize,
    bytes: usize,
    notes: Vec<String>,
    is_full: bool,
}

impl Listing {
    /// The list of a kind of a server of this era.
    pub fn new(kind: DefinitionKind, is_modern: bool, limits: ListingLimits) -> Self {
        Self {
            kind,
            limits,
            is_modern,
            definitions: Vec::new(),
            names: HashSet::new(),
            cursors: HashSet::new(),
            pages: 0,
            bytes: 0,
            notes: Vec::new(),
            is_full: false,
        }
    }

    /// The method that lists it.
    pub fn method(&self) -> &'static str {
        match self.kind {
            DefinitionKind::Tool => "tools/list",
            DefinitionKind::Prompt => "prompts/list",
            DefinitionKind::Resource => "resources/list",
            DefinitionKind::ResourceTemplate => "resources/templates/list",
        }
    }

    /// How many bytes its entries have.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it holds, and what was left out and why.
    pub fn finish(self) -> (Vec<Definition>, Vec<String>) {
        (self.definitions, self.notes)
    }

    /// Takes in a page.
    ///
    /// # Errors
    /// It is none.
    pub fn page(&mut self, result: Raw<'_>) -> Result<NextPage, &'static str> {
        let (list, _) = self.keys();
        let Some(entries) = result.get(list).filter(|list| list.kind() == Kind::Array) else {
            return Err("its list is no list");
        };
        for entry in entries.items() {
            self.entry(entry);
            if self.is_full {
                return Ok(NextPage::End);
            }
        }
        self.pages += 1;
        let cursor = result.get("nextCursor").filter(|cursor| !cursor.is_null());
        let Some(cursor) = cursor else { return Ok(NextPage::End) };
        let cursor = cursor.as_str().filter(|cursor| cursor.len() <= CURSOR_BYTES_MAX);
        let Some(cursor) = cursor else { return Err("the cursor of its list is no text") };
        let cursor: Box<str> = cursor.into();
        if self.pages == PAGES_MAX {
            self.note(format!("more than {PAGES_MAX} pages: what follows is left out"));
            return Ok(NextPage::End);
        }
        if !self.cursors.insert(cursor.clone()) {
            self.note("a cursor leads back to where the list was: it ends there".to_owned());
            return Ok(NextPage::End);
        }
        Ok(NextPage::At(cursor))
    }

    /// Of the list in a result, and of the name in an entry.
    fn keys(&self) -> (&'static str, &'static str) {
        match self.kind {
            DefinitionKind::Tool => ("tools", "name"),
            DefinitionKind::Prompt => ("prompts", "name"),
            DefinitionKind::Resource => ("resources", "uri"),
            DefinitionKind::ResourceTemplate => ("resourceTemplates", "uriTemplate"),
        }
    }

    fn entry(&mut self, entry: Raw<'_>) {
        let (_, key) = self.keys();
        let name = entry.get(key).and_then(Raw::as_str);
        let name = name.filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX);
        let Some(name) = name else {
            self.note(format!("an entry without a usable {key} is left out"));
            return;
        };
        if self.names.contains(&*name) {
            self.note(format!("{} stands there twice: the first counts", shown(&name)));
            return;
        }
        if self.kind == DefinitionKind::Tool
            && let Err(fault) = self.check_tool(entry)
        {
            self.note(format!("{} is left out: {fault}", shown(&name)));
            return;
        }
        let bytes = entry.text().len();
        let ListingLimits { entries_max, bytes_max } = self.limits;
        if self.definitions.len() == entries_max || self.bytes + bytes > bytes_max {
            self.is_full = true;
            self.note(format!(
                "more than {entries_max} entries or {bytes_max} bytes \
                 (downstream.mcp.list_entries_max, list_bytes_max): what follows is left out"
            ));
            return;
        }
        self.bytes += bytes;
        let name: Box<str> = name.into();
        self.names.insert(name.clone());
        let (json, hash) = (entry.to_owned(), canonical_hash(entry));
        self.definitions.push(Definition { kind: self.kind, name, json, hash });
    }

    fn check_tool(&self, entry: Raw<'_>) -> Result<(), String> {
        let schema = entry.get("inputSchema").filter(|schema| schema.kind() == Kind::Object);
        let Some(schema) = schema else { return Err("it has no inputSchema".to_owned()) };
        // MCP 2026-07-28, custom headers from tool parameters: clients must not list such a tool.
        if self.is_modern
            && schema.text().contains("x-mcp-header")
            && let Some(fault) = faulty_headers(schema)
        {
            return Err(fault);
        }
        Ok(())
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(format!("{}: {note}", self.method()));
        }
    }
}

fn shown(name: &str) -> String {
    format!("{:?}", &name[..name.floor_char_boundary(100)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::OwnedRaw;

    const LIMITS: ListingLimits = ListingLimits { entries_max: 5, bytes_max: 1000 };

    fn page(listing: &mut Listing, text: &str) -> Result<NextPage, &'static str> {
        listing.page(OwnedRaw::parse(text.as_bytes()).unwrap().as_raw())
    }

    fn prompts() -> Listing {
        Listing::new(DefinitionKind::Prompt, false, LIMITS)
    }

    #[test]
    fn pages_are_followed_and_an_empty_cursor_is_one() {
        let mut listing = prompts();
        let first = page(&mut listing, r#"{"prompts":[{"name":"a"}],"nextCursor":""}"#);
        assert_eq!(first, Ok(NextPage::At("".into())));
        let second = page(&mut listing, r#"{"prompts":[{"name":"b"}],"nextCursor":null}"#);
        assert_eq!(second, Ok(NextPage::End));
        let (definitions, notes) = listing.finish();
        let names: Vec<&str> = definitions.iter().map(|one| &*one.name).collect();
        assert_eq!((names, notes.len()), (vec!["a", "b"], 0));
        assert_eq!(definitions[0].json.as_raw().text(), r#"{"name":"a"}"#);
        assert_ne!(definitions[0].hash, definitions[1].hash);
    }

    #[test]
    fn a_list_that_does_not_end_ends_here() {
        let mut circle = prompts();
        assert!(matches!(
            page(&mut circle, r#"{"prompts":[],"nextCursor":"a"}"#),
            Ok(NextPage::At(_))
        ));
        assert!(matches!(
            page(&mut circle, r#"{"prompts":[],"nextCursor":"b"}"#),
            Ok(NextPage::At(_))
        ));
        assert_eq!(page(&mut circle, r#"{"prompts":[],"nextCursor":"a"}"#), Ok(NextPage::End));
        assert_eq!(circle.finish().1.len(), 1);
        let mut long = prompts();
        let ended = (0..=PAGES_MAX).find(|number| {
            let text = format!(r#"{{"prompts":[],"nextCursor":"{number}"}}"#);
            page(&mut long, &text) == Ok(NextPage::End)
        });
        assert_eq!(ended, Some(PAGES_MAX - 1));
        let mut many = prompts();
        let entries: Vec<String> = (0..6).map(|n| format!(r#"{{"name":"{n}"}}"#)).collect();
        let text = format!(r#"{{"prompts":[{}],"nextCursor":"x"}}"#, entries.join(","));
        assert_eq!(page(&mut many, &text), Ok(NextPage::End));
        assert_eq!(many.finish().0.len(), 5);
        let mut large = prompts();
        let text = format!(r#"{{"prompts":[{{"name":"a","d":"{}"}}]}}"#, "x".repeat(1000));
        assert_eq!(page(&mut large, &text), Ok(NextPage::End));
        assert!(large.finish().0.is_empty());
    }

    #[test]
    fn what_cannot_be_used_is_left_out_with_a_note() {
        let mut tools = Listing::new(DefinitionKind::Tool, true, LIMITS);
        let text = r#"{"tools":[{"name":""},{"x":1},7,{"name":"no schema"},
            {"name":"a","inputSchema":{"type":"object"}},
            {"name":"a","inputSchema":{"type":"object"}},
            {"name":"h","inputSchema":{"properties":{"p":{"type":"number","x-mcp-header":"P"}}}}]}"#;
        assert_eq!(page(&mut tools, text), Ok(NextPage::End));
        let (definitions, notes) = tools.finish();
        assert_eq!((definitions.len(), notes.len()), (1, 6), "{notes:?}");
        assert!(notes.iter().all(|note| note.starts_with("tools/list: ")));
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        for text in ["{}", r#"{"prompts":{}}"#, r#"{"prompts":[],"nextCursor":7}"#] {
            assert!(page(&mut prompts(), text).is_err(), "{text}");
        }
    }
}

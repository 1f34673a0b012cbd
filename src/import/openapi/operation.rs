//! One operation of the description as a tool, or the reason why it is none.

use serde_json::Value;

use super::clean::{self, TITLE_MAX, TOOL_TEXT_MAX};
use super::connections::Connections;
use super::library::Spot;
use super::notes::Notes;
use super::parameters;
use super::schema::{Allowance, Direction};
use super::security::{Scheme, Security};
use super::templates::Template;
use super::verify;
use super::{Reader, texts};
use crate::catalog::{ApiKeyPlace, ToolMethod};
use crate::import::{Operation, OperationTool, Verdict};
use crate::mapping::{FieldRule, Location};

/// Longest name that an operation wishes, in characters.
const NAME_MAX: usize = 200;
/// Longest path, in bytes.
const PATH_BYTES_MAX: usize = 2_000;
/// Most tags of one operation.
const TAGS_MAX: usize = 20;

impl<'a> Reader<'a> {
    /// Reads one operation. `items` are the path items it stands in: the nearest first.
    pub(super) fn operation(
        &self,
        path: &str,
        method: &str,
        items: &[Spot<'a>],
        operation: Spot<'a>,
        connections: &mut Connections,
    ) -> Operation {
        let upper = method.to_ascii_uppercase();
        let wished = operation.text("operationId").map(|id| clean::line(id, NAME_MAX));
        let wished = wished.filter(|id| id.chars().any(char::is_alphanumeric));
        let mut notes = Notes::default();
        let verdict = match self.tool(path, method, items, operation, connections, &mut notes) {
            Ok(tool) => Verdict::of(tool, notes.into_vec()),
            Err(reason) => Verdict::Skipped(reason),
        };
        let tags = texts(operation.get("tags")).map(|tag| clean::line(tag, TITLE_MAX));
        Operation {
            key: format!("{upper} {}", clean::line(path, PATH_BYTES_MAX)),
            wished_name: wished.unwrap_or_else(|| name_of_path(method, path)),
            tags: tags.filter(|tag| !tag.is_empty()).take(TAGS_MAX).collect(),
            verdict,
        }
    }

    fn tool(
        &self,
        path: &str,
        method: &str,
        items: &[Spot<'a>],
        operation: Spot<'a>,
        connections: &mut Connections,
        notes: &mut Notes,
    ) -> Result<OperationTool, String> {
        let tool_method = tool_method(method)
            .ok_or_else(|| format!("no tool sends {} requests", method.to_ascii_uppercase()))?;
        if !operation.value.is_object() {
            return Err("something else stands where the operation belongs".to_owned());
        }
        let path = checked_path(path, notes)?;
        let mut holders: Vec<Spot<'a>> = items.iter().rev().copied().collect();
        holders.dedup_by_key(|spot| spot.address());
        holders.push(operation);
        let declared = self.declared(&holders, notes)?;
        let template = Template::of(&path, &declared.path_names())?;
        let mut allowance = Allowance::new(Direction::Input);
        let found = self.parameters(&declared, &template, &mut allowance, notes);
        let mut tool = OperationTool::new(tool_method, template.path, String::new());
        tool.fields = found.rules;
        tool.idempotency_key_header = found.idempotency_key_header;
        let rule = self.add_body(&mut tool, operation, &declared, &mut allowance, notes)?;
        tool.fields.extend(self.accept(operation));
        let mut allowance = Allowance::new(Direction::Output);
        let answer = self.answer(operation, &mut allowance, notes);
        tool.response_fields = answer.rules;
        tool.pass_unmapped = answer.pass_unmapped;
        if let Some(response) = answer.xml {
            tool.xml.get_or_insert_default().response = Some(response);
        }
        tool.deprecated = operation.flag("deprecated") == Some(true);
        if tool.deprecated {
            notes.add("it is deprecated");
        }
        let security = self.security(operation);
        remove_credentials(&mut tool.fields, &security, notes);
        verify::settle(&mut tool, notes)?;
        (tool.title, tool.description) = told(operation, items, &tool, &rule);
        let mut servers = vec![operation];
        servers.extend(items);
        let mut server = self.server(&servers);
        server.notes.extend(security.of_connection.iter().cloned());
        tool.connection = connections.of(server, &security)?;
        security.notes.iter().for_each(|note| notes.add(note));
        if security.is_open && self.has_schemes() {
            notes.add("it asks for no credentials");
        }
        Ok(tool)
    }

    /// Adds the fields of the body; gives what they have to keep to together.
    fn add_body(
        &self,
        tool: &mut OperationTool,
        operation: Spot<'a>,
        declared: &parameters::Declared<'a>,
        allowance: &mut Allowance,
        notes: &mut Notes,
    ) -> Result<String, String> {
        let is_bodiless = matches!(tool.method, ToolMethod::Get | ToolMethod::Head);
        let body = match self.body(operation, declared, allowance, notes) {
            Ok(Some(body)) => body,
            Ok(None) => return Ok(String::new()),
            Err(_) if is_bodiless => {
                notes.add("requests of this method have no body; the described one is left out");
                return Ok(String::new());
            }
            Err(reason) => return Err(reason),
        };
        if is_bodiless {
            let is_needed = body.is_required || body.rules.iter().any(|rule| rule.required);
            if is_needed {
                let method = tool.method.as_str();
                return Err(format!("it demands a body, which {method} requests do not have"));
            }
            notes.add("requests of this method have no body; the described one is left out");
            return Ok(String::new());
        }
        if body.rules.is_empty() {
            notes.add("its body has no members that can be given; none is sent");
            return Ok(String::new());
        }
        tool.body_format = body.format;
        tool.body_content_type = body.content_type;
        tool.requires = body.requires;
        if let Some(request) = body.xml {
            tool.xml.get_or_insert_default().request = Some(request);
        }
        tool.fields.extend(body.rules);
        Ok(body.rule)
    }

    fn has_schemes(&self) -> bool {
        let schemes = match self.root.get("components") {
            Some(components) => components.get("securitySchemes"),
            None => self.root.get("securityDefinitions"),
        };
        schemes.and_then(Value::as_object).is_some_and(|schemes| !schemes.is_empty())
    }
}

/// Title and description.
fn told(
    operation: Spot<'_>,
    items: &[Spot<'_>],
    tool: &OperationTool,
    rule: &str,
) -> (Option<String>, String) {
    let said = |word: &str| {
        let own = operation.text(word).filter(|text| !text.trim().is_empty());
        own.or_else(|| items.iter().find_map(|item| item.text(word)))
    };
    let title = said("summary").map(|text| clean::line(text, TITLE_MAX));
    let title = title.filter(|title| !title.is_empty());
    let text = said("description").map(|text| clean::lines(text, TOOL_TEXT_MAX));
    let text = text.unwrap_or_default();
    let plain = |text: &str| text.trim_end_matches('.').to_lowercase();
    let mut parts: Vec<String> = Vec::new();
    if let Some(title) = &title
        && !plain(&text).starts_with(&plain(title))
    {
        parts.push(title.clone());
    }
    parts.extend([text, rule.to_owned()]);
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        parts.push(format!("{} {}", tool.method.as_str(), tool.path));
    }
    (title, parts.join("\n\n"))
}

fn tool_method(method: &str) -> Option<ToolMethod> {
    Some(match method {
        "get" => ToolMethod::Get,
        "head" => ToolMethod::Head,
        "post" => ToolMethod::Post,
        "put" => ToolMethod::Put,
        "patch" => ToolMethod::Patch,
        "delete" => ToolMethod::Delete,
        _ => return None,
    })
}

/// The path as far as it is sent.
fn checked_path(path: &str, notes: &mut Notes) -> Result<String, String> {
    if path.len() > PATH_BYTES_MAX {
        return Err(format!("its path is longer than {PATH_BYTES_MAX} bytes"));
    }
    let sent = match path.split_once('#') {
        Some((sent, _)) => {
            notes.add(
                "what stands behind `#` in its path only tells it from others; it is not sent",
            );
            sent
        }
        None => path,
    };
    let sent = sent.trim();
    if sent.starts_with('/') {
        return Ok(sent.to_owned());
    }
    notes.add("its path does not start with `/`; one is put before it");
    Ok(format!("/{sent}"))
}

/// Arguments that are the credential itself: the connection sends it.
fn remove_credentials(fields: &mut Vec<FieldRule>, security: &Security, notes: &mut Notes) {
    for demand in &security.demands {
        let Scheme::ApiKey { place, name } = &demand.scheme else { continue };
        let is_key = |rule: &FieldRule| {
            let same = &rule.source_field_name == name;
            match place {
                ApiKeyPlace::Header => {
                    rule.location == Location::Header
                        && rule.source_field_name.eq_ignore_ascii_case(name)
                }
                ApiKeyPlace::Query => rule.location == Location::Query && same,
                ApiKeyPlace::Cookie => rule.location == Location::Cookie && same,
            }
        };
        let before = fields.len();
        fields.retain(|rule| !is_key(rule));
        if fields.len() < before {
            let name = clean::quoted(name);
            notes.add(format!("{name} is the credential and no argument"));
        }
    }
}

/// `get_pets_by_petId` for `GET /pets/{petId}`.
fn name_of_path(method: &str, path: &str) -> String {
    let mut name = method.to_owned();
    for segment in path.split(['/', '#', '?', '&', '=']).filter(|segment| !segment.is_empty()) {
        for (index, part) in segment.split(['{', '}']).enumerate() {
            let words: Vec<&str> = part
                .split(|character: char| !character.is_alphanumeric() && character != '_')
                .filter(|word| !word.is_empty())
                .collect();
            if words.is_empty() {
                continue;
            }
            name.push_str(if index % 2 == 1 { "_by_" } else { "_" });
            name.push_str(&words.join("_"));
        }
    }
    clean::line(&name, NAME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_method_and_path() {
        for (method, path, expected) in [
            ("get", "/pets/{petId}", "get_pets_by_petId"),
            ("post", "/", "post"),
            ("get", "/a.b/{x}-{y}:go", "get_a_b_by_x_by_y_go"),
            ("get", "/größe abrufen", "get_größe_abrufen"),
        ] {
            assert_eq!(name_of_path(method, path), expected, "{path}");
        }
    }
}

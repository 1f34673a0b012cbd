//! From the tool of a description to one of the catalog.

use std::collections::HashSet;

use super::parts::Parts;
use super::{Operation, OperationTool, Target};
use crate::catalog::{ConnectionId, DESCRIPTION_BYTES_MAX, OperationName, TITLE_BYTES_MAX, Tool};
use crate::mapping::ResultBudget;

/// The catalog's tool, with what the import remembers of it. What had to be cut is told in `notes`.
pub(super) fn tool_of(
    operation: &Operation,
    described: &OperationTool,
    name: OperationName,
    connection: Option<ConnectionId>,
    target: &Target,
    publish: bool,
    notes: &mut Vec<String>,
) -> Tool {
    let mut description = described.description.trim().to_owned();
    if description.is_empty() {
        description.clone_from(&operation.key);
    }
    if described.deprecated {
        notes.push("the description advises against it".to_owned());
        description.insert_str(0, "Deprecated. ");
    }
    let mut title = described.title.clone().filter(|title| !title.trim().is_empty());
    if cut(&mut description, DESCRIPTION_BYTES_MAX) {
        notes.push(format!("its description is cut to {DESCRIPTION_BYTES_MAX} bytes"));
    }
    if title.as_mut().is_some_and(|title| cut(title, TITLE_BYTES_MAX)) {
        notes.push(format!("its title is cut to {TITLE_BYTES_MAX} bytes"));
    }
    let mut tool = Tool {
        tenant: target.tenant.clone(),
        toolset: target.toolset.clone(),
        name,
        title,
        description,
        exposed_name: None,
        method: Some(described.method),
        path: described.path.clone(),
        connection,
        body_format: described.body_format,
        body_content_type: described.body_content_type.clone(),
        requires: described.requires.clone(),
        soap: described.soap.clone(),
        xml: described.xml.clone(),
        polling: None,
        idempotency_key_header: described.idempotency_key_header.clone(),
        imported: None,
        fields: described.fields.clone(),
        response_fields: described.response_fields.clone(),
        pass_unmapped: described.pass_unmapped,
        annotations: described.annotations,
        total_timeout_ms: None,
        side_effect: described.side_effect,
        side_effect_by: None,
        confirmation_recommended: None,
        confirm: None,
        budget: ResultBudget::default(),
        log_payloads: false,
        redact: Vec::new(),
        limit: None,
        weight: None,
        enabled: publish,
    };
    tool.imported = Some(Parts::of(&tool).remember(&operation.key));
    tool
}

/// Cuts a text where it is too long; tells whether it was.
pub(super) fn cut(text: &mut String, bytes_max: usize) -> bool {
    const MARK: &str = "...";
    let is_long = text.len() > bytes_max;
    if is_long {
        text.truncate(text.floor_char_boundary(bytes_max - MARK.len()));
        text.push_str(MARK);
    }
    is_long
}

/// The places of operations whose key an earlier one has.
pub(super) fn repeated(operations: &[Operation]) -> HashSet<usize> {
    let mut seen = HashSet::new();
    let places = operations.iter().enumerate();
    places.filter(|(_, one)| !seen.insert(one.key.as_str())).map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let mut text = "ä".repeat(10);
        assert!(!cut(&mut text, 20));
        assert!(cut(&mut text, 12));
        assert_eq!(text, "ääää...");
    }
}

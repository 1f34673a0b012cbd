//! The appliance's own resource templates.

use super::resources::JSON_MIME_TYPE;
use crate::catalog::{ToolShape, View};
use crate::json::write_string;

/// A resource template of the appliance.
#[derive(Debug)]
pub(super) struct OwnTemplate {
    pub(super) uri_template: &'static str,
    name: &'static str,
    title: &'static str,
    description: &'static str,
}

const OWN: [OwnTemplate; 2] = [
    OwnTemplate {
        uri_template: "runtime://tools/{name}/schema",
        name: "tool_schema",
        title: "Schema of a tool",
        description: "The full input and output schemas of a tool, by the tool's name",
    },
    OwnTemplate {
        uri_template: "runtime://results/{id}",
        name: "result_rest",
        title: "Rest of a result",
        description: "The rest of a tool's result that was too large to be given at once, by the id \
                      the result named",
    },
];

/// Those of a view. Without tools there is nothing to fill one with.
pub(super) fn own(view: &View) -> &'static [OwnTemplate] {
    if view.tools().is_empty() { &[] } else { &OWN }
}

impl OwnTemplate {
    /// Writes its entry of `resources/templates/list`.
    pub(super) fn write(&self, out: &mut Vec<u8>, shape: ToolShape) {
        let title = (shape >= ToolShape::V20250618).then_some(("title", self.title));
        let said = [("uriTemplate", self.uri_template), ("name", self.name)];
        let rest = [("description", self.description), ("mimeType", JSON_MIME_TYPE)];
        out.push(b'{');
        for (index, (key, text)) in said.into_iter().chain(title).chain(rest).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_string(out, key);
            out.push(b':');
            write_string(out, text);
        }
        out.push(b'}');
    }
}

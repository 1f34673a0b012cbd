//! Catalogs for the tests of all rooms, from what an operator would write.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::{
    Definition, DefinitionKind, Definitions, Entities, Snapshot, View, canonical_hash, files,
};
use crate::json::OwnedRaw;

/// `acme/desk` with the tools about the appliance itself.
pub(crate) const APPLIANCE: &str = r#"
[[tenant]]
id = "acme"
[[client_application]]
tenant = "acme"
id = "desk"
title = "The \"desk\""
[[toolset]]
tenant = "acme"
id = "appliance"
kind = "builtin"
[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "appliance"
"#;

/// `acme/desk` with a toolset of an API, still without tools.
pub(crate) fn api(toolset: &str) -> String {
    format!(
        r#"
[[tenant]]
id = "acme"
[[client_application]]
tenant = "acme"
id = "desk"
[[connection]]
tenant = "acme"
id = "api"
base_url = "http://127.0.0.1:9"
[[toolset]]
tenant = "acme"
id = "{toolset}"
kind = "rest"
connection = "api"
[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "{toolset}"
"#
    )
}

/// A tool of a toolset of `acme`.
pub(crate) fn tool(toolset: &str, name: &str) -> String {
    format!(
        r#"
[[tool]]
tenant = "acme"
toolset = "{toolset}"
name = "{name}"
description = "d"
method = "GET"
path = "/{name}"
"#
    )
}

/// `acme/desk` with the operation `order` of a SOAP service at `base_url`, whose connection has
/// these extra lines. The soap of the tool is of this `version`.
pub(crate) fn soap_service(base_url: &str, connection: &str, version: &str) -> String {
    format!(
        r#"
[[tenant]]
id = "acme"
egress_allowances = ["127.0.0.0/8"]
[[client_application]]
tenant = "acme"
id = "desk"
[[connection]]
tenant = "acme"
id = "shop"
base_url = "{base_url}"
{connection}
[[toolset]]
tenant = "acme"
id = "shop"
kind = "soap"
connection = "shop"
[toolset.xml_types."{{urn:shop}}Order"]
content = [
  {{ element = {{ name = "{{urn:shop}}sku", member = "sku", holds = {{ value = "string" }} }} }},
  {{ element = {{ name = "{{urn:shop}}count", member = "count", holds = {{ value = "integer" }} }} }},
]
[toolset.xml_types."{{urn:shop}}Placed"]
content = [
  {{ element = {{ name = "{{urn:shop}}number", member = "number", holds = {{ value = "integer" }} }} }},
  {{ element = {{ name = "{{urn:shop}}bill", member = "bill", holds = {{ value = "base64" }}, repeats = true }} }},
]
[[tool]]
tenant = "acme"
toolset = "shop"
name = "order"
description = "Orders something"
method = "POST"
path = "/"
fields = [
  {{ source_field_name = "count", type = "integer" }},
  {{ source_field_name = "sku", exposed_field_name = "article", required = true }},
]
[tool.soap]
version = "{version}"
action = "urn:shop#order"
faults = [{{ name = "{{urn:shop}}gone", member = "gone", holds = {{ value = "string" }} }}]
[tool.soap.input.body.wrapped]
name = "{{urn:shop}}order"
member = "order"
holds = {{ type = "{{urn:shop}}Order" }}
[tool.soap.output.body.wrapped]
name = "{{urn:shop}}orderResponse"
member = "orderResponse"
holds = {{ type = "{{urn:shop}}Placed" }}
[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "shop"
"#
    )
}

/// What an MCP server says of one thing it offers.
pub(crate) fn definition(kind: DefinitionKind, said: &Value) -> Definition {
    let key = match kind {
        DefinitionKind::Tool | DefinitionKind::Prompt => "name",
        DefinitionKind::Resource => "uri",
        DefinitionKind::ResourceTemplate => "uriTemplate",
    };
    let json = OwnedRaw::parse(said.to_string().as_bytes()).unwrap();
    let hash = canonical_hash(json.as_raw());
    Definition { kind, name: said[key].as_str().unwrap().into(), json, hash }
}

/// What an MCP server offers: entries of its lists.
pub(crate) fn definitions(all: &[(DefinitionKind, Value)]) -> Arc<Definitions> {
    let all = all.iter().map(|(kind, said)| Arc::new(definition(*kind, said))).collect();
    Arc::new(Definitions { all, ..Definitions::default() })
}

/// What a good TOML file declares.
pub(crate) fn entities(toml: &str) -> Entities {
    let (entities, problems) = files::read_text(Path::new("a.toml"), toml);
    assert!(problems.is_empty(), "{problems:?}\n{toml}");
    entities
}

/// `older` with what is written in `text` otherwise: what is the same stays the very same value.
pub(crate) fn changed(older: &Entities, text: &str) -> Entities {
    let mut newer = entities(text);
    macro_rules! share {
        ($($list:ident),*) => {$(
            for entry in &mut newer.$list {
                let same = older.$list.iter().find(|known| *known.value == *entry.value);
                if let Some(same) = same {
                    entry.value = Arc::clone(&same.value);
                }
            }
        )*};
    }
    share!(tenants, client_applications, connections, toolsets, tools, assignments);
    newer
}

/// A compiled snapshot.
pub(crate) fn snapshot(toml: &str) -> Snapshot {
    Snapshot::compile(&entities(toml), 1).unwrap()
}

/// The view of `acme/desk`.
pub(crate) fn view(toml: &str) -> Arc<View> {
    view_of("desk", toml)
}

/// The view of this client application of `acme`.
pub(crate) fn view_of(client_application: &str, toml: &str) -> Arc<View> {
    Arc::clone(snapshot(toml).view("acme", client_application).unwrap())
}

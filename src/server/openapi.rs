//! The REST facade of a client application as an OpenAPI 3.1 document.
//!
//! Made from the tools of the view, with their schemas in full: JSON Schema of the dialect that
//! OpenAPI 3.1 has. Made once for a view, on a worker, and kept while there is room.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::{
    catalog::{ClientApplicationId, TenantId, ToolShape, View, ViewTool},
    json::{write_string, write_value},
};

/// Bytes of all descriptions kept; they can be made again.
const KEPT_BYTES_MAX: usize = 64 << 20;

type Owner = (TenantId, ClientApplicationId);
/// Of which view, and its text.
type Description = (Weak<View>, Arc<[u8]>);

/// Descriptions that were asked for, each with the view it is of.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    kept: Mutex<HashMap<Owner, Description>>,
}

impl Descriptions {
    /// The description of exactly this view.
    pub(crate) fn find(&self, view: &Arc<View>) -> Option<Arc<[u8]>> {
        let kept = self.kept.lock();
        let (of, text) = kept.get(&owner(view))?;
        std::ptr::eq(of.as_ptr(), Arc::as_ptr(view)).then(|| text.clone())
    }

    /// Keeps a description, in place of one of an older view.
    pub(crate) fn keep(&self, view: &Arc<View>, text: Vec<u8>) -> Arc<[u8]> {
        let text: Arc<[u8]> = text.into();
        let mut kept = self.kept.lock();
        kept.remove(&owner(view));
        let bytes: usize = kept.values().map(|(_, text)| text.len()).sum();
        if bytes + text.len() > KEPT_BYTES_MAX {
            kept.clear();
        }
        if text.len() <= KEPT_BYTES_MAX {
            kept.insert(owner(view), (Arc::downgrade(view), text.clone()));
        }
        text
    }
}

fn owner(view: &View) -> Owner {
    (view.tenant.clone(), view.client_application.clone())
}

/// Writes the document. `base` is the public URL without a slash at its end; empty where none is
/// set, and then paths hold for the server the document came from.
pub(crate) fn describe(view: &View, base: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096 + 2 * view.tools_list(ToolShape::V20251125).len());
    put(&mut out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":");
    let (tenant, client) = (view.tenant.as_str(), view.client_application.as_str());
    write_string(&mut out, view.title.as_deref().unwrap_or(client));
    put(&mut out, ",\"version\":\"1\"");
    if let Some(text) = &view.instructions {
        put(&mut out, ",\"description\":");
        write_string(&mut out, text);
    }
    put(&mut out, "},\"servers\":[{\"url\":");
    // Ids are of characters that a path has no need to encode.
    write_string(&mut out, &format!("{base}/runtime/{tenant}/{client}"));
    put(&mut out, "}],\"security\":");
    put(&mut out, if view.open { "[{},{\"key\":[]}]" } else { "[{\"key\":[]}]" });
    put(&mut out, ",\"paths\":{\"/tools\":");
    put(&mut out, LIST);
    for tool in view.tools() {
        out.push(b',');
        write_tool(&mut out, tool);
    }
    put(&mut out, "},\"components\":");
    put(&mut out, COMPONENTS);
    out.push(b'}');
    out
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// The title under `title_key`, and the description.
fn write_texts(out: &mut Vec<u8>, tool: &ViewTool, title_key: &str) {
    if let Some(title) = &tool.title {
        put(out, ",");
        write_string(out, title_key);
        put(out, ":");
        write_string(out, title);
    }
    put(out, ",\"description\":");
    write_string(out, &tool.description);
}

/// The path of one tool.
fn write_tool(out: &mut Vec<u8>, tool: &ViewTool) {
    write_string(out, &format!("/tools/{}", tool.name));
    put(out, ":{\"get\":{\"operationId\":");
    // No tool has a name with a point in it.
    write_string(out, &format!("{}.description", tool.name));
    put(out, DESCRIPTION);
    put(out, "},\"post\":{\"operationId\":");
    write_string(out, tool.name.as_str());
    write_texts(out, tool, "summary");
    put(out, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":");
    write_value(out, tool.input_schema());
    put(out, "}}},\"responses\":{\"200\":{\"description\":\"What the tool came to.\",");
    put(out, "\"content\":{\"application/json\":{\"schema\":");
    match tool.output_schema() {
        Some(schema) => {
            put(
                out,
                "{\"allOf\":[{\"$ref\":\"#/components/schemas/Result\"},{\"type\":\"object\",",
            );
            put(out, "\"required\":[\"structuredContent\"],\"properties\":{\"structuredContent\":");
            write_value(out, schema);
            put(out, "}}]}");
        }
        None => put(out, "{\"$ref\":\"#/components/schemas/Result\"}"),
    }
    put(out, "}}},");
    put(out, FAILURES);
    put(out, "}}}");
}

const LIST: &str = concat!(
    r#"{"get":{"operationId":"list_tools_of_this_client","summary":"List the tools","responses":{"#,
    r#""200":{"description":"The tools, as MCP lists them.","content":{"application/json":{"#,
    r#""schema":{"type":"object","required":["tools"],"properties":{"tools":{"type":"array","#,
    r#""items":{"type":"object"}}}}}}}}}}"#
);

const DESCRIPTION: &str = concat!(
    r##","summary":"All of this tool, with its full schemas","responses":{"200":{"##,
    r##""$ref":"#/components/responses/Description"},"401":{"$ref":"#/components/responses/Failed"},"##,
    r##""404":{"$ref":"#/components/responses/Failed"},"429":{"$ref":"#/components/responses/Limited"}}"##
);

const FAILURES: &str = concat!(
    r##""400":{"$ref":"#/components/responses/Failed"},"401":{"$ref":"#/components/responses/Failed"},"##,
    r##""403":{"$ref":"#/components/responses/Failed"},"404":{"$ref":"#/components/responses/Failed"},"##,
    r##""422":{"$ref":"#/components/responses/Failed"},"429":{"$ref":"#/components/responses/Limited"},"##,
    r##""502":{"$ref":"#/components/responses/Failed"},"503":{"$ref":"#/components/responses/Limited"},"##,
    r##""504":{"$ref":"#/components/responses/Failed"}"##
);

const COMPONENTS: &str = concat!(
    r#"{"securitySchemes":{"key":{"type":"http","scheme":"bearer"}},"schemas":{"Result":{"#,
    r#""type":"object","required":["status","isError","content"],"properties":{"#,
    r#""executionId":{"type":"string","format":"uuid","description":"Names this call in log and audit."},"#,
    r#""status":{"type":"string","description":"`ok`, or what went wrong."},"#,
    r#""downstreamStatus":{"type":"integer","description":"What the API answered with."},"#,
    r#""isError":{"type":"boolean"},"structuredContent":{"type":"object"},"#,
    r#""content":{"type":"array","items":{"type":"object","required":["type"],"properties":{"#,
    r#""type":{"type":"string"},"text":{"type":"string"}}}}}}},"responses":{"#,
    r##""Description":{"description":"The tool.","content":{"application/json":{"schema":{"##,
    r##""type":"object","required":["name","description","toolset","inputSchema","schemaVersion","##,
    r##""schemaHash","sideEffect","confirmationRecommended"],"properties":{"name":{"##,
    r##""type":"string"},"title":{"type":"string"},"description":{"type":"string"},"toolset":{"##,
    r##""type":"string"},"inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"##,
    r##""schemaVersion":{"type":"string"},"schemaHash":{"type":"string"},"sideEffect":{"##,
    r##""enum":["read","write","destructive"]},"confirmationRecommended":{"type":"boolean"}}}}}},"##,
    r##""Failed":{"description":"`status` and the text say what went wrong.","content":{"##,
    r##""application/json":{"schema":{"$ref":"#/components/schemas/Result"}}}},"##,
    r##""Limited":{"description":"Too much at a time; `Retry-After` says when to come back.","##,
    r##""headers":{"Retry-After":{"schema":{"type":"integer"}}},"content":{"##,
    r##""application/json":{"schema":{"$ref":"#/components/schemas/Result"}}}}}}"##
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::fixture;

    fn view() -> Arc<View> {
        fixture::view(fixture::APPLIANCE)
    }

    #[test]
    fn every_tool_is_a_path_and_every_reference_leads_somewhere() {
        let view = view();
        let text = describe(&view, "https://ringway.example");
        let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(document["info"]["title"], "The \"desk\"");
        assert_eq!(document["servers"][0]["url"], "https://ringway.example/runtime/acme/desk");
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.len(), 1 + view.tools().len());
        let post = &document["paths"]["/tools/list_tools"]["post"];
        assert_eq!(post["operationId"], "list_tools");
        let schema = &post["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(schema["type"], "object");
        let text = String::from_utf8(text).unwrap();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn a_description_is_kept_for_its_view_only() {
        let (one, other) = (view(), view());
        let kept = Descriptions::default();
        kept.keep(&one, vec![1]);
        assert_eq!(kept.find(&one).as_deref(), Some(&[1][..]));
        assert!(kept.find(&other).is_none());
        kept.keep(&other, vec![0; KEPT_BYTES_MAX]);
        assert!(kept.find(&one).is_none() && kept.find(&other).is_some());
    }
}

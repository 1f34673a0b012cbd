use crate::catalog::fixture::snapshot;

/// `acme/desk` with a tool `save`; more lines of the client application, the assignment, the tool.
fn remarks(client: &str, assignment: &str, tool: &str) -> Vec<String> {
    let text = format!(
        r#"
[[tenant]]
id = "acme"
[[client_application]]
tenant = "acme"
id = "desk"
{client}
[[connection]]
tenant = "acme"
id = "api"
base_url = "http://api"
[[toolset]]
tenant = "acme"
id = "shop"
kind = "rest"
connection = "api"
[[toolset]]
tenant = "acme"
id = "own"
kind = "builtin"
[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "own"
[[assignment]]
tenant = "acme"
client_application = "desk"
toolset = "shop"
{assignment}
[[tool]]
tenant = "acme"
toolset = "shop"
name = "save"
description = "Saves."
method = "POST"
path = "/"
{tool}
"#
    );
    snapshot(&text).remarks().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn one(found: &[String], part: &str) {
    assert!(found.len() == 1 && found[0].contains(part), "no {part:?} in {found:?}");
}

#[test]
fn patterns_that_fit_no_tool_are_told_with_their_place() {
    let policy = |pattern: &str| {
        format!("policy = {{ rules = [{{ effect = \"deny\", tools = [{pattern}] }}] }}")
    };
    for good in ["\"save\"", "\"shop/*\"", "\"s*\", \"*\""] {
        assert_eq!(remarks(&policy(good), &policy(good), ""), [""; 0], "{good}");
    }
    // Denied and so hidden, but there.
    let told = remarks(&policy("\"save\", \"savee\""), "", "");
    one(&told, "policy.rules[0].tools: `savee` fits no tool that is assigned to it");
    assert!(told[0].starts_with("a.toml:4: client application acme/desk: "), "{told:?}");
    // Of the other toolset.
    let told = remarks("", &policy("\"get_status\""), "");
    one(&told, "assignment acme/desk/shop: policy.rules[0].tools: `get_status` fits no tool of");
}

#[test]
fn toolsets_that_nobody_has_are_told() {
    let more = |enabled: bool| {
        format!(
            "[[toolset]]\ntenant = \"acme\"\nid = \"spare\"\nkind = \"rest\"\nconnection = \"api\"\n\
             [[assignment]]\ntenant = \"acme\"\nclient_application = \"desk\"\ntoolset = \"spare\"\n\
             enabled = {enabled}\n"
        )
    };
    assert_eq!(remarks("", "", &more(true)), [""; 0]);
    let told = remarks("", "", &more(false));
    one(&told, "toolset acme/spare: no client application has it");
    let builtin = "[[toolset]]\ntenant = \"acme\"\nid = \"other\"\nkind = \"builtin\"\n";
    one(&remarks("", "", builtin), "toolset acme/other: no client application has it");
}

#[test]
fn favourites_that_are_none_are_told() {
    let favourites = "favourites = [\"save\", \"sav\"]\n";
    let told = remarks(&format!("{favourites}tool_listing = \"search\""), "", "");
    one(&told, "favourites: `sav` fits no tool that it is shown");
    let told = remarks(favourites, "", "");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("`sav`: only `tool_listing = \"search\"` asks"), "{told:?}");
    // Who may not see it has no favourite in it.
    let hidden = "favourites = [\"save\"]\ntool_listing = \"search\"\n\
                  policy = { rules = [{ effect = \"deny\", tools = [\"save\"] }] }";
    one(&remarks(hidden, "", ""), "favourites: `save` fits no tool");
}

/// What is remarked of a path, given rules of arguments and answers.
fn redacted(path: &str, more: &str) -> bool {
    let tool = format!(
        r#"redact = ["{path}"]
fields = [
  {{ source_field_name = "card.number" }},
  {{ source_field_name = "card.holder.name", exposed_field_name = "called" }},
  {{ source_field_name = "lines[*].sku" }},
  {{ source_field_name = "count", type = "integer" }},
  {{ source_field_name = "note" }},
  {{ source_field_name = "free", type = "object" }},
  {{ source_field_name = "q", location = "query" }},
]
{more}"#
    );
    let told = remarks("", "", &tool);
    if let Some(text) = told.first() {
        assert!(text.contains("tool acme/shop/save: redact: nothing is at"), "{told:?}");
    }
    !told.is_empty()
}

#[test]
fn paths_to_no_field_are_told() {
    let closed = r#"response_fields = [{ source_field_name = "id" }, { source_field_name = "rows[*].secret" }]"#;
    for found in [
        "$",
        "card",
        "card.number",
        "card.holder.called",
        "lines.sku",
        "lines[*].sku",
        "q",
        "free.anything.below",
        // A text may be an object's.
        "note.inner",
        "id",
        "rows.secret",
        "rows[*].secret",
    ] {
        assert!(!redacted(found, closed), "{found}");
    }
    for lost in
        ["crad", "card.nubmer", "card.holder.name", "lines.skus", "count.x", "rows.other", "result"]
    {
        assert!(redacted(lost, closed), "{lost}");
    }
}

#[test]
fn where_an_answer_may_hold_anything_nothing_is_said() {
    for open in [
        "",
        "pass_unmapped = true\nresponse_fields = [{ source_field_name = \"id\" }]",
        "response_fields = [{ source_field_name = \"id\" }, { source_field_name = \"any\", \
         schema = { type = \"object\" } }]",
        "response_fields = [{ source_field_name = \"any\", type = \"object\", \
         additional_properties = true }]",
    ] {
        assert!(!redacted("other", open), "{open}");
    }
    // Given whole, and so anything below it.
    let whole = "response_fields = [{ source_field_name = \"any\", type = \"object\" }]";
    assert!(!redacted("any.below", whole) && redacted("other", whole));
    // Rows of an answer that is an array.
    let rows = "response_fields = [{ source_field_name = \"[*].id\" }]";
    assert!(!redacted("id", rows) && !redacted("[*].id", rows) && redacted("[*].other", rows));
}

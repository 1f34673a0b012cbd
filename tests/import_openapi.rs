//! The corpus: small descriptions, each written for a fault, with what has to come of them beside
//! them. A document is `name.yaml` or `name.json`, or a folder of documents whose root is `main.*`;
//! `name.expected` is what is compared. `UPDATE_EXPECTED=1` writes what is found.

#![expect(clippy::unwrap_used, reason = "a test that cannot read its corpus has failed")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use ringway::import::{
    Description, Documents, Location, OperationTool, Options, Step, Verdict, openapi,
};
use ringway::json::guard;
use ringway::mapping::xml::{BodiesPlan, TypePlans};
use ringway::mapping::{
    BodyFormat, RequestBody, RequestPlan, ResponsePlan, Unmapped, output_schema,
};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/openapi");

/// The documents below a folder, or the one file.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = entries.flat_map(|path| files(&path)).collect();
    found.sort();
    found
}

/// Reads a case as a bundle, or as what a URL gave where the document says `x-read-from`.
fn read_case(path: &Path, options: &Options) -> Result<Description, String> {
    let base = if path.is_dir() { path } else { path.parent().unwrap() };
    let mut documents = Documents::new();
    let mut root = None;
    for file in files(path) {
        let bytes = fs::read(&file).unwrap();
        let name = file.strip_prefix(base).unwrap().to_str().unwrap().replace('\\', "/");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let said = text.lines().find_map(|line| line.split_once("x-read-from: "));
        let location = match said {
            Some((_, url)) => Location::parse(url.trim()).unwrap(),
            None => Location::bundle(&name).unwrap(),
        };
        if !path.is_dir() || name.starts_with("main.") {
            root = Some(location.clone());
        }
        documents.add(&location, bytes).unwrap();
    }
    run(documents, &root.unwrap(), options)
}

fn run(
    mut documents: Documents,
    root: &Location,
    options: &Options,
) -> Result<Description, String> {
    for _ in 0..10 {
        match openapi::read(&documents, root, options).map_err(|error| error.to_string())? {
            Step::Done(description) => return Ok(description),
            Step::Need(needed) => {
                for location in needed {
                    documents.refuse(&location, "no such file".to_owned()).unwrap();
                }
            }
        }
    }
    Err("it never ends".to_owned())
}

fn read_text(text: &str) -> Result<Description, String> {
    let mut documents = Documents::new();
    let root = Location::parse("https://docs.example.com/api/openapi.json").unwrap();
    documents.add(&root, text.as_bytes().to_vec()).unwrap();
    run(documents, &root, &Options::default())
}

/// All of a description as text.
fn shown(description: &Description) -> String {
    let mut out = String::new();
    let title = description.title.as_deref().unwrap_or("(no title)");
    let _ = writeln!(out, "{title}");
    for note in &description.notes {
        let _ = writeln!(out, "  ! {note}");
    }
    for connection in &description.connections {
        let url = connection.base_url.as_deref().unwrap_or("(nowhere)");
        let _ = writeln!(out, "connection {:?} {url}", connection.name);
        for credential in &connection.credentials {
            let _ = writeln!(out, "  {}", serde_json::to_string(credential).unwrap());
        }
        for note in &connection.notes {
            let _ = writeln!(out, "  ! {note}");
        }
    }
    for operation in &description.operations {
        let _ = write!(out, "\n{} -> {}", operation.key, operation.wished_name);
        match &operation.verdict {
            Verdict::Imported(tool) => shown_tool(&mut out, tool, &[]),
            Verdict::Noted(tool, notes) => shown_tool(&mut out, tool, notes),
            Verdict::Skipped(reason) => {
                let _ = writeln!(out, "\n  skipped: {reason}");
            }
        }
    }
    out
}

fn shown_tool(out: &mut String, tool: &OperationTool, notes: &[String]) {
    let _ = writeln!(
        out,
        "\n  {} {} (connection {})",
        tool.method.as_str(),
        tool.path,
        tool.connection
    );
    let _ = writeln!(out, "  {:?}", tool.description);
    if tool.body_format != BodyFormat::Json || tool.body_content_type.is_some() {
        let _ = writeln!(out, "  as {:?} {:?}", tool.body_format, tool.body_content_type);
    }
    if let Some(header) = &tool.idempotency_key_header {
        let _ = writeln!(out, "  key in {header}");
    }
    if let Some(bodies) = &tool.xml {
        let _ = writeln!(out, "  xml {}", serde_json::to_string(bodies).unwrap());
    }
    for requirement in &tool.requires {
        let _ = writeln!(out, "  of {}", serde_json::to_string(requirement).unwrap());
    }
    for rule in &tool.fields {
        let _ = writeln!(out, "  in {}", serde_json::to_string(rule).unwrap());
    }
    for rule in &tool.response_fields {
        let _ = writeln!(out, "  out {}", serde_json::to_string(rule).unwrap());
    }
    if tool.pass_unmapped {
        let _ = writeln!(out, "  out what is not described");
    }
    for note in notes {
        let _ = writeln!(out, "  ! {note}");
    }
}

/// The types of XML bodies, whose elements are in the order of the document.
fn shown_types(description: &Description) -> String {
    let mut out = String::new();
    for (name, declared) in &description.xml_types.0 {
        let _ = writeln!(out, "\ntype {name}");
        for attribute in &declared.attributes {
            let _ = writeln!(out, "  @ {}", serde_json::to_string(attribute).unwrap());
        }
        for particle in &declared.content {
            let _ = writeln!(out, "  {}", serde_json::to_string(particle).unwrap());
        }
    }
    out
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(CORPUS).unwrap().map(|entry| entry.unwrap().path());
    let is_case = |path: &PathBuf| path.extension().is_none_or(|extension| extension != "expected");
    let mut cases: Vec<PathBuf> = entries.filter(is_case).collect();
    cases.sort();
    cases
}

#[test]
fn every_case_comes_out_as_expected() {
    let mut differing = Vec::new();
    for case in cases() {
        let found = match read_case(&case, &Options::default()) {
            Ok(description) => shown(&description) + &shown_types(&description),
            Err(error) => format!("refused: {error}\n"),
        };
        let expected = case.with_extension("expected");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&expected, &found).unwrap();
        } else if fs::read_to_string(&expected).unwrap_or_default() != found {
            differing.push(format!("{}:\n{found}", case.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// A tree as text, the members of its objects from last to first.
fn written_backwards(tree: &Value, out: &mut String) {
    match tree {
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().rev().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                let _ = write!(out, "{}:", Value::from(name.as_str()));
                written_backwards(member, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                written_backwards(item, out);
            }
            out.push(']');
        }
        single => out.push_str(&single.to_string()),
    }
}

#[test]
fn the_order_of_a_document_changes_nothing() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| case.is_file()) {
        let text = fs::read_to_string(case).unwrap();
        let Ok(tree) = serde_saphyr::from_str::<Value>(&text) else { continue };
        let mut backwards = String::new();
        written_backwards(&tree, &mut backwards);
        match (read_text(&tree.to_string()), read_text(&backwards)) {
            (Ok(one), Ok(other)) => assert_eq!(shown(&one), shown(&other), "{}", case.display()),
            (one, other) => assert_eq!(one.is_err(), other.is_err(), "{}", case.display()),
        }
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn every_tool_compiles() {
    let mut tools = 0;
    for case in cases() {
        let Ok(description) = read_case(&case, &Options::default()) else { continue };
        let types = Arc::new(TypePlans::compile(&description.xml_types).unwrap());
        for tool in description.operations.iter().filter_map(|one| one.verdict.tool()) {
            let body = RequestBody {
                format: tool.body_format,
                content_type: tool.body_content_type.as_deref(),
                requires: &tool.requires,
            };
            RequestPlan::compile(tool.method.as_str(), &tool.path, &tool.fields, body).unwrap();
            let unmapped = if tool.pass_unmapped { Unmapped::Keep } else { Unmapped::Drop };
            ResponsePlan::compile(&tool.response_fields, unmapped).unwrap();
            output_schema(&tool.response_fields).unwrap();
            assert!(tool.connection < description.connections.len());
            assert!(!tool.description.is_empty());
            if let Some(bodies) = &tool.xml {
                BodiesPlan::compile(&types, bodies).unwrap();
            }
            tools += 1;
        }
    }
    assert!(tools > 100, "{tools}");
}

/// The root that clients see is a plain object; the rule is kept all the same.
#[test]
fn a_union_at_the_root_of_a_body_is_checked() {
    let case = Path::new(CORPUS).join("unions.yaml");
    let description = read_case(&case, &Options::default()).unwrap();
    let mut operations = description.operations.iter();
    let found = operations.find(|one| one.wished_name == "eitherRequired").unwrap();
    let tool = found.verdict.tool().unwrap();
    let body = RequestBody { requires: &tool.requires, ..RequestBody::default() };
    let plan = RequestPlan::compile("POST", &tool.path, &tool.fields, body).unwrap();
    let root = plan.input_schema();
    assert!(["oneOf", "anyOf", "allOf"].iter().all(|word| root.get(*word).is_none()), "{root}");
    let outcome = |text: &str| {
        let arguments = guard(text.as_bytes()).unwrap();
        plan.validate(Some(arguments.root())).map(drop).map_err(|error| error.to_string())
    };
    let neither = outcome(r#"{"c":"x"}"#).unwrap_err();
    assert!(neither.contains("\"a\"") && neither.contains("\"b\""), "{neither}");
    assert_eq!(outcome(r#"{"c":"x","a":"y"}"#), Ok(()));
    assert_eq!(outcome(r#"{"c":"x","b":"y"}"#), Ok(()));
    assert!(outcome(r#"{"c":"x","a":"y","b":"z"}"#).is_err());
}

#[test]
fn a_server_is_picked_by_place_url_or_description() {
    let case = Path::new(CORPUS).join("servers-two.yaml");
    let url = |options: Options| {
        read_case(&case, &options).unwrap().connections[0].base_url.clone().unwrap()
    };
    let (first, second) = ("https://api.example.com/v1", "https://sandbox.example.com/v1");
    for (wished, expected) in [
        ("0", first),
        ("1", second),
        ("7", first),
        ("sandbox", second),
        ("https://sandbox.example.com/v1/", second),
        ("nobody", first),
    ] {
        let options = Options { server: Some(wished.to_owned()), ..Options::default() };
        assert_eq!(url(options), expected, "{wished}");
    }
    let case = Path::new(CORPUS).join("servers-variables.yaml");
    for (wished, expected) in [
        ("https://us.example.com:8443/v1/", "https://us.example.com:8443/v1"),
        ("https://eu.example.com:8443/v1", "https://eu.example.com:8443/v1"),
        ("https://asia.example.com:8443/v1", "https://eu.example.com:8443/v1"),
        ("https://us.example.com:8443/v1/more", "https://eu.example.com:8443/v1"),
    ] {
        let options = Options { server: Some(wished.to_owned()), ..Options::default() };
        let found = read_case(&case, &options).unwrap().connections[0].base_url.clone();
        assert_eq!(found.as_deref(), Some(expected), "{wished}");
    }
    let base_url = Some("https://test.example.com/x/".to_owned());
    assert_eq!(url(Options { base_url, ..Options::default() }), "https://test.example.com/x");
}

/// Each operation refers to what unrolls to 10^12 values.
#[test]
fn references_that_multiply_are_bounded() {
    let operations: Vec<String> = (0..50)
        .map(|number| {
            format!(
                "\"/{number}\":{{\"post\":{{\"requestBody\":{{\"required\":true,\"content\":\
                 {{\"application/json\":{{\"schema\":{{\"$ref\":\"#/s/0\"}}}}}}}}}}}}"
            )
        })
        .collect();
    let levels: Vec<String> = (0..13)
        .map(|level| {
            let members: Vec<String> = (0..10)
                .map(|name| format!("\"m{name}\":{{\"$ref\":\"#/s/{}\"}}", level + 1))
                .collect();
            format!("\"{level}\":{{\"properties\":{{{}}}}}", members.join(","))
        })
        .collect();
    let text = format!(
        "{{\"openapi\":\"3.0.0\",\"paths\":{{{}}},\"s\":{{{},\"13\":{{}}}}}}",
        operations.join(","),
        levels.join(",")
    );
    let description = read_text(&text).unwrap();
    assert_eq!(description.operations.len(), 50);
    let tools = description.operations.iter().filter_map(|one| one.verdict.tool());
    let sizes = tools.map(|tool| serde_json::to_string(&tool.fields).unwrap().len());
    assert!(sizes.clone().count() == 50 && sizes.max().unwrap() < 64 * 1024);
}

/// A document has one root: the one member of a schema without a name is written as it.
#[test]
fn the_one_member_of_a_schema_without_a_name_is_the_root() {
    let case = Path::new(CORPUS).join("xml-bodies.yaml");
    let description = read_case(&case, &Options::default()).unwrap();
    let types = Arc::new(TypePlans::compile(&description.xml_types).unwrap());
    for (operation, arguments, expected) in [
        (
            "rootIsTheOneMember",
            r#"{"LocationConstraint":"eu","Tags":[{"label":"x"}]}"#,
            "<CreateBucketConfiguration><LocationConstraint>eu</LocationConstraint>\
             <Tags><Tags><label>x</label></Tags></Tags></CreateBucketConfiguration>",
        ),
        (
            "rootOfAReferenceInNamespaces",
            r#"{"id":1}"#,
            r#"<p:tag xmlns:p="urn:outer"><p:id>1</p:id></p:tag>"#,
        ),
        (
            "rootNamedWithPrefix",
            r#"{"a":"x","b":"y"}"#,
            r#"<p:Thing xmlns:p="urn:p"><p:a>x</p:a><b>y</b></p:Thing>"#,
        ),
    ] {
        let mut operations = description.operations.iter();
        let found = operations.find(|one| one.wished_name == operation).unwrap();
        let tool = found.verdict.tool().unwrap();
        let body = RequestBody {
            format: tool.body_format,
            content_type: tool.body_content_type.as_deref(),
            requires: &tool.requires,
        };
        let plan =
            RequestPlan::compile(tool.method.as_str(), &tool.path, &tool.fields, body).unwrap();
        let arguments = guard(arguments.as_bytes()).unwrap();
        let request = plan.build(&plan.validate(Some(arguments.root())).unwrap());
        let bodies = BodiesPlan::compile(&types, tool.xml.as_ref().unwrap()).unwrap();
        let written = bodies.wrap(request).unwrap().body.unwrap();
        let mut written = String::from_utf8(written).unwrap();
        // How many namespaces the other cases have does not matter.
        if let Some((_, declared)) = written.split_once(" xmlns:") {
            let prefix = declared.split_once('=').unwrap().0.to_owned();
            written = written.replace(&format!("{prefix}:"), "p:");
            written = written.replace(&format!("xmlns:{prefix}="), "xmlns:p=");
        }
        assert_eq!(written.split_once("?>").unwrap().1, expected, "{operation}");
    }
}

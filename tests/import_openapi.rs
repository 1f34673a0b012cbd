//! The corpus: small descriptions, each written for a fault, with what has to come of them beside
//! them. A document is `name.yaml` or `name.json`, or a folder of documents whose root is `main.*`;
//! `name.expected` is what is compared. `UPDATE_EXPECTED=1` writes what is found.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use ringway::import::{
    Description, Documents, Location, OperationTool, Options, Step, Verdict, openapi,
};
use ringway::mapping::BodyFormat;

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
pub fn read_case(path: &Path, options: &Options) -> Result<Description, String> {
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

pub fn run(
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

pub fn read_tree(tree: &Value) -> Result<Description, String> {
    let mut documents = Documents::new();
    let root = Location::parse("https://docs.example.com/api/openapi.json").unwrap();
    documents.add(&root, tree.to_string().into_bytes()).unwrap();
    run(documents, &root, &Options::default())
}

/// All of a description as text.
pub fn shown(description: &Description) -> String {
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

pub fn shown_tool(out: &mut String, tool: &OperationTool, notes: &[String]) {
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

pub fn cases() -> Vec<PathBuf> {
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
            Ok(description) => shown(&description),
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

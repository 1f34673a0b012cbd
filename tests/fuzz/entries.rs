//! What is fuzzed: one function for each reader of what others wrote. Each takes any bytes and panics
//! only where a promise of the reader is broken. `targets/` gives them to libFuzzer, `tests/fuzzing.rs`
//! to `cargo test`.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use percent_encoding::percent_decode_str;
use ringway::http::multipart::{self, Boundary, PartLimits, PartProgress, PartReader};
use ringway::import::{
    Description, Documents, ImportError, Location, Options, Step, openapi as from_openapi,
    wsdl as from_wsdl,
};
use ringway::json::guard;
use ringway::mapping::soap::{Answer, SoapPlan};
use ringway::mapping::xml::{Attachments, BodiesPlan, TypePlans};
use ringway::mapping::{
    BodyFormat, FieldRule, RequestBody, RequestPlan, ResponsePlan, Unmapped, output_schema,
};
use ringway::xml::{self, Document, Element};
use serde_json::Value;

/// How often a reader may ask for more documents before it counts as endless.
const STEPS_MAX: usize = 40;
/// Where one document of a bundle ends.
const DOCUMENT_END: char = '\0';
const XML_LIMITS: xml::Limits = xml::Limits { bytes: 1 << 20, nodes: 100_000 };

type Read = fn(&Documents, &Location, &Options) -> Result<Step<Description>, ImportError>;

/// The first document is the root; the others are called `1.xsd`, `2.xsd` and so on.
fn bundled(data: &[u8]) -> (Documents, Location) {
    let mut documents = Documents::new();
    let root = Location::bundle("main.wsdl").unwrap();
    let pieces = data.split(|byte| *byte == DOCUMENT_END as u8).take(8);
    for (place, piece) in pieces.enumerate() {
        let location = match place {
            0 => root.clone(),
            _ => Location::bundle(&format!("{place}.xsd")).unwrap(),
        };
        documents.add(&location, piece.to_vec()).unwrap();
    }
    (documents, root)
}

fn imported(data: &[u8], read: Read) -> Option<Description> {
    let (mut documents, root) = bundled(data);
    for _ in 0..STEPS_MAX {
        match read(&documents, &root, &Options::default()).ok()? {
            Step::Done(description) => return Some(description),
            Step::Need(missing) => {
                assert!(!missing.is_empty(), "it wants nothing and is not done");
                for location in missing {
                    // There may be more than are allowed.
                    documents.refuse(&location, "it is not there".to_owned()).ok()?;
                }
            }
        }
    }
    panic!("it never has enough");
}

/// Everything that was imported is what the mapping compiles.
fn compiled(description: &Description) {
    let types = TypePlans::compile(&description.xml_types).map(Arc::new);
    let types = types.unwrap_or_else(|errors| panic!("{errors:?}"));
    for operation in &description.operations {
        assert!(!operation.wished_name.is_empty() && !operation.key.is_empty());
        let Some(tool) = operation.verdict.tool() else { continue };
        let body = RequestBody {
            format: tool.body_format,
            content_type: tool.body_content_type.as_deref(),
            requires: &tool.requires,
        };
        let method = tool.method.as_str();
        let plan = RequestPlan::compile(method, &tool.path, &tool.fields, body);
        let plan = plan.unwrap_or_else(|errors| panic!("{}: {errors}", operation.key));
        if let Some(bodies) = &tool.xml {
            let plan = BodiesPlan::compile(&types, bodies);
            plan.unwrap_or_else(|errors| panic!("{}: {errors:?}", operation.key));
        }
        let root = plan.input_schema().as_object().unwrap();
        let combinators = ["oneOf", "anyOf", "allOf", "not", "$ref"];
        assert!(!combinators.iter().any(|word| root.contains_key(*word)), "{}", operation.key);
        let unmapped = if tool.pass_unmapped { Unmapped::Keep } else { Unmapped::Drop };
        ResponsePlan::compile(&tool.response_fields, unmapped).unwrap();
        output_schema(&tool.response_fields).unwrap();
        assert!(tool.connection < description.connections.len());
        assert!(!tool.description.is_empty());
        if let Some(soap) = &tool.soap {
            let plan = SoapPlan::compile(&types, soap);
            plan.unwrap_or_else(|errors| panic!("{}: {errors:?}", operation.key));
        }
    }
}

/// An OpenAPI description in JSON or YAML.
pub(crate) fn openapi(data: &[u8]) {
    imported(data, from_openapi::read).iter().for_each(compiled);
}

/// A WSDL and its schemas, with a NUL between two documents.
pub(crate) fn wsdl(data: &[u8]) {
    imported(data, from_wsdl::read).iter().for_each(compiled);
}

/// XML: what is read can be written and read again, and is the same.
pub(crate) fn xml(data: &[u8]) {
    let Ok(text) = xml::decode(data, None) else { return };
    let Ok(document) = Document::read(&text, XML_LIMITS) else { return };
    let root = document.root();
    let again = root.to_xml();
    let again = Document::read(&again, XML_LIMITS.twice());
    let again = again.unwrap_or_else(|error| panic!("what was read is not XML: {error}"));
    let (mut one, mut other) = (Vec::new(), Vec::new());
    flat(root, &mut one);
    flat(again.root(), &mut other);
    assert_eq!(one, other);
    let mut writer = xml::Writer::new();
    if writer.start(root.namespace(), root.local()).is_ok() {
        let content = root.content_xml(usize::MAX).unwrap_or_default();
        let _ = writer.fragment(&content);
        let _ = writer.end();
        let _ = writer.finish();
    }
}

trait Twice {
    fn twice(self) -> Self;
}

impl Twice for xml::Limits {
    /// An element written alone repeats the namespaces around it.
    fn twice(self) -> Self {
        Self { bytes: self.bytes * 2, nodes: self.nodes * 2 }
    }
}

fn flat(root: Element<'_>, out: &mut Vec<String>) {
    let mut waiting = vec![root];
    while let Some(element) = waiting.pop() {
        let mut attributes: Vec<String> = element
            .attributes()
            .map(|one| format!("{{{}}}{}={:?}", one.namespace, one.local, one.value))
            .collect();
        attributes.sort();
        let (namespace, local) = (element.namespace(), element.local());
        let text = element.text();
        out.push(format!("{{{namespace}}}{local} {attributes:?} {text:?} {}", element.is_mixed()));
        waiting.extend(element.children());
        let _ = (element.position(), element.qualified("a:b"), element.text_within(8));
    }
}

/// A body of parts; its first line is the boundary. It is the same whole and bit by bit.
pub(crate) fn multipart(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (line, body) = (&data[..end], &data[end + 1..]);
    let Some(boundary) = std::str::from_utf8(line).ok().and_then(Boundary::new) else { return };
    let whole = multipart::parts(body, &boundary, PartLimits::default());
    let mut reader = PartReader::new(&boundary, PartLimits::default());
    let step = line.len().max(1);
    let mut seen = 0;
    let outcome = loop {
        seen = (seen + step).min(body.len());
        match reader.advance(&body[..seen]) {
            Ok(PartProgress::Complete(_)) => break Some(reader.parts(&body[..seen]).collect()),
            Ok(PartProgress::Incomplete) if seen < body.len() => {}
            _ => break None,
        }
    };
    let outcome: Option<Vec<multipart::Part<'_>>> = outcome;
    let shown = |parts: &[multipart::Part<'_>]| -> Vec<_> {
        let headers = |part: &multipart::Part<'_>| {
            part.headers().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>()
        };
        parts.iter().map(|part| (headers(part), part.body.to_vec())).collect()
    };
    assert_eq!(whole.ok().as_deref().map(shown), outcome.as_deref().map(shown));
    for line in body.split(|byte| *byte == b'\n') {
        if let Ok(value) = std::str::from_utf8(line) {
            let _ = Boundary::of_content_type(value);
            let _ = multipart::parameter(value, "filename").map(Cow::into_owned);
        }
    }
}

/// A WSDL of which every operation's answers are read.
const SERVICE: &str = include_str!("../corpus/wsdl/shapes/main.wsdl");

static ANSWERS: LazyLock<Vec<SoapPlan>> = LazyLock::new(|| {
    let description = imported(SERVICE.as_bytes(), from_wsdl::read).unwrap();
    let types = Arc::new(TypePlans::compile(&description.xml_types).unwrap());
    let tools = description.operations.iter().filter_map(|one| one.verdict.tool());
    tools.map(|tool| SoapPlan::compile(&types, tool.soap.as_ref().unwrap()).unwrap()).collect()
});

/// A description of which every answer of XML is read.
const BODIES: &str = include_str!("../corpus/openapi/xml-bodies.yaml");

static XML_ANSWERS: LazyLock<Vec<BodiesPlan>> = LazyLock::new(|| {
    let description = imported(BODIES.as_bytes(), from_openapi::read).unwrap();
    let types = Arc::new(TypePlans::compile(&description.xml_types).unwrap());
    let tools = description.operations.iter().filter_map(|one| one.verdict.tool());
    let bodies = tools.filter_map(|tool| tool.xml.as_ref());
    let plans = bodies.map(|bodies| BodiesPlan::compile(&types, bodies).unwrap());
    plans.filter(BodiesPlan::answers).collect()
});

/// The answer of a service in XML: whatever it is, what is given out is JSON within bounds.
pub(crate) fn soap_answer(data: &[u8]) {
    let Ok(text) = xml::decode(data, None) else { return };
    for plan in &*XML_ANSWERS {
        match plan.read(&text) {
            Ok(message) => drop(guard(&message.json).unwrap()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let mut attachments = Attachments::default();
    attachments.add("<a@b>", b"bytes".as_slice());
    for plan in &*ANSWERS {
        match plan.read(&text, &attachments) {
            Ok(Answer::Message(message)) => drop(guard(&message.json).unwrap()),
            Ok(Answer::Fault(fault)) => drop(guard(&fault.to_json(1000)).unwrap()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Every style in every place, and both bodies that are not JSON.
const FIELDS: &str = r#"[
    {"source_field_name": "p", "location": "path", "schema": {}},
    {"source_field_name": "l", "location": "path", "schema": {}, "style": "label", "explode": true},
    {"source_field_name": "m", "location": "path", "schema": {}, "style": "matrix"},
    {"source_field_name": "q", "location": "query", "schema": {}},
    {"source_field_name": "s", "location": "query", "schema": {}, "style": "space_delimited", "explode": false},
    {"source_field_name": "r", "location": "query", "schema": {}, "style": "pipe_delimited", "explode": false, "allow_reserved": true},
    {"source_field_name": "d", "location": "query", "schema": {}, "style": "deep_object"},
    {"source_field_name": "j", "location": "query", "schema": {}, "style": "json"},
    {"source_field_name": "x-h", "exposed_field_name": "h", "location": "header", "schema": {}},
    {"source_field_name": "c", "location": "cookie", "schema": {}, "explode": true},
    {"source_field_name": "f", "location": "body", "schema": {}, "explode": true},
    {"source_field_name": "g", "location": "body", "schema": {}, "style": "pipe_delimited", "explode": false}
]"#;

static STYLES: LazyLock<[RequestPlan; 2]> = LazyLock::new(|| {
    let rules: Vec<FieldRule> = serde_json::from_str(FIELDS).unwrap();
    [BodyFormat::Form, BodyFormat::Multipart].map(|format| {
        let body = RequestBody { format, ..RequestBody::default() };
        RequestPlan::compile("POST", "/a/{p}.{l}/{m}/z?fixed=1", &rules, body).unwrap()
    })
});

/// The arguments of a call, as JSON: whatever they are, they stay in their places.
pub(crate) fn styles(data: &[u8]) {
    let Ok(checked) = guard(data) else { return };
    for plan in &*STYLES {
        let Ok(arguments) = plan.validate(Some(checked.root())) else { continue };
        let request = plan.build(&arguments);
        let target = &request.target;
        assert!(target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'), "{target}");
        let (path, query) = target.split_once('?').unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        assert_eq!((parts.len(), parts[1], parts[4]), (5, "a", "z"), "{target}");
        let decoded = percent_decode_str(path).decode_utf8().unwrap();
        let is_dotted = decoded.split(['/', '\\']).any(|part| matches!(part, "." | ".."));
        assert!(!is_dotted, "{target}");
        assert!(query.starts_with("fixed=1") && query.matches("fixed=").count() == 1, "{target}");
        for (name, value) in &request.headers {
            assert!(matches!(name.as_str(), "x-h" | "Cookie"), "{name}");
            assert!(!value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{value:?}");
        }
        let (body, content_type) = (request.body.unwrap(), request.content_type.unwrap());
        if let Some(boundary) = Boundary::of_content_type(&content_type) {
            multipart::parts(&body, &boundary, PartLimits::default()).unwrap();
        } else {
            let pairs = body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
            assert!(pairs.into_iter().all(|pair| pair.contains(&b'=')));
        }
    }
}

/// Arguments that [`styles`] takes, as a beginning.
pub(crate) fn seeds_of_styles() -> Vec<Value> {
    let value = serde_json::json!({"a": "x&=/", "b": ["é", 1.50, null]});
    let names = ["p", "l", "m", "q", "s", "r", "d", "j", "h", "c", "f", "g"];
    let same = |value: &Value| -> Value {
        names.iter().map(|name| ((*name).to_owned(), value.clone())).collect()
    };
    vec![
        same(&value),
        same(&"te/xt..".into()),
        same(&1e6.into()),
        same(&serde_json::json!([1, "b"])),
    ]
}

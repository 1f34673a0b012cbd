//! The corpus under `tests/corpus/wsdl`: each directory is a description, and what it comes to is
//! written down beside it. `BLESS=1` writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::{
    Description, Documents, ImportError, Location, OperationTool, Options, Step, Verdict,
};
use super::read;
use crate::mapping::{SoapVersion, input_schema, output_schema};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/wsdl")
}

/// Reads a description as an import does: by what is asked for, file by file.
fn import(directory: &Path) -> Result<Description, ImportError> {
    let root = Location::bundle("main.wsdl").unwrap();
    let mut documents = Documents::new();
    for _ in 0..20 {
        match read(&documents, &root, &Options::default())? {
            Step::Done(description) => return Ok(description),
            Step::Need(missing) => {
                for location in missing {
                    let path = location.bundle_path().map(|path| directory.join(path));
                    match path.and_then(|path| fs::read(path).ok()) {
                        Some(bytes) => documents.add(&location, bytes)?,
                        None => documents.refuse(&location, "it is not there".to_owned())?,
                    }
                }
            }
        }
    }
    panic!("it never has enough");
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn shown_tool(tool: &OperationTool, out: &mut String) {
    writeln!(out, "{:?} {} on {}", tool.method, tool.path, tool.connection).unwrap();
    writeln!(out, "description: {}", tool.description).unwrap();
    writeln!(out, "soap {}", pretty(&json!(tool.soap))).unwrap();
    writeln!(out, "input {}", pretty(&input_schema(&tool.fields).unwrap())).unwrap();
    for rule in tool.fields.iter().filter(|rule| rule.nullable) {
        writeln!(out, "nullable: {}", rule.source_field_name).unwrap();
    }
    let output = output_schema(&tool.response_fields).unwrap();
    writeln!(out, "output {}", pretty(&json!(output))).unwrap();
}

fn shown(description: &Description) -> String {
    let mut out = String::new();
    writeln!(out, "title: {:?}", description.title).unwrap();
    writeln!(out, "description: {:?}", description.description).unwrap();
    for (place, connection) in description.connections.iter().enumerate() {
        let (name, base_url) = (&connection.name, &connection.base_url);
        writeln!(out, "connection {place}: {name} {base_url:?}").unwrap();
        for credential in &connection.credentials {
            writeln!(out, "  {}", json!(credential)).unwrap();
        }
        connection.notes.iter().for_each(|note| writeln!(out, "  note: {note}").unwrap());
    }
    description.notes.iter().for_each(|note| writeln!(out, "note: {note}").unwrap());
    for operation in &description.operations {
        let key = &operation.key;
        writeln!(out, "\n=== {key} ({}) {:?}", operation.wished_name, operation.tags).unwrap();
        match &operation.verdict {
            Verdict::Skipped(reason) => writeln!(out, "skipped: {reason}").unwrap(),
            Verdict::Imported(tool) => shown_tool(tool, &mut out),
            Verdict::Noted(tool, notes) => {
                for note in notes {
                    writeln!(out, "note: {note}").unwrap();
                }
                shown_tool(tool, &mut out);
            }
        }
    }
    writeln!(out, "\n=== types {}", pretty(&json!(description.xml_types))).unwrap();
    out
}

fn case(name: &str) {
    let directory = corpus().join(name);
    let found = shown(&import(&directory).unwrap());
    let path = directory.join("expected.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{name}: line {}", line + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn descriptions_in_many_files_are_one() {
    case("imports");
}

#[test]
fn rpc_has_parts() {
    case("calculator");
}

#[test]
fn what_dotnet_writes_is_read() {
    case("wcf");
}

#[test]
fn encoded_messages_are_refused_with_a_reason() {
    case("axis");
}

#[test]
fn schemas_of_every_shape_are_told() {
    case("shapes");
}

#[test]
fn headers_faults_and_policies_are_honoured_or_a_reason() {
    case("headers");
}

fn inline(text: &str) -> Result<Step<Description>, ImportError> {
    let root = Location::bundle("main.wsdl").unwrap();
    let mut documents = Documents::new();
    documents.add(&root, text.as_bytes().to_vec())?;
    read(&documents, &root, &Options::default())
}

/// A service with one operation, whose message is the element `In` of these schemas.
fn with_schemas(schemas: &str) -> String {
    format!(
        "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:t='urn:t' targetNamespace='urn:t' \
         xmlns:x='http://www.w3.org/2001/XMLSchema' xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/'>\
         <types><x:schema targetNamespace='urn:t'>{schemas}</x:schema></types>\
         <message name='In'><part name='p' element='t:In'/></message>\
         <portType name='T'><operation name='In'><input message='t:In'/></operation></portType>\
         <binding name='B' type='t:T'><s:binding/>\
         <operation name='In'><s:operation/><input><s:body use='literal'/></input></operation>\
         </binding></definitions>"
    )
}

fn done(text: &str) -> Description {
    match inline(text).unwrap() {
        Step::Done(description) => description,
        Step::Need(missing) => panic!("{missing:?}"),
    }
}

/// The notes of the only operation, which is imported all the same.
fn notes_of(text: &str) -> String {
    let description = done(text);
    match &description.operations[0].verdict {
        Verdict::Noted(tool, notes) => {
            input_schema(&tool.fields).unwrap();
            notes.join("\n")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn documents_that_are_no_description_are_errors() {
    let wrong = |text: &str| inline(text).unwrap_err().to_string();
    assert!(wrong("").contains("main.wsdl"));
    assert!(wrong("<html/>").contains("its root is \"html\""));
    assert!(wrong("<a xmlns='http://www.w3.org/ns/wsdl'/>").contains("WSDL 2.0"));
    assert!(
        wrong("<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>").contains("no operation")
    );
    let laughs = "<!DOCTYPE l [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;'>]><l>&b;</l>";
    assert!(wrong(laughs).contains("DOCTYPE"));
    assert!(wrong(&"<a>".repeat(10_000)).contains("deeper"));
    assert!(matches!(inline(&"<a>".repeat(10_000)), Err(ImportError::Limit { .. })));
}

#[test]
fn what_is_missing_is_asked_for_once_and_then_noted() {
    let import =
        |what: &str| format!("<x:import namespace='urn:{what}' schemaLocation='{what}.xsd'/>");
    let schemas = format!(
        "{}{}{}<x:import namespace='urn:e' schemaLocation='file:///etc/passwd'/>\
         <x:element name='In'><x:complexType><x:sequence><x:element name='a' type='a:T' \
         xmlns:a='urn:a'/></x:sequence></x:complexType></x:element>",
        import("a"),
        import("b"),
        import("a")
    );
    let text = with_schemas(&schemas);
    let root = Location::parse("https://x.test/main.wsdl").unwrap();
    let mut documents = Documents::new();
    documents.add(&root, text.into_bytes()).unwrap();
    let Step::Need(missing) = read(&documents, &root, &Options::default()).unwrap() else {
        panic!("it needs more")
    };
    let missing: Vec<&str> = missing.iter().map(Location::as_str).collect();
    assert_eq!(missing, ["https://x.test/a.xsd", "https://x.test/b.xsd"]);
    documents.add(&Location::parse(missing[0]).unwrap(), b"<oops".to_vec()).unwrap();
    documents.refuse(&Location::parse(missing[1]).unwrap(), "404".to_owned()).unwrap();
    let Step::Done(description) = read(&documents, &root, &Options::default()).unwrap() else {
        panic!("it needs no more")
    };
    let notes = description.notes.join("\n");
    for part in ["a.xsd cannot be read", "b.xsd cannot be read: 404", "/etc/passwd"] {
        assert!(notes.contains(part), "{notes}");
    }
    assert!(matches!(&description.operations[0].verdict, Verdict::Noted(_, notes)
        if notes[0].contains("{urn:a}T is not described")));
}

#[test]
fn schemas_that_would_grow_without_end_are_cut() {
    let element = |inside: &str| {
        format!("<x:element name='In'><x:complexType>{inside}</x:complexType></x:element>")
    };
    let doubling: Vec<String> = (0..60)
        .map(|index| {
            let next = format!("<x:group ref='t:g{}'/>", index + 1);
            format!(
                "<x:group name='g{index}'><x:sequence>{next}<x:sequence maxOccurs='2'>{next}\
                 </x:sequence></x:sequence></x:group>"
            )
        })
        .collect();
    let doubling = doubling.concat() + &element("<x:group ref='t:g0'/>");
    assert!(notes_of(&with_schemas(&doubling)).contains("taken as XML text"));
    let itself = "<x:group name='g'><x:sequence><x:group ref='t:g'/></x:sequence></x:group>";
    let itself = itself.to_owned() + &element("<x:group ref='t:g'/>");
    assert!(notes_of(&with_schemas(&itself)).contains("nests deeper"));
    let attributes = "<x:attributeGroup name='g'><x:attributeGroup ref='t:g'/>\
                      <x:attributeGroup ref='t:g'/></x:attributeGroup>";
    let attributes = attributes.to_owned() + &element("<x:attributeGroup ref='t:g'/>");
    assert!(notes_of(&with_schemas(&attributes)).contains("without end"));
    // An unnamed type in a group that leads to itself.
    let unnamed = "<x:group name='g'><x:sequence><x:element name='e' minOccurs='0'><x:complexType>\
                   <x:group ref='t:g'/></x:complexType></x:element></x:sequence></x:group>";
    let unnamed = unnamed.to_owned() + &element("<x:group ref='t:g'/>");
    assert!(notes_of(&with_schemas(&unnamed)).contains("holds itself"));
    let union = "<x:simpleType name='u'><x:union memberTypes='t:u t:u t:u'/></x:simpleType>\
                 <x:element name='In'><x:complexType><x:attribute name='a' type='t:u'/></x:complexType></x:element>";
    assert!(notes_of(&with_schemas(union)).contains("leads to itself"));
    let many: String = (0..6_000).map(|_| "<x:element name='a' type='x:int'/>").collect();
    let many = element(&format!("<x:sequence>{many}</x:sequence>"));
    assert!(notes_of(&with_schemas(&many)).contains("too many elements"));
    let some: String = (0..600).map(|_| "<x:element name='a' type='x:int'/>").collect();
    let some = element(&format!("<x:sequence>{some}</x:sequence>"));
    let skipped = done(&with_schemas(&some));
    assert!(matches!(&skipped.operations[0].verdict, Verdict::Skipped(reason)
        if reason.contains("more than 512")));
    let huge = element(
        "<x:sequence><x:element name='a' type='x:int' minOccurs='99999999999999999999' \
         maxOccurs='999999999'/><x:element name='b' type='x:int' maxOccurs='-1'/></x:sequence>",
    );
    assert!(matches!(done(&with_schemas(&huge)).operations[0].verdict, Verdict::Imported(_)));
}

#[test]
fn a_choice_is_required_where_no_alternative_can_be_empty() {
    let is_required = |inside: &str| {
        let schemas = format!(
            "<x:group name='g'><x:choice><x:element name='p' type='x:int'/>\
             <x:element name='q' type='x:int'/></x:choice></x:group><x:element name='In'>\
             <x:complexType>{inside}</x:complexType></x:element>"
        );
        let types = json!(done(&with_schemas(&schemas)).xml_types);
        let content = types["{urn:t}/In"]["content"].as_array().unwrap().clone();
        content.iter().any(|part| part["choice"]["required"] == json!(true))
    };
    let a = "<x:element name='a' type='x:int'/>";
    let b = "<x:element name='b' type='x:int'/>";
    let may = "<x:element name='c' type='x:int' minOccurs='0'/>";
    for (inside, expected) in [
        (format!("<x:choice>{a}{b}</x:choice>"), true),
        (format!("<x:choice maxOccurs='unbounded'>{a}{b}</x:choice>"), true),
        (format!("<x:choice minOccurs='0'>{a}{b}</x:choice>"), false),
        (format!("<x:choice>{a}{may}</x:choice>"), false),
        (format!("<x:choice>{a}<x:sequence>{b}{may}</x:sequence></x:choice>"), true),
        (format!("<x:choice>{a}<x:sequence>{may}</x:sequence></x:choice>"), false),
        (format!("<x:choice>{a}<x:choice>{b}{may}</x:choice></x:choice>"), false),
        (format!("<x:choice><x:annotation/>{a}<x:group ref='t:g'/></x:choice>"), true),
        (format!("<x:choice>{a}<x:group ref='t:g' minOccurs='0'/></x:choice>"), false),
        ("<x:group ref='t:g'/>".to_owned(), true),
        (format!("<x:sequence minOccurs='0'><x:choice>{a}{b}</x:choice></x:sequence>"), false),
    ] {
        assert_eq!(is_required(&inside), expected, "{inside}");
    }
}

#[test]
fn attributes_of_any_name_are_noted() {
    let text = with_schemas(
        "<x:element name='In'><x:complexType><x:attribute name='a'/><x:anyAttribute/>\
         </x:complexType></x:element>",
    );
    assert!(notes_of(&text).contains("`anyAttribute`"));
}

#[test]
fn names_that_cannot_be_written_cost_no_more_than_themselves() {
    let inside = "<x:element name='In'><x:complexType><x:sequence><x:element name='a b' type='x:int'/>\
                  </x:sequence></x:complexType></x:element>";
    assert!(notes_of(&with_schemas(inside)).contains("has no name"));
    let text = with_schemas("<x:element name='In' type='t:T'/><x:complexType name='T'/>");
    let braces = text.replace("urn:t", "urn:{t}");
    let reason = match &done(&braces).operations[0].verdict {
        Verdict::Skipped(reason) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert!(reason.contains("is not described"), "{reason}");
}

#[test]
fn large_types_are_told_as_far_as_there_is_room() {
    let types: Vec<String> = (0..40)
        .map(|index| {
            let fields: Vec<String> = (0..8)
                .map(|field| {
                    let next = (index + field) % 40;
                    format!("<x:element name='f{field}' type='t:T{next}' maxOccurs='unbounded'/>")
                })
                .collect();
            format!(
                "<x:complexType name='T{index}'><x:sequence>{}</x:sequence>\
                 <x:attribute name='last' type='x:string' use='required'/></x:complexType>",
                fields.concat()
            )
        })
        .collect();
    let text = with_schemas(&(types.concat() + "<x:element name='In' type='t:T0'/>"));
    assert!(notes_of(&text).contains("too large or too deep"));
    let description = done(&text);
    let tool = description.operations[0].verdict.tool().unwrap();
    let schema = input_schema(&tool.fields).unwrap();
    assert!(schema.to_string().len() < 200_000);
    // Every member has its part of the room.
    for index in 1..8 {
        let told = &schema["properties"][format!("f{index}")]["items"]["properties"];
        assert!(told.as_object().unwrap().len() > 3, "{index} {told}");
    }
    assert_eq!(description.xml_types.0.len(), 40);
}

#[test]
fn the_operator_chooses_the_version_and_the_place() {
    let path = corpus().join("calculator/main.wsdl");
    let root = Location::bundle("main.wsdl").unwrap();
    let mut documents = Documents::new();
    documents.add(&root, fs::read(path).unwrap()).unwrap();
    let options = Options {
        base_url: Some("https://proxy.example.test/calc".to_owned()),
        soap_version: Some(SoapVersion::V1_2),
        ..Options::default()
    };
    let Step::Done(description) = read(&documents, &root, &options).unwrap() else {
        panic!("it needs no more")
    };
    let tool = description.operations[0].verdict.tool().unwrap();
    assert_eq!(tool.soap.as_ref().unwrap().version, SoapVersion::V1_2);
    assert_eq!(description.connections[0].base_url.as_deref(), Some("https://proxy.example.test"));
    assert_eq!(tool.path, "/calc");
}

#[test]
fn a_redefined_type_is_what_it_was_and_more() {
    let root = Location::bundle("main.wsdl").unwrap();
    let mut documents = Documents::new();
    let schemas = "<x:redefine schemaLocation='base.xsd'><x:complexType name='T'><x:complexContent>\
                   <x:extension base='t:T'><x:sequence><x:element name='more' type='x:int'/></x:sequence>\
                   </x:extension></x:complexContent></x:complexType></x:redefine>\
                   <x:element name='In' type='t:T'/>";
    documents.add(&root, with_schemas(schemas).into_bytes()).unwrap();
    let base = "<x:schema xmlns:x='http://www.w3.org/2001/XMLSchema'><x:complexType name='T'>\
                <x:sequence><x:element name='first' type='x:string'/></x:sequence></x:complexType></x:schema>";
    documents.add(&Location::bundle("base.xsd").unwrap(), base.as_bytes().to_vec()).unwrap();
    let Step::Done(description) = read(&documents, &root, &Options::default()).unwrap() else {
        panic!("it needs no more")
    };
    let tool = description.operations[0].verdict.tool().unwrap();
    let names: Vec<&str> = tool.fields.iter().map(|rule| rule.source_field_name.as_str()).collect();
    assert_eq!(names, ["first", "more"]);
    assert!(description.notes[0].contains("redefines"));
}

#[test]
fn a_description_that_is_cut_off_or_garbled_never_panics() {
    let text = fs::read_to_string(corpus().join("shapes/main.wsdl")).unwrap();
    for end in (0..text.len()).step_by(997).filter(|end| text.is_char_boundary(*end)) {
        assert!(inline(&text[..end]).is_err());
    }
    let words = ["s:Node", "sequence", "choice", "name=", "base=", "s:shape", "element", "ref="];
    for (index, word) in words.iter().enumerate() {
        for other in words.iter().skip(index + 1) {
            // Whatever it then is, it is read or refused.
            let _ = inline(&text.replace(word, other));
        }
    }
}

/// A description as a large service has one: many operations, types that extend and hold others.
fn large(operations: usize) -> String {
    let mut schemas = String::new();
    let mut rest = String::new();
    let mut bindings = String::new();
    for index in 0..operations * 3 {
        let doc = "Says at length what nobody asked for, and then says it again. ".repeat(4);
        let fields: Vec<String> = (0..20)
            .map(|field| {
                let held = match field % 5 {
                    0 if index >= 7 => format!("t:Type{}", index - 1 - field % 7),
                    1 => "x:dateTime".to_owned(),
                    2 => "x:decimal".to_owned(),
                    _ => "x:string".to_owned(),
                };
                format!(
                    "<x:element name='field{field}' type='{held}' minOccurs='0' \
                     maxOccurs='unbounded'><x:annotation><x:documentation>{doc}\
                     </x:documentation></x:annotation></x:element>\n"
                )
            })
            .collect();
        write!(
            schemas,
            "<x:complexType name='Type{index}'><x:sequence>{}</x:sequence></x:complexType>",
            fields.concat()
        )
        .unwrap();
    }
    for index in 0..operations {
        let held = index * 3;
        write!(
            schemas,
            "<x:element name='Call{index}'><x:complexType><x:sequence><x:element name='a' \
             type='t:Type{held}'/><x:element name='b' type='x:int'/></x:sequence></x:complexType>\
             </x:element>"
        )
        .unwrap();
        write!(
            rest,
            "<message name='Call{index}'><part name='p' element='t:Call{index}'/></message>"
        )
        .unwrap();
        write!(
            bindings,
            "<operation name='Call{index}'><s:operation/><input><s:body use='literal'/></input>\
             <output><s:body use='literal'/></output></operation>"
        )
        .unwrap();
    }
    let port: Vec<String> = (0..operations)
        .map(|index| {
            format!(
                "<operation name='Call{index}'><input message='t:Call{index}'/>\
                 <output message='t:Call{index}'/></operation>"
            )
        })
        .collect();
    format!(
        "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:t='urn:t' targetNamespace='urn:t' \
         xmlns:x='http://www.w3.org/2001/XMLSchema' xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/'>\
         <types><x:schema targetNamespace='urn:t'>{schemas}</x:schema></types>{rest}\
         <portType name='T'>{}</portType><binding name='B' type='t:T'><s:binding/>{bindings}\
         </binding></definitions>",
        port.concat()
    )
}

#[test]
fn large_descriptions_are_read_whole() {
    let wished = std::env::var("LARGE").ok().and_then(|text| text.parse().ok());
    let text = large(wished.unwrap_or(20));
    let start = std::time::Instant::now();
    let description = done(&text);
    if wished.is_some() {
        let bytes = serde_json::to_string(&description.xml_types).unwrap().len();
        println!("{} bytes in {:?}, types {bytes}", text.len(), start.elapsed());
    }
    assert!(description.operations.iter().all(|operation| operation.verdict.tool().is_some()));
}

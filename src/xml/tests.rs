//! What is written is read back as it was, and nothing that is read does harm.

use proptest::prelude::*;

use crate::xml::{Document, Element, Limits, Writer, XML_NAMESPACE, XmlError, decode};

/// An element as a test knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sample {
    name: (String, String),
    attributes: Vec<((String, String), String)>,
    content: Vec<Content>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Text(String),
    Element(Sample),
}

fn any_text() -> impl Strategy<Value = String> {
    "([ -~\r\n\t\u{80}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]|[<>&'\"\\]])*"
}

fn any_name() -> impl Strategy<Value = (String, String)> {
    let namespace = prop_oneof![Just(String::new()), "urn:[ab<&\"]", Just("http://ü".to_owned())];
    (namespace, "[a-zA-Z_é][a-z0-9.-]{0,3}")
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let attributes = || prop::collection::btree_map(any_name(), any_text(), 0..4);
    let leaf = (any_name(), attributes()).prop_map(|(name, attributes)| Sample {
        name,
        attributes: attributes.into_iter().collect(),
        content: Vec::new(),
    });
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let content =
            prop_oneof![inner.prop_map(Content::Element), any_text().prop_map(Content::Text)];
        (any_name(), attributes(), prop::collection::vec(content, 0..5)).prop_map(
            |(name, attributes, content)| {
                let attributes = attributes.into_iter().collect();
                Sample { name, attributes, content: joined(content) }
            },
        )
    })
}

/// Texts side by side are one text, an empty one is none.
fn joined(content: Vec<Content>) -> Vec<Content> {
    let mut out: Vec<Content> = Vec::new();
    for part in content {
        match (out.last_mut(), part) {
            (_, Content::Text(text)) if text.is_empty() => {}
            (Some(Content::Text(before)), Content::Text(text)) => before.push_str(&text),
            (_, part) => out.push(part),
        }
    }
    out
}

fn write(sample: &Sample, writer: &mut Writer) -> Result<(), XmlError> {
    writer.start(&sample.name.0, &sample.name.1)?;
    for ((namespace, local), value) in &sample.attributes {
        writer.attribute(namespace, local, value)?;
    }
    for part in &sample.content {
        match part {
            Content::Text(text) => writer.text(text)?,
            Content::Element(sample) => write(sample, writer)?,
        }
    }
    writer.end()
}

/// The elements of a sample with the texts of each together.
fn flat(sample: &Sample, out: &mut Vec<(String, Vec<String>, String)>) {
    let attributes = sample.attributes.iter();
    let attributes =
        attributes.map(|((namespace, local), value)| format!("{namespace} {local} {value}"));
    let text = sample.content.iter().filter_map(|part| match part {
        Content::Text(text) => Some(text.as_str()),
        Content::Element(_) => None,
    });
    let name = format!("{} {}", sample.name.0, sample.name.1);
    out.push((name, attributes.collect(), text.collect()));
    for part in &sample.content {
        if let Content::Element(sample) = part {
            flat(sample, out);
        }
    }
}

fn flat_element(element: Element<'_>, out: &mut Vec<(String, Vec<String>, String)>) {
    let attributes = element.attributes();
    let attributes = attributes.map(|attribute| {
        format!("{} {} {}", attribute.namespace, attribute.local, attribute.value)
    });
    let name = format!("{} {}", element.namespace(), element.local());
    out.push((name, attributes.collect(), element.text().into_owned()));
    element.children().for_each(|child| flat_element(child, out));
}

fn all(element: Element<'_>) -> Vec<Element<'_>> {
    let mut found = vec![element];
    let mut next = 0;
    while let Some(element) = found.get(next).copied() {
        found.extend(element.children());
        next += 1;
    }
    found
}

fn read(text: &str) -> Result<Document<'_>, XmlError> {
    Document::read(text, Limits { bytes: 1 << 20, nodes: 20_000 })
}

#[test]
fn documents_are_written_with_the_prefixes_they_need() {
    let mut writer = Writer::with_declaration();
    writer.prefer("soap", "urn:soap");
    writer.prefer("soap", "urn:other");
    writer.prefer("xmlx", "urn:other");
    writer.start("urn:soap", "Envelope").unwrap();
    writer.start("", "plain").unwrap();
    writer.attribute("urn:b", "b", "1").unwrap();
    writer.attribute(XML_NAMESPACE, "lang", "de").unwrap();
    let name = writer.qualified("urn:c", "Type").unwrap();
    writer.attribute("", "type", &name).unwrap();
    writer.end().unwrap();
    writer.start("urn:b", "again").unwrap();
    writer.text("").unwrap();
    writer.text("x").unwrap();
    writer.fragment("<?xml version='1.0'?> <f xmlns='urn:f'><g/></f> <!-- c -->").unwrap();
    writer.end().unwrap();
    writer.end().unwrap();
    assert_eq!(
        writer.finish().unwrap(),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><soap:Envelope xmlns:soap=\"urn:soap\">\
         <plain xmlns:n2=\"urn:b\" n2:b=\"1\" xml:lang=\"de\" xmlns:n3=\"urn:c\" type=\"n3:Type\"/>\
         <n2:again xmlns:n2=\"urn:b\">x<f xmlns='urn:f'><g/></f></n2:again></soap:Envelope>"
    );
}

#[test]
fn what_would_be_no_document_is_an_error() {
    let mut writer = Writer::new();
    assert!(writer.text("x").is_err() && writer.end().is_err());
    assert!(writer.attribute("", "a", "b").is_err());
    assert_eq!(writer.start("", "a b"), Err(XmlError::Name { name: "a b".into() }));
    writer.start("", "a").unwrap();
    for hostile in ["", "x", "<b>", "<b/><c/>", "</a>", "<!DOCTYPE b><b/>", "<b>&lol;</b>"] {
        assert!(writer.fragment(hostile).is_err(), "{hostile}");
    }
    assert_eq!(writer.text("\0"), Err(XmlError::Character { code: 0 }));
    writer.end().unwrap();
    assert!(writer.start("", "b").is_err());
    assert_eq!(writer.finish().unwrap(), "<a></a>");
    let mut deep = Writer::new();
    let depth = (0..1000).take_while(|_| deep.start("", "a").is_ok()).count();
    assert_eq!(depth, crate::xml::DEPTH_MAX);
    assert!(deep.finish().is_err());
}

#[test]
fn elements_are_asked_for_what_they_are() {
    let text = "<r xmlns='urn:d' xmlns:p='urn:p' xmlns:q='urn:q' a='&#9;1' p:a='2'>\
                one<!-- two --><![CDATA[ <3> ]]>&amp;<x xmlns='' xmlns:p='urn:other' t='p:T'/>\
                <p:y q:z='http://x' v=' p:V '><i/></p:y></r>";
    let document = read(text).unwrap();
    let root = document.root();
    assert!(root.is("urn:d", "r") && root.is_mixed());
    assert_eq!((root.attribute("a"), root.attribute_in("urn:p", "a")), (Some("\t1"), Some("2")));
    assert_eq!(root.text(), "one <3> &");
    let x = root.child("", "x").unwrap();
    assert_eq!(x.qualified(x.attribute("t").unwrap()), Some(("urn:other", "T")));
    assert_eq!(x.qualified("T"), Some(("", "T")));
    assert_eq!((x.qualified("nowhere:T"), x.namespace_of("xml")), (None, Some(XML_NAMESPACE)));
    let y = root.child("urn:p", "y").unwrap();
    assert_eq!(y.qualified(y.attribute("v").unwrap()), Some(("urn:p", "V")));
    assert_eq!((y.parent(), root.parent()), (Some(root), None));
    assert_eq!(y.position().to_string(), "line 1, column 146");
    assert_eq!(
        y.to_xml(),
        "<p:y xmlns=\"urn:d\" xmlns:p=\"urn:p\" xmlns:q=\"urn:q\" q:z='http://x' v=' p:V '><i/></p:y>"
    );
    assert_eq!(x.to_xml(), "<x xmlns='' xmlns:p='urn:other' t='p:T'/>");
}

#[test]
fn bombs_are_refused() {
    let laughs = "<!DOCTYPE l [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;'>]><l>&b;</l>";
    assert_eq!(read(laughs).unwrap_err(), XmlError::Doctype);
    assert!(matches!(read("<a>&lol;</a>").unwrap_err(), XmlError::Malformed { .. }));
    let error = read("<a>\n <b></c></a>").unwrap_err().to_string();
    assert_eq!(error, "malformed XML at line 2, column 5: expected 'b' tag, not 'c'");
    assert_eq!(read(&"<a>".repeat(50_000)).unwrap_err(), XmlError::TooDeep);
    let many = format!("<a>{}</a>", "<b/>".repeat(20_000));
    assert_eq!(read(&many).unwrap_err(), XmlError::TooManyNodes { nodes_max: 20_000 });
    let long = format!("<a><{}></a>", "x".repeat(10_000));
    assert!(read(&long).unwrap_err().to_string().len() < 500);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(sample in any_sample()) {
        let mut writer = Writer::with_declaration();
        write(&sample, &mut writer).unwrap();
        let text = writer.finish().unwrap();
        let document = read(&text).unwrap();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        flat(&sample, &mut expected);
        flat_element(document.root(), &mut found);
        prop_assert_eq!(&found, &expected);
        // Every element is a document of its own that says the same.
        for element in all(document.root()) {
            let alone = element.to_xml();
            let alone = read(&alone).unwrap();
            let (mut inside, mut apart) = (Vec::new(), Vec::new());
            flat_element(element, &mut inside);
            flat_element(alone.root(), &mut apart);
            prop_assert_eq!(&inside, &apart);
        }
    }

    #[test]
    fn a_document_that_is_cut_off_is_an_error(sample in any_sample(), at in any::<prop::sample::Index>()) {
        let mut writer = Writer::new();
        write(&sample, &mut writer).unwrap();
        let text = writer.finish().unwrap();
        let cut = &text.as_bytes()[..at.index(text.len())];
        let read = decode(cut, None).and_then(|text| read(&text).map(|_| ()));
        prop_assert!(read.is_err());
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes, None).map(|text| read(&text).map(|document| all(document.root()).len()));
    }

    #[test]
    fn no_markup_does_harm(text in "(<|</|/>|>|<!--|-->|<!\\[CDATA\\[|\\]\\]>|<\\?|\\?>|&|&#x|;|=|'|\"|xmlns|:|[a-c]| |é|\u{fffe}){0,60}") {
        if let Ok(document) = read(&text) {
            for element in all(document.root()) {
                prop_assert!(read(&element.to_xml()).is_ok());
                let _ = (element.text(), element.position(), element.qualified("a:b"));
            }
        }
    }
}

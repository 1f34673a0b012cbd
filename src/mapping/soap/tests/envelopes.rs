//! Envelopes as they are written.

use super::*;

const V1_1: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:n1=\"urn:shop\">";
const V1_2: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <soap:Envelope xmlns:soap=\"http://www.w3.org/2003/05/soap-envelope\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xmlns:n1=\"urn:shop\">";

fn simple() -> XmlTypes {
    let unqualified = XmlElement { name: name("note"), member: "note".into(), ..element("note") };
    let order = content(vec![
        one(holding("id", XmlValue::Integer)),
        one(holding("paid", XmlValue::Boolean)),
        one(unqualified),
    ]);
    types(vec![("Order", order)])
}

#[test]
fn both_versions_have_their_envelope_type_and_action() {
    let mut operation = operation(SoapBody::Wrapped(typed("order", "Order")));
    let json = r#"{"note":"a < b","paid":true,"id":7}"#;
    let expected = "<soap:Body><n1:order><n1:id>7</n1:id><n1:paid>true</n1:paid>\
                    <note>a &lt; b</note></n1:order></soap:Body></soap:Envelope>";
    let plan = compiled(&simple(), &operation);
    assert_eq!(written(&plan, json), format!("{V1_1}{expected}"));
    let request = |plan: &SoapPlan| {
        let request = crate::mapping::OutgoingRequest {
            method: "POST".into(),
            target: "/".to_owned(),
            headers: vec![("accept".to_owned(), "x".to_owned()), ("A".to_owned(), "b".to_owned())],
            body: Some(json.as_bytes().to_vec()),
            content_type: Some("application/json".into()),
        };
        let request = plan.wrap(request).unwrap();
        assert!(request.body.unwrap().ends_with(expected.as_bytes()));
        (request.content_type.unwrap().to_string(), request.headers)
    };
    let accept = "application/soap+xml, text/xml, multipart/related";
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let (content_type, headers) = request(&plan);
    assert_eq!(content_type, "text/xml; charset=utf-8");
    let action = pair("SOAPAction", "\"urn:shop#do\"");
    assert_eq!(headers, [action, pair("Accept", accept), pair("A", "b")]);

    operation.version = SoapVersion::V1_2;
    let plan = compiled(&simple(), &operation);
    assert_eq!(written(&plan, json), format!("{V1_2}{expected}"));
    let (content_type, headers) = request(&plan);
    assert_eq!(content_type, "application/soap+xml; charset=utf-8; action=\"urn:shop#do\"");
    assert_eq!(headers, [pair("Accept", accept), pair("A", "b")]);

    operation.action = String::new();
    let (content_type, _) = request(&compiled(&simple(), &operation));
    assert_eq!(content_type, "application/soap+xml; charset=utf-8");
    operation.version = SoapVersion::V1_1;
    let (_, headers) = request(&compiled(&simple(), &operation));
    assert_eq!(headers.first(), Some(&pair("SOAPAction", "\"\"")));
}

#[test]
fn bodies_are_wrapped_bare_rpc_or_empty() {
    let types = simple();
    let plan = compiled(&types, &operation(SoapBody::Bare(typed("order", "Order"))));
    assert_eq!(body(&plan, r#"{"order":{"id":1}}"#), "<n1:order><n1:id>1</n1:id></n1:order>");
    assert_eq!(body(&plan, "{}"), "<n1:order/>");
    let plan = compiled(&types, &operation(SoapBody::Bare(element("text"))));
    assert_eq!(body(&plan, r#"{"text":"x"}"#), "<n1:text>x</n1:text>");
    assert_eq!(body(&plan, "{}"), "");
    let part = |local: &str| XmlElement { name: name(local), ..element(local) };
    let parts = vec![
        XmlElement { holds: XmlContent::Value(XmlValue::Integer), ..part("a") },
        XmlElement { holds: XmlContent::Type(shop("Order")), ..part("b") },
    ];
    let rpc = SoapBody::Rpc { wrapper: name("{urn:calc}add"), parts };
    let plan = compiled(&types, &operation(rpc));
    let text = written(&plan, r#"{"b":{"id":2},"a":1}"#);
    let expected = "<n2:add><a>1</a><b><n1:id>2</n1:id></b></n2:add>";
    assert!(text.contains("xmlns:n1=\"urn:shop\" xmlns:n2=\"urn:calc\">"), "{text}");
    assert!(text.contains(expected), "{text}");
    assert_eq!(body(&plan, "{}"), "<n2:add></n2:add>");
    let plan = compiled(&types, &operation(SoapBody::Empty));
    assert_eq!(body(&plan, "{}"), "");
    assert!(refused(&plan, r#"{"x":1}"#).contains("x: is unknown here"));
}

#[test]
fn header_blocks_are_members_beside_those_of_the_body() {
    let mut operation = operation(SoapBody::Wrapped(typed("order", "Order")));
    operation.input.headers = vec![element("token"), typed("context", "Order")];
    let plan = compiled(&simple(), &operation);
    let text = written(&plan, r#"{"id":1,"context":{"id":2},"token":"t"}"#);
    let expected = "<soap:Header><n1:token>t</n1:token><n1:context><n1:id>2</n1:id></n1:context>\
                    </soap:Header><soap:Body><n1:order><n1:id>1</n1:id></n1:order></soap:Body>";
    assert!(text.contains(expected), "{text}");
    assert!(!written(&plan, r#"{"id":1}"#).contains("soap:Header"));
    assert!(refused(&plan, r#"{"id":1,"tokens":"t"}"#).contains("tokens: is unknown here"));
}

#[test]
fn a_block_of_another_goes_into_the_header() {
    let mut operation = operation(SoapBody::Wrapped(typed("order", "Order")));
    let inserted = |plan: &SoapPlan, json: &str| {
        let envelope = written(plan, json);
        let whole = insert_header_block(envelope.as_bytes(), b"<w:Security/>");
        String::from_utf8(whole).unwrap().split_once("\">").unwrap().1.to_owned()
    };
    let note = r#"{"note":"<soap:Header>"}"#;
    let expected = "<soap:Header><w:Security/></soap:Header><soap:Body>\
                    <n1:order><note>&lt;soap:Header&gt;</note></n1:order></soap:Body></soap:Envelope>";
    assert_eq!(inserted(&compiled(&simple(), &operation), note), expected);
    operation.input.headers = vec![element("token")];
    let text = inserted(&compiled(&simple(), &operation), r#"{"token":"t"}"#);
    let expected = "<soap:Header><w:Security/><n1:token>t</n1:token></soap:Header><soap:Body>\
                    <n1:order/></soap:Body></soap:Envelope>";
    assert_eq!(text, expected);
}

#[test]
fn values_leave_as_they_are_written() {
    let value = |value: XmlValue| ordering(content(vec![one(holding("v", value))]), Vec::new());
    let table = [
        (XmlValue::String, r#""  a\r\n\t<&>\"' é😀 ""#, "  a&#13;\n\t&lt;&amp;&gt;\"' é😀 "),
        (XmlValue::String, r#""""#, ""),
        (XmlValue::String, "1.50", "1.50"),
        (XmlValue::Token, r#"" a  b""#, " a  b"),
        (XmlValue::Boolean, "false", "false"),
        (XmlValue::Boolean, r#""1""#, "1"),
        (XmlValue::Integer, "123456789012345678901234567890", "123456789012345678901234567890"),
        (XmlValue::Integer, "-0", "-0"),
        (XmlValue::Integer, "1.0", "1"),
        (XmlValue::Integer, "12e2", "1200"),
        (XmlValue::Decimal, "1.50", "1.50"),
        (XmlValue::Decimal, "1.5e-3", "0.0015"),
        (XmlValue::Decimal, r#""INF""#, "INF"),
        (XmlValue::Base64, r#""YWJj""#, "YWJj"),
        (XmlValue::List(Box::new(XmlValue::Integer)), "[1, 2.0 ,3]", "1 2 3"),
        (XmlValue::List(Box::new(XmlValue::String)), r#"["a","b&"]"#, "a b&amp;"),
        (XmlValue::List(Box::new(XmlValue::String)), "[]", ""),
    ];
    for (kind, json, expected) in table {
        let text = order(&value(kind.clone()), &format!("{{\"v\":{json}}}"));
        assert_eq!(text, format!("<n1:v>{expected}</n1:v>"), "{kind:?} {json}");
    }
    let named = order(&value(XmlValue::Name), r#"{"v":"{urn:a&b}x"}"#);
    assert_eq!(named, "<n1:v xmlns:q1=\"urn:a&amp;b\">q1:x</n1:v>");
    assert_eq!(order(&value(XmlValue::Name), r#"{"v":"x"}"#), "<n1:v>x</n1:v>");
    let names = order(&value(XmlValue::List(Box::new(XmlValue::Name))), r#"{"v":["{u}a","{v}b"]}"#);
    assert_eq!(names, "<n1:v xmlns:q1=\"u\" xmlns:q2=\"v\">q1:a q2:b</n1:v>");
    let both = XmlType {
        attributes: vec![attribute("a", "a", XmlValue::Name)],
        text: Some(XmlValue::Name),
        ..XmlType::default()
    };
    let both = ordering(content(vec![one(typed("v", "Both"))]), vec![("Both", both)]);
    assert_eq!(
        order(&both, r#"{"v":{"a":"{u}x","text":"{v}y"}}"#),
        "<n1:v a=\"q1:x\" xmlns:q1=\"u\" xmlns:q2=\"v\">q2:y</n1:v>"
    );
    for (kind, json, expected) in [
        (XmlValue::String, r#""a\u0000""#, "v: the character U+0000 cannot be written in XML"),
        (XmlValue::String, r#""\uffff""#, "v: the character U+FFFF"),
        (XmlValue::String, "{}", "v: expected a single value, got an object"),
        (XmlValue::Integer, "1.5", "v: expected a whole number"),
        (XmlValue::Base64, r#""no!""#, "v: expected base64"),
        (XmlValue::Name, r#""a b""#, "v: expected a name"),
        (XmlValue::List(Box::new(XmlValue::String)), r#"["a b"]"#, "v: an item of this list"),
        (XmlValue::String, "null", ""),
    ] {
        let plan = value(kind.clone());
        if expected.is_empty() {
            assert_eq!(order(&plan, &format!("{{\"v\":{json}}}")), "<n1:order/>");
        } else {
            let text = refused(&plan, &format!("{{\"v\":{json}}}"));
            assert!(text.starts_with(&format!("invalid arguments: {expected}")), "{text}");
        }
    }
}

#[test]
fn elements_have_the_order_of_the_schema() {
    let line = content(vec![one(element("sku")), one(holding("count", XmlValue::Integer))]);
    let order_type = content(vec![
        one(element("a")),
        one(many(typed("line", "Line"))),
        one(nillable(element("b"))),
        one(required(nillable(element("c")))),
        one(required(element("d"))),
    ]);
    let plan = ordering(order_type, vec![("Line", line)]);
    let json = r#"{"d":"4","c":null,"line":[{"count":1,"sku":"x"},{"sku":"y"}],"b":null,"a":"1"}"#;
    assert_eq!(
        order(&plan, json),
        "<n1:a>1</n1:a><n1:line><n1:sku>x</n1:sku><n1:count>1</n1:count></n1:line>\
         <n1:line><n1:sku>y</n1:sku></n1:line><n1:b xsi:nil=\"true\"/><n1:c xsi:nil=\"true\"/>\
         <n1:d>4</n1:d>"
    );
    assert_eq!(order(&plan, "{}"), "<n1:c xsi:nil=\"true\"/>");
    // One where there may be many is the first of them.
    assert_eq!(
        order(&plan, r#"{"line":{"sku":"x"},"c":"c"}"#),
        "<n1:line><n1:sku>x</n1:sku></n1:line><n1:c>c</n1:c>"
    );
    let text = refused(&plan, r#"{"line":[{"sku":"x"},{"sku":"y","colour":"red"}]}"#);
    assert_eq!(
        text,
        "invalid arguments: line[1].colour: is unknown here; there may be: sku, count"
    );
    assert!(refused(&plan, r#"{"line":[5]}"#).contains("line[0]: expected an object"));
    assert!(refused(&plan, r#"{"a":"\u0001"}"#).contains("a: the character"));
    assert!(refused(&plan, r#"{"a":["x"]}"#).contains("a: expected a single value, got an array"));
}

#[test]
fn attributes_and_text_stand_together() {
    let price = XmlType {
        attributes: vec![
            attribute("currency", "currency", XmlValue::String),
            attribute("{urn:tax}rate", "rate", XmlValue::Decimal),
            attribute("{http://www.w3.org/XML/1998/namespace}lang", "lang", XmlValue::String),
            XmlAttribute {
                prefix: None,
                fixed: Some("<1>".to_owned()),
                ..attribute("version", "version", XmlValue::String)
            },
        ],
        text: Some(XmlValue::Decimal),
        ..XmlType::default()
    };
    let plan = ordering(content(vec![one(typed("price", "Price"))]), vec![("Price", price)]);
    assert_eq!(
        order(&plan, r#"{"price":{"text":9.90,"rate":0.20,"currency":"\"€\n\"","lang":"de"}}"#),
        "<n1:price currency=\"&quot;€&#10;&quot;\" n2:rate=\"0.20\" xml:lang=\"de\" \
         version=\"&lt;1&gt;\">9.90</n1:price>"
    );
    assert_eq!(order(&plan, r#"{"price":1}"#), "<n1:price version=\"&lt;1&gt;\">1</n1:price>");
    assert!(written(&plan, "{}").contains(" xmlns:n2=\"urn:tax\""));
    assert!(refused(&plan, r#"{"price":{"text":{}}}"#).contains("price.text: expected a single"));
    let text = refused(&plan, r#"{"price":{"currency":"\u0000"}}"#);
    assert!(text.contains("price.currency: the character U+0000"), "{text}");
}

#[test]
fn a_choice_has_what_the_call_has() {
    let card = group(false, vec![one(element("number")), one(element("holder"))]);
    let choice = group(
        false,
        vec![one(element("cash")), XmlParticle::Sequence(card), one(nillable(element("none")))],
    );
    let plan = ordering(content(vec![one(element("id")), XmlParticle::Choice(choice)]), Vec::new());
    assert_eq!(order(&plan, r#"{"cash":"5","id":"1"}"#), "<n1:id>1</n1:id><n1:cash>5</n1:cash>");
    assert_eq!(
        order(&plan, r#"{"holder":"h","number":"n","cash":null}"#),
        "<n1:number>n</n1:number><n1:holder>h</n1:holder>"
    );
    assert_eq!(order(&plan, r#"{"none":null}"#), "<n1:none xsi:nil=\"true\"/>");
    assert_eq!(order(&plan, r#"{"id":"1"}"#), "<n1:id>1</n1:id>");
    let text = refused(&plan, r#"{"holder":"h","cash":"5"}"#);
    assert!(text.ends_with("only one of these may be given at a time: cash, holder"), "{text}");

    let both = |extra: &str| {
        XmlParticle::Sequence(group(false, vec![one(element("a")), one(element(extra))]))
    };
    let plan = ordering(
        content(vec![XmlParticle::Choice(group(false, vec![both("b"), both("c")]))]),
        Vec::new(),
    );
    assert_eq!(order(&plan, r#"{"c":"2","a":"1"}"#), "<n1:a>1</n1:a><n1:c>2</n1:c>");
    let choice = group(false, vec![one(element("a")), one(element("b"))]);
    let plan = ordering(content(vec![one(element("a")), XmlParticle::Choice(choice)]), Vec::new());
    // What stands elsewhere too is written there.
    assert_eq!(order(&plan, r#"{"b":"2","a":"1"}"#), "<n1:a>1</n1:a><n1:b>2</n1:b>");
    assert_eq!(order(&plan, r#"{"a":"1"}"#), "<n1:a>1</n1:a>");
    let plan = ordering(
        content(vec![XmlParticle::Choice(group(true, vec![one(element("a")), one(element("b"))]))]),
        Vec::new(),
    );
    assert_eq!(
        order(&plan, r#"{"b":["3"],"a":["1","2"]}"#),
        "<n1:a>1</n1:a><n1:a>2</n1:a><n1:b>3</n1:b>"
    );
}

#[test]
fn a_choice_that_must_be_made_is_not_left_out() {
    let needed = |repeats: bool, content: Vec<XmlParticle>| {
        XmlParticle::Choice(XmlGroup { required: true, ..group(repeats, content) })
    };
    for repeats in [false, true] {
        let either = needed(repeats, vec![one(element("cash")), one(nillable(element("card")))]);
        let plan = ordering(content(vec![one(element("id")), either]), Vec::new());
        for json in [r#"{"id":"1"}"#, r#"{"cash":null}"#] {
            let text = refused(&plan, json);
            assert!(text.ends_with("one of these must be given: cash, card"), "{text}");
        }
        assert_eq!(order(&plan, r#"{"cash":"5"}"#), "<n1:cash>5</n1:cash>");
        assert_eq!(order(&plan, r#"{"card":null}"#), "<n1:card xsi:nil=\"true\"/>");
    }
    // What stands elsewhere too may be what is given.
    let either = needed(false, vec![one(element("id")), one(element("cash"))]);
    let plan = ordering(content(vec![one(element("id")), either]), Vec::new());
    assert_eq!(order(&plan, r#"{"id":"1"}"#), "<n1:id>1</n1:id>");
}

#[test]
fn groups_that_repeat_keep_what_belongs_together() {
    let pair = group(
        true,
        vec![
            one(element("key")),
            XmlParticle::Choice(group(false, vec![one(element("text")), one(element("code"))])),
            one(many(element("tag"))),
        ],
    );
    let plan = ordering(content(vec![XmlParticle::Sequence(pair)]), Vec::new());
    assert_eq!(
        order(&plan, r#"{"text":["1","2"],"key":["a","b"]}"#),
        "<n1:key>a</n1:key><n1:text>1</n1:text><n1:key>b</n1:key><n1:text>2</n1:text>"
    );
    assert_eq!(
        order(&plan, r#"{"key":["a","b"],"text":["1",null],"code":[null,"2"]}"#),
        "<n1:key>a</n1:key><n1:text>1</n1:text><n1:key>b</n1:key><n1:code>2</n1:code>"
    );
    assert_eq!(
        order(&plan, r#"{"key":["a","b"],"tag":["1","2","3"]}"#),
        "<n1:key>a</n1:key><n1:tag>1</n1:tag><n1:key>b</n1:key><n1:tag>2</n1:tag><n1:tag>3</n1:tag>"
    );
    assert_eq!(order(&plan, r#"{"tag":["1","2"]}"#), "<n1:tag>1</n1:tag><n1:tag>2</n1:tag>");
    assert_eq!(order(&plan, r#"{"key":[]}"#), "<n1:order/>");
    assert!(refused(&plan, r#"{"text":["1"],"code":["2"]}"#).contains("only one of these"));
}

#[test]
fn derived_types_are_named() {
    let base = |base: Option<&str>, is_abstract: bool, own: &str| XmlType {
        base: base.map(shop),
        is_abstract,
        ..content(vec![one(element("id")), one(element(own))])
    };
    let plan = ordering(
        content(vec![one(typed("animal", "Animal")), one(typed("pet", "Pet"))]),
        vec![
            ("Animal", base(None, true, "size")),
            ("Pet", base(Some("Animal"), false, "owner")),
            ("Dog", base(Some("Pet"), false, "bark")),
        ],
    );
    assert_eq!(
        order(&plan, r#"{"animal":{"bark":"x","xsi_type":"{urn:shop}Dog","id":"1"}}"#),
        "<n1:animal xsi:type=\"n1:Dog\"><n1:id>1</n1:id><n1:bark>x</n1:bark></n1:animal>"
    );
    assert_eq!(
        order(&plan, r#"{"pet":{"xsi_type":"Dog"},"animal":{"xsi_type":"Pet"}}"#),
        "<n1:animal xsi:type=\"n1:Pet\"/><n1:pet xsi:type=\"n1:Dog\"/>"
    );
    assert_eq!(order(&plan, r#"{"pet":{"id":"1"}}"#), "<n1:pet><n1:id>1</n1:id></n1:pet>");
    assert_eq!(order(&plan, r#"{"pet":{"xsi_type":"Pet"}}"#), "<n1:pet/>");
    let text = refused(&plan, r#"{"animal":{"id":"1"}}"#);
    assert!(
        text.contains("animal: \"xsi_type\" names one of: {urn:shop}Dog, {urn:shop}Pet"),
        "{text}"
    );
    // Nothing can stand where only others may that are not there.
    let plan = ordering(
        content(vec![one(typed("animal", "Animal"))]),
        vec![("Animal", base(None, true, "size"))],
    );
    assert_eq!(order(&plan, "{}"), "<n1:order/>");
    assert!(refused(&plan, r#"{"animal":{}}"#).contains("animal: cannot be given"));
}

#[test]
fn only_types_that_may_stand_there_are_taken() {
    let of =
        |base: Option<&str>| XmlType { base: base.map(shop), ..content(vec![one(element("id"))]) };
    let plan = ordering(
        content(vec![one(typed("pet", "Pet"))]),
        vec![("Animal", of(None)), ("Pet", of(Some("Animal"))), ("Dog", of(Some("Pet")))],
    );
    // Only what is derived from the declared one, whatever other types there are.
    for wrong in ["Animal", "Order", "{urn:other}Dog", ""] {
        let text = refused(&plan, &format!("{{\"pet\":{{\"xsi_type\":{wrong:?}}}}}"));
        assert!(text.contains("pet.xsi_type: \"xsi_type\" names one of"), "{text}");
    }
}

#[test]
fn xml_text_is_checked_and_left_alone() {
    let any = |repeats| XmlParticle::Any { member: "any".into(), repeats };
    let mixed = XmlElement { holds: XmlContent::Any, ..element("mixed") };
    let plan = ordering(content(vec![one(mixed), any(true)]), Vec::new());
    assert_eq!(
        order(&plan, r#"{"any":["<a xmlns='u'>1</a>"," <b/> "],"mixed":"x <i>y</i> &amp; z"}"#),
        "<n1:mixed>x <i>y</i> &amp; z</n1:mixed><a xmlns='u'>1</a><b/>"
    );
    for bad in [
        r#"{"mixed":"<a>"}"#,
        r#"{"mixed":"</n1:mixed><evil/>"}"#,
        r#"{"mixed":"</r><r>"}"#,
        r#"{"mixed":"a & b"}"#,
        r#"{"mixed":"<n1:a/>"}"#,
        r#"{"mixed":"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}"#,
        r#"{"mixed":"<?xml version='1.0'?><a/>"}"#,
        r#"{"mixed":"&b;"}"#,
        r#"{"mixed":"\u0000"}"#,
        r#"{"mixed":{}}"#,
        r#"{"any":["text"]}"#,
        r#"{"any":["<a/><b/>"]}"#,
        r#"{"any":["<a/>x"]}"#,
        r#"{"any":[""]}"#,
    ] {
        let text = refused(&plan, bad);
        assert!(text.contains(": is no XML: ") || text.contains(": expected "), "{bad}: {text}");
    }
}

#[test]
fn fixed_values_are_always_written() {
    let fixed = |element: XmlElement| XmlElement { fixed: Some("a&b".to_owned()), ..element };
    let plan = ordering(content(vec![one(fixed(element("v"))), one(element("w"))]), Vec::new());
    assert_eq!(order(&plan, "{}"), "<n1:v>a&amp;b</n1:v>");
    assert_eq!(order(&plan, r#"{"v":"other"}"#), "<n1:v>a&amp;b</n1:v>");
}

#[test]
fn types_within_themselves_go_as_deep_as_the_call() {
    let node = content(vec![one(typed("node", "Order"))]);
    let plan = ordering(node, Vec::new());
    let nested = |depth: usize| "{\"node\":".repeat(depth) + "{}" + &"}".repeat(depth);
    let text = order(&plan, &nested(3));
    assert_eq!(text, "<n1:node><n1:node><n1:node/></n1:node></n1:node>");
    order(&plan, &nested(DEPTH_MAX - 2));
    assert!(refused(&plan, &nested(DEPTH_MAX + 2)).contains("nested too deep"));
}

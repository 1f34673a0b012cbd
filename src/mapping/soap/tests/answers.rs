//! Answers as they are read.

use super::*;

#[test]
fn values_are_read_by_their_type_and_keep_every_digit() {
    let value = |value: XmlValue| ordering(content(vec![one(holding("v", value))]), Vec::new());
    let list = |item| XmlValue::List(Box::new(item));
    let table = [
        (XmlValue::String, "  a&lt;b\n<![CDATA[&c]]><!-- no -->d ", r#""  a<b\n&cd ""#),
        (XmlValue::String, "", r#""""#),
        (XmlValue::Token, "\n 2026-01-31\t", r#""2026-01-31""#),
        (XmlValue::Token, " a \u{a0}\r\n b  c", "\"a \u{a0} b c\""),
        (XmlValue::Token, " ", r#""""#),
        (XmlValue::Boolean, " 1 ", "true"),
        (XmlValue::Boolean, "false", "false"),
        (XmlValue::Boolean, "yes", r#""yes""#),
        (XmlValue::Integer, "\n123456789012345678901234567890 ", "123456789012345678901234567890"),
        (XmlValue::Integer, "+007", "7"),
        (XmlValue::Integer, "1.5", r#""1.5""#),
        (XmlValue::Integer, "", r#""""#),
        (XmlValue::Decimal, "1.5000", "1.5000"),
        (XmlValue::Decimal, "-.5", "-0.5"),
        (XmlValue::Decimal, "1E3", "1E3"),
        (XmlValue::Decimal, "INF", r#""INF""#),
        (XmlValue::Decimal, "NaN", r#""NaN""#),
        (XmlValue::Base64, "YW\n Jj", r#""YWJj""#),
        (XmlValue::Name, " s:x ", r#""{urn:shop}x""#),
        (XmlValue::Name, "x", r#""x""#),
        (XmlValue::Name, "gone:x", r#""gone:x""#),
        (list(XmlValue::Integer), " 1 2\n3 x ", r#"[1,2,3,"x"]"#),
        (list(XmlValue::String), "", "[]"),
        (list(XmlValue::Token), " a\nb ", r#"["a","b"]"#),
    ];
    for (kind, text, expected) in table {
        let read = read_order(&value(kind.clone()), &format!("<s:v>{text}</s:v>"));
        assert_eq!(read, format!("{{\"v\":{expected}}}"), "{kind:?} {text}");
    }
}

#[test]
fn arrays_come_from_the_schema_and_nulls_from_nil() {
    let line = content(vec![one(element("sku"))]);
    let plan = ordering(
        content(vec![
            one(nillable(element("a"))),
            one(many(typed("line", "Line"))),
            one(many(nillable(element("n")))),
        ]),
        vec![("Line", line)],
    );
    let table = [
        ("", r#"{"line":[],"n":[]}"#),
        ("<s:line/>", r#"{"line":[{}],"n":[]}"#),
        ("<s:n>1</s:n><s:n i:nil='1'/>", r#"{"line":[],"n":["1",null]}"#),
        ("<s:a i:nil='true'/>", r#"{"a":null,"line":[],"n":[]}"#),
        ("<s:a i:nil='false'>x</s:a>", r#"{"a":"x","line":[],"n":[]}"#),
        // Whatever the order, that of the schema comes out.
        (
            "<s:n>1</s:n><s:line><s:sku>x</s:sku></s:line><s:a>0</s:a><s:line/>",
            r#"{"a":"0","line":[{"sku":"x"},{}],"n":["1"]}"#,
        ),
    ];
    for (content, expected) in table {
        assert_eq!(read_order(&plan, content), expected, "{content}");
    }
}

#[test]
fn what_the_schema_does_not_know_is_counted() {
    let plan = ordering(content(vec![one(element("a")), one(element("b"))]), Vec::new());
    let counted = |content: &str| {
        let text = enveloped(&format!("<s:order>{content}</s:order>"));
        read_with(&plan, &text, &Attachments::default())
    };
    let read = |json: &str, dropped| (json.to_owned(), dropped);
    assert_eq!(counted("<s:a>1</s:a><s:x><s:a/></s:x>"), read(r#"{"a":"1"}"#, 1));
    assert_eq!(counted("<s:a>1</s:a><s:a>2</s:a>"), read(r#"{"a":"1"}"#, 1));
    assert_eq!(counted("<s:a>1<b/></s:a>text"), read(r#"{"a":"1"}"#, 1));
    // In another namespace, or in none, it is still the same element.
    assert_eq!(counted("<a>1</a><b xmlns='u'>2</b>"), read(r#"{"a":"1","b":"2"}"#, 0));
}

#[test]
fn wrappers_are_found_under_other_names() {
    let inner = content(vec![one(holding("v", XmlValue::Integer))]);
    let all = types(vec![("Order", inner)]);
    let wrapped = compiled(&all, &operation(SoapBody::Wrapped(typed("order", "Order"))));
    assert_eq!(read(&wrapped, "<s:order><s:v>1</s:v></s:order>"), r#"{"v":1}"#);
    assert_eq!(read(&wrapped, "<other><v>1</v></other>"), r#"{"v":1}"#);
    assert_eq!(read(&wrapped, ""), "{}");
    let bare = compiled(&all, &operation(SoapBody::Bare(typed("order", "Order"))));
    assert_eq!(read(&bare, "<s:order><s:v>1</s:v></s:order>"), r#"{"order":{"v":1}}"#);
    assert_eq!(read(&bare, "<other><v>1</v></other>"), r#"{"order":{"v":1}}"#);
    assert_eq!(read(&bare, ""), "{}");
    let part = XmlElement { name: name("sum"), ..holding("sum", XmlValue::Integer) };
    let rpc = SoapBody::Rpc { wrapper: name("{urn:calc}addResponse"), parts: vec![part] };
    let rpc = compiled(&all, &operation(rpc));
    assert_eq!(read(&rpc, "<addResult><sum i:type='x:int'>3</sum></addResult>"), r#"{"sum":3}"#);
    let empty = compiled(&all, &operation(SoapBody::Empty));
    assert_eq!(read(&empty, "<whatever/>"), "{}");
    let mut one_way = operation(SoapBody::Empty);
    one_way.output = None;
    assert_eq!(read(&compiled(&all, &one_way), "<whatever/>"), "{}");
}

#[test]
fn header_blocks_are_read_beside_the_body() {
    let mut operation = operation(SoapBody::Wrapped(typed("order", "Order")));
    operation.version = SoapVersion::V1_2;
    if let Some(output) = &mut operation.output {
        output.headers = vec![element("session")];
    }
    let plan = compiled(&types(vec![("Order", content(vec![one(element("v"))]))]), &operation);
    let text = "<?xml version='1.0'?>\n<Envelope xmlns='http://www.w3.org/2003/05/soap-envelope'>\
                <Header><other mustUnderstand='1'/><s:session xmlns:s='urn:shop'>x</s:session>\
                </Header><Body><order xmlns='urn:shop'><v>1</v></order></Body></Envelope>";
    let read = read_with(&plan, text, &Attachments::default());
    assert_eq!(read, (r#"{"session":"x","v":"1"}"#.to_owned(), 0));
}

#[test]
fn attributes_text_and_types_come_back() {
    let price = XmlType {
        attributes: vec![
            attribute("currency", "currency", XmlValue::String),
            attribute("{urn:tax}rate", "rate", XmlValue::Decimal),
        ],
        text: Some(XmlValue::Decimal),
        ..XmlType::default()
    };
    let plain = XmlType { text: Some(XmlValue::Integer), ..XmlType::default() };
    let noted = XmlType {
        base: Some(shop("Plain")),
        attributes: vec![attribute("note", "note", XmlValue::String)],
        ..plain.clone()
    };
    let plan = ordering(
        content(vec![one(typed("price", "Price")), one(typed("plain", "Plain"))]),
        vec![("Price", price), ("Plain", plain.clone()), ("Noted", noted)],
    );
    let alone = ordering(content(vec![one(typed("plain", "Plain"))]), vec![("Plain", plain)]);
    assert_eq!(read_order(&alone, "<s:plain>5</s:plain>"), r#"{"plain":5}"#);
    let table = [
        (
            "<s:price t:rate='0.20' currency=' € ' x='y' xmlns:t='urn:tax'>9.90</s:price>",
            r#"{"price":{"currency":" € ","rate":0.20,"text":9.90}}"#,
        ),
        ("<s:price/>", r#"{"price":{"text":""}}"#),
        ("<s:plain>5</s:plain>", r#"{"plain":{"text":5}}"#),
        (
            "<s:plain i:type='s:Noted' note='n'>5</s:plain>",
            r#"{"plain":{"xsi_type":"{urn:shop}Noted","note":"n","text":5}}"#,
        ),
        // Types that may not stand there are as good as none.
        ("<s:plain i:type='s:Price'>5</s:plain>", r#"{"plain":{"text":5}}"#),
        ("<s:plain i:type='s:Plain'>5</s:plain>", r#"{"plain":{"text":5}}"#),
        ("<s:plain i:type='gone:Noted'>5</s:plain>", r#"{"plain":{"text":5}}"#),
    ];
    for (content, expected) in table {
        assert_eq!(read_order(&plan, content), expected, "{content}");
    }
}

#[test]
fn markup_comes_back_as_text_that_stands_alone() {
    let mixed = XmlElement { holds: XmlContent::Any, ..element("mixed") };
    let any = XmlParticle::Any { member: "any".into(), repeats: true };
    let plan = ordering(content(vec![one(element("a")), one(mixed), any]), Vec::new());
    assert_eq!(
        read_order(&plan, "<s:mixed>x &lt; <s:b i:nil='1'>&amp;</s:b><!-- --> y</s:mixed>"),
        "{\"mixed\":\"x &lt; <s:b xmlns:s=\\\"urn:shop\\\" xmlns:i=\\\"http://www.w3.org/2001/\
         XMLSchema-instance\\\" i:nil='1'>&amp;</s:b> y\"}"
    );
    assert_eq!(
        read_order(&plan, "<u:x xmlns:u='u'>1</u:x><s:a>2</s:a><y/>"),
        "{\"a\":\"2\",\"any\":[\"<u:x xmlns:u='u'>1</u:x>\",\"<y/>\"]}"
    );
    // An element of the same name in another namespace is for whoever takes any.
    assert_eq!(read_order(&plan, "<a xmlns='u'/>"), "{\"any\":[\"<a xmlns='u'/>\"]}");
}

#[test]
fn groups_come_back_side_by_side() {
    let pair = group(
        true,
        vec![
            one(element("key")),
            XmlParticle::Choice(group(false, vec![one(element("text")), one(element("code"))])),
            one(many(element("tag"))),
        ],
    );
    let plan = ordering(content(vec![XmlParticle::Sequence(pair)]), Vec::new());
    let table = [
        (
            "<s:key>a</s:key><s:text>1</s:text><s:key>b</s:key><s:code>2</s:code>",
            r#"{"key":["a","b"],"text":["1"],"code":[null,"2"],"tag":[]}"#,
        ),
        (
            "<s:key>a</s:key><s:tag>1</s:tag><s:tag>2</s:tag><s:key>b</s:key><s:key>c</s:key>\
             <s:text>t</s:text>",
            r#"{"key":["a","b","c"],"text":[null,null,"t"],"code":[],"tag":["1","2"]}"#,
        ),
        (
            "<s:text>1</s:text><s:code>2</s:code>",
            r#"{"key":[],"text":["1"],"code":[null,"2"],"tag":[]}"#,
        ),
    ];
    for (content, expected) in table {
        assert_eq!(read_order(&plan, content), expected, "{content}");
    }
    let choice = group(true, vec![one(element("a")), one(element("b"))]);
    let plan = ordering(content(vec![XmlParticle::Choice(choice)]), Vec::new());
    assert_eq!(
        read_order(&plan, "<s:a>1</s:a><s:b>2</s:b><s:a>3</s:a>"),
        r#"{"a":["1","3"],"b":["2"]}"#
    );
}

#[test]
fn an_element_with_two_members_goes_to_the_first_that_is_free() {
    let second = XmlElement { member: "a_2".into(), ..element("a") };
    let plan =
        ordering(content(vec![one(element("a")), one(element("b")), one(second)]), Vec::new());
    assert_eq!(
        read_order(&plan, "<s:a>1</s:a><s:b>2</s:b><s:a>3</s:a>"),
        r#"{"a":"1","b":"2","a_2":"3"}"#
    );
}

#[test]
fn attachments_stand_where_they_are_included() {
    let plan = ordering(content(vec![one(many(holding("photo", XmlValue::Base64)))]), Vec::new());
    let include = |href: &str| {
        format!(
            "<s:photo><x:Include xmlns:x='http://www.w3.org/2004/08/xop/include' href='{href}'/>\
             </s:photo>"
        )
    };
    let text = |includes: &str| enveloped(&format!("<s:order>{includes}</s:order>"));
    let mut attachments = Attachments::default();
    attachments.add("<a%b@c>", b"\xff\x00abc".as_slice());
    attachments.add("two@c", b"2".as_slice());
    let both = text(&(include("cid:a%25b@c") + &include("cid:two%40c")));
    assert_eq!(
        read_with(&plan, &both, &attachments),
        (r#"{"photo":["/wBhYmM=","Mg=="]}"#.to_owned(), 0)
    );
    // What did not come, and a part that is asked for more often than it came.
    let lost = text(&(include("cid:gone") + &include("http://127.0.0.1/x")));
    assert_eq!(
        read_with(&plan, &lost, &attachments).0,
        r#"{"photo":["cid:gone","http://127.0.0.1/x"]}"#
    );
    let many = text(&include("cid:a%25b@c").repeat(3));
    assert_eq!(
        read_with(&plan, &many, &attachments).0,
        r#"{"photo":["/wBhYmM=","cid:a%25b@c","cid:a%25b@c"]}"#
    );
}

#[test]
fn what_is_no_envelope_is_told_from_one() {
    let plan = ordering(content(vec![one(typed("node", "Order"))]), Vec::new());
    let refused = |text: &str| plan.read(text, &Attachments::default()).unwrap_err();
    for text in ["", "Service unavailable", "<html><body></html>", "<!DOCTYPE html><html/>"] {
        assert!(matches!(refused(text), Unreadable::Xml(_)), "{text}");
    }
    for text in [
        "<html><body/></html>",
        "<Envelope><Body/></Envelope>",
        "<Envelope xmlns='urn:other'><Body/></Envelope>",
        "<Envelope xmlns='http://schemas.xmlsoap.org/soap/envelope/'/>",
    ] {
        assert_eq!(refused(text), Unreadable::Other, "{text}");
    }
    let nested = |depth: usize| {
        let inner = "<s:node>".repeat(depth) + &"</s:node>".repeat(depth);
        enveloped(&format!("<s:order>{inner}</s:order>"))
    };
    read_with(&plan, &nested(DEPTH_MAX - 1), &Attachments::default());
    assert_eq!(refused(&nested(DEPTH_MAX + 1)), Unreadable::TooDeep);
}

/// A text of a few bytes may name a namespace of many.
#[test]
fn what_repeats_a_namespace_is_bounded() {
    let any = XmlParticle::Any { member: "rest".into(), repeats: true };
    let list = XmlValue::List(Box::new(XmlValue::Name));
    let plan = ordering(
        content(vec![
            one(many(holding("q", XmlValue::Name))),
            one(holding("l", list)),
            one(XmlElement { holds: XmlContent::Any, ..element("x") }),
            any,
        ]),
        Vec::new(),
    );
    let read = |content: &str| {
        let long = "u".repeat(20_000);
        let text = enveloped(&format!("<s:order xmlns:z='{long}'>{content}</s:order>"));
        plan.read(&text, &Attachments::default())
    };
    let fault = |content: &str| {
        let long = "u".repeat(20_000);
        let fault = format!("<faultcode>x</faultcode><detail xmlns:z='{long}'>{content}</detail>");
        let namespace = "http://schemas.xmlsoap.org/soap/envelope/";
        let text = format!(
            "<e:Envelope xmlns:e='{namespace}'><e:Body><e:Fault>{fault}</e:Fault></e:Body></e:Envelope>"
        );
        plan.read(&text, &Attachments::default())
    };
    for (count, has_detail) in [(10, true), (1000, false)] {
        let Ok(Answer::Fault(fault)) = fault(&"<z:a/>".repeat(count)) else { panic!() };
        assert_eq!(fault.detail.is_some(), has_detail, "{count}");
    }
    for few in ["<z:a/>", "<s:q>z:a</s:q>", "<s:l>z:a</s:l>", "<s:x><z:a/></s:x>"] {
        assert!(read(few).is_ok(), "{few}");
    }
    let repeated = |one: &str| one.repeat(1000);
    for many in [
        repeated("<z:a/>"),
        repeated("<s:q>z:a</s:q>"),
        format!("<s:l>{}</s:l>", repeated("z:a ")),
        format!("<s:x>{}</s:x>", repeated("<z:a/>")),
    ] {
        assert_eq!(read(&many).unwrap_err(), Unreadable::TooLarge, "{}", &many[..20]);
    }
}

/// An element that has two members is looked for as fast among many others as among few.
#[test]
fn many_elements_of_a_name_that_stands_twice_take_their_time_once() {
    let plan = ordering(
        content(vec![
            one(element("a")),
            one(many(element("b"))),
            one(XmlElement { member: "a_2".into(), ..element("a") }),
        ]),
        Vec::new(),
    );
    let text = format!("{}{}", "<s:b/>".repeat(40_000), "<s:a/>".repeat(40_000));
    let started = std::time::Instant::now();
    let read = read_order(&plan, &text);
    assert!(read.starts_with(r#"{"a":"","b":["","#) && read.ends_with(r#""],"a_2":""}"#));
    let elapsed = started.elapsed();
    assert!(elapsed < std::time::Duration::from_secs(4), "{elapsed:?}");
}

//! What is wrong with types and operations is named.

use super::*;

fn faults_of(types: &XmlTypes) -> String {
    let errors = TypePlans::compile(types).unwrap_err();
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn faults_of_operation(types: &XmlTypes, operation: &SoapOperation) -> String {
    let types = Arc::new(TypePlans::compile(types).unwrap());
    let errors = SoapPlan::compile(&types, operation).unwrap_err();
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn faults_of_types_name_them() {
    let based = |base: &str| XmlType { base: Some(name(base)), ..XmlType::default() };
    let list = XmlValue::List(Box::new(XmlValue::List(Box::new(XmlValue::String))));
    let odd = |local: &str| XmlElement { name: shop(local), ..element("odd") };
    let fixed = |element| XmlElement { fixed: Some("\0".to_owned()), ..element };
    let mixed = XmlType { text: Some(XmlValue::String), ..content(vec![one(element("a"))]) };
    let mut deep = XmlParticle::Choice(group(false, Vec::new()));
    for _ in 0..70 {
        deep = XmlParticle::Choice(group(false, vec![deep]));
    }
    let table = [
        (
            vec![("A", content(vec![one(typed("x", "Gone"))]))],
            "type `{urn:shop}A`, element `{urn:shop}x`: there is no type `{urn:shop}Gone`",
        ),
        (
            vec![("A", based("{urn:shop}B")), ("B", based("{urn:shop}A"))],
            "type `{urn:shop}A`: it is derived from itself",
        ),
        (vec![("A", content(vec![one(odd("a b"))]))], "`{urn:shop}a b` is no name of XML"),
        (vec![("A", content(vec![one(odd("a><b"))]))], "`{urn:shop}a><b` is no name of XML"),
        (
            vec![("A", content(vec![one(element("x")), one(element("x"))]))],
            "type `{urn:shop}A`: two parts are the member \"x\"",
        ),
        (
            vec![(
                "A",
                XmlType {
                    attributes: vec![attribute("x", "x", XmlValue::String)],
                    ..content(vec![one(element("x"))])
                },
            )],
            "two parts are the member \"x\"",
        ),
        (vec![("A", mixed)], "type `{urn:shop}A`: it has text and elements"),
        (vec![("A", content(vec![one(holding("x", list))]))], "x: a list holds single values"),
        (vec![("A", content(vec![one(fixed(element("x")))]))], "x: the character U+0000"),
        (
            vec![("A", content(vec![one(fixed(typed("x", "A")))]))],
            "element `{urn:shop}x`: only an element that holds a value can have a fixed one",
        ),
        (
            vec![("A", content(vec![one(XmlElement { member: "".into(), ..element("x") })]))],
            "a part has an empty member name",
        ),
        (vec![("A", content(vec![one(element("xsi_type"))]))], "the members \"text\" and"),
        (vec![("A", content(vec![deep]))], "its groups nest deeper than 64 levels"),
    ];
    for (all, expected) in table {
        let told = faults_of(&types(all));
        assert!(told.contains(expected), "{expected} in {told}");
    }
    // A base that is not there stands in no message.
    let all = types(vec![("A", based("{http://www.w3.org/2001/XMLSchema}string"))]);
    assert!(TypePlans::compile(&all).is_ok());
    // And what the schema leaves unnamed may be called anything.
    assert!(TypePlans::compile(&types(vec![("order/line", content(Vec::new()))])).is_ok());
}

#[test]
fn faults_of_operations_name_their_place() {
    let all = types(vec![("Order", content(vec![one(element("id"))]))]);
    let table = [
        (SoapBody::Wrapped(typed("order", "Gone")), "there is no type `{urn:shop}Gone`"),
        (SoapBody::Wrapped(element("order")), "input: the element of a wrapped body"),
        (
            SoapBody::Wrapped(XmlElement { holds: XmlContent::Any, ..element("order") }),
            "output: the",
        ),
        (SoapBody::Wrapped(many(typed("order", "Order"))), "the element of a wrapped body"),
        (SoapBody::Rpc { wrapper: name("a b"), parts: Vec::new() }, "`a b` is no name of XML"),
    ];
    for (body, expected) in table {
        let told = faults_of_operation(&all, &operation(body));
        assert!(told.contains(expected), "{expected} in {told}");
    }
    let good = || operation(SoapBody::Wrapped(typed("order", "Order")));
    let mut shared = good();
    shared.input.headers = vec![element("id")];
    assert!(faults_of_operation(&all, &shared).contains("input: two parts are the member \"id\""));
    for action in ["a\"b", "a\r\nX: y", "é", "a\\b"] {
        let odd = SoapOperation { action: action.to_owned(), ..good() };
        assert!(
            faults_of_operation(&all, &odd).contains("action: only printable ASCII"),
            "{action}"
        );
    }
}

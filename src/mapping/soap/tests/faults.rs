//! Faults of both versions.

use super::*;

const V1_1: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const V1_2: &str = "http://www.w3.org/2003/05/soap-envelope";

fn plan() -> SoapPlan {
    let stock = content(vec![
        one(element("sku")),
        one(holding("left", XmlValue::Integer)),
        one(many(element("shop"))),
    ]);
    let mut operation = operation(SoapBody::Wrapped(typed("order", "Order")));
    operation.faults = vec![typed("outOfStock", "Stock"), element("busy")];
    compiled(&types(vec![("Order", content(Vec::new())), ("Stock", stock)]), &operation)
}

fn fault(envelope: &str, content: &str) -> Fault {
    let text = format!(
        "<e:Envelope xmlns:e='{envelope}' xmlns:s='urn:shop' \
         xmlns:i='http://www.w3.org/2001/XMLSchema-instance'><e:Body><e:Fault>{content}</e:Fault>\
         </e:Body></e:Envelope>"
    );
    match plan().read(&text, &Attachments::default()).unwrap() {
        Answer::Fault(fault) => {
            assert!(guard(&fault.to_json(1 << 20)).is_ok());
            fault
        }
        Answer::Message(message) => panic!("{message:?}"),
    }
}

fn json(envelope: &str, content: &str) -> String {
    String::from_utf8(fault(envelope, content).to_json(1 << 20)).unwrap()
}

#[test]
fn faults_of_version_1_1() {
    let table = [
        (
            "<faultcode>e:Client.Stock</faultcode><faultstring xml:lang='en'> No more &lt;7&gt; \
             </faultstring><faultactor>urn:store</faultactor>",
            r#"{"code":"Client.Stock","reason":"No more <7>","actor":"urn:store"}"#,
        ),
        (
            "<faultcode>s:Gone</faultcode><faultstring>x</faultstring><detail><s:outOfStock>\
             <s:sku>a</s:sku><s:left>007</s:left></s:outOfStock></detail>",
            r#"{"code":"{urn:shop}Gone","reason":"x","detail":{"outOfStock":{"sku":"a","left":7,"shop":[]}}}"#,
        ),
        (
            "<faultcode>Server</faultcode><faultstring/><detail><s:busy>1</s:busy><trace/></detail>",
            r#"{"code":"Server","reason":"","detail":{"busy":"1","xml":"<trace/>"}}"#,
        ),
        (
            "<faultcode>Server</faultcode><faultstring>x</faultstring><detail><a>1</a><b/></detail>",
            r#"{"code":"Server","reason":"x","detail":"<a>1</a><b/>"}"#,
        ),
        (
            "<faultcode>odd:Code</faultcode><detail> at line 7 </detail>",
            r#"{"code":"odd:Code","reason":"","detail":"at line 7"}"#,
        ),
        ("<e:faultcode>e:Server</e:faultcode><detail/>", r#"{"code":"Server","reason":""}"#),
        ("", r#"{"code":"","reason":""}"#),
    ];
    for (content, expected) in table {
        let told = json(V1_1, content);
        assert_eq!(told, expected, "{content}");
    }
}

#[test]
fn faults_of_version_1_2() {
    let table = [
        (
            "<e:Code><e:Value>e:Sender</e:Value><e:Subcode><e:Value>s:Stock</e:Value><e:Subcode>\
             <e:Value>s:Gone</e:Value></e:Subcode></e:Subcode></e:Code><e:Reason>\
             <e:Text xml:lang='de'>Leer</e:Text><e:Text xml:lang='en-GB'>Empty</e:Text></e:Reason>\
             <e:Node>urn:n</e:Node><e:Detail><s:busy>1</s:busy></e:Detail>",
            r#"{"code":"Sender","subcodes":["{urn:shop}Stock","{urn:shop}Gone"],"reason":"Empty","actor":"urn:n","detail":{"busy":"1"}}"#,
        ),
        (
            "<e:Code><e:Value>e:Receiver</e:Value></e:Code><e:Reason><e:Text xml:lang='de'>Leer\
             </e:Text></e:Reason><e:Node>urn:n</e:Node><e:Role>urn:r</e:Role>",
            r#"{"code":"Receiver","reason":"Leer","actor":"urn:r"}"#,
        ),
        ("<e:Code/>", r#"{"code":"","reason":""}"#),
    ];
    for (content, expected) in table {
        assert_eq!(json(V1_2, content), expected, "{content}");
    }
    let nested = "<e:Subcode><e:Value>s:x</e:Value>".repeat(40) + &"</e:Subcode>".repeat(40);
    let deep = fault(V1_2, &format!("<e:Code><e:Value>e:Sender</e:Value>{nested}</e:Code>"));
    assert_eq!(deep.subcodes.len(), 16);
}

#[test]
fn who_is_to_blame_is_in_the_code() {
    for (code, expected) in [
        ("e:Client", true),
        ("e:Client.Authentication", true),
        ("Sender", true),
        ("e:Server", false),
        ("e:Receiver", false),
        ("s:Client", false),
        ("e:MustUnderstand", false),
    ] {
        let fault = fault(V1_1, &format!("<faultcode>{code}</faultcode>"));
        assert_eq!(fault.is_the_callers(), expected, "{code}");
    }
}

#[test]
fn a_long_detail_is_told_by_its_beginning() {
    let long = fault(V1_1, &format!("<detail>{}</detail>", "é".repeat(50_000)));
    let json = String::from_utf8(long.to_json(100)).unwrap();
    assert!(guard(json.as_bytes()).is_ok() && json.len() < 300, "{json}");
    assert!(json.ends_with("... (100002 bytes in all)\"}"), "{json}");
}

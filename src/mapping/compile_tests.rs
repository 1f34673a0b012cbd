//! Tests of rules that do not make a request: each error names the rule and what to change.

use serde_json::{Map, json};

use super::super::{ResponsePlan, Unmapped};
use super::*;

/// `METHOD path | name@location {other keys} ; … | a part of the error`
const CASES: &str = r#"
GET /{id} | | placeholder {id} without a field rule; add a rule
GET / | id@path | field id (path): the path "/" has no placeholder of this name
GET x | | has to start with '/'
GET / | a@body | move the body fields to the query
TRACE / | | the method "TRACE": use GET
POST / | a..b@body | field a..b (body): a name is missing at character 3
POST / | a@body ; a@body | another rule has the same source field; remove one
GET / | X-A@header ; x-a@header | field x-a (header): another rule has the same
POST / | a@body ; a.b@body ; a.b[*]@body | field a.b[*] (body): another rule
POST / | a@body {"type": "string"} ; a.b@body | field a (body): the rules disagree
POST / | a[*]@body ; a.b@body | field a.b (body): the rules disagree
POST / | a[*]@body {"array_item_type":"string"} ; a[*].b@body | field a[*] (body): the rules
POST / | [*].a@body ; b@body | field b (body): the rules disagree
GET / | o@query {"type": "file"} | field o (query): a file can only go into a body
GET / | o@query {"type": "array", "array_item_type": "file"} | a file can only go into a body
GET / | o@query {"style": "simple"} | field o (query): a query field or one of a form has the style
GET /{o} | o@path {"style": "form"} | a path field has the style simple, label, matrix or json
GET / | o@header {"style": "form"} | a header field has the style simple or json; change style
GET / | o@cookie {"style": "deep_object"} | a cookie field has the style form or json; change style
GET / | o@query {"style": "deep_object"} | style deep_object is for objects; set type
GET / | o@header {"allow_reserved": true} | allow_reserved is for query fields and forms; remove it
GET / | o@query {"content_type": "a/b"} | content_type and part_headers are for fields of a multipart body
GET / | o@query {"part_headers": {"A": "b"}} | content_type and part_headers are for fields of a multipart body
GET /{o} | o@path {"nullable": true} | a part of the path cannot be null; remove nullable
POST / | o@body {"style": "form"} | remove them, or set body_format of the tool to "form"
POST / | o.p@body {"explode": true} | field o.p (body): style, explode and allow_reserved are for
POST / | o@body {"content_type": "a/b"} | or set body_format of the tool to "multipart"
POST / | o@body {"type": "file"} | or type to "string" where the API takes the bytes as base64 text
POST / | o[*].p@body {"type": "file"} | field o[*].p (body): a file is a field of a multipart body
POST / | o@body {"type": "file", "default": "x"} | a file has no constant, default or enum; remove it
GET / | o@query {"style":"space_delimited","type":"array","constant":["a b"]} | must not have a value
GET / | f[t]@query {"constant":"1"} ; f@query {"type":"object","style":"deep_object","constant":{"t":1}} | must not have a member with the name
GET / | @query | its name is empty
GET / | a@query {"exposed_field_name": ""} | its name is empty
POST / | a.b@body {"exposed_field_name": "x.y"} | field a.b (body): exposed_field_name names one
POST / | a[*]@body {"exposed_field_name": "x[*]"} | write its last part only
POST / | a@body {"default": 5} | default has a value that is no string
POST / | a@body {"send_default": true} | send_default is set without a default
POST / | a@body {"enum": ["x", 1]} | enum has a value that is no string
POST / | a@body {"array_item_type": "string"} | array_item_type is set but the field is no array
POST / | a@body {"additional_properties": true} | the field is no object
POST / | a@body {"type": "object", "additional_properties": 1} | no boolean or schema
POST / | a@body {"type": "object", "constant": {}} ; a.b@body | set them on the members
POST / | a@body {"exposed_field_name":"x"} ; b@body {"exposed_field_name":"x"} | field b (body)
POST / | a@body {"as_string": true} | as_string is set but the field holds no integers
GET / | X-A@header {"constant": "a\r\nb"} | field X-A (header): its constant or default must not
GET /{a} | a@path {"constant": ".."} | field a (path): its constant or default must not
GET / | a@query {"constant": null} | is no value that can be sent here
POST / | a@body {"type":"object","additional_properties":{"type":"x"}} | look at additional_
GET / | Host@header | field Host (header): this header belongs to the connection
GET / | content-length@header | this header belongs to the connection
GET / | Transfer-Encoding@header | this header belongs to the connection
GET / | Connection@header | this header belongs to the connection
GET / | Cookie@header | location "cookie"
GET / | Authorization@header | headers of the connection
GET / | Content-Type@header | can only be a constant
GET / | X-é@header | change source_field_name
GET / | a=b@cookie | change source_field_name
"#;

fn rule(text: &str) -> FieldRule {
    let (name, keys) = text.trim().split_once(" {").unwrap_or((text.trim(), "}"));
    let (source, location) = name.split_once('@').unwrap();
    let mut keys: Map<String, Value> = serde_json::from_str(&format!("{{{keys}")).unwrap();
    keys.insert("source_field_name".to_owned(), json!(source));
    keys.insert("location".to_owned(), json!(location));
    serde_json::from_value(Value::Object(keys)).unwrap()
}

#[test]
fn errors_name_the_rule_and_the_remedy() {
    for case in CASES.trim().lines() {
        let parts: Vec<&str> = case.split('|').map(str::trim).collect();
        let [request, rules, expected] = parts[..] else { unreachable!("{case}") };
        let (method, path) = request.split_once(' ').unwrap();
        let rules: Vec<FieldRule> =
            rules.split(" ; ").filter(|text| !text.is_empty()).map(rule).collect();
        let message = match RequestPlan::compile(method, path, &rules, RequestBody::default()) {
            Err(error) => error.to_string(),
            Ok(_) => "no error".to_owned(),
        };
        assert!(message.contains(expected), "{case}\n{message}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let rules = [
        "Host@header",
        "q@query {\"style\": \"simple\"}",
        "p@path {\"constant\": \"..\"}",
        "a@body {\"default\": 5}",
        "o@body {\"exposed_field_name\": \"x.y\"}",
        "o.b@body {\"default\": 5}",
        "c.d@body {\"send_default\": true}",
        "c..e@body",
    ];
    let rules: Vec<FieldRule> = rules.into_iter().map(rule).collect();
    let errors: Vec<_> = RequestPlan::compile("TRACE", "/", &rules, RequestBody::default())
        .unwrap_err()
        .into_iter()
        .collect();
    // The method too; but nothing is judged below a field that does not fit.
    assert_eq!(errors.len(), 8, "{errors:?}");
    let both = [rule("a@body {\"default\": 5}"), rule("b@body {\"send_default\": true}")];
    assert_eq!(ResponsePlan::compile(&both, Unmapped::Drop).unwrap_err().into_iter().count(), 3);
}

#[test]
fn the_number_of_rules_is_limited() {
    let field = |number| FieldRule::new(format!("field{number}"), Location::Query);
    let rules: Vec<FieldRule> = (0..=shape::RULES_MAX).map(field).collect();
    let compile =
        |rules: &[FieldRule]| RequestPlan::compile("GET", "/", rules, RequestBody::default());
    assert_eq!(compile(&rules).unwrap_err(), MappingError::TooManyRules.into());
    assert!(compile(&rules[1..]).is_ok());
}

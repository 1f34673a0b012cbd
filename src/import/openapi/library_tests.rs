use serde_json::json;

use super::*;

fn documents(files: &[(&str, Value)]) -> Documents {
    let mut documents = Documents::new();
    for (path, tree) in files {
        let location = Location::parse(&format!("bundle:/{path}")).unwrap();
        documents.add(&location, tree.to_string().into_bytes()).unwrap();
    }
    documents
}

fn load(files: &[(&str, Value)]) -> Library {
    let root = Location::parse(&format!("bundle:/{}", files[0].0)).unwrap();
    match Library::load(&documents(files), &root, |_| true).unwrap() {
        Step::Done(library) => library,
        Step::Need(needed) => panic!("{needed:?}"),
    }
}

/// What a reference in the root document points to, in short.
fn pointed(library: &Library, reference: &str) -> String {
    let index = Index::new(library);
    match index.resolve(index.root().unwrap(), reference) {
        Ok(spot) => spot.value.to_string(),
        Err(error) => error,
    }
}

#[test]
fn references_of_every_kind() {
    let library = load(&[
        (
            "api/main.json",
            json!({
                "a/b": {"~c%": 1}, "list": [10, {"x": 11}],
                "through": {"$ref": "#/a~1b"},
                "$defs": {
                    "named": {"$anchor": "here", "title": "anchored"},
                    "inner": {
                        "$id": "https://example.com/inner.json",
                        "$defs": {"deep": {"$anchor": "there", "title": "inside"}},
                        "properties": {"p": {"$ref": "#/$defs/deep"}},
                    },
                },
                "other": {"$ref": "../shared/types.json#/Pet"},
            }),
        ),
        ("shared/types.json", json!({"Pet": {"$ref": "more.json"}})),
        ("shared/more.json", json!({"title": "more"})),
    ]);
    for (reference, expected) in [
        ("#/a~1b/~0c%25", "1"),
        ("#/a~1b/~0c%", "1"),
        ("#/list/1/x", "11"),
        ("#/through/~0c%25", "1"),
        ("#here", r#"{"$anchor":"here","title":"anchored"}"#),
        ("#list/0", "10"),
        ("https://example.com/inner.json#there", r#"{"$anchor":"there","title":"inside"}"#),
        ("https://example.com/inner.json#/$defs/deep/title", r#""inside""#),
        ("../shared/types.json#/Pet", r#"{"$ref":"more.json"}"#),
        ("#there", "the $ref \"#there\" points to nothing"),
        ("#/list/2", "the $ref \"#/list/2\" points to nothing"),
        (
            "nowhere.json",
            "the $ref \"nowhere.json\" leads to a document that is not there: nothing",
        ),
    ] {
        assert_eq!(pointed(&library, reference), expected, "{reference}");
    }
    let index = Index::new(&library);
    let root = index.root().unwrap();
    let other = index.follow(index.member(root, "other").unwrap()).unwrap();
    assert_eq!(other.text("title"), Some("more"));
    // Inside of a resource, `#` is its root.
    let inner = index.resolve(root, "#/$defs/inner/properties/p").unwrap();
    assert_eq!(index.follow(inner).unwrap().text("title"), Some("inside"));
}

#[test]
fn references_that_go_round_are_errors() {
    let library = load(&[(
        "a.json",
        json!({
            "self": {"$ref": "#/self"}, "a": {"$ref": "#/b"}, "b": {"$ref": "#/a"},
            "walk": {"$ref": "#/walk/x/x/x/x"}, "root": {"$ref": "#"},
        }),
    )]);
    let index = Index::new(&library);
    let root = index.root().unwrap();
    for name in ["self", "a", "walk"] {
        let error = index.follow(index.member(root, name).unwrap()).unwrap_err();
        assert!(error.contains("goes round") || error.contains("points to nothing"), "{error}");
    }
    assert!(index.follow(index.member(root, "root").unwrap()).is_ok());
}

#[test]
fn what_is_missing_is_asked_for_at_once() {
    let tree = json!({
        "a": {"$ref": "one.json#/x"}, "b": {"$ref": "sub/two.json"},
        "c": {"example": {"$ref": "never.json"}, "x-d": {"$ref": "never.json"}},
        "properties": {"example": {"$ref": "three.json"}},
        "e": {"$ref": "file:///etc/passwd"},
    });
    let mut files = documents(&[("main.json", tree)]);
    let root = Location::parse("bundle:/main.json").unwrap();
    let Step::Need(needed) = Library::load(&files, &root, |_| false).unwrap() else { panic!() };
    let needed: Vec<String> = needed.iter().map(ToString::to_string).collect();
    assert_eq!(needed, ["one.json", "sub/two.json", "three.json"]);
    for path in &needed {
        let location = Location::parse(&format!("bundle:/{path}")).unwrap();
        files.refuse(&location, "no such file".to_owned()).unwrap();
    }
    let Step::Done(library) = Library::load(&files, &root, |_| false).unwrap() else { panic!() };
    assert!(pointed(&library, "one.json#/x").ends_with("one.json cannot be read: no such file"));
    assert!(pointed(&library, "file:///etc/passwd").contains("only http and https"));
}

//! Sources on this machine: what is found, and what is not followed.

use std::os::unix::fs::symlink;

use super::*;

const OPENAPI: &str = "openapi: 3.0.0\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn opened(folder: &tempfile::TempDir, below: &str) -> Source {
    Source::open(folder.path().join(below).to_str().unwrap(), None).unwrap()
}

#[test]
fn a_file_reads_what_is_below_its_directory_and_nothing_else() {
    let outside = folder(&[("secret", "s")]);
    let folder = folder(&[("api/a.yaml", OPENAPI), ("api/b/c.yaml", "x"), ("other.yaml", "y")]);
    let at = |name: &str| folder.path().join("api").join(name);
    symlink(outside.path().join("secret"), at("link.yaml")).unwrap();
    symlink(outside.path(), at("linked")).unwrap();
    symlink("b/c.yaml", at("inside.yaml")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let mut source = opened(&folder, "api/a.yaml");
    let root = source.root.clone();
    let mut read = |reference: &str| {
        let location = root.join(reference).map_err(|error| error.to_string())?;
        source.read_file(&location)
    };
    assert_eq!(read("").unwrap(), OPENAPI.as_bytes());
    assert_eq!(read("b/c.yaml").unwrap(), b"x");
    assert_eq!(read("inside.yaml").unwrap(), b"x");
    for reference in [
        "link.yaml",
        "linked/secret",
        "../other.yaml",
        "/etc/passwd",
        "%2e%2e/other.yaml",
        "b/..%2f../other.yaml",
        "b",
        "pipe",
        "nothing.yaml",
        "file:///etc/passwd",
        "a%00.yaml",
    ] {
        assert!(read(reference).is_err(), "{reference}");
    }
}

#[test]
fn the_description_of_a_bundle_is_found_or_named() {
    let of = |files: &[(&str, &str)], root: Option<&str>| {
        let folder = folder(files);
        let source = Source::open(folder.path().to_str().unwrap(), root);
        source.map(|source| source.root.to_string()).map_err(|error| error.to_string())
    };
    let parts = ("parts.yaml", "type: object\n");
    assert_eq!(of(&[("api.yaml", OPENAPI), parts], None).unwrap(), "api.yaml");
    let two = [("a.yaml", OPENAPI), ("b.wsdl", "<definitions/>"), parts];
    let several = of(&two, None).unwrap_err();
    assert!(several.contains("--root: a.yaml, b.wsdl"), "{several}");
    assert_eq!(of(&two, Some("b.wsdl")).unwrap(), "b.wsdl");
    assert!(of(&[parts], None).is_err() && of(&two, Some("../x")).is_err());
    assert!(of(&two, Some("missing.yaml")).is_err());
}

#[test]
fn sources_are_told_apart_from_catalog_files() {
    let folder = folder(&[
        ("api/api.yaml", OPENAPI),
        ("catalog/catalog.toml", "[[tenant]]\nid = \"demo\"\n"),
        ("service.wsdl", "<wsdl:definitions/>"),
    ]);
    let kind = |below: &str| kind_of(folder.path().join(below).to_str().unwrap()).unwrap();
    for below in ["api", "api/api.yaml", "service.wsdl"] {
        assert_eq!(kind(below), Kind::Description, "{below}");
    }
    assert_eq!(kind("catalog"), Kind::Other);
    assert_eq!(kind("catalog/catalog.toml"), Kind::Other);
    assert_eq!(kind_of("https://x.test/openapi.json").unwrap(), Kind::Description);
    assert!(kind_of("/nowhere").is_err());
}

#[test]
fn what_is_shown_of_a_source_has_no_query_and_nothing_hidden() {
    assert_eq!(shown("https://x.test/a?token=secret#b"), "https://x.test/a");
    assert_eq!(shown("a?b\n"), "a?b·");
    assert!(Source::open("ftp://x.test/a", None).is_err());
    assert!(Source::open("https://user:pw@x.test/a", None).is_err());
}

/// Each document leads to one more, so each is read as often as there are others behind it.
#[test]
fn a_long_row_of_documents_ends() {
    let names: Vec<String> = (0..40).map(|number| format!("{number}.json")).collect();
    let description = |number: usize| {
        format!(
            "{{\"openapi\":\"3.0.0\",\"paths\":{{\"/a\":{{\"$ref\":\"{}.json\"}}}}}}",
            number + 1
        )
    };
    let texts: Vec<String> = (0..40).map(description).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (&**name, &**text)).collect();
    let folder = folder(&files);
    let settings = settings::Downstream::default();
    let reading = Reading {
        format: Some(Format::Openapi),
        options: Options::default(),
        allow_remote: false,
        allow_private: false,
        tenant: "demo",
        allowances: Vec::new(),
        settings: &settings,
    };
    assert!(reading.read(opened(&folder, "0.json")).is_ok());
    let refused = reading.read_within(opened(&folder, "0.json"), 20_000).unwrap_err();
    assert!(refused.to_string().contains("too long a row"), "{refused}");
}

/// Whoever writes an address knows where it is; where a name leads is up to somebody else.
#[test]
fn an_address_is_named_by_whoever_writes_it() {
    for (url, expected) in [
        ("http://127.0.0.1:8000/a.json", true),
        ("http://[::1]/a.json", true),
        ("http://10.0.0.7/a.json", true),
        ("http://localhost/a.json", true),
        ("http://LOCALHOST./a.json", true),
        ("http://a.localhost/a.json", false),
        ("https://api.example.com/a.json", false),
        ("http://10.0.0.7.nip.io/a.json", false),
    ] {
        assert_eq!(is_address(&Url::parse(url).unwrap()), expected, "{url}");
    }
}

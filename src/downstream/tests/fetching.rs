//! Documents over real sockets: limits, redirects, and where none may come from.

use std::time::Duration;

use url::Url;

use super::api::{Api, answer, raw_answer};
use super::support::{gzipped, on_a_core};
use crate::downstream::{FetchError, FetchRules, Fetched, Fetcher};
use crate::rt::{Resolver, WorkerPool};
use crate::settings::{self, Network};

fn rules(change: impl FnOnce(&mut FetchRules)) -> FetchRules {
    let mut rules = FetchRules::new("demo", &settings::Downstream::default(), 1000);
    change(&mut rules);
    rules
}

fn fetch(rules: FetchRules, url: &str) -> Result<Fetched, FetchError> {
    let workers = WorkerPool::start(1, 64).unwrap();
    let resolver = Resolver::new(workers);
    on_a_core(async { Fetcher::new(rules, resolver, None).fetch(url).await })
}

fn url(api: &Api) -> String {
    format!("http://{}/a/openapi.json", api.address)
}

/// With the API's address named by the operator.
fn named(api: &Api) -> FetchRules {
    rules(|rules| rules.named = Some(Url::parse(&url(api)).unwrap()))
}

#[test]
fn a_document_comes_whole_and_unpacked() {
    let api = Api::start(|_, talk| {
        let request = talk.request().unwrap();
        assert!(request.starts_with("GET /a/openapi.json?b=c HTTP/1.1\r\n"), "{request}");
        assert!(!request.to_ascii_lowercase().contains("authorization"), "{request}");
        talk.say(raw_answer("200 OK", "Content-Encoding: gzip\r\n", &gzipped(b"text")));
    });
    let at = format!("{}?b=c#d", url(&api));
    let fetched = fetch(named(&api), &at).unwrap();
    assert_eq!(fetched.bytes, b"text");
    assert_eq!(fetched.url, format!("{}?b=c", url(&api)));
}

#[test]
fn this_host_is_reached_only_where_it_is_named_or_allowed() {
    let api = Api::answering(answer("200 OK", "", b"x"));
    let refused = |rules| matches!(fetch(rules, &url(&api)), Err(FetchError::Refused { .. }));
    let loopback: Network = "127.0.0.0/8".parse().unwrap();
    assert!(refused(rules(|_| {})));
    assert!(!refused(named(&api)));
    assert!(!refused(rules(|rules| rules.allowed = vec![loopback])));
    // Another port of the host is not what was named, and what is blocked is blocked.
    let other = Url::parse("http://127.0.0.1:1/").unwrap();
    assert!(refused(rules(|rules| rules.named = Some(other))));
    let mut blocked = named(&api);
    blocked.blocked = vec![loopback];
    blocked.allowed = vec![loopback];
    assert!(refused(blocked));
}

#[test]
fn redirects_are_followed_and_judged_again() {
    let api = Api::start(|_, talk| {
        let request = talk.request().unwrap();
        let path = request.split(' ').nth(1).unwrap().to_owned();
        talk.say(match path.as_str() {
            "/a/openapi.json" => answer("302 Found", "Location: ../b/other.json\r\n", b""),
            "/b/other.json" => answer("200 OK", "", b"there"),
            "/loop" => answer("302 Found", "Location: /loop\r\n", b""),
            "/file" => answer("302 Found", "Location: file:///etc/passwd\r\n", b""),
            "/inside" => answer("302 Found", "Location: http://127.0.0.1:1/\r\n", b""),
            "/metadata" => answer("302 Found", "Location: http://169.254.169.254/\r\n", b""),
            _ => answer("302 Found", "", b""),
        });
    });
    let fetched = fetch(named(&api), &url(&api)).unwrap();
    assert_eq!(fetched.url, format!("http://{}/b/other.json", api.address));
    let failed =
        |path: &str| fetch(named(&api), &format!("http://{}{path}", api.address)).unwrap_err();
    assert!(matches!(failed("/loop"), FetchError::TooManyRedirects));
    assert!(matches!(failed("/file"), FetchError::Url { .. }));
    assert!(matches!(failed("/inside"), FetchError::Refused { .. }));
    assert!(matches!(failed("/metadata"), FetchError::Refused { .. }));
    assert!(matches!(failed("/nowhere"), FetchError::Status { status: 302 }));
}

#[test]
fn size_time_and_status_have_limits() {
    let large = Api::answering(answer("200 OK", "", &[b'x'; 1001]));
    assert!(matches!(fetch(named(&large), &url(&large)), Err(FetchError::Broken { .. })));
    let bomb = gzipped(&[0; 5000]);
    let bomb = Api::start(move |_, talk| {
        talk.request();
        talk.say(raw_answer("200 OK", "Content-Encoding: gzip\r\n", &bomb));
    });
    assert!(matches!(fetch(named(&bomb), &url(&bomb)), Err(FetchError::Content(_))));
    let gone = Api::answering(answer("404 Not Found", "", b"secret"));
    assert_eq!(
        fetch(named(&gone), &url(&gone)).unwrap_err().to_string(),
        "the server answered with status 404"
    );
    let silent = Api::start(|_, talk| while talk.request().is_some() {});
    let mut hurried = named(&silent);
    hurried.total_timeout = Duration::from_millis(100);
    assert!(matches!(fetch(hurried, &url(&silent)), Err(FetchError::TimedOut { .. })));
    let closing = Api::start(|_, _| {});
    assert!(matches!(fetch(named(&closing), &url(&closing)), Err(FetchError::Broken { .. })));
}

#[test]
fn urls_of_other_kinds_are_not_fetched() {
    for url in ["file:///etc/passwd", "ftp://x.test/", "http://user:pw@x.test/", "nothing", ""] {
        assert!(matches!(fetch(rules(|_| {}), url), Err(FetchError::Url { .. })), "{url}");
    }
    assert!(matches!(fetch(rules(|_| {}), "https://x.test/"), Err(FetchError::NoTls)));
}

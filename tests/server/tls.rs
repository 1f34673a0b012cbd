//! HTTPS on both sides: where clients connect, and where tools reach.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use serde_json::json;

use crate::harness::{
    Client, Events, NEWEST, PATIENCE, Ringway, Setup, Wire, call, eventually, json_answer, ping,
    rpc,
};

/// A certificate of its own authority.
struct Certificate {
    der: CertificateDer<'static>,
    pem: String,
    key_pem: String,
    key_der: Vec<u8>,
}

fn certificate(name: &str) -> Certificate {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    Certificate {
        der: made.cert.der().clone(),
        pem: made.cert.pem(),
        key_pem: made.signing_key.serialize_pem(),
        key_der: made.signing_key.serialize_der(),
    }
}

/// Connects as somebody who trusts this certificate only.
fn connect(address: SocketAddr, trusted: &Certificate) -> Result<Wire, String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    while session.is_handshaking() {
        session.complete_io(&mut socket).map_err(|error| error.to_string())?;
    }
    Ok(Wire::over(rustls::StreamOwned::new(session, socket)))
}

fn listening(certificate: &Certificate) -> Ringway {
    let server = Setup::new().prepare();
    let files = [
        ("listen.certificate", server.write("server.pem", &certificate.pem)),
        ("listen.key", server.write("server.key", &certificate.key_pem)),
    ];
    let mut server = server;
    for (key, path) in files {
        server.set(key, path);
    }
    server.start();
    server
}

#[test]
fn clients_are_served_over_https() {
    let trusted = certificate("localhost");
    let server = listening(&trusted);
    let client = Client::new(&server, "demo/assistant");
    let mut wire = connect(server.address(), &trusted).unwrap();
    let opened = wire.ask(&client.message(&crate::harness::initialize(NEWEST))).expect(200);
    let session = opened.header("Mcp-Session-Id").unwrap().to_owned();
    let client = Client { session: Some(session), ..client };
    for number in 0..20 {
        wire.ask(&client.message(&rpc(number, "tools/list", json!({})))).expect(200);
    }
    let mut stream = Events::open(wire, &client.get(None)).unwrap();
    let event = stream.primed();
    server.notify();
    assert!(stream.message().is_some());
    // The connection before is displaced, through TLS as without.
    let wire = connect(server.address(), &trusted).unwrap();
    let mut again = Events::open(wire, &client.get(Some(&event))).unwrap();
    assert!(again.message().is_some());
    assert!(stream.breaks_off());
    let mut wire = connect(server.address(), &trusted).unwrap();
    wire.ask(&client.request("DELETE")).expect(204);
    assert_eq!(again.rest().len(), 0);
    // Plain HTTP is not answered here, and harms nobody.
    let mut plain = TcpStream::connect(server.address()).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "plain HTTP was answered");
    wire.ask(&Client { session: None, ..client }.message(&ping())).expect(200);
}

#[test]
fn the_certificate_is_read_again_on_sighup() {
    let (old, new) = (certificate("localhost"), certificate("localhost"));
    let server = listening(&old);
    let client = Client::new(&server, "demo/assistant");
    let mut before = connect(server.address(), &old).unwrap();
    before.ask(&client.message(&ping())).expect(200);
    let reload = |certificate: &str, key: &str, part: &str| {
        server.write("server.pem", certificate);
        server.write("server.key", key);
        let from = server.logged();
        server.signal("HUP");
        server.wait_for_log(from, part);
        server.wait_for_log(from, "catalog read again");
    };
    // A certificate without its key changes nothing.
    reload(&new.pem, &old.key_pem, "the old certificate stays");
    connect(server.address(), &old).unwrap().ask(&client.message(&ping())).expect(200);
    reload(&new.pem, &new.key_pem, "catalog read again");
    connect(server.address(), &new).unwrap().ask(&client.message(&ping())).expect(200);
    let refused = connect(server.address(), &old).err().unwrap();
    assert!(refused.contains("certificate"), "{refused}");
    before.ask(&client.message(&ping())).expect(200);
}

/// An HTTPS API that answers everything with `{"safe":true}`.
fn api(certificate: &Certificate) -> String {
    api_asking(certificate, None)
}

/// As `api`, for clients of this authority alone: it says which of them it sees.
fn api_asking(certificate: &Certificate, authority: Option<&CertificateDer<'static>>) -> String {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(certificate.key_der.clone()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match authority {
        None => config.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.unwrap())
        }
    };
    let config = config.with_single_cert(vec![certificate.der.clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let session = ServerConnection::new(config.clone()).unwrap();
            let mut tls = rustls::StreamOwned::new(session, socket.unwrap());
            thread::spawn(move || {
                let mut received = Vec::new();
                let mut bytes = [0; 4096];
                while let Ok(read @ 1..) = tls.read(&mut bytes) {
                    received.extend_from_slice(&bytes[..read]);
                    if received.ends_with(b"\r\n\r\n") {
                        received.clear();
                        let shown = tls.conn.peer_certificates().and_then(|chain| chain.first());
                        let is = |name: &&str| {
                            let bytes = shown.map(AsRef::as_ref).unwrap_or_default();
                            bytes.windows(name.len()).any(|part| part == name.as_bytes())
                        };
                        let who = ["client-one", "client-two"].into_iter().find(|name| is(name));
                        let body = json!({ "safe": true, "who": who }).to_string();
                        let _ = tls.write_all(&json_answer(&body));
                        let _ = tls.flush();
                    }
                }
            });
        }
    });
    format!("https://localhost:{port}")
}

#[test]
fn tools_reach_https_apis_that_are_trusted() {
    let (trusted, other) = (certificate("localhost"), certificate("elsewhere.example"));
    let find = ("find", "GET", "/find", "");
    let called = |server: &Ringway| {
        let client = Client::keyless(server, "demo/public").in_session(NEWEST);
        client.called("find", json!({}))
    };
    let untrusted = Setup::new().api(&api(&trusted), &[find]).start();
    let result = called(&untrusted);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(result["isError"], true);
    for part in ["TLS handshake failed", "extra_roots", "\"api\""] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    drop(untrusted);

    for (certificate, works) in [(&trusted, true), (&other, false)] {
        let folder = tempfile::tempdir().unwrap();
        let roots = folder.path().join("roots.pem");
        fs::write(&roots, format!("{}{}", trusted.pem, other.pem)).unwrap();
        let server = Setup::new()
            .set("downstream.extra_roots", roots.display())
            .api(&api(certificate), &[find])
            .start();
        // Trusted is a certificate for the name that was asked for.
        let result = called(&server);
        assert_eq!(result["structuredContent"]["safe"] == true, works, "{result}");
        let client = Client::keyless(&server, "demo/public");
        let again = client.post(&call(2, "find", json!({}))).expect(200).result();
        assert_eq!(again["isError"] == true, !works, "{again}");
    }
}

#[test]
fn a_connection_may_trust_more_than_the_system() {
    let trusted = certificate("localhost");
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("roots.pem");
    fs::write(&roots, &trusted.pem).unwrap();
    let connection =
        format!("base_url = \"{}\"\ntls_roots = [\"{}\"]", api(&trusted), roots.display());
    let server = Setup::new().api_with(&connection, &[("find", "GET", "/find", "")]).start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    assert_eq!(client.called("find", json!({}))["structuredContent"]["safe"], true);
}

/// An authority, and a certificate and key of its for each name.
fn authority(names: [&str; 2]) -> (CertificateDer<'static>, [(String, String); 2]) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let signed = names.map(|name| {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
    });
    (root.der().clone(), signed)
}

#[test]
fn a_connection_shows_its_certificate_and_a_new_one_once_it_is_there() {
    let trusted = certificate("localhost");
    let (root, [one, two]) = authority(["client-one", "client-two"]);
    let base = api_asking(&trusted, Some(&root));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::write(at("roots.pem"), &trusted.pem).unwrap();
    let show = |(certificate, key): &(String, String)| {
        fs::write(at("own.key"), key).unwrap();
        fs::write(at("own.pem"), certificate).unwrap();
    };
    let bare = format!("base_url = \"{base}\"\ntls_roots = [\"{}\"]", at("roots.pem"));
    let own = format!(
        "{bare}\nclient_certificate = {{ certificate = \"{}\", key = \"{}\" }}",
        at("own.pem"),
        at("own.key")
    );
    let find = ("find", "GET", "/find", "");
    let declared =
        |lines: &str| format!("[[connection]]\ntenant = \"demo\"\nid = \"api\"\n{lines}\n");
    let server = Setup::new()
        .set("runtime.cores", 1)
        .set("downstream.idle_connections_max", 0)
        .api_with(&bare, &[find])
        .start();
    let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
    let called = || client.called("find", json!({}));
    assert_eq!(called()["isError"], true, "it shows none");

    // Its files are not there yet.
    let file = server.write("own.toml", &declared(&own));
    let applied = server.command(&["apply", &file]).succeeded();
    assert!(applied.stderr.contains("client_certificate.certificate: /"), "{}", applied.stderr);
    let text = called()["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("client certificate cannot be used"), "{text}");
    assert!(!text.contains("own.pem"), "{text}");

    show(&one);
    assert_eq!(called()["structuredContent"]["who"], "client-one");
    show(&two);
    eventually("the new certificate is shown", || {
        called()["structuredContent"]["who"] == "client-two"
    });
    // Half of a pair changes nothing.
    fs::write(at("own.key"), &one.1).unwrap();
    let from = server.logged();
    eventually("the files are looked at", || {
        assert_eq!(called()["structuredContent"]["who"], "client-two");
        server.log_text().lines().skip(from).any(|line| line.contains("stays in use"))
    });
}

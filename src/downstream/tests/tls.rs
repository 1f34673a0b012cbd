//! Calls over TLS.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::api::json_answer;
use super::support::{ENVIRONMENT, caller, json, on_a_core, request, tool_at};
use crate::catalog::CompiledTool;
use crate::downstream::error::{CallError, Unreachable};
use crate::rt::{self, BoundListener, Connection, Deadline, ListenAddress, ServerTls, Stop};

/// A certificate for `localhost`, written down: its file, and its key's.
fn certificate(directory: &Path) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (directory.join("certificate.pem"), directory.join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (certificate, key)
}

/// Answers whatever arrives in one piece, until the client leaves.
async fn answering(mut connection: Connection) {
    let deadline = Deadline::new();
    let mut request = Vec::new();
    while let Ok(1..) = connection.reader.read(&mut request, &deadline).await {
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            let answer = json_answer("200 OK", "{}").into_bytes();
            let within = Duration::from_secs(1);
            let _ = connection.writer.write_all(answer, &deadline, within).await;
        }
    }
}

fn tool(port: u16, roots: &Path) -> Arc<CompiledTool> {
    let roots = format!("tls_roots = [\"{}\"]", roots.display());
    tool_at(&format!("https://localhost:{port}"), &roots)
}

#[test]
fn https_is_spoken_with_the_connections_own_roots() {
    rt::install_crypto_provider();
    let directory = tempfile::tempdir().unwrap();
    let (trusted, key) = certificate(directory.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let (stranger, _) = certificate(elsewhere.path());
    let server = ServerTls::load(&trusted, &key).unwrap();
    on_a_core(async {
        let address = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
        let listener = BoundListener::bind(&address, 16).unwrap();
        let ListenAddress::Tcp(address) = listener.local_address() else { panic!() };
        let (stop, accepted) = (Stop::new(), Rc::new(Cell::new(0)));
        let (stopped, count) = (stop.clone(), Rc::clone(&accepted));
        rt::spawn(async move {
            let handler = move |connection| {
                count.set(count.get() + 1);
                answering(connection)
            };
            listener.serve(Some(server), stopped, handler).await.unwrap();
        });
        let caller = caller();
        let good = tool(address.port(), &trusted);
        for _ in 0..3 {
            assert_eq!(
                caller.run(&good, &request("GET", "/"), &ENVIRONMENT).await.result,
                json("{}")
            );
        }
        assert_eq!(accepted.get(), 1, "one connection for all calls");
        // Another trust never shares the socket of the first.
        let bad = tool(address.port(), &stranger);
        let error = caller.run(&bad, &request("GET", "/"), &ENVIRONMENT).await.result.unwrap_err();
        assert!(
            matches!(error, CallError::Unreachable { problem: Unreachable::Untrusted, .. }),
            "{error}"
        );
        let missing = tool(address.port(), &directory.path().join("none.pem"));
        let error =
            caller.run(&missing, &request("GET", "/"), &ENVIRONMENT).await.result.unwrap_err();
        assert!(error.detail().contains("none.pem"), "{}", error.detail());
        stop.stop();
    });
}

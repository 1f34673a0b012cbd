//! TLS, both ways.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::*;
use super::{on_core, until};

const LONG: Duration = Duration::from_secs(10);

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.write("localhost");
        files
    }

    fn write(&self, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(self.certificate(), made.cert.pem()).unwrap();
        std::fs::write(self.key(), made.signing_key.serialize_pem()).unwrap();
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

/// Serves with `handler` until the returned flag is raised.
fn serve<H, F>(tls: ServerTls, handler: H) -> (u16, Stop)
where
    H: Fn(Connection) -> F + Clone + 'static,
    F: Future<Output = ()> + 'static,
{
    let address = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    let listener = BoundListener::bind(&address, 64).unwrap();
    let ListenAddress::Tcp(address) = listener.local_address() else { panic!("not TCP") };
    let stop = Stop::new();
    let stopping = stop.clone();
    spawn(async move { listener.serve(Some(tls), stopping, handler).await.unwrap() });
    (address.port(), stop)
}

async fn call(port: u16, tls: &ClientTls) -> Result<Connection, ConnectError> {
    let resolver = Resolver::new(WorkerPool::start(1, 4).unwrap());
    resolver.pretend("localhost", port, &[SocketAddr::from(([127, 0, 0, 1], port))]);
    let target = ConnectTarget { host: "localhost", port, tls: Some(tls) };
    connect(&resolver, target, &|_| true, LONG).await
}

/// Echoes with reads that are given up every millisecond.
async fn impatient_echo(connection: Connection) {
    let Connection { mut reader, mut writer, .. } = connection;
    let deadline = Deadline::new();
    let mut buf = Vec::new();
    loop {
        let read = reader.read(&mut buf, &deadline);
        match timeout(Duration::from_millis(1), read).await {
            Err(Elapsed) => continue,
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(_)) => {}
        }
        let (outcome, empty) = writer.write_all(buf, &deadline, LONG).await;
        buf = empty;
        if outcome.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[test]
fn there_and_back_with_reads_that_are_dropped() {
    let files = Files::new();
    let server = ServerTls::load(&files.certificate(), &files.key()).unwrap();
    let client = ClientTls::new(&[files.certificate()]).unwrap();
    on_core(async move {
        let (port, stop) = serve(server, impatient_echo);
        let Connection { mut reader, mut writer, .. } = call(port, &client).await.unwrap();
        let deadline = Deadline::new();
        let sent: Vec<u8> = (0..500_000u32).map(|number| (number % 253) as u8).collect();
        let expected = sent.clone();
        spawn(async move {
            let deadline = Deadline::new();
            let mut pieces = sent.chunks(7_001);
            let first = pieces.next().unwrap().to_vec();
            writer.write_all(first, &deadline, LONG).await.0.unwrap();
            sleep(Duration::from_millis(5)).await;
            let rest = std::sync::Arc::new(pieces.collect::<Vec<_>>().concat());
            writer.write_shared(rest, &deadline, LONG).await.unwrap();
            writer.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        loop {
            let read = reader.read(&mut received, &deadline);
            match timeout(Duration::from_micros(300), read).await {
                Err(Elapsed) => {}
                Ok(outcome) => {
                    if outcome.unwrap() == 0 {
                        break;
                    }
                }
            }
        }
        assert!(received == expected, "{} bytes came back", received.len());
        assert_eq!(reader.read(&mut received, &deadline).await.unwrap(), 0);
        stop.stop();
    });
}

#[test]
fn a_certificate_is_exchanged_while_serving() {
    let files = Files::new();
    let server = ServerTls::load(&files.certificate(), &files.key()).unwrap();
    let old = ClientTls::new(&[files.certificate()]).unwrap();
    on_core(async move {
        let (port, stop) = serve(server.clone(), impatient_echo);
        call(port, &old).await.unwrap();
        // A broken file changes nothing.
        std::fs::write(files.key(), "nonsense").unwrap();
        let error = server.reload().unwrap_err();
        assert!(error.to_string().contains("key.pem"), "{error}");
        call(port, &old).await.unwrap();
        files.write("localhost");
        server.reload().unwrap();
        let error = call(port, &old).await.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        call(port, &ClientTls::new(&[files.certificate()]).unwrap()).await.unwrap();
        stop.stop();
    });
}

#[test]
fn files_of_no_use_are_named() {
    let (files, other) = (Files::new(), Files::new());
    let error = ServerTls::load(&files.certificate(), &other.key()).unwrap_err();
    assert!(matches!(error, TlsError::Pair { .. }), "{error}");
    let error = ServerTls::load(Path::new("/no/such/file.pem"), &files.key()).unwrap_err();
    assert!(error.to_string().contains("/no/such/file.pem"), "{error}");
    std::fs::write(files.certificate(), "no certificate").unwrap();
    let error = ServerTls::load(&files.certificate(), &files.key()).unwrap_err();
    assert!(error.to_string().contains("certificate.pem"), "{error}");
    assert!(ClientTls::new(&[files.certificate()]).is_err());
}

/// A pipe would be waited for, and a device read, for ever.
#[test]
fn what_is_no_file_is_not_read() {
    let files = Files::new();
    let pipe = files.certificate().with_extension("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    for odd in [&*pipe, Path::new("/dev/zero"), Path::new("/")] {
        let error = ClientTls::new(&[odd.to_owned()]).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        let error = ClientTls::with_certificate(&[], &files.certificate(), odd).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let files = Files::new();
    files.write("other.example");
    let server = ServerTls::load(&files.certificate(), &files.key()).unwrap();
    let client = ClientTls::new(&[files.certificate()]).unwrap();
    on_core(async move {
        let (port, stop) = serve(server, impatient_echo);
        let error = call(port, &client).await.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
        stop.stop();
    });
}

/// A stream that is cut off is not taken for one that ended, and noise is no request.
#[test]
fn cut_off_streams_and_noise_are_errors() {
    let files = Files::new();
    let server = ServerTls::load(&files.certificate(), &files.key()).unwrap();
    let client = ClientTls::new(&[files.certificate()]).unwrap();
    on_core(async move {
        let (port, stop) = serve(server, |connection| async move {
            let deadline = Deadline::new();
            let Connection { mut writer, .. } = connection;
            writer.write_all(b"half an ans".to_vec(), &deadline, LONG).await.0.unwrap();
        });
        let mut connection = call(port, &client).await.unwrap();
        let (mut buf, deadline) = (Vec::new(), Deadline::new());
        connection.reader.read(&mut buf, &deadline).await.unwrap();
        assert_eq!(buf, b"half an ans");
        let error = connection.reader.read(&mut buf, &deadline).await.unwrap_err();
        assert!(
            matches!(
                error.kind(),
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::ConnectionReset
            ),
            "{error}"
        );

        let before = tasks_running();
        let noise = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
            let mut rest = Vec::new();
            let _ = client.read_to_end(&mut rest);
            rest
        });
        until("noise is answered", || noise.is_finished()).await;
        // A TLS alert, and nothing else.
        assert_eq!(noise.join().unwrap().first(), Some(&21));
        until("its task ends", || tasks_running() <= before).await;
        stop.stop();
    });
}

#[test]
fn handshakes_at_once_are_bounded_and_the_next_client_waits() {
    let files = Files::new();
    let server = ServerTls::load(&files.certificate(), &files.key()).unwrap();
    let client = ClientTls::new(&[files.certificate()]).unwrap();
    on_core(async move {
        let address = ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        let listener = BoundListener::bind(&address, 64).unwrap();
        let ListenAddress::Tcp(address) = listener.local_address() else { panic!("not TCP") };
        let (stop, idle) = (Stop::new(), tasks_running());
        let stopping = stop.clone();
        spawn(async move {
            listener.serve_within(2, Some(server), stopping, impatient_echo).await.unwrap();
        });
        let silent: Vec<_> =
            (0..6).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        // The listener's own task and two that shake hands.
        until("two handshakes run", || tasks_running() == idle + 3).await;
        sleep(Duration::from_millis(50)).await;
        assert_eq!(tasks_running(), idle + 3);
        drop(silent);
        call(address.port(), &client).await.unwrap();
        // Connections that are served count no more.
        let served = [call(address.port(), &client).await, call(address.port(), &client).await];
        call(address.port(), &client).await.unwrap();
        stop.stop();
        drop(served);
    });
}

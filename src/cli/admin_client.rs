//! Speaks HTTP to the admin socket of a running server.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{AdminArguments, AuthorArguments, CommandError, SERVICE_SETTINGS, quickstart};
use crate::{
    http::{self, BodyLength, Limits, Method, ResponseProgress, ResponseReader},
    settings::{self, Settings},
};

/// How long the server may take to say anything.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);
/// The largest answer taken.
const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A conversation with the running server; one connection a request.
#[derive(Debug)]
pub(super) struct AdminClient {
    socket: PathBuf,
}

/// What the server answered.
#[derive(Debug)]
pub(super) struct AdminAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl AdminClient {
    /// Finds the running server: the socket named on the command line, else that of the settings
    /// file (the named one, or the service's), else that of quickstart.
    pub(super) fn find(arguments: &AdminArguments) -> Result<Self, CommandError> {
        if let Some(socket) = &arguments.admin {
            return Ok(Self { socket: socket.clone() });
        }
        let service = Path::new(SERVICE_SETTINGS);
        let config = arguments.config.as_deref().or_else(|| service.exists().then_some(service));
        let settings = Settings::load(config, settings::environment().into_iter())?;
        let socket = settings.admin_socket();
        let fallback = quickstart::default_data_directory().map(|at| at.join("admin.sock"));
        match fallback {
            // One that may not be looked at is there: its error says more than quickstart's.
            Some(quickstart)
                if arguments.config.is_none()
                    && !socket.exists()
                    && (quickstart.exists() || matches!(socket.try_exists(), Ok(false))) =>
            {
                Ok(Self { socket: quickstart })
            }
            _ => Ok(Self { socket }),
        }
    }

    /// Of the server that listens there.
    pub(super) fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Sends a request and reads the whole answer.
    pub(super) fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Result<AdminAnswer, CommandError> {
        let mut stream = UnixStream::connect(&self.socket).map_err(|source| {
            let socket = self.socket.clone();
            match source.kind() {
                std::io::ErrorKind::PermissionDenied => CommandError::NotAllowed { socket },
                _ => CommandError::NotRunning { socket, source },
            }
        })?;
        exchange(&mut stream, method, target, headers, body)
            .map_err(|what| CommandError::Conversation { socket: self.socket.clone(), what })
    }

    /// A request whose answer is JSON of a known shape; a refusal becomes the error.
    pub(super) fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<T, CommandError> {
        self.json_with(&[], method, target, body)
    }

    /// As [`AdminClient::json`], in the name of an author.
    pub(super) fn json_by<T: DeserializeOwned>(
        &self,
        author: &AuthorArguments,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<T, CommandError> {
        match &author.author {
            Some(author) => self.json_with(&[("X-Author", author)], method, target, body),
            None => self.json_with(&[], method, target, body),
        }
    }

    /// As [`AdminClient::json_by`], on the condition that the server has what this tag names.
    pub(super) fn json_if<T: DeserializeOwned>(
        &self,
        author: &AuthorArguments,
        tag: &str,
        method: Method,
        target: &str,
        body: &Value,
    ) -> Result<T, CommandError> {
        let mut headers = vec![("If-Match", tag)];
        headers.extend(author.author.as_deref().map(|author| ("X-Author", author)));
        self.json_with(&headers, method, target, Some(body))
    }

    fn json_with<T: DeserializeOwned>(
        &self,
        more: &[(&str, &str)],
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> Result<T, CommandError> {
        let body = body.map(|body| body.to_string().into_bytes());
        let headers = [&[("Content-Type", "application/json")], more].concat();
        let answer = self.send(method, target, &headers, body.as_deref())?;
        if !(200..300).contains(&answer.status) {
            return Err(answer.refusal());
        }
        serde_json::from_slice(&answer.body).map_err(|error| CommandError::Conversation {
            socket: self.socket.clone(),
            what: error.to_string(),
        })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Reads what there is. A signal is no end: the rings of a fetch before may still send some.
fn read_some(stream: &mut impl Read, chunk: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn exchange(
    stream: &mut UnixStream,
    method: Method,
    target: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Result<AdminAnswer, String> {
    let text = |error: std::io::Error| error.to_string();
    stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(text)?;
    let mut out = Vec::new();
    let length = body.map_or(BodyLength::None, |body| BodyLength::Known(body.len()));
    let headers = headers.iter().copied().chain([("Connection", "close")]);
    http::write_request_head(&mut out, method.as_str(), target, "localhost", headers, length)
        .map_err(|error| error.to_string())?;
    out.extend_from_slice(body.unwrap_or_default());
    // A server that refuses a large body answers before it has read it; the answer says more than
    // the broken pipe.
    let written = stream.write_all(&out);
    let limits = Limits { body_bytes_max: ANSWER_BYTES_MAX, ..Limits::default() };
    let mut reader = ResponseReader::new(limits);
    reader.expect(method);
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let progress = reader.poll().map_err(|error| error.to_string())?;
        if matches!(progress, ResponseProgress::Ready) {
            break;
        }
        let read = match (read_some(stream, &mut chunk), &written) {
            (Ok(read), _) if read > 0 => read,
            (_, Err(error)) => return Err(error.to_string()),
            (Ok(_), Ok(())) => 0,
            (Err(error), Ok(())) => return Err(error.to_string()),
        };
        if read == 0 {
            reader.end_of_stream().map_err(|error| error.to_string())?;
            break;
        }
        reader.buffer().extend_from_slice(&chunk[..read]);
    }
    Ok(AdminAnswer { status: reader.status(), body: reader.body().to_vec() })
}

impl AdminAnswer {
    /// The error an unsuccessful answer stands for: its `error` text, or its body.
    pub(super) fn refusal(&self) -> CommandError {
        let body: Option<Value> = serde_json::from_slice(&self.body).ok();
        let message = body
            .as_ref()
            .and_then(|body| body.pointer("/error/message").or_else(|| body.get("error")))
            .and_then(Value::as_str)
            .map_or_else(|| String::from_utf8_lossy(&self.body).into_owned(), str::to_owned);
        CommandError::Refused { status: self.status, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends every second read with a signal.
    struct Interrupted<'a> {
        bytes: &'a [u8],
        is_next: bool,
    }

    impl Read for Interrupted<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.is_next = !self.is_next;
            if self.is_next {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            self.bytes.read(into)
        }
    }

    #[test]
    fn a_signal_does_not_end_an_answer() {
        let mut stream = Interrupted { bytes: b"answer", is_next: false };
        let mut chunk = [0; 4];
        assert_eq!(read_some(&mut stream, &mut chunk).unwrap(), 4);
        assert_eq!(read_some(&mut stream, &mut chunk).unwrap(), 2);
        assert_eq!(read_some(&mut stream, &mut chunk).unwrap(), 0);
    }
}

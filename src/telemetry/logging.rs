//! Log lines: formatted where they arise, written by a thread of their own.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};

use tracing::Dispatch;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::settings::{LogFormat, Telemetry};

/// Longest line that is written; together with the queue's length it bounds the memory of the
/// queue.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Why logging did not start.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter cannot be understood.
    #[error("`{filter}` is not a log filter: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// Why not.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something in this process is logging already.
    #[error("logging was started before")]
    Started,
}

/// Keeps logging alive. When it is dropped, what is queued is written.
pub struct LogGuard {
    _writer: WorkerGuard,
    dropped: DroppedLines,
}

impl LogGuard {
    /// The counter of lines that were dropped because the queue was full.
    pub fn dropped_lines(&self) -> DroppedLines {
        self.dropped.clone()
    }
}

impl fmt::Debug for LogGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogGuard").field("dropped", &self.dropped.count()).finish_non_exhaustive()
    }
}

/// Counts lines that were dropped because the queue was full.
#[derive(Debug, Clone)]
pub struct DroppedLines(ErrorCounter);

impl DroppedLines {
    /// How many so far.
    pub fn count(&self) -> u64 {
        self.0.dropped_lines() as u64
    }
}

/// Starts writing log lines to standard error, as the settings say.
///
/// # Errors
/// The filter is wrong (which loaded settings never are), or logging was started before.
pub fn start_logging(settings: &Telemetry) -> Result<LogGuard, LoggingError> {
    let colours = settings.format == LogFormat::Text && io::stderr().is_terminal();
    let (dispatch, guard) = dispatch(settings, io::stderr(), colours)?;
    dispatch.try_init().map_err(|_| LoggingError::Started)?;
    Ok(guard)
}

fn dispatch(
    settings: &Telemetry,
    output: impl Write + Send + 'static,
    colours: bool,
) -> Result<(Dispatch, LogGuard), LoggingError> {
    let filter = EnvFilter::try_new(&settings.filter)
        .map_err(|source| LoggingError::Filter { filter: settings.filter.clone(), source })?;
    let (queue, writer) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(settings.log_queue_lines)
        .thread_name("ringway-log")
        .finish(output);
    let dropped = DroppedLines(queue.error_counter());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Lines { queue, format: settings.format })
        .with_ansi(colours);
    let dispatch = match settings.format {
        LogFormat::Text => Dispatch::new(lines.finish()),
        LogFormat::Json => Dispatch::new(lines.json().flatten_event(true).finish()),
    };
    Ok((dispatch, LogGuard { _writer: writer, dropped }))
}

/// The queue, behind the limit of a line's length.
struct Lines {
    queue: NonBlocking,
    format: LogFormat,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { queue: self.queue.clone(), format: &self.format }
    }
}

/// Takes one line, which comes in one piece.
struct Line<'a> {
    queue: NonBlocking,
    format: &'a LogFormat,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len();
        if length <= LINE_BYTES_MAX {
            self.queue.write_all(line)?;
        } else {
            // A cut line is no JSON any more.
            let note = match self.format {
                LogFormat::Text => format!("WARN a log line of {length} bytes was left out\n"),
                LogFormat::Json => format!(
                    "{{\"level\":\"WARN\",\"message\":\"a log line was left out\",\
                     \"length_bytes\":{length}}}\n"
                ),
            };
            self.queue.write_all(note.as_bytes())?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use parking_lot::Mutex;
    use tracing::dispatcher::with_default;

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(settings: &Telemetry, events: impl FnOnce()) -> String {
        let captured = Captured::default();
        let (dispatch, guard) = dispatch(settings, captured.clone(), false).unwrap();
        with_default(&dispatch, events);
        drop((dispatch, guard));
        let bytes = captured.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_lines_carry_fields_and_obey_the_filter() {
        let text = logged(&Telemetry::default(), || {
            tracing::info!(execution = "e-1", "called");
            tracing::debug!("not this");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("INFO") && text.contains("called execution=\"e-1\""), "{text}");
        let settings = Telemetry { filter: "off,ringway=debug".into(), ..Telemetry::default() };
        assert!(logged(&settings, || tracing::debug!("this")).contains("this"));
    }

    #[test]
    fn json_lines_are_json() {
        let settings = Telemetry { format: LogFormat::Json, ..Telemetry::default() };
        let text = logged(&settings, || tracing::warn!(execution = "e\n1", "called"));
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "called");
        assert_eq!(line["execution"], "e\n1");
    }

    #[test]
    fn control_characters_cannot_forge_a_line() {
        let text = logged(&Telemetry::default(), || {
            tracing::info!(path = "/x\nINFO forged\u{1b}[2J", "request");
        });
        assert_eq!(text.lines().count(), 1, "{text:?}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn a_line_too_long_is_left_out_and_says_so() {
        let long = "x".repeat(LINE_BYTES_MAX);
        for format in [LogFormat::Text, LogFormat::Json] {
            let settings = Telemetry { format, ..Telemetry::default() };
            let text = logged(&settings, || tracing::info!(long, "here"));
            assert!(text.len() < 200 && text.contains("left out"), "{text}");
            if format == LogFormat::Json {
                serde_json::from_str::<serde_json::Value>(&text).unwrap();
            }
        }
    }

    /// Takes a line only when told to.
    struct Blocked(mpsc::Receiver<()>);

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_blocked_output_costs_lines_not_time() {
        let (release, blocked) = mpsc::channel();
        let settings = Telemetry { log_queue_lines: 16, ..Telemetry::default() };
        let (dispatch, guard) = dispatch(&settings, Blocked(blocked), false).unwrap();
        let dropped = guard.dropped_lines();
        with_default(&dispatch, || (0..100).for_each(|number| tracing::info!(number, "line")));
        assert!((82..=84).contains(&dropped.count()), "{}", dropped.count());
        drop(release);
        drop((dispatch, guard));
    }

    #[test]
    fn a_wrong_filter_is_an_error() {
        let settings = Telemetry { filter: "a=b=c".into(), ..Telemetry::default() };
        let error = start_logging(&settings).unwrap_err();
        assert!(error.to_string().contains("a=b=c"), "{error}");
    }
}

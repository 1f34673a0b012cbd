//! What Ringway tells about itself: log lines, metrics, and the ids that tie lines to requests.
//!
//! Invariants worth naming:
//! - Nothing here makes a core wait: log lines go through a bounded queue to a thread that
//!   writes them, and are dropped and counted when it is full; a metric is one plain load and
//!   store of a number no other thread writes.
//! - Label values come from enums. What a client sent is never one.
//! - Secrets, tokens and bodies are not logged; the rooms that hold them mask their `Debug`.
//!
//! This room must not know any protocol beyond the names of its methods, and does not listen:
//! the admin plane serves what [`Metrics::render`] returns.

mod core_metrics;
mod execution;
mod figures;
mod labels;
mod logging;
mod process;
mod render;
mod trace;

pub use self::core_metrics::CoreMetrics;
pub use self::execution::{ExecutionId, ExecutionIds};
pub use self::figures::{Counter, Gauge, LATENCY_BOUNDS_MICROSECONDS, Latency};
pub use self::labels::{DownstreamLabel, MethodLabel, OutcomeLabel};
pub use self::logging::{DroppedLines, LogGuard, LoggingError, start_logging};
pub use self::process::{AuditFigures, ProcessFigures, UpstreamFigures, UpstreamsFigures};
pub use self::render::{METRICS_CONTENT_TYPE, Metrics};
pub use self::trace::{TraceParent, TraceText};

//! The floor: cores, tasks, time, sockets, TLS, threads. The only room that names `monoio`,
//! `io_uring` and `rustls`.
//!
//! Invariants worth naming:
//!
//! - A core is one thread with one runtime. Tasks never leave it; other threads reach it through an
//!   [`inbox()`] or a [`oneshot()`] and nothing else.
//! - Every future of this room may be dropped at any time. What that means for the connection is
//!   said at each function: a dropped read loses nothing, a dropped write breaks the writer.
//! - A panic ends its task, never its core. A task that wakes itself without end is set aside until
//!   the core has looked at its sockets and timers.
//! - A core ends all its tasks before its runtime goes, so nothing of a core is ever freed on
//!   another thread.
//! - Nothing here blocks a core: names are resolved and blocking work is done by a [`WorkerPool`].
//!
//! It must not know any protocol above TLS, and holds no configuration of its own.

mod connect;
mod connection;
mod cores;
mod deadline;
mod descriptors;
pub mod files;
mod inbox;
mod listener;
mod notify;
mod oneshot;
mod panics;
mod raw;
mod resolver;
pub mod service_manager;
mod signals;
mod tasks;
mod time;
mod tls;
mod tls_session;
mod workers;

#[cfg(test)]
mod tests;

pub use connect::{ConnectError, ConnectTarget, connect};
pub use connection::{Connection, Peer, Reader, Writer};
pub use cores::{CoreError, CoreOptions, Cores, DriverChoice, driver_name, run_once};
pub use deadline::Deadline;
pub use descriptors::descriptors_max;
pub use inbox::{InboxReceiver, InboxSender, Undelivered, Weigh, inbox};
pub use listener::{BoundListener, ListenAddress};
pub use notify::{Notify, Stop};
pub use oneshot::{Dropped, OneshotReceiver, OneshotSender, oneshot};
pub use resolver::Resolver;
pub use signals::{Signal, Signals};
pub use tasks::{end_tasks, panics_contained, spawn, tasks_running};
pub use time::{Either, Elapsed, race, sleep, timeout};
pub use tls::{ClientTls, ServerTls, TlsError, install_crypto_provider};
pub use workers::{WorkError, WorkerPool};

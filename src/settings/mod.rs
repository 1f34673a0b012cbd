//! What an operator may set: `ringway.toml`, the files beside it, the environment.
//!
//! Later sources win, key by key: the defaults of this crate, the file, `conf.d/*.toml` beside it
//! in name order, then variables such as `RINGWAY_RUNTIME__MCP__SSE__REQUIRE_SESSION=true`.
//! `config/ringway.toml` in the repository is the reference: every key with unit, default and
//! effect; a test keeps it equal to `Default`.
//!
//! Invariants worth naming:
//! - A [`Settings`] that [`Settings::load`] returned has passed [`Settings::validate`]; nobody
//!   checks a range again.
//! - Every problem of every source is reported at once, each with the file and line, or the
//!   variable, that wrote the value.
//! - An unknown key is an error: a misspelt limit must not silently be the default.
//! - No secret is a setting: files are named, their contents are read by who needs them.
//!
//! One struct and one file a section. This room must not open anything but settings files.

mod asking;
mod audit;
mod check;
mod discovery;
mod downstream;
mod error;
mod http;
mod listen;
mod load;
mod mcp;
mod network;
mod optional;
mod results;
mod runtime;
mod session;
mod sse;
mod store;
mod telemetry;
mod toml_depth;
mod upstream;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::asking::Asking;
pub use self::audit::Audit;
pub use self::check::{Finding, Findings};
pub use self::discovery::Discovery;
pub use self::downstream::Downstream;
pub use self::error::{Origin, Problem, SettingsError};
pub use self::http::Http;
pub use self::listen::Listen;
pub use self::load::{COMMAND_LINE_VARIABLES, environment};
pub use self::mcp::Mcp;
pub use self::network::{Network, NetworkError};
pub use self::results::Results;
pub use self::runtime::{Driver, Ring, Runtime};
pub use self::session::Session;
pub use self::sse::{Connected, Sse};
pub use self::store::Store;
pub use self::telemetry::{LogFormat, Telemetry};
pub use self::toml_depth::{TOML_DEPTH_MAX, too_deep_at};
pub use self::upstream::UpstreamServers;

/// Everything that can be set. The default is a working configuration for one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where Ringway listens.
    pub listen: Listen,
    /// Threads, data directory, catalog, and the protocol below it.
    pub runtime: Runtime,
    /// Limits of HTTP requests and connections.
    pub http: Http,
    /// Calls to the services behind the tools.
    pub downstream: Downstream,
    /// The embedded store.
    pub store: Store,
    /// Logs.
    pub telemetry: Telemetry,
    /// The record of every call.
    pub audit: Audit,
}

impl Settings {
    /// Where the audit log is: `audit` in the data directory.
    pub fn audit_directory(&self) -> PathBuf {
        self.runtime.data_directory.join("audit")
    }

    /// The admin socket: the one set, else `admin.sock` in the data directory.
    pub fn admin_socket(&self) -> PathBuf {
        let set = self.listen.admin_socket.clone();
        set.unwrap_or_else(|| self.runtime.data_directory.join("admin.sock"))
    }

    /// Checks ranges and settings that depend on each other. Empty: all is well.
    pub fn validate(&self) -> Vec<Finding> {
        let mut findings = Findings::default();
        self.listen.validate(&mut findings);
        self.runtime.validate(&mut findings);
        self.http.validate(&mut findings);
        self.downstream.validate(&mut findings);
        self.store.validate(&mut findings);
        self.telemetry.validate(&mut findings);
        self.audit.validate(&mut findings);
        findings.into_vec()
    }
}

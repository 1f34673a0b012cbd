//! The catalog: what is offered to whom.
//!
//! ```text
//! files ──read──▶ Entities ──rows / from_rows──▶ store
//!                    │
//!                 compile ──▶ Snapshot ──view(tenant, client application)──▶ View ──▶ tools
//! ```
//!
//! [`Entities`] is what was written down, each entity with its file and line. [`Snapshot`] is what
//! the runtime uses: everything that can be worked out before a request is worked out in it.
//!
//! Invariants:
//! - a snapshot is immutable; a change makes a new one, and a compile that finds a problem makes
//!   none, so the running one stays;
//! - every problem is reported in one run, each with the file and line of what it is about;
//! - in a view a tool's name is unique, and tools are in the order of their names;
//! - the bytes of `tools/list` are finished here, for each shape of the protocol;
//! - secrets of connections show in no `Debug`, no message and no [`FieldChange`].
//!
//! Only [`files`] reads files, and never on a core.

mod builtin;
mod change;
mod check;
mod connection;
mod document;
mod entities;
mod export;
pub mod files;
mod formats;
mod history;
mod model;
mod names;
mod problem;
mod rows;
mod secrets;
mod snapshot;
mod tool;
mod tree;
mod view;

pub use builtin::{
    BuiltinTool, RuntimeStatus, SessionList, SessionSummary, ToolSummary, ToolSummaryList,
};
pub use change::{EntityChange, FieldChange};
pub use connection::{CompiledConnection, TIMEOUT_MS_MAX};
pub use document::{Document, InvalidEntity};
pub use entities::{Difference, ENTITIES_MAX, Entities, Entity, EntityName, Entry, Kind};
pub use export::{ExportError, ExportFormat, export};
pub use history::{Action, ChangeHeader, ChangeRecord, HistoryError};
pub use model::{
    Annotations, Assignment, ClientApplication, Connection, Secret, Tenant, Tool, ToolMethod,
    Toolset, ToolsetKind,
};
pub use names::{
    ClientApplicationId, ConnectionId, InvalidName, NAME_BYTES_MAX, TenantId, ToolName, ToolsetId,
};
pub use problem::{Origin, PROBLEMS_MAX, Problem};
pub use rows::{Row, RowError};
pub use secrets::MASK;
pub use snapshot::Snapshot;
pub use tool::{CompiledTool, DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX, ToolKind, ToolShape};
pub use view::View;

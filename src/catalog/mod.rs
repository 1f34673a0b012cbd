//! The catalog: what is offered to whom.
//!
//! ```text
//! files ──read──▶ Entities ──rows / from_rows──▶ store
//!                    │
//!                 compile ──▶ Snapshot ──view(tenant, client application)──▶ View ──▶ tools,
//!                    ▲                                                              prompts,
//!               Definitions                                                         resources
//!        (what upstream servers offer)
//! ```
//!
//! [`Entities`] is what was written down, each entity with its file and line. [`Snapshot`] is what
//! the runtime uses: everything that can be worked out before a request is worked out in it.
//!
//! Invariants:
//! - a snapshot is immutable; a change makes a new one, and a compile that finds a problem makes
//!   none, so the running one stays;
//! - every problem is reported in one run, each with the file and line of what it is about;
//! - in a view a tool's name is unique, tools are in the order of their names, and neither depends on
//!   the order of what was written or on what a policy hides;
//! - what several views show alike is there once, and a change takes over everything whose entities
//!   are the very same values;
//! - the bytes of lists are put together here, for each shape of the protocol;
//! - access that is taken away is away at once; names of tools that went stay callable for a while;
//! - secrets of connections show in no `Debug`, no message and no [`FieldChange`]; those that tools
//!   always send show in no message and no [`FieldChange`].
//!
//! Only [`files`] reads files, and never on a core.

mod base_url;
mod builtin;
mod canonical;
mod change;
mod check;
mod compile;
mod connection;
mod constants;
mod correlation;
mod credential;
mod credentials;
mod deprecated;
mod differing;
mod document;
mod effects;
mod entities;
mod export;
mod exposed;
mod faults;
pub mod files;
#[cfg(test)]
pub(crate) mod fixture;
mod formats;
mod forwarding;
mod fragment;
mod history;
mod limits;
mod list;
mod messages;
mod meta_tool;
mod model;
mod names;
mod next_argument;
mod offer;
mod offered;
mod offers;
mod permission;
mod policy;
mod polling;
mod problem;
mod prompts;
mod proof;
mod remarks;
mod rows;
mod schema_hash;
pub mod search;
mod secret;
mod secrets;
mod shown;
mod snapshot;
mod tool;
mod toolset;
mod tree;
mod upstream;
mod upstream_text;
mod upstream_tool;
mod uri_template;
mod view;
mod yaml;

pub use builtin::{
    BuiltinTool, RuntimeStatus, SessionList, SessionSummary, ToolSummary, ToolSummaryList,
};
pub use canonical::canonical_hash;
pub use change::{EntityChange, FieldChange};
pub use connection::{CompiledConnection, TIMEOUT_MS_MAX};
pub use constants::is_credential;
pub use correlation::CorrelationHeader;
pub use credential::{
    ApiKeyPlace, CircuitBreaker, ClientCertificate, Credential, Retries, SecretReference,
    SecretSource, TokenEndpointAuthentication,
};
pub use credentials::{CompiledCredentials, Endpoint, OauthClient};
pub use deprecated::{Deprecated, FormerTools, Grace};
pub use differing::differing;
pub use document::{Document, InvalidEntity};
pub use effects::EffectByArgument;
pub use entities::{Difference, ENTITIES_MAX, Entities, Entity, EntityName, Entry, Kind};
pub use export::{ExportError, ExportFormat, export};
pub use faults::{DESCRIPTION_BYTES_MAX, TITLE_BYTES_MAX};
pub use fragment::{SAFETY_META, ToolShape};
pub use history::{Action, ChangeHeader, ChangeRecord, HistoryError};
pub use limits::{Limits, RATE_COUNT_MAX, RATE_SECONDS_MAX, Rate};
pub use list::ListEntry;
pub use meta_tool::MetaTool;
pub use model::{
    Annotations, Assignment, ClientApplication, Confirm, Connection, Correlation,
    CorrelationStrategy, DiscoveryMode, Imported, Polling, PromptMode, SideEffectBy, Tenant, Tool,
    ToolListing, ToolMethod, Toolset, ToolsetKind,
};
pub(crate) use names::is_match;
pub use names::{
    ClientApplicationId, ConnectionId, InvalidName, NAME_BYTES_MAX, OPERATION_NAME_BYTES_MAX,
    OperationName, TenantId, ToolName, ToolPattern, ToolsetId,
};
pub use offers::{OfferedPrompt, OfferedResource};
pub use permission::{Condition, DenialReason, Grant, Judgement, Permission, PolicyOwner, Verdict};
pub use policy::{
    ClockTime, PATTERNS_MAX, POLICY_PATTERNS_MAX, POLICY_RULES_MAX, Policy, PolicyEffect,
    PolicyMode, PolicyRule, SideEffect, TimeWindow, Trust, UtcOffset, WINDOWS_MAX, Weekday,
};
pub use polling::{CompiledPolling, StateField};
pub use problem::{Origin, PROBLEMS_MAX, Problem};
pub use prompts::{EffectivePrompt, PROMPT_MIME_TYPE};
pub use proof::{Proof, ResolvedCredential};
pub use rows::{Row, RowError};
pub use secret::Secret;
pub use secrets::MASK;
pub use shown::ViewTool;
pub use snapshot::Snapshot;
pub use tool::{CompiledTool, ToolKind};
pub use upstream::{
    Definition, DefinitionKind, DefinitionTrust, Definitions, Upstream, UpstreamDefinitions,
    UpstreamEra, UpstreamPrompt, UpstreamServer, UpstreamSessions, UpstreamTool, UpstreamTransport,
};
pub use view::{View, ViewChange};
pub(crate) use yaml::yaml_options;

//! All that a server offers.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{DefinitionKind, UpstreamEra, UpstreamServer};
use crate::downstream::carried::Carried;
use crate::downstream::error::{Awaited, CallError, UpstreamProblem};
use crate::downstream::rest::CallEnvironment;
use crate::json::{OwnedRaw, Raw, write_string};
use crate::mcp::upstream::{Listing, ListingLimits, NextPage, ServerFacts};
use crate::rpc::code;
use crate::sessions::ClientCapabilities;
use crate::telemetry::ExecutionId;

use super::office::{Office, within};
use super::{Discovery, Nobody, SessionScope, UpstreamAnswer, UpstreamMethod, UpstreamRequest};

/// How long all lists together may take.
const WITHIN: Duration = Duration::from_mins(5);
/// Longest text of a server in an error.
const SHOWN_BYTES_MAX: usize = 200;

const ENVIRONMENT: CallEnvironment<'_> = CallEnvironment {
    execution_id: ExecutionId::NIL,
    external_id: None,
    trace: None,
    carried: &Carried::NONE,
};

impl Office {
    pub(super) async fn discover(
        self: &Rc<Self>,
        server: &Arc<UpstreamServer>,
    ) -> Result<Discovery, CallError> {
        let found = within(WITHIN, Box::pin(self.lists(server))).await;
        found.unwrap_or_else(|| {
            Err(CallError::TimedOut {
                connection: server.connection.id.as_str().to_owned(),
                awaited: Awaited::Body,
                limit_ms: u64::try_from(WITHIN.as_millis()).unwrap_or(u64::MAX),
                repeatable: true,
            })
        })
    }

    async fn lists(self: &Rc<Self>, server: &Arc<UpstreamServer>) -> Result<Discovery, CallError> {
        let nobody = ClientCapabilities::NONE;
        let opened = self.session(server, SessionScope::Keeper, nobody, &ENVIRONMENT).await?;
        let session = opened.session;
        let is_modern = session.revision.is_modern();
        // What is known of a server without sessions may be old.
        let facts = if is_modern {
            let nothing = Raw::EMPTY_OBJECT.to_owned();
            let result = self.plain(server, UpstreamMethod::Discover, &nothing).await?;
            ServerFacts::of_discover(result.as_raw()).0
        } else {
            session.facts.clone()
        };
        let mut discovery = Discovery {
            era: if is_modern { UpstreamEra::Modern } else { UpstreamEra::Legacy },
            revision: Some(session.revision),
            completes: facts.completes,
            subscribes: facts.subscribes,
            tools_list_changed: facts.changes.tools,
            prompts_list_changed: facts.changes.prompts,
            resources_list_changed: facts.changes.resources,
            instructions: facts.instructions,
            server_name: facts.name,
            server_version: facts.version,
            ..Discovery::default()
        };
        let lists = [
            (DefinitionKind::Tool, facts.tools),
            (DefinitionKind::Prompt, facts.prompts),
            (DefinitionKind::Resource, facts.resources),
            (DefinitionKind::ResourceTemplate, facts.resources),
        ];
        let mut bytes_left = self.listing.bytes_max;
        for (kind, _) in lists.into_iter().filter(|(_, is_there)| *is_there) {
            let limits = ListingLimits { bytes_max: bytes_left, ..self.listing };
            let listing = self.list(server, Listing::new(kind, is_modern, limits), kind).await?;
            bytes_left = bytes_left.saturating_sub(listing.bytes());
            let (definitions, notes) = listing.finish();
            discovery.definitions.extend(definitions);
            discovery.notes.extend(notes);
        }
        Ok(discovery)
    }

    async fn list(
        self: &Rc<Self>,
        server: &Arc<UpstreamServer>,
        mut listing: Listing,
        kind: DefinitionKind,
    ) -> Result<Listing, CallError> {
        let mut params = Raw::EMPTY_OBJECT.to_owned();
        loop {
            let method = UpstreamMethod::List(kind);
            let result = match self.asked(server, method, &params).await? {
                Ok(result) => result,
                // Many servers have resources and know no templates.
                Err(error) if error.code == code::METHOD_NOT_FOUND => return Ok(listing),
                Err(error) => return Err(refused(server, &error.message)),
            };
            let next = listing.page(result.as_raw()).map_err(|what| {
                let connection = server.connection.id.as_str().to_owned();
                CallError::Upstream { connection, problem: UpstreamProblem::Invalid(what.into()) }
            })?;
            let NextPage::At(cursor) = next else { return Ok(listing) };
            let mut text = b"{\"cursor\":".to_vec();
            write_string(&mut text, &cursor);
            text.push(b'}');
            params = OwnedRaw::parse(&text).unwrap_or_else(|_| Raw::EMPTY_OBJECT.to_owned());
        }
    }

    async fn plain(
        self: &Rc<Self>,
        server: &Arc<UpstreamServer>,
        method: UpstreamMethod,
        params: &OwnedRaw,
    ) -> Result<OwnedRaw, CallError> {
        let asked = self.asked(server, method, params).await?;
        asked.map_err(|error| refused(server, &error.message))
    }

    async fn asked(
        self: &Rc<Self>,
        server: &Arc<UpstreamServer>,
        method: UpstreamMethod,
        params: &OwnedRaw,
    ) -> Result<super::talk::Response, CallError> {
        let request = UpstreamRequest {
            server,
            scope: SessionScope::Keeper,
            method,
            params,
            is_repeatable: true,
            continues: None,
            client: &Nobody { is_modern: true },
        };
        match Box::pin(self.ask(&request, &ENVIRONMENT)).await.result? {
            UpstreamAnswer::Result(result) => Ok(Ok(result)),
            UpstreamAnswer::Error(error) => Ok(Err(error)),
            UpstreamAnswer::InputRequired { .. } => {
                let connection = server.connection.id.as_str().to_owned();
                let what = "it asks back where nobody can be asked";
                let problem = UpstreamProblem::Invalid(what.into());
                Err(CallError::Upstream { connection, problem })
            }
        }
    }
}

fn refused(server: &UpstreamServer, text: &str) -> CallError {
    let shown = &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)];
    CallError::Upstream {
        connection: server.connection.id.as_str().to_owned(),
        problem: UpstreamProblem::Refused(shown.into()),
    }
}

//! Asking a server what it offers.

use std::{future::Future, pin::Pin, sync::Arc};

use crate::{
    catalog::UpstreamServer,
    downstream::{Carried, Discovery, SessionScope, Upstreams, Wanted},
    governance::definitions::Offer,
    sessions::ClientCapabilities,
};

/// What a server offers.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) offer: Offer,
    /// What was left out and why, for operators.
    pub(crate) notes: Vec<String>,
}

/// What a server offers, or why that is not known: a text that is fit to be shown.
pub(crate) type Discovered = Result<Found, String>;

/// Who asks servers what they offer.
pub(crate) trait Discover {
    /// Asks one. Dropping the future ends the asking.
    fn discover<'a>(
        &'a self,
        server: &'a Arc<UpstreamServer>,
    ) -> Pin<Box<dyn Future<Output = Discovered> + 'a>>;
}

impl Discover for Upstreams {
    fn discover<'a>(
        &'a self,
        server: &'a Arc<UpstreamServer>,
    ) -> Pin<Box<dyn Future<Output = Discovered> + 'a>> {
        Box::pin(async move {
            let discovery = Self::discover(self, server).await.map_err(|error| {
                tracing::debug!(
                    tenant = %server.tenant, toolset = %server.toolset,
                    detail = error.detail(), "an upstream server was asked in vain"
                );
                error.to_string()
            })?;
            let wanted = Wanted {
                tools: discovery.tools_list_changed,
                prompts: discovery.prompts_list_changed,
                resources: discovery.resources_list_changed,
                ..Wanted::default()
            };
            let nothing = ClientCapabilities::default();
            self.listen(server, SessionScope::Keeper, nothing, wanted, &Carried::NONE);
            Ok(found(discovery))
        })
    }
}

fn found(discovery: Discovery) -> Found {
    let text = |text: Box<str>| (!text.is_empty()).then_some(text);
    let offer = Offer {
        definitions: discovery.definitions,
        instructions: discovery.instructions.and_then(text),
        era: discovery.era,
        completes: discovery.completes,
        subscribes: discovery.subscribes,
        revision: discovery.revision.map(|revision| revision.text().into()),
        server_name: text(discovery.server_name),
        server_version: text(discovery.server_version),
    };
    Found { offer, notes: discovery.notes }
}

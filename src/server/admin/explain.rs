//! Why a tool is hidden, refused, limited or allowed.

use super::{
    Done, Trouble,
    ask::{Ask, bad},
};
use crate::{
    catalog::{DefinitionKind, Trust, View},
    governance::{self, Question, UpstreamStanding, definitions::Subject},
    identity::{Caller, KeyId},
    server::{shared::Shared, time, upstreams::UpstreamState},
};

/// Answers `client=TENANT/CLIENT&tool=TOOL`, with `trust=low|medium|high` and `key=ID` where they
/// matter.
pub(super) fn explain(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let published = shared.published();
    let client = needed(ask, "client")?;
    let (tenant, client_application) = client
        .split_once('/')
        .ok_or_else(|| bad("client: write it as TENANT/CLIENT".to_owned()))?;
    let view = published.snapshot.view(tenant, client_application).ok_or_else(|| {
        let message = format!(
            "the catalog has no client application {tenant}/{client_application}; `ringway \
             status` lists those it has"
        );
        Trouble::new(404, message)
    })?;
    let trust = ask.text("trust").map(|text| {
        Trust::parse(text).ok_or_else(|| bad("trust: it is low, medium or high".to_owned()))
    });
    let trust = trust.transpose()?;
    let key = ask.text("key").map(|text| {
        let record = KeyId::parse(text).and_then(|id| published.keys.find(id));
        let record = record.filter(|record| {
            record.tenant == view.tenant && record.client_application == view.client_application
        });
        let shown: String = text.chars().take(40).collect();
        let message = || format!("this client application has no key {shown:?}");
        record.ok_or_else(|| Trouble::new(404, message()))
    });
    let key = key.transpose()?;
    let upstreams = upstreams(shared, view);
    let question = Question {
        tool: needed(ask, "tool")?,
        trust: trust.or(key.map(|key| key.trust)).unwrap_or_else(|| usual_trust(view)),
        caller: key.map(|key| Caller::Key(key.id)),
        now_ms: time::now_ms(),
        now_ns: shared.now_ns(),
        upstreams: &upstreams,
    };
    let entities = shared.publication.entities();
    let explanation = governance::explain(&question, &entities, view, &shared.limiter);
    let json = serde_json::to_value(explanation);
    json.map(|json| Done::ok(&json)).map_err(|error| Trouble::new(500, error.to_string()))
}

/// Where no key is named: that of callers without one, where they are let in, else what keys usually
/// have.
fn usual_trust(view: &View) -> Trust {
    if view.open { Trust::Low } else { Trust::default() }
}

/// How the upstream servers of a view stand.
fn upstreams(shared: &Shared, view: &View) -> Vec<UpstreamStanding> {
    let servers = view.upstreams().iter();
    let states = servers.filter_map(|server| shared.keeper.state(&server.tenant, &server.toolset));
    let standing = |state: UpstreamState| {
        let mut standing = UpstreamStanding {
            toolset: state.toolset.to_string(),
            error: state.error.as_deref().map(str::to_owned),
            ..UpstreamStanding::default()
        };
        for pending in state.book.pending() {
            let withheld = match pending.refused {
                None => &mut standing.waiting,
                Some(_) => &mut standing.refused,
            };
            if let Subject::Listed(DefinitionKind::Tool, name) = pending.subject {
                withheld.push(name.to_string());
            }
        }
        standing
    };
    states.map(standing).collect()
}

fn needed<'a>(ask: &'a Ask, name: &str) -> Result<&'a str, Trouble> {
    let given = ask.text(name).filter(|text| !text.is_empty());
    given.ok_or_else(|| bad("say which: client=TENANT/CLIENT&tool=TOOL".to_owned()))
}

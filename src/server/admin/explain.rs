//! Why a tool is hidden, refused, limited or allowed.

use super::{
    Done, Trouble,
    ask::{Ask, bad},
};
use crate::{
    catalog::Trust,
    governance::{self, Question},
    identity::{Caller, KeyId},
    server::{shared::Shared, time},
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
    let question = Question {
        tool: needed(ask, "tool")?,
        // Without a key named, the trust keys usually have.
        trust: trust.or(key.map(|key| key.trust)).unwrap_or_default(),
        caller: key.map(|key| Caller::Key(key.id)),
        now_ms: time::now_ms(),
        now_ns: shared.now_ns(),
    };
    let entities = shared.publication.entities();
    let explanation = governance::explain(&question, &entities, view, &shared.limiter);
    let json = serde_json::to_value(explanation);
    json.map(|json| Done::ok(&json)).map_err(|error| Trouble::new(500, error.to_string()))
}

fn needed<'a>(ask: &'a Ask, name: &str) -> Result<&'a str, Trouble> {
    let given = ask.text(name).filter(|text| !text.is_empty());
    given.ok_or_else(|| bad("say which: client=TENANT/CLIENT&tool=TOOL".to_owned()))
}

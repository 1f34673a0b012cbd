//! Upstream MCP servers: how they stand, what of their definitions waits, and what becomes of it.

use std::{rc::Rc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Done, Trouble,
    ask::{Ask, bad},
    condition::Condition,
    on_worker,
};
use crate::{
    catalog::{TenantId, ToolsetId},
    governance::definitions::{Act, Pending, Reach, Subject, differences, hash_text, parse_hash},
    rt,
    server::{
        core::Core,
        shared::Shared,
        time,
        upstreams::{self, Deciding, UpstreamError, UpstreamState},
    },
};

/// How much longer than a server an operator waits for what it says.
const REFRESH_SLACK: Duration = Duration::from_secs(5);
/// Definitions decided about in one request.
const DECIDED_MAX: usize = 10_000;

impl From<UpstreamError> for Trouble {
    fn from(error: UpstreamError) -> Self {
        let status = match &error {
            UpstreamError::NoSuch(..) => 404,
            UpstreamError::Book(_) => 412,
            UpstreamError::Store(_) => 503,
            UpstreamError::Change(_) => 500,
        };
        Self::new(status, error.to_string())
    }
}

/// Every upstream server.
pub(super) fn list(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let tenant = ask.text("tenant");
    let states = shared.keeper.states();
    let wanted =
        states.iter().filter(|state| tenant.is_none_or(|one| state.tenant.as_str() == one));
    let upstreams: Vec<Value> = wanted.map(summary).collect();
    Ok(Done::ok(&json!({ "upstreams": upstreams })))
}

/// One of them, with all that waits.
pub(super) fn show(shared: &Shared, ask: &Ask) -> Result<Done, Trouble> {
    let (tenant, toolset) = whose(ask)?;
    shown(shared, &tenant, &toolset)
}

/// Has one asked what it offers, and tells how it stands then.
pub(super) async fn refresh(core: &Rc<Core>, ask: &Ask) -> Result<Done, Trouble> {
    let (tenant, toolset) = whose(ask)?;
    let asked = core.shared.keeper.refresh(&tenant, &toolset);
    let Some(asked) = asked else { return Err(missing(&tenant, &toolset)) };
    let deadline_ms = core.shared.settings.downstream.discovery.deadline_ms;
    // However it ends, how the server stands says it.
    let _ = rt::timeout(Duration::from_millis(deadline_ms) + REFRESH_SLACK, asked).await;
    on_worker(core, move |shared| shown(shared, &tenant, &toolset)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decided {
    #[serde(default)]
    all: bool,
    #[serde(default)]
    definitions: Vec<Named>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    kind: String,
    #[serde(default)]
    name: String,
    hash: String,
}

/// Approves or refuses definitions, all that are named or none.
pub(super) async fn decide(core: &Rc<Core>, ask: Ask, act: Act) -> Result<Done, Trouble> {
    let (tenant, toolset) = whose(&ask)?;
    let deciding = deciding(&ask)?;
    let (of, by) = ((tenant.clone(), toolset.clone()), ask.operator);
    let (events, author, done) = on_worker(core, move |shared| {
        let author = by.author();
        let now_ms = time::now_ms();
        let keeper = &shared.keeper;
        let (tenant, toolset) = (&of.0, &of.1);
        let events =
            keeper.decide(&shared.publication, tenant, toolset, act, &deciding, &author, now_ms)?;
        shared.tell_clients();
        let done = shown(shared, tenant, toolset)?;
        Ok((events, author, done))
    })
    .await?;
    upstreams::recorded(core, &tenant, &toolset, &author, &events);
    Ok(done)
}

fn deciding(ask: &Ask) -> Result<Deciding, Trouble> {
    let Decided { all, definitions } = ask.json()?;
    match (all, definitions.is_empty(), &ask.condition) {
        (true, true, Condition::IsOneOf(tags)) => match tags.as_slice() {
            [tag] => Ok(Deciding::All(tag.clone())),
            _ => Err(bad("If-Match: expected one tag".to_owned())),
        },
        (true, true, _) => {
            let message = "all that waits is decided about with If-Match and the ETag it was read \
                           with, so that it is what was seen";
            Err(Trouble::new(428, message))
        }
        (false, false, Condition::None) if definitions.len() <= DECIDED_MAX => {
            definitions.iter().map(named).collect::<Result<_, _>>().map(Deciding::These)
        }
        _ => Err(bad(format!(
            "expected either definitions, 1 to {DECIDED_MAX} with kind, name and hash, or all: true \
             with If-Match"
        ))),
    }
}

fn named(named: &Named) -> Result<(Subject, [u8; 32]), Trouble> {
    let subject = Subject::parse(&named.kind, &named.name).ok_or_else(|| {
        bad("kind: expected tool, prompt, resource, resource_template or instructions".to_owned())
    })?;
    let hash = parse_hash(&named.hash)
        .ok_or_else(|| bad("hash: expected 64 hexadecimal digits".to_owned()))?;
    Ok((subject, hash))
}

fn whose(ask: &Ask) -> Result<(TenantId, ToolsetId), Trouble> {
    let (tenant, toolset) = match ask.names.as_slice() {
        [tenant, toolset] => (tenant.as_str(), toolset.as_str()),
        _ => ("", ""),
    };
    match (TenantId::new(tenant), ToolsetId::new(toolset)) {
        (Ok(tenant), Ok(toolset)) => Ok((tenant, toolset)),
        _ => Err(UpstreamError::NoSuch(tenant.to_owned(), toolset.to_owned()).into()),
    }
}

fn missing(tenant: &TenantId, toolset: &ToolsetId) -> Trouble {
    UpstreamError::NoSuch(tenant.to_string(), toolset.to_string()).into()
}

fn shown(shared: &Shared, tenant: &TenantId, toolset: &ToolsetId) -> Result<Done, Trouble> {
    let state = shared.keeper.state(tenant, toolset);
    let state = state.ok_or_else(|| missing(tenant, toolset))?;
    let mut body = summary(&state);
    if let Some(body) = body.as_object_mut() {
        let (refused, waiting): (Vec<_>, Vec<_>) =
            state.book.pending().into_iter().partition(|pending| pending.refused.is_some());
        body.insert("notes".to_owned(), json!(state.notes));
        body.insert("waiting".to_owned(), waiting.iter().map(pending).collect());
        body.insert("withheld".to_owned(), refused.iter().map(pending).collect());
        let gone = state.book.gone().map(|gone| {
            json!({
                "kind": gone.subject.kind(),
                "name": gone.subject.name(),
                "hash": hash_text(&gone.accepted.hash),
                "since": time::text_of_ms(gone.since_ms),
            })
        });
        body.insert("missing".to_owned(), gone.collect());
        let served = state.book.entries_served().map(|(subject, definition)| {
            json!({
                "kind": subject.kind(),
                "name": subject.name(),
                "hash": hash_text(&definition.hash),
            })
        });
        body.insert("definitions".to_owned(), served.collect());
        body.insert("tag".to_owned(), json!(state.book.tag()));
    }
    Ok(Done::ok(&body).with("ETag", format!("\"{}\"", state.book.tag())))
}

fn summary(state: &UpstreamState) -> Value {
    let record = state.book.server();
    let counts = state.book.counts();
    let time = |ms: Option<u64>| ms.map(time::text_of_ms);
    let findings: usize =
        state.book.pending().iter().map(|pending| pending.findings.iter().count()).sum();
    json!({
        "tenant": state.tenant,
        "toolset": state.toolset,
        "status": status(state),
        "down_since": time(record.reach.down_since_ms()),
        "error": state.error,
        "asked": time(state.asked_ms),
        "answered": time(state.answered_ms),
        "era": record.has_list.then_some(record.era),
        "revision": record.revision,
        "server_name": record.server_name,
        "server_version": record.server_version,
        "trust": state.server.as_ref().map(|server| server.settings.definitions),
        "accepted": counts.served,
        "pending": counts.pending,
        "refused": counts.refused,
        "gone": counts.gone,
        "findings": findings,
        "sessions": state.sessions,
    })
}

/// How a server stands, in one word.
fn status(state: &UpstreamState) -> &'static str {
    let record = state.book.server();
    match record.reach {
        _ if state.server.is_none() => "unassigned",
        Reach::Dropped { .. } => "down",
        Reach::Stale { .. } if record.has_list => "stale",
        Reach::Stale { .. } => "down",
        Reach::Up if state.error.is_some() => "faulty",
        Reach::Up if state.answered_ms.is_some() => "connected",
        Reach::Up => "waiting",
    }
}

fn pending(pending: &Pending<'_>) -> Value {
    let differences = pending
        .accepted
        .map(|accepted| differences(accepted.json.as_raw(), pending.offered.json.as_raw()));
    let findings = pending.findings.iter().map(|finding| {
        json!({
            "flaw": finding.flaw.as_str(),
            "field": finding.field,
            "detail": finding.detail,
            "withholds": finding.flaw.withholds(),
        })
    });
    json!({
        "kind": pending.subject.kind(),
        "name": pending.subject.name(),
        "hash": hash_text(&pending.offered.hash),
        "change": if pending.accepted.is_some() { "changed" } else { "new" },
        "since": time::text_of_ms(pending.since_ms),
        "refused": pending.refused.map(|verdict| {
            json!({ "by": verdict.by, "at": time::text_of_ms(verdict.at_ms) })
        }),
        "findings": findings.collect::<Vec<_>>(),
        "differences": differences,
        "definition": crate::json::to_value(pending.offered.json.as_raw()),
    })
}

//! `GET /explain` of the admin plane: why a tool is hidden, refused, limited or allowed.

use std::rc::Rc;

use serde_json::Value;

use super::core::Core;
use crate::{
    catalog::Trust,
    governance::{self, Question},
    http,
    identity::{Caller, KeyId},
};

/// What an operator asks.
#[derive(Debug, Default)]
struct Asked {
    tenant: String,
    client_application: String,
    tool: String,
    trust: Option<Trust>,
    key: Option<KeyId>,
}

/// Answers `client=TENANT/CLIENT&tool=TOOL`, with `trust=low|medium|high` and `key=ID` where they
/// matter. Reading the catalog's entities may wait for a change, so it runs on a worker.
///
/// # Errors
/// A status and a text: a query that cannot be understood, a client application or key there is
/// not.
pub(crate) async fn answer(core: &Rc<Core>, query: Option<&str>) -> Result<Value, (u16, String)> {
    let asked = read(query.unwrap_or_default()).map_err(|text| (400, text))?;
    let (shared, published, now_ms) =
        (core.shared.clone(), core.published().clone(), core.clock.now_ms());
    let view = published.snapshot.view(&asked.tenant, &asked.client_application).cloned();
    let view = view.ok_or_else(|| {
        let Asked { tenant, client_application, .. } = &asked;
        let text = format!(
            "the catalog has no client application {tenant}/{client_application}; `ringway \
             status` lists those it has"
        );
        (404, text)
    })?;
    let key = match asked.key {
        None => None,
        Some(id) => {
            let record = published.keys.find(id).filter(|record| {
                record.tenant == view.tenant && record.client_application == view.client_application
            });
            Some(record.ok_or_else(|| (404, format!("this client application has no key {id}")))?)
        }
    };
    let trust = asked.trust.or(key.map(|key| key.trust));
    // Without a key named, one that has what keys usually have.
    let (trust, caller) = (trust.unwrap_or_default(), key.map(|key| Caller::Key(key.id)));
    let explained = core.shared.workers.run(move || {
        let (tool, now_ns) = (asked.tool.as_str(), shared.now_ns());
        let question = Question { tool, trust, caller, now_ms, now_ns };
        let entities = shared.publication.entities();
        let explanation = governance::explain(&question, &entities, &view, &shared.limiter);
        serde_json::to_value(explanation)
    });
    let explained = explained.await.map_err(|error| (503, error.to_string()))?;
    explained.map_err(|error| (500, error.to_string()))
}

fn read(query: &str) -> Result<Asked, String> {
    let mut asked = Asked::default();
    for (name, value) in http::query_pairs(query) {
        match &*name {
            "client" => {
                let (tenant, client) =
                    value.split_once('/').ok_or("client: write it as TENANT/CLIENT")?;
                (asked.tenant, asked.client_application) = (tenant.to_owned(), client.to_owned());
            }
            "tool" => asked.tool = value.into_owned(),
            "trust" => {
                let trust = Trust::parse(&value);
                asked.trust = Some(trust.ok_or("trust: it is low, medium or high")?);
            }
            "key" => asked.key = Some(KeyId::parse(&value).ok_or("key: it is no id of a key")?),
            _ => return Err(format!("there is no parameter {name:?} here")),
        }
    }
    if asked.tenant.is_empty() || asked.tool.is_empty() {
        return Err("say which: client=TENANT/CLIENT&tool=TOOL".to_owned());
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_strictly() {
        let asked =
            read("client=acme%2Fdesk&tool=pets%2Flist+pets&trust=high&key=000000000000").unwrap();
        assert_eq!((&*asked.tenant, &*asked.client_application), ("acme", "desk"));
        assert_eq!((&*asked.tool, asked.trust), ("pets/list pets", Some(Trust::High)));
        assert!(asked.key.is_some());
        for bad in [
            "",
            "client=acme/desk",
            "tool=x",
            "client=acme&tool=x",
            "client=a/b&tool=x&trust=total",
            "client=a/b&tool=x&key=1",
            "client=a/b&tool=x&more=1",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}

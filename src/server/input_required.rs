//! What an upstream of the newest era wants to know from a client of the same era: handed on as the
//! result of the client's request, whose state holds the upstream's.

use super::trail::Trail;
use crate::{
    json::{self, OwnedRaw},
    mcp::Asks,
    rpc::{ResultBody, RpcError},
};

/// The answers a client sends with its repeated request, and the state of the upstream they go to.
#[derive(Debug, Clone)]
pub(crate) struct Continued {
    answers: Vec<(Box<str>, OwnedRaw)>,
    state: Option<Box<str>>,
}

impl Continued {
    /// As an upstream request has them.
    pub(crate) fn parts(&self) -> (&[(Box<str>, OwnedRaw)], Option<&str>) {
        (&self.answers, self.state.as_deref())
    }
}

/// The result that asks the client.
pub(crate) fn result(
    _trail: &Trail,
    asks: &Asks,
    state: Option<&str>,
) -> Result<ResultBody, RpcError> {
    let mut out = b"{\"resultType\":\"input_required\"".to_vec();
    if !asks.is_empty() {
        out.extend_from_slice(b",\"inputRequests\":{");
        for (index, (key, ask)) in asks.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::write_string(&mut out, key);
            out.extend_from_slice(b":{\"method\":");
            json::write_string(&mut out, ask.method.name());
            out.extend_from_slice(b",\"params\":");
            out.extend_from_slice(ask.params.as_raw().text().as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
    }
    if let Some(state) = state {
        out.extend_from_slice(b",\"requestState\":");
        json::write_string(&mut out, state);
    }
    out.push(b'}');
    Ok(ResultBody::Owned(out))
}

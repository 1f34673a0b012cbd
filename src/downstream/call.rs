//! One call in progress: what it asks of whom, and how what happens to it is told.

use std::borrow::Cow;
use std::sync::Arc;

use crate::catalog::{CompiledConnection, CompiledTool, Proof, Secret, ToolKind};
use crate::http::{Known, Method};
use crate::mapping::OutgoingRequest;
use crate::mapping::soap::insert_header_block;

use super::content::ContentError;
use super::correlation::Forwarded;
use super::error::{CallError, CredentialProblem};
use super::exchange::{Broken, Budget};
use super::failure::Asked;
use super::messages::AnswerPlan;
use super::pool::{HostKey, Line};
use super::reach;
use super::request::Outgoing;
use super::ws_security;

pub(crate) struct Call<'a> {
    pub(crate) tool: &'a Arc<CompiledTool>,
    pub(crate) connection: &'a Arc<CompiledConnection>,
    /// Borrowed from the connection where it has it ready.
    pub(crate) proof: Cow<'a, Arc<Proof>>,
    /// A token in it that may be refused and got anew.
    pub(crate) token: Option<Secret>,
    /// What its answer goes through.
    pub(crate) plan: AnswerPlan<'a>,
    pub(crate) request: &'a OutgoingRequest,
    pub(crate) method: Method,
    pub(crate) forwarded: Forwarded<'a>,
    pub(crate) budget: Budget,
}

/// What a tool that calls an API consists of.
pub(crate) fn answer_plan(tool: &CompiledTool) -> Option<AnswerPlan<'_>> {
    match &tool.kind {
        ToolKind::Rest { connection, response, messages, .. } => {
            Some(AnswerPlan { connection, response, messages: messages.as_ref() })
        }
        ToolKind::Upstream(_) | ToolKind::Builtin(_) => None,
    }
}

pub(crate) fn asked<'a>(
    tool: &'a CompiledTool,
    connection: &'a CompiledConnection,
    proof: &'a Proof,
) -> Asked<'a> {
    let constants = &*tool.secrets;
    let host = &*connection.host;
    let (tool, connection) = (tool.source_name.as_str(), connection.id.as_str());
    Asked { tool, connection, host, proof, constants }
}

impl<'a> Call<'a> {
    pub(crate) fn host(&self) -> HostKey<'a> {
        reach::host_of(self.connection)
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        asked(self.tool, self.connection, &self.proof)
    }

    /// The body with the proof of WS-Security in its header, where the call has one: anew for each
    /// time it is sent.
    pub(crate) fn signed_body(&self) -> Result<Option<Vec<u8>>, CallError> {
        let (Some(user), Some(_), Some(body)) =
            (&self.proof.user, self.plan.soap(), &self.request.body)
        else {
            return Ok(None);
        };
        let failed = |detail: &str| CallError::Credential {
            connection: self.connection_id(),
            problem: CredentialProblem::Missing,
            detail: detail.to_owned(),
        };
        let freshness = user.digest.then(ws_security::Freshness::now).transpose();
        let freshness = freshness.map_err(|_| failed("there is no randomness for its nonce"))?;
        let block = ws_security::header_block(&user.username, &user.password, freshness)
            .map_err(|_| failed("user or password have characters that XML cannot hold"))?;
        Ok(Some(insert_header_block(body, block.expose().as_bytes())))
    }

    /// The request, with `signed` for its body where there is one.
    pub(crate) fn outgoing<'b>(
        &'b self,
        target: &'b str,
        signed: Option<&'b [u8]>,
    ) -> Outgoing<'b> {
        Outgoing {
            method: self.method.as_str(),
            host: &self.connection.authority,
            target,
            proof: &self.proof,
            mapped_headers: &self.request.headers,
            forwarded: &self.forwarded,
            content_type: self.request.content_type.as_deref(),
            body: signed.or(self.request.body.as_deref()),
        }
    }

    /// A look at the work this call began.
    pub(crate) fn looking<'b>(&'b self, request: &'b OutgoingRequest) -> Call<'b> {
        Call {
            tool: self.tool,
            connection: self.connection,
            proof: Cow::Borrowed(&*self.proof),
            token: None,
            plan: self.plan,
            request,
            method: Method::Get,
            forwarded: self.forwarded,
            budget: self.budget,
        }
    }

    /// Whether sending the request twice does what sending it once does: as its tool says, else as
    /// HTTP says of its method (RFC 9110 section 9.2.2).
    pub(crate) fn is_repeatable(&self) -> bool {
        self.tool.is_repeatable.unwrap_or(matches!(
            self.method,
            Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options
        ))
    }

    fn connection_id(&self) -> String {
        self.connection.id.as_str().to_owned()
    }

    pub(crate) fn broken(&self, broken: Broken) -> CallError {
        reach::broken(self.connection, broken, &self.budget, self.is_repeatable())
    }

    pub(crate) fn undecodable(&self, source: ContentError) -> CallError {
        CallError::Content { connection: self.connection_id(), source }
    }
}

/// Where a redirect of `line`'s answer leads, if that is another path of the same origin.
pub(crate) fn redirect(
    line: &Line,
    connection: &CompiledConnection,
    proof: &Proof,
    target: &str,
) -> Option<String> {
    if !matches!(line.answers.status(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = std::str::from_utf8(line.answers.header(Known::Location)?).ok()?;
    same_origin(location, connection, proof, target)
}

/// Where a URL in the answer to `target` leads, if that is another path of the same origin. An API
/// may repeat the keys of the query it was asked with; they are added anew.
pub(crate) fn same_origin(
    location: &str,
    connection: &CompiledConnection,
    proof: &Proof,
    target: &str,
) -> Option<String> {
    let scheme = if connection.is_https { "https" } else { "http" };
    let asked = url::Url::parse(&[scheme, "://", &connection.authority, target].concat()).ok()?;
    let next = asked.join(location).ok()?;
    let stays = next.origin() == asked.origin() && next.username().is_empty();
    if !stays {
        return None;
    }
    let next = &next[url::Position::BeforePath..url::Position::AfterQuery];
    Some(without_keys(next, &proof.query_names))
}

fn without_keys(target: &str, names: &[Box<str>]) -> String {
    let Some((path, query)) = target.split_once('?').filter(|_| !names.is_empty()) else {
        return target.to_owned();
    };
    // However the name is written.
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    let is_key = |pair: &str| {
        let name = decoded(pair.split('=').next().unwrap_or_default());
        names.iter().any(|key| decoded(key) == name)
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_key(pair)).collect();
    if kept.is_empty() { path.to_owned() } else { [path, "?", &kept.join("&")].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_follow_redirects_twice() {
        let names: [Box<str>; 2] = ["api%20key".into(), "k".into()];
        for (target, expected) in [
            ("/a", "/a"),
            ("/a?b=c", "/a?b=c"),
            ("/a?k=1", "/a"),
            ("/a?b=c&api%20key=1&d&api+key=2&%6b=3", "/a?b=c&d"),
        ] {
            assert_eq!(without_keys(target, &names), expected);
        }
        assert_eq!(without_keys("/a?k=1", &[]), "/a?k=1");
    }
}

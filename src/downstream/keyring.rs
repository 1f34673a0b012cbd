//! What a call proves itself with, where that has to be come by: secrets from their places, tokens
//! from their servers, the client's own token.
//!
//! A token is asked for by a task of its own, under the same egress policy, roots and limits as
//! every call: no redirects, no large answers, no proof but the client's own.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use crate::catalog::{CompiledConnection, OauthClient, Proof, Secret, SecretSource};
use crate::http::{Limits, Method};
use crate::rt;

use super::carried::Carried;
use super::correlation::Forwarded;
use super::dial::{Destination, Dialer, Undialled};
use super::error::{CallError, CredentialProblem};
use super::exchange::{Broken, Budget, exchange};
use super::request::Outgoing;
use super::secret_places::SecretPlaces;
use super::token_request::{self, TokenRequest};
use super::tokens::{Issued, Look, NoToken, Ticket, Tokens};

/// Largest answer of a token endpoint.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
const HEAD_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 100;
const FORM: &str = "application/x-www-form-urlencoded";

/// Secrets and tokens, shared by all cores: each place is read once, each token asked for once.
#[derive(Debug, Clone, Default)]
pub struct Keyring {
    places: SecretPlaces,
    tokens: Tokens,
}

/// The proof of one call, and the token in it that may be refused.
#[derive(Debug)]
pub(crate) struct Proven {
    pub(crate) proof: Arc<Proof>,
    pub(crate) token: Option<Secret>,
}

/// Whose call it is, and what it may take.
#[derive(Clone, Copy)]
pub(crate) struct Proving<'a> {
    pub(crate) dialer: &'a Rc<Dialer>,
    pub(crate) connection: &'a Arc<CompiledConnection>,
    pub(crate) carried: &'a Carried,
    pub(crate) budget: &'a Budget,
}

impl Keyring {
    /// Whether a call that the API refused with 401 may do better with another token. The refused
    /// one is given up.
    pub(crate) fn may_renew(&self, connection: &CompiledConnection, token: &Secret) -> bool {
        let client = connection.credentials.oauth.as_ref();
        client.is_some_and(|client| self.tokens.refused(&client.key, token, Instant::now()))
    }

    /// Puts together what a call proves itself with.
    ///
    /// # Cancel safety
    /// Dropping the future leaves what others wait for under way.
    pub(crate) async fn prove(&self, proving: Proving<'_>) -> Result<Proven, CallError> {
        let connection = proving.connection;
        let credentials = &connection.credentials;
        let failed = |problem: CredentialProblem, detail: &str| CallError::Credential {
            connection: connection.id.as_str().to_owned(),
            problem,
            detail: detail.to_owned(),
        };
        let missing = |reason: String| failed(CredentialProblem::Missing, &reason);
        let mut found = Vec::with_capacity(credentials.list.len());
        for source in credentials.list.iter().filter_map(|credential| credential.secret()) {
            found.push(self.find(proving.dialer, source.1).await);
        }
        let mut found = found.into_iter();
        let next = |_: &SecretSource| found.next().unwrap_or_else(|| Err("is not there".into()));
        let mut proof =
            Proof::new(&connection.headers, &credentials.list, next).map_err(missing)?;
        if credentials.audience.is_some() {
            let Some(token) = proving.carried.token() else {
                return Err(failed(CredentialProblem::NotForAudience, ""));
            };
            proof.add_bearer(token).map_err(|fault| {
                failed(CredentialProblem::NotForAudience, &format!("the client's token {fault}"))
            })?;
        }
        let Some(client) = &credentials.oauth else {
            return Ok(Proven { proof: Arc::new(proof), token: None });
        };
        let token = self.token(client, proving).await;
        let token = token.map_err(|NoToken { problem, detail }| failed(problem, &detail))?;
        proof.add_bearer(&token).map_err(|fault| {
            failed(CredentialProblem::TokenUnusable, &format!("its token {fault}"))
        })?;
        Ok(Proven { proof: Arc::new(proof), token: Some(token) })
    }

    async fn find(&self, dialer: &Dialer, source: &SecretSource) -> Result<Secret, String> {
        match source {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::Elsewhere(reference) => {
                self.places.find(dialer.workers(), reference).await
            }
        }
    }

    async fn token(&self, client: &OauthClient, proving: Proving<'_>) -> Result<Secret, NoToken> {
        let receiver = match self.tokens.look(&client.key, Instant::now()) {
            Look::Token(token) => return Ok(token),
            Look::Aging(token, ticket) => {
                self.ask(client, proving, ticket);
                return Ok(token);
            }
            Look::Failed(failure) => return Err(failure),
            Look::Wait(receiver) => receiver,
            Look::Ask(ticket, receiver) => {
                self.ask(client, proving, ticket);
                receiver
            }
        };
        match rt::timeout(proving.budget.left(Instant::now()), receiver).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(NoToken {
                problem: CredentialProblem::TokenUnusable,
                detail: "the request for a token was broken off".into(),
            }),
            Err(_) => {
                Err(NoToken { problem: CredentialProblem::TokenLate, detail: Arc::default() })
            }
        }
    }

    /// Asks for a token in a task of its own: whoever waits may go.
    fn ask(&self, client: &OauthClient, proving: Proving<'_>, ticket: Ticket) {
        let Proving { dialer, connection, budget, .. } = proving;
        let (keyring, dialer) = (self.clone(), Rc::clone(dialer));
        let (connection, client) = (Arc::clone(connection), client.clone());
        let (connect, headers) = (budget.connect, budget.headers);
        rt::spawn(async move {
            let budget =
                Budget { started: Instant::now(), connect, headers, total: connect + headers };
            let outcome = keyring.request(&client, &connection, &dialer, &budget).await;
            if let Err(NoToken { problem, detail }) = &outcome {
                let connection = connection.id.as_str();
                let host = &*client.endpoint.authority;
                tracing::warn!(
                    connection, token_endpoint = host, %detail, "no token: {problem}"
                );
            }
            ticket.finish(outcome);
        });
    }

    async fn request(
        &self,
        client: &OauthClient,
        connection: &CompiledConnection,
        dialer: &Dialer,
        budget: &Budget,
    ) -> Result<Issued, NoToken> {
        let failed =
            |problem: CredentialProblem, detail: &str| NoToken { problem, detail: detail.into() };
        let secret = self.find(dialer, &client.client_secret).await;
        let secret = secret.map_err(|reason| failed(CredentialProblem::Missing, &reason))?;
        let request = TokenRequest::new(client, &secret);
        let to = Destination::of_endpoint(&client.endpoint, connection);
        let limits = Limits {
            head_bytes_max: HEAD_BYTES_MAX,
            headers_max: HEADERS_MAX,
            body_bytes_max: ANSWER_BYTES_MAX,
        };
        let mut line =
            dialer.dial(&to, limits, budget.connect).await.map_err(|error| match error {
                Undialled::Unreachable { problem, detail } => {
                    failed(CredentialProblem::TokenUnreachable(problem), &detail)
                }
                Undialled::Certificate { detail } => {
                    failed(CredentialProblem::Certificate, &detail)
                }
                Undialled::Overloaded => {
                    failed(CredentialProblem::TokenUnusable, "the workers are busy")
                }
            })?;
        let authorization = request.authorization.map(|value| ("Authorization".into(), value));
        let proof = Proof { headers: authorization.into_iter().collect(), ..Proof::default() };
        let plain = [("Accept-Encoding".to_owned(), "identity".to_owned())];
        let outgoing = Outgoing {
            method: "POST",
            host: &client.endpoint.authority,
            target: &client.endpoint.target,
            proof: &proof,
            mapped_headers: &plain,
            forwarded: &Forwarded::default(),
            content_type: Some(FORM),
            body: Some(&request.body),
        };
        outgoing.write(&mut line.request).map_err(|reason| {
            failed(CredentialProblem::TokenUnusable, &format!("it cannot be asked: {reason}"))
        })?;
        match exchange(&mut line, Method::Post, budget).await {
            Ok(_) => token_request::read(line.answers.status(), line.answers.body()),
            Err(Broken::TimedOut(_)) => Err(failed(CredentialProblem::TokenLate, "")),
            Err(Broken::Closed { .. }) => {
                Err(failed(CredentialProblem::TokenUnusable, "it closed the connection"))
            }
            Err(Broken::Http(error)) => {
                Err(failed(CredentialProblem::TokenUnusable, &error.to_string()))
            }
        }
    }
}

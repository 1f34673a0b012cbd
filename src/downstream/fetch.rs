//! Fetching documents: descriptions of APIs and what they refer to.
//!
//! Invariants: only `http` and `https`; every address is judged after its name is resolved, for
//! each redirect again, and the connection is made to exactly that address; what is not on the
//! public network is refused unless the tenant's allowance names it or the operator named the host
//! himself; time, size and redirects have limits; nothing but the URL goes out.

use std::cell::Cell;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use thiserror::Error;
use url::Url;

use super::content::{ACCEPT_ENCODING, Codings, ContentError};
use super::egress::{Denied, Egress};
use super::exchange::{Broken, Budget, exchange};
use super::pool::Line;
use crate::http::{BodyLength, Known, Limits, Method, write_request_head};
use crate::rt::{self, ClientTls, ConnectError, ConnectTarget, Resolver};
use crate::settings::{self, Network};

/// What this product calls itself.
const USER_AGENT: &str = concat!("ringway/", env!("CARGO_PKG_VERSION"));
/// What is asked for: descriptions come as any of these, and as plain text.
const ACCEPT: &str = "application/json, application/yaml, text/xml, application/xml, */*;q=0.8";
/// Redirects followed for one document.
const REDIRECTS_MAX: usize = 5;
/// Longest URL.
const URL_BYTES_MAX: usize = 8 << 10;

/// Where documents may come from, and how long and large they may be.
#[derive(Debug, Clone)]
pub struct FetchRules {
    /// For whom: told in what to do about an address that is closed.
    pub tenant: String,
    /// No document comes from there, whoever asks.
    pub blocked: Vec<Network>,
    /// Networks that are not public and allowed nevertheless.
    pub allowed: Vec<Network>,
    /// A URL whose host and port the operator named himself: that may be any address.
    pub named: Option<Url>,
    /// Until the connection stands.
    pub connect_timeout: Duration,
    /// For one document, redirects included.
    pub total_timeout: Duration,
    /// Largest document, as it comes and unpacked.
    pub bytes_max: usize,
}

impl FetchRules {
    /// The limits of calls to APIs, for documents of at most `bytes_max`.
    pub fn new(tenant: &str, settings: &settings::Downstream, bytes_max: usize) -> Self {
        Self {
            tenant: tenant.to_owned(),
            blocked: settings.blocked_networks.clone(),
            allowed: Vec::new(),
            named: None,
            connect_timeout: Duration::from_millis(settings.connect_timeout_ms),
            total_timeout: Duration::from_millis(settings.total_timeout_ms),
            bytes_max,
        }
    }
}

/// A document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where it came from, after redirects.
    pub url: String,
    /// The document, unpacked.
    pub bytes: Vec<u8>,
}

/// Why there is no document.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each field is named by the error's text")]
pub enum FetchError {
    /// The URL cannot be used.
    #[error("{reason}")]
    Url { reason: String },
    /// It leads where no document may come from.
    #[error("{host} leads to no address that documents may come from: {reason}")]
    Refused { host: String, reason: String },
    /// No connection.
    #[error("{0}")]
    Connect(ConnectError),
    /// Nothing here can verify an https server.
    #[error("no certificate authorities are known, so https cannot be verified")]
    NoTls,
    /// The connection ended, or something else than HTTP came.
    #[error("the server gave no usable answer: {reason}")]
    Broken { reason: String },
    /// It took too long.
    #[error("no answer within {limit_ms} ms")]
    TimedOut { limit_ms: u128 },
    /// Not 200.
    #[error("the server answered with status {status}")]
    Status { status: u16 },
    /// One redirect more than is followed.
    #[error("more than {REDIRECTS_MAX} redirects")]
    TooManyRedirects,
    /// The answer cannot be unpacked, or is too large.
    #[error("{0}")]
    Content(#[from] ContentError),
}

/// Fetches documents from one core. Each over a connection of its own.
#[derive(Debug)]
pub struct Fetcher {
    rules: FetchRules,
    egress: Egress,
    resolver: Resolver,
    tls: Option<ClientTls>,
}

impl Fetcher {
    /// A fetcher. Without `tls`, `https` fails.
    pub fn new(rules: FetchRules, resolver: Resolver, tls: Option<ClientTls>) -> Self {
        let egress = Egress::new(&rules.blocked);
        Self { rules, egress, resolver, tls }
    }

    /// Fetches a document.
    ///
    /// # Errors
    /// Why there is none. Nothing of the document is in the text.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn fetch(&self, url: &str) -> Result<Fetched, FetchError> {
        let mut url = parse(url)?;
        let started = Instant::now();
        for _ in 0..=REDIRECTS_MAX {
            match Box::pin(self.once(&url, started)).await? {
                Answer::Document(bytes) => return Ok(Fetched { url: url.into(), bytes }),
                Answer::Redirect(next) => url = next,
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn once(&self, url: &Url, started: Instant) -> Result<Answer, FetchError> {
        let rules = &self.rules;
        let budget = Budget {
            started,
            connect: rules.connect_timeout,
            headers: rules.total_timeout,
            total: rules.total_timeout,
        };
        let limits = Limits { body_bytes_max: rules.bytes_max, ..Limits::default() };
        let connection = self.connect(url, &budget).await?;
        let mut line = Line::new(connection, limits);
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let headers = [
            ("Accept", ACCEPT),
            ("Accept-Encoding", ACCEPT_ENCODING),
            ("User-Agent", USER_AGENT),
            ("Connection", "close"),
        ];
        let request = &mut line.request;
        write_request_head(
            request,
            "GET",
            target,
            authority,
            headers.into_iter(),
            BodyLength::None,
        )
        .map_err(|error| FetchError::Url { reason: error.to_string() })?;
        match exchange(&mut line, Method::Get, &budget).await {
            Ok(_) => self.answer(url, &line),
            Err(Broken::TimedOut(_)) => {
                Err(FetchError::TimedOut { limit_ms: rules.total_timeout.as_millis() })
            }
            Err(Broken::Closed { .. }) => {
                Err(FetchError::Broken { reason: "it closed the connection".to_owned() })
            }
            Err(Broken::Http(error)) => Err(FetchError::Broken { reason: error.to_string() }),
        }
    }

    async fn connect(&self, url: &Url, budget: &Budget) -> Result<rt::Connection, FetchError> {
        let is_https = url.scheme() == "https";
        let tls = match (is_https, &self.tls) {
            (true, None) => return Err(FetchError::NoTls),
            (true, tls) => tls.as_ref(),
            (false, _) => None,
        };
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(FetchError::Url { reason: "the URL has no host".to_owned() });
        };
        let is_named = self.rules.named.as_ref().is_some_and(|named| {
            named.host_str() == Some(host) && named.port_or_known_default() == Some(port)
        });
        let denied: Cell<Option<Denied>> = Cell::new(None);
        let allowed = |address: IpAddr| match self.judge(address, is_named) {
            Ok(()) => true,
            Err(why) => {
                denied.set(Some(why));
                false
            }
        };
        let within = budget.connect.min(budget.left(Instant::now()));
        let target = ConnectTarget { host, port, tls };
        let rules = &self.rules;
        rt::connect(&self.resolver, target, &allowed, within).await.map_err(|error| match error {
            ConnectError::Refused { host } => {
                let reason = denied.get().map_or_else(String::new, |why| why.advice(&rules.tenant));
                FetchError::Refused { host, reason }
            }
            other => FetchError::Connect(other),
        })
    }

    /// What the operator named is allowed as if the tenant allowed it: what settings close stays
    /// closed.
    fn judge(&self, address: IpAddr, is_named: bool) -> Result<(), Denied> {
        let named = is_named.then(|| Network::from(address));
        match named {
            Some(network) => self.egress.judge(&[network], address),
            None => self.egress.judge(&self.rules.allowed, address),
        }
    }

    fn answer(&self, url: &Url, line: &Line) -> Result<Answer, FetchError> {
        let answers = &line.answers;
        let status = answers.status();
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            let location = answers.header(Known::Location);
            let location = location.and_then(|value| std::str::from_utf8(value).ok());
            let location = location.ok_or(FetchError::Status { status })?;
            let next = url.join(location).map_err(|error| FetchError::Url {
                reason: format!("it redirects to what is no URL: {error}"),
            })?;
            return Ok(Answer::Redirect(parse(next.as_str())?));
        }
        if status != 200 {
            return Err(FetchError::Status { status });
        }
        let mut codings = Codings::default();
        for (name, value) in answers.headers() {
            if name.eq_ignore_ascii_case("content-encoding") {
                codings.add(value)?;
            }
        }
        let body = answers.body();
        if codings.is_identity() {
            return Ok(Answer::Document(body.to_vec()));
        }
        Ok(Answer::Document(codings.decode(body, self.rules.bytes_max)?))
    }
}

enum Answer {
    Document(Vec<u8>),
    Redirect(Url),
}

fn parse(text: &str) -> Result<Url, FetchError> {
    let refused = |reason: &str| Err(FetchError::Url { reason: reason.to_owned() });
    if text.len() > URL_BYTES_MAX {
        return refused("the URL is too long");
    }
    let mut url =
        Url::parse(text).map_err(|error| FetchError::Url { reason: error.to_string() })?;
    if !matches!(url.scheme(), "http" | "https") {
        return refused("only http and https are fetched");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("a user or password in a URL is not sent");
    }
    url.set_fragment(None);
    Ok(url)
}

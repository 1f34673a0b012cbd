//! The tools about the appliance itself.
//!
//! What they tell is read through [`Appliance`], which the server implements, so this room needs nothing from
//! above. A caller learns of its own client application only: the scope goes into every question, and
//! session ids are shortened, because a whole one is half a credential.

use crate::json::write_string;

/// How many sessions one answer lists.
pub const SESSIONS_LISTED_MAX: usize = 100;
/// How much of a session id is shown.
const SESSION_ID_BYTES_SHOWN: usize = 8;

/// Whose view of the appliance is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// Its client application.
    pub client_application: &'a str,
}

/// What the server knows about itself.
pub trait Appliance {
    /// The state of the process.
    fn status(&self) -> RuntimeStatus;
    /// Sessions of this client application, most recently used first, at most `count_max`; and how many
    /// there are.
    fn sessions(&self, scope: Scope<'_>, count_max: usize) -> (Vec<SessionSummary>, usize);
    /// The tools this client application sees, in the order of its list.
    fn tools(&self, scope: Scope<'_>) -> Vec<ToolSummary>;
}

/// The state of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeStatus {
    /// The product's version.
    pub version: &'static str,
    /// `io_uring` or `epoll`.
    pub driver: &'static str,
    /// Cores serving.
    pub cores: usize,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Live sessions, of all tenants.
    pub sessions: usize,
    /// Open streams, of all tenants.
    pub streams: usize,
    /// Version of the catalog snapshot in use.
    pub catalog_version: u64,
    /// Why the store takes no writes, when it takes none.
    pub store_read_only: Option<String>,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The whole id; only its start is shown.
    pub id: String,
    /// What the client calls itself.
    pub client_name: String,
    /// And its version.
    pub client_version: String,
    /// The negotiated protocol revision.
    pub revision: &'static str,
    /// Unix milliseconds.
    pub created_ms: u64,
    /// Unix milliseconds.
    pub last_seen_ms: u64,
    /// Open streams.
    pub streams: usize,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSummary {
    /// The exposed name.
    pub name: String,
    /// The toolset it comes from.
    pub toolset: String,
    /// What it says about itself.
    pub description: String,
}

/// The structured result of `runtime_status`.
pub(crate) fn runtime_status(appliance: &dyn Appliance) -> Vec<u8> {
    let status = appliance.status();
    let mut object = Object::open(Vec::with_capacity(256));
    object.text("version", status.version);
    object.text("driver", status.driver);
    object.number("cores", status.cores as u64);
    object.number("uptime_seconds", status.uptime_seconds);
    object.number("sessions", status.sessions as u64);
    object.number("streams", status.streams as u64);
    object.number("catalog_version", status.catalog_version);
    let store = if status.store_read_only.is_some() { "read-only" } else { "healthy" };
    object.text("store", store);
    if let Some(reason) = &status.store_read_only {
        object.text("store_problem", reason);
    }
    object.close()
}

/// The structured result of `list_sessions`.
pub(crate) fn list_sessions(appliance: &dyn Appliance, scope: Scope<'_>) -> Vec<u8> {
    let (sessions, count) = appliance.sessions(scope, SESSIONS_LISTED_MAX);
    let mut object = Object::open(Vec::with_capacity(64 + 200 * sessions.len()));
    object.number("count", count as u64);
    object.list("sessions", sessions.iter().take(SESSIONS_LISTED_MAX), |object, session| {
        let shown = super::failure::cut(&session.id, SESSION_ID_BYTES_SHOWN);
        object.text("id", &format!("{shown}..."));
        object.text("client_name", &session.client_name);
        object.text("client_version", &session.client_version);
        object.text("revision", session.revision);
        object.number("created_ms", session.created_ms);
        object.number("last_seen_ms", session.last_seen_ms);
        object.number("streams", session.streams as u64);
    });
    object.close()
}

/// The structured result of `list_tools`.
pub(crate) fn list_tools(appliance: &dyn Appliance, scope: Scope<'_>) -> Vec<u8> {
    let tools = appliance.tools(scope);
    let mut object = Object::open(Vec::with_capacity(64 + 200 * tools.len()));
    object.number("count", tools.len() as u64);
    object.list("tools", tools.iter(), |object, tool| {
        object.text("name", &tool.name);
        object.text("toolset", &tool.toolset);
        object.text("description", &tool.description);
    });
    object.close()
}

/// A JSON object being written.
struct Object {
    out: Vec<u8>,
    empty: bool,
}

impl Object {
    fn open(mut out: Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    fn key(&mut self, key: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_string(&mut self.out, key);
        self.out.push(b':');
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        write_string(&mut self.out, value);
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    }

    fn list<T>(
        &mut self,
        key: &str,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.key(key);
        self.out.push(b'[');
        for (index, item) in items.enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            let mut inner = Self::open(std::mem::take(&mut self.out));
            write(&mut inner, item);
            self.out = inner.close();
        }
        self.out.push(b']');
    }

    fn close(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    struct Sample {
        read_only: bool,
        asked: RefCell<Vec<String>>,
    }

    impl Appliance for Sample {
        fn status(&self) -> RuntimeStatus {
            RuntimeStatus {
                version: "1.2.3",
                driver: "io_uring",
                cores: 2,
                uptime_seconds: 61,
                sessions: 3,
                streams: 4,
                catalog_version: 5,
                store_read_only: self.read_only.then(|| "disk \"full\"".to_owned()),
            }
        }

        fn sessions(&self, scope: Scope<'_>, count_max: usize) -> (Vec<SessionSummary>, usize) {
            assert_eq!(count_max, SESSIONS_LISTED_MAX);
            self.asked.borrow_mut().push(format!("{}/{}", scope.tenant, scope.client_application));
            let session = SessionSummary {
                id: "1-abcdefghijklmnopqrstuv-12345678901".to_owned(),
                client_name: "a \"client\"\n".to_owned(),
                client_version: "1".to_owned(),
                revision: "2025-11-25",
                created_ms: 1,
                last_seen_ms: 2,
                streams: 1,
            };
            (vec![session; 2], 200)
        }

        fn tools(&self, _: Scope<'_>) -> Vec<ToolSummary> {
            Vec::new()
        }
    }

    fn sample(read_only: bool) -> Sample {
        Sample { read_only, asked: RefCell::default() }
    }

    fn value(json: &[u8]) -> serde_json::Value {
        serde_json::from_slice(json).unwrap()
    }

    const SCOPE: Scope<'_> = Scope { tenant: "acme", client_application: "desk" };

    #[test]
    fn status_says_what_is_wrong_only_when_something_is() {
        let healthy = value(&runtime_status(&sample(false)));
        assert_eq!(healthy["store"], "healthy");
        assert_eq!(healthy["uptime_seconds"], 61);
        assert!(healthy.get("store_problem").is_none());
        let full = value(&runtime_status(&sample(true)));
        assert_eq!(full["store_problem"], "disk \"full\"");
    }

    #[test]
    fn sessions_are_asked_for_in_scope_and_shown_without_their_ids() {
        let appliance = sample(false);
        let json = list_sessions(&appliance, SCOPE);
        assert_eq!(*appliance.asked.borrow(), ["acme/desk"]);
        let listed = value(&json);
        assert_eq!(listed["count"], 200);
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
        assert_eq!(listed["sessions"][1]["id"], "1-abcdef...");
        assert_eq!(listed["sessions"][0]["client_name"], "a \"client\"\n");
    }

    #[test]
    fn no_tools_is_an_empty_list() {
        assert_eq!(list_tools(&sample(false), SCOPE), br#"{"count":0,"tools":[]}"#);
    }
}

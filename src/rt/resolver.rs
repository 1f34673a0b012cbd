//! Names to addresses, by the system's own rules (`/etc/hosts`, nsswitch), on worker threads.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::connect::{ConnectError, without_brackets};
use super::workers::WorkerPool;

const FOUND_FOR: Duration = Duration::from_secs(30);
const NOT_FOUND_FOR: Duration = Duration::from_secs(5);
/// Names remembered, over all ports.
const NAMES_MAX: usize = 1024;
/// Addresses taken of one name.
const ADDRESSES_MAX: usize = 16;
/// No name is longer (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// Resolves names and remembers the outcome for a while: 30 s what was found, 5 s what was not.
/// Shared by all cores.
#[derive(Clone)]
pub struct Resolver {
    pool: WorkerPool,
    cache: Arc<Mutex<Cache>>,
}

#[derive(Default)]
struct Cache {
    names: HashMap<Box<str>, Vec<Remembered>>,
    count: usize,
}

struct Remembered {
    port: u16,
    until: Instant,
    outcome: Outcome,
}

/// Addresses, or why there are none.
type Outcome = Result<Arc<[SocketAddr]>, Arc<str>>;

impl Resolver {
    /// Remembers nothing yet.
    pub fn new(pool: WorkerPool) -> Self {
        Self { pool, cache: Arc::default() }
    }

    /// All addresses of `host`, in the order of preference of the system. A host that is an
    /// address, in brackets or not, is taken as it is.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Resolve`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing; the answer is still remembered.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Arc<[SocketAddr]>, ConnectError> {
        if let Ok(address) = without_brackets(host).parse::<IpAddr>() {
            return Ok(Arc::from([SocketAddr::new(address, port)]));
        }
        let failed = |reason: &str| ConnectError::Resolve {
            host: host.to_owned(),
            reason: reason.to_owned(),
        };
        if host.is_empty() || host.len() > NAME_BYTES_MAX {
            return Err(failed("this is not a host name"));
        }
        let remembered = self.cache.lock().find(host, port, Instant::now());
        if let Some(outcome) = remembered {
            return outcome.map_err(|reason| failed(&reason));
        }
        let cache = Arc::clone(&self.cache);
        let name: Box<str> = host.into();
        let looked_up = self.pool.run(move || {
            let outcome = look_up(&name, port);
            cache.lock().remember(name, port, outcome.clone(), Instant::now());
            outcome
        });
        match looked_up.await {
            Ok(outcome) => outcome.map_err(|reason| failed(&reason)),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    /// Puts an answer into the cache, for tests of what builds on it.
    #[cfg(test)]
    pub(super) fn pretend(&self, host: &str, port: u16, addresses: &[SocketAddr]) {
        let outcome = Ok(Arc::from(addresses));
        self.cache.lock().remember(host.into(), port, outcome, Instant::now());
    }
}

fn look_up(host: &str, port: u16) -> Outcome {
    let addresses: io::Result<Vec<SocketAddr>> =
        (host, port).to_socket_addrs().map(|all| all.take(ADDRESSES_MAX).collect());
    match addresses {
        Ok(addresses) if addresses.is_empty() => Err("the name has no address".into()),
        Ok(addresses) => Ok(addresses.into()),
        Err(error) => Err(error.to_string().into()),
    }
}

impl Cache {
    fn find(&self, host: &str, port: u16, now: Instant) -> Option<Outcome> {
        let found = self.names.get(host)?.iter().find(|known| known.port == port)?;
        (found.until > now).then(|| found.outcome.clone())
    }

    fn remember(&mut self, host: Box<str>, port: u16, outcome: Outcome, now: Instant) {
        if self.count >= NAMES_MAX {
            self.forget(now);
        }
        let until = now + if outcome.is_ok() { FOUND_FOR } else { NOT_FOUND_FOR };
        let known = self.names.entry(host).or_default();
        let remembered = Remembered { port, until, outcome };
        if let Some(old) = known.iter_mut().find(|old| old.port == port) {
            *old = remembered;
        } else {
            known.push(remembered);
            self.count += 1;
        }
    }

    /// Drops what is out of date; all of it when that makes no room.
    fn forget(&mut self, now: Instant) {
        self.names.retain(|_, known| {
            known.retain(|one| one.until > now);
            !known.is_empty()
        });
        self.count = self.names.values().map(Vec::len).sum();
        if self.count >= NAMES_MAX {
            self.names.clear();
            self.count = 0;
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.cache.lock().count;
        formatter.debug_struct("Resolver").field("names", &names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Arc<[SocketAddr]> {
        Arc::from([SocketAddr::from(([127, 0, 0, 1], 80))])
    }

    #[test]
    fn answers_are_remembered_by_name_and_port_for_their_time() {
        let now = Instant::now();
        let mut cache = Cache::default();
        cache.remember("a.example".into(), 80, Ok(addresses()), now);
        cache.remember("b.example".into(), 80, Err("no".into()), now);
        assert_eq!(cache.find("a.example", 80, now), Some(Ok(addresses())));
        assert_eq!(cache.find("a.example", 81, now), None);
        assert_eq!(
            cache.find("a.example", 80, now + Duration::from_secs(29)),
            Some(Ok(addresses()))
        );
        assert_eq!(cache.find("a.example", 80, now + Duration::from_secs(30)), None);
        assert_eq!(
            cache.find("b.example", 80, now + Duration::from_secs(4)),
            Some(Err("no".into()))
        );
        assert_eq!(cache.find("b.example", 80, now + Duration::from_secs(5)), None);
    }

    #[test]
    fn the_cache_is_bounded() {
        let now = Instant::now();
        let mut cache = Cache::default();
        for index in 0..3 * NAMES_MAX {
            cache.remember(format!("{index}.example").into(), 80, Ok(addresses()), now);
            cache.remember("one.example".into(), index as u16, Ok(addresses()), now);
            assert!(cache.count <= NAMES_MAX);
            assert_eq!(cache.count, cache.names.values().map(Vec::len).sum::<usize>());
        }
    }

    #[test]
    fn what_is_out_of_date_goes_first() {
        let now = Instant::now();
        let mut cache = Cache::default();
        for index in 0..NAMES_MAX - 1 {
            cache.remember(format!("{index}.example").into(), 80, Err("no".into()), now);
        }
        cache.remember("kept.example".into(), 80, Ok(addresses()), now);
        let later = now + Duration::from_secs(10);
        cache.remember("new.example".into(), 80, Ok(addresses()), later);
        assert_eq!(cache.count, 2);
        assert!(cache.find("kept.example", 80, later).is_some());
    }
}

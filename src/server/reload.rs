//! Reading the catalog files of the settings again: on SIGHUP, when asked, and when they change.
//!
//! What counts is what is news in them; see `declared`. A bad file changes nothing: the running catalog stays, and what is wrong is told by `status`,
//! `/readyz` and the metrics until a reload succeeds.
//!
//! Files are looked at on a thread of their own. A change is taken up once nothing has changed for
//! [`SETTLE`]: who writes a file in pieces, or several files, is given the time for it. The same
//! files are not read twice, so a bad one is reported once.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use super::{
    change_error::ChangeError,
    publication::{Applied, Intent},
    shared::Shared,
    time,
};
use crate::{
    catalog::{
        Action, Entities, Problem,
        files::{self, Fingerprint},
    },
    settings::Settings,
};

/// How long files must stay as they are before they are read.
const SETTLE: Duration = Duration::from_millis(300);
/// Most problems of bad files that are told at once.
const PROBLEMS_SHOWN: usize = 50;

/// How the last reload went.
#[derive(Debug, Default)]
pub(crate) struct ReloadState {
    failures: AtomicU64,
    bad: ArcSwapOption<BadFiles>,
    /// What the files looked like when they were last read; held while they are.
    read: Mutex<Fingerprint>,
}

/// Why the last reload changed nothing.
#[derive(Debug)]
pub(crate) struct BadFiles {
    pub(crate) since_ms: u64,
    /// Each with file and line, as far as there is one.
    pub(crate) problems: Vec<String>,
    pub(crate) count: usize,
}

impl ReloadState {
    /// Of files that looked like this when the start read them.
    pub(crate) fn new(read: Fingerprint) -> Self {
        Self { read: Mutex::new(read), ..Self::default() }
    }

    /// Reloads that changed nothing because something was wrong.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// What is wrong with the files, while it is.
    pub(crate) fn bad(&self) -> Option<Arc<BadFiles>> {
        self.bad.load_full()
    }

    fn note(&self, outcome: &Result<Applied, ChangeError>) {
        let Err(error) = outcome else { return self.bad.store(None) };
        self.failures.fetch_add(1, Ordering::Relaxed);
        let problems: Vec<String> = match error {
            ChangeError::Problems(problems) => problems.iter().map(Problem::to_string).collect(),
            other => vec![other.to_string()],
        };
        let since_ms = self.bad().map_or_else(time::now_ms, |bad| bad.since_ms);
        let count = problems.len();
        let problems = problems.into_iter().take(PROBLEMS_SHOWN).collect();
        self.bad.store(Some(Arc::new(BadFiles { since_ms, problems, count })));
    }
}

/// The entities of the settings' files, with `more` laid over them.
pub(crate) fn declared(
    settings: &Settings,
    more: Option<Entities>,
) -> Result<Entities, ChangeError> {
    let (mut entities, problems) = files::read(&settings.runtime.catalog);
    if !problems.is_empty() {
        return Err(ChangeError::Problems(problems));
    }
    if let Some(more) = more {
        entities.overlay(more);
    }
    Ok(entities)
}

/// Reads the settings' catalog files again. Blocks.
pub(crate) fn reload(shared: &Shared) -> Result<Applied, ChangeError> {
    let mut read = shared.reload.read.lock();
    // Before the reading: what changes during it is seen afterwards.
    *read = files::fingerprint(&shared.settings.runtime.catalog);
    let outcome = declared(&shared.settings, None)
        .and_then(|declared| shared.publication.reload(&Intent::own(Action::Reload), &declared));
    shared.reload.note(&outcome);
    match &outcome {
        Ok(applied) => {
            if applied.is_made {
                shared.tell_clients();
            }
            tracing::info!(version = applied.version, "catalog read again");
        }
        Err(error) => tracing::error!("reload changed nothing: {error}"),
    }
    outcome
}

/// Looks at the files until the server ends.
pub(crate) fn watch(shared: &Arc<Shared>) -> std::io::Result<()> {
    let runtime = &shared.settings.runtime;
    if runtime.catalog.is_empty() || runtime.catalog_poll_ms == 0 {
        return Ok(());
    }
    let pause = Duration::from_millis(runtime.catalog_poll_ms);
    let shared = Arc::downgrade(shared);
    thread::Builder::new().name("catalog-files".to_owned()).spawn(move || {
        loop {
            thread::park_timeout(pause);
            if !look(&shared, pause.min(SETTLE)) {
                return;
            }
        }
    })?;
    Ok(())
}

/// Reads the files again if they changed; tells whether the server is still there.
fn look(shared: &Weak<Shared>, settle: Duration) -> bool {
    let looks = || {
        let shared = shared.upgrade()?;
        let now = files::fingerprint(&shared.settings.runtime.catalog);
        let is_new = *shared.reload.read.lock() != now;
        Some((now, is_new))
    };
    let Some((mut last, mut is_new)) = looks() else { return false };
    while is_new {
        thread::park_timeout(settle);
        let Some((now, still_new)) = looks() else { return false };
        if now == last {
            let Some(shared) = shared.upgrade() else { return false };
            // Its outcome is on record; a start that is under way or an end changes nothing here.
            let _ = reload(&shared);
            return true;
        }
        (last, is_new) = (now, still_new);
    }
    true
}

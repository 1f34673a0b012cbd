//! What a start finds of the process before it: the secret and the count of starts, sessions, the
//! replay windows of streams. Blocks; runs before there are cores.

use crate::{
    sessions::{
        RecentSessions, RecordError, SessionJournalError, SessionLimits, SessionRecord,
        SessionTable,
    },
    settings::Settings,
    store::{Batch, Store, StoreError, Tree},
    streams::{Chunk, JournalError, JournalRing, Place, StreamLimits, StreamTable, WindowLimits},
};

use super::scan::{all_rows, for_each_row};

/// Why the state of an earlier process cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The store cannot be read.
    #[error("the state of the last run cannot be read: {0}")]
    Store(#[from] StoreError),
    /// A row is from a version of Ringway this one does not know.
    #[error("a stored session cannot be read: {0}")]
    Session(#[from] RecordError),
    /// The journal of new sessions is from a version this one does not know.
    #[error("the stored journal of sessions cannot be read: {0}")]
    SessionJournal(#[from] SessionJournalError),
    /// A row of a stream's window is from a version this one does not know.
    #[error("a stored stream cannot be read: {0}")]
    Journal(#[from] JournalError),
}

/// Key of the secret that session ids are bound with.
const SECRET_KEY: &[u8] = b"session_secret";
/// Key of the number of starts.
const BOOT_KEY: &[u8] = b"boot";
/// The first byte of rows of this module.
const VERSION: u8 = 1;
/// This node; others exist only in a cluster.
pub(crate) const NODE: u16 = 0;

/// The secret of this data directory and the number of this start.
pub(crate) struct Identity {
    pub(crate) secret: [u8; 32],
    pub(crate) boot: u32,
}

/// Reads the secret and counts the start; makes both at the first.
pub(crate) fn identity(store: &Store) -> Result<Identity, StoreError> {
    let mut batch = Batch::new();
    let stored = store.get_blocking(Tree::Meta, SECRET_KEY)?;
    let secret = match stored.as_deref() {
        Some([VERSION, secret @ ..]) => <[u8; 32]>::try_from(secret).ok(),
        _ => None,
    };
    let secret = secret.unwrap_or_else(|| {
        let mut fresh = [0; 32];
        super::random_bytes(&mut fresh);
        let mut row = vec![VERSION];
        row.extend_from_slice(&fresh);
        batch.put(Tree::Meta, SECRET_KEY, &row);
        fresh
    });
    let before = match store.get_blocking(Tree::Meta, BOOT_KEY)?.as_deref() {
        Some([VERSION, count @ ..]) => <[u8; 4]>::try_from(count).map_or(0, u32::from_le_bytes),
        _ => 0,
    };
    let boot = before.wrapping_add(1);
    let mut row = vec![VERSION];
    row.extend_from_slice(&boot.to_le_bytes());
    batch.put(Tree::Meta, BOOT_KEY, &row);
    if stored.is_some() {
        write_if_possible(store, batch)?;
    } else {
        store.write_blocking(batch)?;
    }
    Ok(Identity { secret, boot })
}

/// A table that counts every stored session; rows stay in the store until their clients come back.
/// Sessions the last process had in its journal only get their rows first.
pub(crate) fn sessions(store: &Store, settings: &Settings) -> Result<SessionTable, RecoveryError> {
    settle_recent(store)?;
    let session = &settings.runtime.mcp.session;
    let table = SessionTable::new(SessionLimits {
        idle_ms: session.idle_seconds.saturating_mul(1000),
        lifetime_ms: session.lifetime_seconds.saturating_mul(1000),
        heap_idle_ms: session.heap_idle_seconds.saturating_mul(1000),
    });
    for_each_row(store, Tree::Sessions, |_, row| {
        table.count_stored(&SessionRecord::decode(&row)?);
        Ok::<_, RecoveryError>(())
    })?;
    Ok(table)
}

/// Turns the journal of new sessions into rows, in one change.
fn settle_recent(store: &Store) -> Result<(), RecoveryError> {
    let mut recent = RecentSessions::default();
    let mut batch = Batch::new();
    for_each_row(store, Tree::RecentSessions, |key, chunk| {
        recent.read(&chunk)?;
        batch.remove(Tree::RecentSessions, &key);
        Ok::<_, RecoveryError>(())
    })?;
    recent.check()?;
    for (key, row) in recent.living() {
        // A row is newer than the journal.
        if store.get_blocking(Tree::Sessions, key.as_bytes())?.is_none() {
            batch.put(Tree::Sessions, key.as_bytes(), row);
        }
    }
    for key in recent.ended() {
        batch.remove(Tree::Sessions, key.as_bytes());
    }
    if !batch.is_empty() {
        write_if_possible(store, batch)?;
    }
    Ok(())
}

/// Writes what a start can go without: on a full disk the server still serves what it has, and says
/// that it is not ready.
fn write_if_possible(store: &Store, batch: Batch) -> Result<(), StoreError> {
    match store.write_blocking(batch) {
        Err(error @ StoreError::ReadOnly { .. }) => {
            tracing::warn!(%error, "the store is read-only at the start");
            Ok(())
        }
        written => written,
    }
}

/// The streams of every core as the journal has them, and where each core's journal goes on.
pub(crate) fn streams(
    store: &Store,
    settings: &Settings,
    cores: usize,
    boot: u32,
    now_ms: u64,
) -> Result<Vec<(StreamTable, JournalRing)>, RecoveryError> {
    let rows = all_rows(store, Tree::Windows)?;
    let limits = limits(settings);
    let sse = &settings.runtime.mcp.sse;
    let seconds = sse.window_seconds.max(sse.post_stream_retention_seconds);
    // A core flushes once in each gathering time, and now and then in between.
    let slots = JournalRing::slots_for(seconds.saturating_mul(5) / 4, gather_ms(settings));
    let mut recovered = Vec::new();
    let mut foreign = Batch::new();
    for index in 0..cores {
        let core = u16::try_from(index).unwrap_or(u16::MAX);
        let mut ring = JournalRing::new(slots, sse.retained_bytes_max, seconds);
        let mut chunks = Vec::new();
        let mut found = Vec::new();
        for (key, row) in &rows {
            let chunk = match Chunk::decode(row) {
                Ok(chunk) => chunk,
                Err(error @ JournalError::UnknownVersion { .. }) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%error, "a part of the streams' windows is lost");
                    continue;
                }
            };
            if usize::from(chunk.core) % cores != index {
                continue;
            }
            let slot = key.get(2..6).and_then(|slot| <[u8; 4]>::try_from(slot).ok());
            match slot.map(u32::from_be_bytes) {
                Some(slot) if chunk.core == core && slot < slots => {
                    found.push((chunk.sequence, slot, chunk.written_ms, row.len()));
                }
                // Written by a core or into a ring this start does not have. No ring will reuse its
                // place, so it goes here, once it has aged out.
                _ if now_ms.saturating_sub(chunk.written_ms) > seconds.saturating_mul(1000) => {
                    foreign.remove(Tree::Windows, key);
                    continue;
                }
                _ => {}
            }
            chunks.push(chunk);
        }
        found.sort_unstable();
        for (_, slot, written_ms, bytes) in found {
            ring.restore(slot, written_ms, bytes);
        }
        let place = Place { node: NODE, core, boot };
        recovered.push((StreamTable::recover(place, limits, chunks, now_ms), ring));
    }
    if !foreign.is_empty() {
        store.write_blocking(foreign)?;
    }
    Ok(recovered)
}

/// How long a core gathers rows before it hands them over: half of the time that may pass until
/// they are on disk, the other half is the store's.
pub(crate) fn gather_ms(settings: &Settings) -> u64 {
    settings.store.flush_ms / 2
}

/// The bounds of a core's streams.
fn limits(settings: &Settings) -> StreamLimits {
    let sse = &settings.runtime.mcp.sse;
    StreamLimits {
        window: WindowLimits {
            events_max: sse.window_events_max,
            bytes_max: sse.window_bytes_max,
            age_ms_max: sse.window_seconds.saturating_mul(1000),
        },
        retention_ms: sse.post_stream_retention_seconds.saturating_mul(1000),
        retained_bytes_max: sse.retained_bytes_max,
        streams_max: STREAMS_MAX,
    }
}

/// Most streams of one core, finished ones that can still be resumed included.
const STREAMS_MAX: usize = 1_000_000;

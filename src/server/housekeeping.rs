//! What a core does once a second besides answering: lets go of what is over, writes rows that
//! fell behind, moves idle sessions out of the heap.

use std::{rc::Rc, time::Duration};

use super::{
    announce,
    core::Core,
    session,
    trail::{self, SessionEnd},
};
use crate::{
    audit::Transport,
    rt,
    sessions::{SessionRecord, SessionTable, Swept},
    store::Tree,
    streams::SessionKey,
};

const TICK: Duration = Duration::from_secs(1);
/// Every part of the session table is swept once in so many ticks.
const SWEEP_TICKS: usize = 8;
/// Keys expire without anybody saying so; open streams are held against them once in so many ticks.
const LISTENER_TICKS: usize = 10;
/// Stored sessions judged at a time, and the pause between; a pass over a million takes two minutes
/// and under one percent of the store's thread.
const STORED_ROWS: usize = 2048;
const STORED_PAUSE: Duration = Duration::from_millis(250);
/// The pause between two passes over the stored sessions.
const STORED_PASS_PAUSE: Duration = Duration::from_secs(10);

/// Runs as long as the core.
pub(crate) async fn run(core: Rc<Core>) {
    let mut tick = 0;
    loop {
        rt::sleep(TICK).await;
        expire_streams(&core);
        core.send_put_off();
        core.write_behind.expire(core.clock.now_ms());
        sweep_sessions(&core, tick % SWEEP_TICKS);
        if core.index == 0 {
            announce::gather(&core);
            core.shared.kept.expire(core.clock.now_ms());
            core.shared.limiter.sweep(core.shared.now_ns());
        }
        if tick % LISTENER_TICKS == 0 {
            core.check_listeners();
        }
        tick += 1;
    }
}

fn expire_streams(core: &Rc<Core>) {
    let (expired, retained) = {
        let mut streams = core.streams.borrow_mut();
        let expired = streams.expire(core.clock.now_ms());
        core.metrics.journal_left_out.add(streams.take_journal_left_out());
        (expired, streams.retained_bytes())
    };
    core.metrics.connections_open.set(i64::try_from(core.connections.open()).unwrap_or(i64::MAX));
    core.metrics.retained_bytes.set(i64::try_from(retained).unwrap_or(i64::MAX));
    for stream in expired {
        if let Some(session) = core.shared.sessions.peek(stream.session) {
            session.remove_stream(stream.id);
        }
    }
    core.write_behind.wake();
}

/// Sweeps this core's part of the session table, an eighth of it at a time.
fn sweep_sessions(core: &Rc<Core>, part: usize) {
    let mut swept = Swept::default();
    let now_ms = core.clock.now_ms();
    let (cores, index) = (core.shared.cores(), usize::from(core.index));
    for shard in (0..SessionTable::SHARDS).filter(|shard| shard % SWEEP_TICKS == part) {
        if (shard / SWEEP_TICKS) % cores == index {
            core.shared.sessions.sweep_shard(shard, now_ms, &mut swept);
        }
    }
    for session in swept.expired {
        session::expired(core, &session);
    }
    for (key, row) in swept.rows {
        core.write_behind.put_session(key, &row);
    }
    for evictable in &swept.evictable {
        if let Some(row) = &evictable.row {
            core.write_behind.put_session(evictable.key, row);
        }
    }
    // A row must be with the store before its session leaves the heap: the store answers reads in
    // the order of what it was given.
    if !swept.evictable.is_empty() && core.write_behind.flush(core) {
        for evictable in &swept.evictable {
            core.shared.sessions.evict(evictable);
        }
    }
}

/// Removes stored sessions whose time is over; on one core only.
pub(crate) async fn sweep_stored(core: Rc<Core>) {
    let mut after: Option<Vec<u8>> = None;
    loop {
        rt::sleep(if after.is_some() { STORED_PAUSE } else { STORED_PASS_PAUSE }).await;
        let rows = core.shared.store.scan(Tree::Sessions, after.as_deref(), STORED_ROWS).await;
        let rows = match rows {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(%error, "stored sessions cannot be swept; trying again");
                after = None;
                continue;
            }
        };
        let now_ms = core.clock.now_ms();
        for (key, row) in &rows {
            let (Some(key), Ok(record)) = (SessionKey::from_slice(key), SessionRecord::decode(row))
            else {
                continue;
            };
            if core.shared.sessions.expire_stored(key, &record, now_ms) {
                core.metrics.sessions_ended.increment();
                let end = SessionEnd {
                    method: "session/expire",
                    transport: Transport::StreamableHttp,
                    revision: record.revision(),
                    external_id: None,
                };
                trail::session_ended(&core, key, &record, &end);
                core.write_behind.remove_session(key);
            }
        }
        let is_complete = rows.len() < STORED_ROWS;
        after = if is_complete { None } else { rows.last().map(|(key, _)| key.clone()) };
    }
}

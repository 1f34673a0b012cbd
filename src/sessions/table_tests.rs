//! Tests of the table.

use super::super::record::{ClientCapabilities, ClientInfo};
use super::super::{CALLS_MAX, CallHandle, CallRefused, Revision, STREAMS_MAX};
use super::*;
use crate::streams::StreamId;

const LIMITS: SessionLimits =
    SessionLimits { idle_ms: 8000, lifetime_ms: 100_000, heap_idle_ms: 1000 };

fn alice() -> Owner<'static> {
    Owner::new("acme", "desk", "key-1").unwrap()
}

fn key(number: u64) -> SessionKey {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes[15] = number as u8;
    SessionKey::from_bytes(bytes)
}

fn record(table: &SessionTable, now_ms: u64) -> SessionRecord {
    let client = ClientInfo { name: "some-client-name", version: "1.20.3" };
    let capabilities = ClientCapabilities::ROOTS;
    let expires_ms = table.expires_ms(now_ms);
    SessionRecord::new(
        &alice(),
        Revision::NEWEST_WITH_SESSIONS,
        client,
        capabilities,
        now_ms,
        expires_ms,
    )
}

fn open(table: &SessionTable, number: u64, now_ms: u64) -> Arc<Session> {
    let reservation = table.reserve("acme", 1_000_000).unwrap();
    table.insert(reservation, key(number), record(table, now_ms))
}

fn is_found(table: &SessionTable, number: u64, now_ms: u64) -> bool {
    matches!(table.find(key(number), &alice(), now_ms), Find::Found(_))
}

fn stream(number: u32) -> StreamId {
    StreamId { node: 0, core: 0, boot: 0, number }
}

#[test]
fn a_session_is_found_by_its_owner_alone() {
    let table = SessionTable::new(LIMITS);
    let session = open(&table, 1, 0);
    assert!(is_found(&table, 1, 7999));
    for owner in [
        Owner::new("acme", "desk", "key-2").unwrap(),
        Owner::new("acme", "other", "key-1").unwrap(),
        Owner::new("other", "desk", "key-1").unwrap(),
    ] {
        assert!(matches!(table.find(key(1), &owner, 0), Find::Foreign));
    }
    assert!(matches!(table.find(key(2), &alice(), 0), Find::NotInMemory));
    assert!(matches!(table.find(key(1), &alice(), 8000), Find::Expired));
    assert_eq!((table.len(), table.total()), (1, 1));

    let ended = table.end(key(1), 0).unwrap();
    assert!(Arc::ptr_eq(&ended, &session) && session.is_ended());
    assert!(table.end(key(1), 0).is_none());
    assert!(matches!(table.find(key(1), &alice(), 0), Find::Ended));
    assert!(table.is_ended(key(1)));
    let stored = record(&table, 0);
    assert!(matches!(table.adopt(key(1), stored.clone(), &alice(), 0), Adopted::Ended));
    assert!(!table.expire_stored(key(1), &stored, 90_000), "its row is being removed");
    table.sweep(ENDED_KEPT_MS);
    assert!(!table.is_ended(key(1)));
    assert_eq!((table.len(), table.total(), table.tenants.len()), (0, 0, 1));
    drop((ended, session));
    table.sweep(ENDED_KEPT_MS);
    assert_eq!(table.tenants.len(), 0);
}

#[test]
fn tenants_have_a_cap() {
    let table = SessionTable::new(LIMITS);
    let first = table.reserve("acme", 2).unwrap();
    let second = table.reserve("acme", 2).unwrap();
    let full = AtCapacity { sessions: 2, retry_after_seconds: 1 };
    assert_eq!(table.reserve("acme", 2).unwrap_err(), full);
    assert!(table.reserve("other", 2).is_ok());
    drop(first);
    table.insert(second, key(1), record(&table, 0));
    assert_eq!(table.tenant_total("acme"), 1);
    let third = table.reserve("acme", 2).unwrap();
    assert!(table.reserve("acme", 2).is_err());
    drop(third);
    table.end(key(1), 0);
    assert_eq!(table.tenant_total("acme"), 0);
    table.count_stored(&record(&table, 0));
    assert!(table.reserve("acme", 1).is_err(), "stored sessions count");
}

#[test]
fn rows_are_written_again_when_they_are_behind() {
    let table = SessionTable::new(LIMITS);
    let session = open(&table, 1, 0);
    assert!(!table.touch(&session, 1500), "a young session is in the journal only");
    assert!(table.sweep(999).rows.is_empty() && !session.has_row());
    assert_eq!(table.sweep(1000).rows.len(), 1, "it grew old: an eighth of the idle time");
    assert!(session.has_row());
    assert!(!table.touch(&session, 999 + 1500));
    assert!(table.touch(&session, 1000 + 1500), "an eighth of the idle time behind");
    assert!(!table.touch(&session, 1001 + 1500), "claimed");
    let row = SessionRecord::decode(&session.row()).unwrap();
    assert_eq!(row.last_seen_ms(), 2501);
    session.row_was_lost();
    assert!(table.touch(&session, 2502));
    assert!(!table.touch(&session, 5), "the clock was set back");
    assert_eq!(session.seen_ms(), 2502);
    session.see(3502);
    let swept = table.sweep(3600);
    assert_eq!(swept.rows.len(), 1);
    assert_eq!(SessionRecord::decode(&swept.rows[0].1).unwrap().last_seen_ms(), 3502);
}

#[test]
fn idle_sessions_leave_the_heap_and_come_back() {
    let table = SessionTable::new(LIMITS);
    let session = open(&table, 1, 0);
    table.touch(&session, 500);
    assert!(table.sweep(999).evictable.is_empty());
    let swept = table.sweep(1500);
    let [evictable] = &swept.evictable[..] else { panic!("{swept:?}") };
    let row = SessionRecord::decode(evictable.row.as_ref().unwrap()).unwrap();
    assert_eq!(row.last_seen_ms(), 500);
    assert!(!table.evict(evictable), "somebody holds a reference");
    drop(session);
    assert!(table.evict(evictable));
    assert!(!table.evict(evictable));
    assert_eq!((table.len(), table.total()), (0, 1));
    assert!(matches!(table.find(key(1), &alice(), 1500), Find::NotInMemory));

    let stranger = Owner::new("acme", "desk", "key-9").unwrap();
    assert!(matches!(table.adopt(key(1), row.clone(), &stranger, 1500), Adopted::Foreign));
    assert!(matches!(table.adopt(key(1), row.clone(), &alice(), 8500), Adopted::Expired));
    let Adopted::Found(first) = table.adopt(key(1), row.clone(), &alice(), 1500) else { panic!() };
    let Adopted::Found(second) = table.adopt(key(1), row.clone(), &alice(), 1600) else { panic!() };
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!((table.len(), table.total()), (1, 1));
    drop((first, second));
    // Its row is up to date, so nothing has to be written; a look-up in between keeps it.
    let swept = table.sweep(1700);
    assert_eq!(swept.evictable[0].row, None);
    let Find::Found(session) = table.find(key(1), &alice(), 1700) else { panic!() };
    table.touch(&session, 1700);
    drop(session);
    assert!(!table.evict(&swept.evictable[0]));

    assert!(!table.expire_stored(key(1), &row, 90_000), "it is in the heap");
    assert!(!table.expire_stored(key(2), &row, 8499));
    assert!(table.expire_stored(key(2), &row, 8500));
    assert_eq!(table.total(), 0);
}

#[test]
fn a_row_that_was_not_taken_keeps_the_session() {
    let table = SessionTable::new(LIMITS);
    table.touch(&open(&table, 1, 0), 100);
    let swept = table.sweep(2000);
    table.row_was_lost(key(1));
    assert!(!table.evict(&swept.evictable[0]));
    assert!(table.sweep(2000).evictable[0].row.is_some());
}

#[test]
fn what_is_held_is_not_idle() {
    let table = SessionTable::new(LIMITS);
    let session = open(&table, 1, 0);
    let hold = session.hold();
    assert!(is_found(&table, 1, 50_000));
    let swept = table.sweep(50_000);
    assert!(swept.expired.is_empty() && swept.evictable.is_empty());
    assert_eq!(swept.rows.len(), 1);
    drop(hold);
    assert!(is_found(&table, 1, 57_999));
    session.begin_call(b"1", CallHandle { core: 0, number: 1 }).unwrap();
    assert!(table.sweep(60_000).expired.is_empty());
    let expired = table.sweep(100_000).expired;
    assert_eq!(expired.len(), 1, "the lifetime ends all the same");
    assert!(session.is_ended());
    assert_eq!(expired[0].calls().len(), 1);
    assert_eq!((table.len(), table.total()), (0, 0));
}

#[test]
fn calls_are_registered_by_exact_id() {
    let table = SessionTable::new(LIMITS);
    let session = open(&table, 1, 0);
    let handle = |number| CallHandle { core: 3, number };
    session.begin_call(b"1", handle(1)).unwrap();
    session.begin_call(b"\"1\"", handle(2)).unwrap();
    assert_eq!(session.begin_call(b"1", handle(3)), Err(CallRefused::Duplicate));
    assert_eq!(session.begin_call(&[b'1'; 1025], handle(3)), Err(CallRefused::IdTooLong));
    assert_eq!(session.call(b"\"1\""), Some(handle(2)));
    assert!(session.finish_call(handle(2)));
    assert!(!session.finish_call(handle(2)));
    assert_eq!(session.call(b"\"1\""), None);
    for number in 1..CALLS_MAX as u64 {
        session.begin_call(format!("\"{number}\"").as_bytes(), handle(number + 9)).unwrap();
    }
    assert_eq!(session.begin_call(b"0", handle(0)), Err(CallRefused::Full));
    assert_eq!(session.calls().len(), CALLS_MAX);
}

#[test]
fn one_stream_stands() {
    let table = SessionTable::new(LIMITS);
    let session = open(&table, 1, 0);
    assert_eq!(session.replace_standing(None, stream(1)), Ok(()));
    assert_eq!(session.replace_standing(None, stream(2)), Err(Some(stream(1))));
    assert_eq!(session.replace_standing(Some(stream(1)), stream(2)), Ok(()));
    session.add_stream(stream(3)).unwrap();
    assert_eq!(session.streams(), [stream(2), stream(3)]);
    assert!(session.remove_stream(stream(2)));
    assert_eq!(session.standing(), None);
    assert!(session.remove_stream(stream(3)));
    assert!(!session.remove_stream(stream(3)));
    for number in 0..STREAMS_MAX as u32 {
        session.add_stream(stream(number)).unwrap();
    }
    assert!(session.add_stream(stream(0)).is_err());
}

#[test]
fn a_session_is_small() {
    let table = SessionTable::new(LIMITS);
    let sessions = 50_000;
    for number in 0..sessions {
        open(&table, number, 0);
    }
    let entries: usize = table
        .shards
        .iter()
        .map(|shard| {
            // A map of capacity c has 8c/7 places of an entry and a control byte each.
            let places = (shard.lock().sessions.capacity() * 8).div_ceil(7).next_power_of_two();
            places * (size_of::<(SessionKey, Arc<Session>)>() + 1)
        })
        .sum();
    // Two counters in front of the session, and the allocator's own of each allocation.
    let shared = size_of::<Session>() + 16 + 16;
    let texts = record(&table, 0).encode().len() - 40 + 16;
    let bytes = entries / sessions as usize + shared + texts;
    println!("a session takes {bytes} bytes: {shared} + {texts} + its place in the table");
    assert!(bytes < 400, "{bytes}");
    table.sweep(200_000);
    assert!(table.shards.iter().all(|shard| shard.lock().sessions.capacity() < 64));
}

#[test]
fn cores_share_the_table() {
    let table = SessionTable::new(LIMITS);
    std::thread::scope(|scope| {
        for core in 0..4_u64 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..500_u64 {
                    let number = core * 1000 + round;
                    let session = open(table, number, round);
                    table.touch(&session, round + 1);
                    drop(session);
                    for evictable in table.sweep(round + 1500).evictable {
                        table.evict(&evictable);
                    }
                    // Held, so that no other core's sweep evicts it in between.
                    let held = table.adopt(key(number), record(table, round), &alice(), round);
                    assert!(matches!(held, Adopted::Found(_)));
                    assert!(table.end(key(number), round).is_some());
                }
            });
        }
    });
    assert_eq!((table.len(), table.total()), (0, 0));
}

/// `cargo test --release -- --ignored --nocapture a_request_costs`
#[test]
#[ignore = "a measurement"]
fn a_request_costs() {
    use super::super::{SessionId, SessionIds};
    use std::hint::black_box;
    use std::time::Instant;

    let ids = SessionIds::new(&[1; 32], 0);
    let table = SessionTable::new(LIMITS);
    let id = ids.mint([3; 16], &alice());
    let reservation = table.reserve("acme", 9).unwrap();
    table.insert(reservation, id.key(), record(&table, 0));
    let text = id.as_str().as_bytes();
    let rounds = 200_000_u32;
    let measure = |name: &str, work: &dyn Fn()| {
        let started = Instant::now();
        (0..rounds).for_each(|_| work());
        println!("{name}: {:?}", started.elapsed() / rounds);
    };
    measure("parse", &|| {
        let _ = black_box(SessionId::parse(black_box(text)));
    });
    measure("key", &|| {
        let _ = black_box(id.key());
    });
    measure("belongs", &|| {
        let _ = black_box(ids.belongs(&id, &alice()));
    });
    let key = id.key();
    measure("find and touch", &|| {
        let Find::Found(session) = table.find(key, &alice(), 5) else { panic!() };
        black_box(table.touch(&session, 5));
    });
    let handle = CallHandle { core: 0, number: 1 };
    let Find::Found(session) = table.find(key, &alice(), 5) else { panic!() };
    measure("register a call", &|| {
        let _ = black_box(session.begin_call(b"17", handle));
        black_box(session.finish_call(handle));
    });
}

#[test]
fn a_session_that_expired_in_the_heap_is_not_counted_again_by_its_row() {
    let table = SessionTable::new(LIMITS);
    let kept = open(&table, 2, 7000);
    drop(open(&table, 1, 0));
    let stored = record(&table, 0);
    assert_eq!(table.sweep(8000).expired.len(), 1);
    // A pass over the store has read the row before it was removed.
    assert!(!table.expire_stored(key(1), &stored, 8000));
    assert!(matches!(table.adopt(key(1), stored, &alice(), 0), Adopted::Ended));
    assert_eq!(table.total(), 1);
    drop(kept);
}

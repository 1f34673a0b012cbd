//! Tests of the table, and of the table against its journal.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;

const PLACE: Place = Place { node: 3, core: 1, boot: 9 };
const ALICE: SessionKey = SessionKey::from_bytes([1; 16]);
const BOB: SessionKey = SessionKey::from_bytes([2; 16]);
const ONE: OutletId = OutletId(1);
const TWO: OutletId = OutletId(2);

fn limits() -> StreamLimits {
    StreamLimits {
        window: WindowLimits { events_max: 8, bytes_max: 4000, age_ms_max: 10_000 },
        retention_ms: 5000,
        retained_bytes_max: 100_000,
        streams_max: 1000,
    }
}

fn table() -> StreamTable {
    StreamTable::new(PLACE, limits(), 1)
}

fn replay(
    table: &mut StreamTable,
    id: StreamId,
    after: u64,
    now_ms: u64,
) -> Option<(Vec<Arc<Vec<u8>>>, bool)> {
    let attached = table.attach(id, ALICE, Some(after), ONE, now_ms)?;
    Some((attached.replay, attached.finished))
}

fn numbers(frames: &[Arc<Vec<u8>>]) -> Vec<u64> {
    let number = |frame: &Arc<Vec<u8>>| {
        let text = std::str::from_utf8(frame::event_of(frame)).unwrap();
        text.split_once("data: ").unwrap().1.trim_end().parse().unwrap()
    };
    frames.iter().map(number).collect()
}

fn publish(table: &mut StreamTable, id: StreamId, number: u64, now_ms: u64) -> Published {
    table.publish(id, number.to_string().as_bytes(), now_ms).unwrap()
}

#[test]
fn a_stream_from_open_to_end() {
    let mut table = table();
    let id = table.open(StreamKind::Post, ALICE, b"7", 0).unwrap();
    assert_eq!((id.node, id.core, id.boot), (3, 1, 9));
    let primed = table.prime(id, Some(1000), 0).unwrap();
    assert_eq!(primed.event.position, 1);
    assert_eq!(frame::event_of(&primed.frame), b"id: 3-1-9-1-1\nretry: 1000\ndata: \n\n");
    let attached = table.attach(id, ALICE, None, ONE, 0).unwrap();
    assert!(attached.replay.is_empty() && attached.displaced.is_none() && !attached.finished);
    let published = publish(&mut table, id, 2, 1);
    assert_eq!((published.outlet, published.event.position), (Some(ONE), 2));

    let attached = table.attach(id, ALICE, Some(1), TWO, 2).unwrap();
    assert_eq!((numbers(&attached.replay), attached.displaced), (vec![2], Some(ONE)));
    assert!(!table.detach(id, ONE, 3), "the old connection has no say any more");
    assert!(table.detach(id, TWO, 3));
    assert_eq!(publish(&mut table, id, 3, 4).outlet, None);
    assert_eq!(table.finish(id, 5), None);
    assert!(table.publish(id, b"late", 6).is_none());
    assert!(table.finish(id, 6).is_none());

    let attached = table.attach(id, ALICE, Some(1), ONE, 7).unwrap();
    assert_eq!((numbers(&attached.replay), attached.finished), (vec![2, 3], true));
    assert_eq!(table.end(id), Some(ONE));
    assert!(table.attach(id, ALICE, Some(1), ONE, 7).is_none());
    assert_eq!((table.len(), table.retained_bytes()), (0, 0));
}

#[test]
fn others_see_nothing() {
    let mut table = table();
    let id = table.open(StreamKind::Standing, ALICE, b"", 0).unwrap();
    publish(&mut table, id, 1, 0);
    assert!(table.attach(id, BOB, Some(0), ONE, 0).is_none());
    assert_eq!(table.outlet(id), None);
    let unknown = StreamId { number: 99, ..id };
    assert!(table.attach(unknown, ALICE, Some(0), ONE, 0).is_none());
    assert!(table.publish(unknown, b"1", 0).is_none());
    assert!(table.end(unknown).is_none());
}

#[test]
fn a_position_that_left_the_window_replays_nothing() {
    let mut table = table();
    let id = table.open(StreamKind::Standing, ALICE, b"", 0).unwrap();
    for number in 1..=10 {
        publish(&mut table, id, number, 0);
    }
    let seen = |table: &mut StreamTable, after| numbers(&replay(table, id, after, 0).unwrap().0);
    assert_eq!(seen(&mut table, 1), [0_u64; 0]);
    assert_eq!(seen(&mut table, 2), [3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(seen(&mut table, 10), [0_u64; 0]);
    assert_eq!(seen(&mut table, 4000), [0_u64; 0]);
    assert_eq!(publish(&mut table, id, 11, 0).outlet, Some(ONE), "it goes on live");
}

#[test]
fn time_takes_events_and_streams() {
    let mut table = table();
    let standing = table.open(StreamKind::Standing, ALICE, b"", 0).unwrap();
    let post = table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
    let running = table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
    publish(&mut table, standing, 1, 0);
    publish(&mut table, standing, 2, 8000);
    publish(&mut table, post, 1, 0);
    table.finish(post, 100);
    assert_eq!(table.expire(5100), []);
    let gone = ExpiredStream { id: post, session: ALICE, kind: StreamKind::Post };
    assert_eq!(table.expire(5101), [gone]);
    table.attach(standing, ALICE, None, ONE, 9000);
    assert_eq!(table.expire(10_001), []);
    assert_eq!(numbers(&replay(&mut table, standing, 1, 10_001).unwrap().0), [2]);
    assert!(replay(&mut table, standing, 0, 10_001).unwrap().0.is_empty());
    assert_eq!(table.expire(1_000_000), [], "attached, or still being answered");
    assert!(table.detach(standing, ONE, 1_000_000));
    assert_eq!(table.expire(1_010_000), []);
    assert_eq!(table.expire(1_010_001).len(), 1);
    assert_eq!(table.open_streams().map(|(id, ..)| id).collect::<Vec<_>>(), [running]);
    // An event in the future (the clock was set back) is no trouble.
    publish(&mut table, running, 1, u64::MAX);
    assert_eq!(table.expire(0), []);
}

#[test]
fn a_client_that_comes_and_goes_costs_nothing() {
    let mut table = table();
    let id = table.open(StreamKind::Standing, ALICE, b"", 0).unwrap();
    for now_ms in 0..5000 {
        table.attach(id, ALICE, None, ONE, now_ms).unwrap();
        assert!(table.detach(id, ONE, now_ms));
        assert!(table.waiting() <= 1026);
    }
    assert_eq!(table.expire(14_999), []);
    assert_eq!(table.expire(15_000).len(), 1);
}

#[test]
fn bytes_go_oldest_finished_stream_first() {
    let mut table =
        StreamTable::new(PLACE, StreamLimits { retained_bytes_max: 4500, ..limits() }, 1);
    let running = table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
    let data = [b'1'; 600];
    table.publish(running, &data, 0);
    let finished: Vec<_> = (0..20)
        .map(|_| {
            let id = table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
            table.publish(id, &data, 0);
            table.finish(id, 0);
            assert!(table.retained_bytes() <= 4500);
            id
        })
        .collect();
    assert!(replay(&mut table, finished[0], 0, 0).is_none());
    assert!(replay(&mut table, finished[19], 0, 0).is_some());
    assert_eq!(replay(&mut table, running, 0, 0).unwrap().0.len(), 1);
    for _ in 0..20 {
        table.publish(running, &data, 0);
        assert!(table.retained_bytes() <= 4500);
    }
    assert_eq!(table.len(), 1, "an open stream's own events come last");
}

#[test]
fn streams_are_counted() {
    let mut table = StreamTable::new(PLACE, StreamLimits { streams_max: 2, ..limits() }, 1);
    table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
    let id = table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
    let error = table.open(StreamKind::Post, ALICE, b"", 0).unwrap_err();
    assert_eq!(error, StreamError::AtCapacity { streams: 2 });
    table.end(id);
    table.open(StreamKind::Post, ALICE, b"", 0).unwrap();
}

#[test]
fn legacy_streams_keep_nothing() {
    let mut table = table();
    let id = table.open(StreamKind::Legacy, ALICE, b"", 0).unwrap();
    table.attach(id, ALICE, None, ONE, 0).unwrap();
    let published = publish(&mut table, id, 1, 0);
    assert_eq!(frame::event_of(&published.frame), b"event: message\ndata: 1\n\n");
    assert_eq!(published.outlet, Some(ONE));
    assert!(replay(&mut table, id, 0, 0).unwrap().0.is_empty());
    assert_eq!(table.finish(id, 0), Some(ONE));
    assert!(table.is_empty());
    assert!(table.take_chunk(0).is_none());
}

#[test]
fn a_restart_keeps_what_was_half_read() {
    let mut table = table();
    let running = table.open(StreamKind::Post, ALICE, b"\"call-1\"", 0).unwrap();
    let standing = table.open(StreamKind::Standing, BOB, b"", 0).unwrap();
    let first = table.take_chunk(0).unwrap();
    publish(&mut table, running, 1, 1);
    publish(&mut table, running, 2, 1);
    publish(&mut table, standing, 1, 1);
    let second = table.take_chunk(1).unwrap();
    publish(&mut table, running, 3, 2);
    drop(table);

    let chunks = || [&second, &first].map(|sealed| Chunk::decode(&sealed.bytes).unwrap());
    let place = Place { boot: 10, ..PLACE };
    let mut table = StreamTable::recover(place, limits(), chunks().into(), 50);
    let unfinished: Vec<_> = table.unfinished().collect();
    let expected = UnfinishedStream { id: running, session: ALICE, note: b"\"call-1\"" };
    assert_eq!(unfinished, [expected]);
    assert_eq!(numbers(&replay(&mut table, running, 1, 50).unwrap().0), [2]);
    publish(&mut table, running, 3, 60);
    table.finish(running, 60);
    assert_eq!(table.unfinished().count(), 0);
    let new = table.open(StreamKind::Post, ALICE, b"", 60).unwrap();
    assert_eq!((new.boot, new.number), (10, 1));

    // A second restart sees both runs; a chunk less loses only its own events.
    let third = table.take_chunk(60).unwrap();
    assert_eq!(third.sequence, 3);
    let mut all = Vec::from(chunks());
    all.push(Chunk::decode(&third.bytes).unwrap());
    let mut table = StreamTable::recover(place, limits(), all.clone(), 70);
    assert_eq!(numbers(&replay(&mut table, running, 0, 70).unwrap().0), [1, 2, 3]);
    all.remove(0);
    let mut table = StreamTable::recover(place, limits(), all, 70);
    assert!(replay(&mut table, running, 1, 70).unwrap().0.is_empty(), "there is a gap");
    assert_eq!(numbers(&replay(&mut table, running, 2, 70).unwrap().0), [3]);
}

#[derive(Clone, Debug)]
enum Step {
    Open(u8),
    Publish(usize, usize),
    Prime(usize),
    Finish(usize),
    End(usize),
    Attach(usize),
    Expire,
    Pass(u64),
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1_u8..=3).prop_map(Step::Open),
        8 => (0_usize..12, 0_usize..900).prop_map(|(stream, size)| Step::Publish(stream, size)),
        1 => (0_usize..12).prop_map(Step::Prime),
        2 => (0_usize..12).prop_map(Step::Finish),
        1 => (0_usize..12).prop_map(Step::End),
        1 => (0_usize..12).prop_map(Step::Attach),
        1 => Just(Step::Expire),
        2 => (0_u64..2500).prop_map(Step::Pass),
        3 => Just(Step::Flush),
    ]
}

struct Run {
    table: StreamTable,
    opened: Vec<StreamId>,
    chunks: Vec<SealedChunk>,
    now_ms: u64,
}

impl Run {
    fn take(&mut self, step: Step) {
        let Self { table, opened, chunks, now_ms } = self;
        let pick = |number: usize| opened.get(number % opened.len().max(1)).copied();
        match step {
            Step::Open(code) => {
                let kind = StreamKind::from_code(code).unwrap();
                opened.extend(table.open(kind, ALICE, b"note", *now_ms));
            }
            Step::Publish(stream, size) => {
                let data = vec![b'x'; size];
                pick(stream).and_then(|id| table.publish(id, &data, *now_ms));
            }
            Step::Prime(stream) => {
                pick(stream).and_then(|id| table.prime(id, Some(5), *now_ms));
            }
            Step::Finish(stream) => {
                pick(stream).and_then(|id| table.finish(id, *now_ms));
            }
            Step::End(stream) => {
                pick(stream).and_then(|id| table.end(id));
            }
            Step::Attach(stream) => {
                let id = pick(stream);
                id.and_then(|id| table.attach(id, ALICE, Some(1), ONE, *now_ms));
                id.map(|id| table.detach(id, ONE, *now_ms));
            }
            Step::Expire => drop(table.expire(*now_ms)),
            Step::Pass(ms) => *now_ms += ms,
            Step::Flush => chunks.extend(table.take_chunk(*now_ms)),
        }
        assert!(table.retained_bytes() <= table.limits.retained_bytes_max.max(256 * table.len()));
    }
}

proptest! {
    /// The recovered table answers every resumption as the lost one would have.
    #[test]
    fn recovery_answers_the_same(
        steps in proptest::collection::vec(step(), 0..120),
        bytes_max in prop_oneof![Just(100_000_usize), Just(6000_usize)],
        later in 0_u64..4000,
    ) {
        let limits = StreamLimits { retained_bytes_max: bytes_max, ..limits() };
        let table = StreamTable::new(PLACE, limits, 1);
        let mut run = Run { table, opened: vec![], chunks: vec![], now_ms: 1000 };
        for step in steps {
            run.take(step);
        }
        run.take(Step::Flush);
        let Run { table: mut live, opened, chunks, now_ms } = run;
        let now_ms = now_ms + later;
        let chunks = chunks.iter().rev().map(|sealed| Chunk::decode(&sealed.bytes).unwrap());
        let place = Place { boot: 77, ..PLACE };
        let mut recovered = StreamTable::recover(place, limits, chunks.collect(), now_ms);
        live.expire(now_ms);
        let legacy: Vec<_> = live
            .open_streams()
            .filter(|(.., kind)| *kind == StreamKind::Legacy)
            .map(|(id, ..)| id)
            .collect();
        for id in opened.into_iter().filter(|id| !legacy.contains(id)) {
            // A standing stream without a client begins to wait anew with the restart.
            let waits = live.session(id).is_none() && recovered.open_streams()
                .any(|(open, _, kind)| open == id && kind == StreamKind::Standing);
            if waits {
                continue;
            }
            for after in 0..30 {
                let expected = replay(&mut live, id, after, now_ms);
                prop_assert_eq!(replay(&mut recovered, id, after, now_ms), expected);
            }
        }
    }
}

/// `cargo test --release -- --ignored --nocapture a_stream_costs`
#[test]
#[ignore = "a measurement"]
fn a_stream_costs() {
    use std::time::Instant;

    let mut table = StreamTable::new(
        PLACE,
        StreamLimits { retained_bytes_max: 64 << 20, streams_max: 1 << 20, ..limits() },
        1,
    );
    let data = vec![b'x'; 500];
    let rounds = 200_000_u32;
    let mut journaled = 0;
    let started = Instant::now();
    for round in 0..rounds {
        let now_ms = u64::from(round / 20);
        let id = table.open(StreamKind::Post, ALICE, b"17", now_ms).unwrap();
        table.attach(id, ALICE, None, ONE, now_ms);
        table.prime(id, Some(1000), now_ms);
        table.publish(id, &data, now_ms);
        table.finish(id, now_ms);
        if round % 1000 == 0 {
            journaled += table.take_chunk(now_ms).map_or(0, |sealed| sealed.bytes.len());
            table.expire(now_ms);
        }
    }
    let each = started.elapsed() / rounds;
    println!("a whole POST stream: {each:?}, {} journaled", journaled / rounds as usize);
    println!("retained: {} bytes in {} streams", table.retained_bytes(), table.len());
}

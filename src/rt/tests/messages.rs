//! Messages between threads, and work off the cores.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::super::*;
use super::{on_core, until};

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, PartialEq)]
struct Letter(usize, Vec<u8>);

impl Weigh for Letter {
    fn bytes(&self) -> usize {
        self.1.len()
    }
}

#[test]
fn an_inbox_is_bounded_in_count_and_bytes() {
    let (sender, receiver) = inbox::<Letter>(3, 100);
    sender.push(Letter(0, vec![0; 60])).unwrap();
    let refused = sender.push(Letter(1, vec![0; 41])).unwrap_err();
    assert_eq!(refused, Undelivered::Full(Letter(1, vec![0; 41])));
    sender.push(Letter(2, vec![0; 40])).unwrap();
    sender.push(Letter(3, vec![])).unwrap();
    assert!(matches!(sender.push(Letter(4, vec![])), Err(Undelivered::Full(_))));
    on_core(async move {
        let mut receiver = receiver;
        let mut out = Vec::new();
        assert!(receiver.drain(&mut out).await);
        assert_eq!(out.iter().map(|letter| letter.0).collect::<Vec<_>>(), [0, 2, 3]);
        // Room again; what is there stays drainable after a close.
        sender.push(Letter(5, vec![0; 100])).unwrap();
        receiver.close();
        assert!(matches!(sender.push(Letter(6, vec![])), Err(Undelivered::Closed(_))));
        assert!(receiver.drain(&mut out).await);
        assert_eq!(out.len(), 4);
        assert!(!receiver.drain(&mut out).await);
    });
}

/// Several threads, bounds never passed, order of each sender kept, nothing lost; on the tuned and
/// on the plain ring.
#[test]
fn an_inbox_takes_from_many_threads() {
    const EACH: usize = 20_000;
    for tuned_ring in [true, false] {
        let (sender, receiver) = inbox::<Letter>(64, 640);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let sender = sender.clone();
                thread::spawn(move || {
                    for number in 0..EACH {
                        let mut letter = Letter(number, vec![0; 8 + number % 5]);
                        while let Err(Undelivered::Full(back)) = sender.push(letter) {
                            letter = back;
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        drop(sender);
        let options = CoreOptions { tuned_ring, ..CoreOptions::default() };
        let count = run_once(options, async move {
            let mut receiver = receiver;
            let (mut out, mut count) = (Vec::new(), 0);
            while receiver.drain(&mut out).await {
                assert!(out.len() <= 64);
                assert!(out.iter().map(Weigh::bytes).sum::<usize>() <= 640);
                count += out.len();
                out.clear();
            }
            count
        })
        .unwrap();
        assert_eq!(count, 4 * EACH);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_oneshot_answers_cores_and_threads() {
    let (sender, receiver) = oneshot::<u32>();
    let asking = thread::spawn(move || receiver.recv_blocking());
    thread::yield_now();
    sender.send(7).unwrap();
    assert_eq!(asking.join().unwrap(), Ok(7));

    let (sender, receiver) = oneshot::<u32>();
    drop(sender);
    assert_eq!(receiver.recv_blocking(), Err(Dropped));

    let (sender, receiver) = oneshot::<u32>();
    drop(receiver);
    assert_eq!(sender.send(1), Err(1));

    on_core(async {
        for number in 0..200 {
            let (sender, receiver) = oneshot();
            let thread = thread::spawn(move || sender.send(number));
            assert_eq!(receiver.await, Ok(number));
            thread.join().unwrap().unwrap();
        }
        let (sender, receiver) = oneshot::<u32>();
        thread::spawn(move || drop(sender));
        assert_eq!(receiver.await, Err(Dropped));
    });
}

/// Trap 6.
#[test]
fn workers_contain_panics_and_refuse_what_does_not_fit() {
    on_core(async {
        let pool = WorkerPool::start(1, 2).unwrap();
        let name = pool.run(|| thread::current().name().map(str::to_owned)).await;
        assert_eq!(name, Ok(Some("worker-0".to_owned())));
        assert_eq!(pool.run(|| panic!("on purpose")).await, Err::<(), _>(WorkError::Panicked));
        assert_eq!(pool.run(|| 7).await, Ok(7));

        let gate = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicUsize::new(0));
        let outcomes = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..4 {
            let (pool, outcomes) = (pool.clone(), Rc::clone(&outcomes));
            let (gate, done) = (Arc::clone(&gate), Arc::clone(&done));
            spawn(async move {
                let outcome = pool.run(move || {
                    while !gate.load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                    done.fetch_add(1, Ordering::AcqRel);
                });
                let outcome = outcome.await;
                outcomes.borrow_mut().push(outcome);
            });
            // One runs, two wait, the last is too much.
            sleep(20 * MS).await;
        }
        assert_eq!(*outcomes.borrow(), [Err(WorkError::Full)]);
        pool.stop();
        until("what waits is let go", || outcomes.borrow().len() == 3).await;
        gate.store(true, Ordering::Release);
        until("what runs ends", || outcomes.borrow().len() == 4).await;
        let expected =
            [Err(WorkError::Full), Err(WorkError::Stopped), Err(WorkError::Stopped), Ok(())];
        assert_eq!(*outcomes.borrow(), expected);
        assert_eq!(done.load(Ordering::Acquire), 1);
        assert_eq!(pool.run(|| 1).await, Err(WorkError::Stopped));
    });
}

/// One name floods the pool: it gets one thread of two, what it may not have waiting is refused, and
/// others and the server itself go on beside it.
#[test]
fn nobody_takes_more_than_a_share_of_the_workers() {
    on_core(async {
        let pool = WorkerPool::start(2, 64).unwrap();
        let gate = Arc::new(AtomicBool::new(false));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let outcomes = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..12 {
            let (pool, outcomes, gate) = (pool.clone(), Rc::clone(&outcomes), Arc::clone(&gate));
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            spawn(async move {
                let outcome = pool.run_for("greedy", move || {
                    most.fetch_max(running.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
                    while !gate.load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                    running.fetch_sub(1, Ordering::AcqRel);
                });
                let outcome = outcome.await;
                outcomes.borrow_mut().push(outcome);
            });
        }
        // One runs, eight wait, the others are too many.
        until("too much is refused", || outcomes.borrow().len() >= 3).await;
        assert_eq!(*outcomes.borrow(), [Err(WorkError::ShareFull); 3]);
        for round in 0..20 {
            assert_eq!(pool.run_for("modest", move || round).await, Ok(round));
            assert_eq!(pool.run(move || round).await, Ok(round));
        }
        gate.store(true, Ordering::Release);
        until("all of it is done", || outcomes.borrow().len() == 12).await;
        assert_eq!(outcomes.borrow()[3..], [Ok(()); 9]);
        assert_eq!(most.load(Ordering::Acquire), 1);
        // Nothing is left of either name.
        assert_eq!(pool.run_for("greedy", || 1).await, Ok(1));
        pool.stop();
        assert_eq!(pool.run_for("greedy", || 1).await, Err(WorkError::Stopped));
    });
}

#[test]
fn names_and_the_server_itself_take_turns() {
    on_core(async {
        let pool = WorkerPool::start(1, 64).unwrap();
        let gate = Arc::new(AtomicBool::new(false));
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let held = Arc::clone(&gate);
        let (of_pool, done) = (pool.clone(), Rc::new(RefCell::new(0)));
        spawn(async move {
            let wait = move || {
                while !held.load(Ordering::Acquire) {
                    thread::yield_now();
                }
            };
            of_pool.run(wait).await.unwrap();
        });
        for whose in ["a", "a", "a", "b", "", ""] {
            let (pool, order, done) = (pool.clone(), Arc::clone(&order), Rc::clone(&done));
            spawn(async move {
                let note = move || order.lock().push(whose);
                match whose {
                    "" => pool.run(note).await.unwrap(),
                    whose => pool.run_for(whose, note).await.unwrap(),
                }
                *done.borrow_mut() += 1;
            });
        }
        sleep(20 * MS).await;
        gate.store(true, Ordering::Release);
        until("all of it is done", || *done.borrow() == 6).await;
        assert_eq!(*order.lock(), ["a", "", "b", "", "a", "a"]);
    });
}

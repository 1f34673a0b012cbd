//! Cores, tasks, time, messages.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::super::*;
use super::{on_core, until};

const MS: Duration = Duration::from_millis(1);

#[test]
fn the_driver_is_the_one_asked_for() {
    let epoll = CoreOptions { driver: DriverChoice::Epoll, ..CoreOptions::default() };
    assert_eq!(run_once(epoll, async { driver_name() }).unwrap(), "epoll");
    let forced = std::env::var("MONOIO_FORCE_LEGACY_DRIVER").is_ok_and(|value| value == "1");
    let auto = run_once(CoreOptions::default(), async { driver_name() }).unwrap();
    assert_eq!(auto == "epoll", forced || !monoio::utils::detect_uring());
    assert_eq!(driver_name(), "none");
}

#[test]
fn cores_have_names_and_end_with_their_bodies() {
    let names = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let cores = Cores::start(CoreOptions::default(), 3, {
        let names = Arc::clone(&names);
        move |core| {
            let names = Arc::clone(&names);
            async move {
                sleep(MS).await;
                let name = thread::current().name().map(str::to_owned);
                names.lock().push((core, name));
            }
        }
    })
    .unwrap();
    cores.join().unwrap();
    let mut names = names.lock().clone();
    names.sort();
    let expected: Vec<_> = (0..3).map(|core| (core, Some(format!("core-{core}")))).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_core_can_be_pinned() {
    let options = CoreOptions { cpus: vec![0], ..CoreOptions::default() };
    let status =
        run_once(options, async { std::fs::read_to_string("/proc/thread-self/status").unwrap() })
            .unwrap();
    assert!(status.lines().any(|line| line == "Cpus_allowed_list:\t0"), "{status}");
}

#[test]
fn a_panic_in_a_body_is_told_by_join() {
    let cores = Cores::start(CoreOptions::default(), 2, |core| async move {
        assert_eq!(core, 0, "core 1 panics");
    })
    .unwrap();
    assert!(matches!(cores.join(), Err(CoreError::Panicked { core: 1 })));
}

#[test]
#[should_panic(expected = "as it was")]
fn run_once_passes_a_panic_on() {
    let _ = run_once(CoreOptions::default(), async { panic!("as it was") });
}

/// Trap 5.
#[test]
fn a_panic_in_a_task_ends_that_task_only() {
    on_core(async {
        let before = panics_contained();
        let held = Rc::new(());
        let other = Rc::new(Cell::new(false));
        spawn({
            let held = Rc::clone(&held);
            async move {
                sleep(MS).await;
                drop(held.clone());
                panic!("on purpose");
            }
        });
        spawn({
            let other = Rc::clone(&other);
            async move {
                sleep(20 * MS).await;
                other.set(true);
            }
        });
        until("the other task", || other.get()).await;
        assert!(panics_contained() > before);
        assert_eq!(Rc::strong_count(&held), 1);
        until("all tasks end", || tasks_running() == 0).await;
    });
}

#[test]
fn a_panic_while_dropping_a_task_is_contained_too() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(thread::panicking(), "on purpose");
        }
    }
    on_core(async {
        spawn(async {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        });
        sleep(MS).await;
        end_tasks(Duration::from_secs(1)).await;
        assert_eq!(tasks_running(), 0);
    });
}

#[test]
fn ending_tasks_drops_what_they_hold_and_spawning_goes_on() {
    on_core(async {
        let held = Rc::new(());
        for _ in 0..1000 {
            let held = Rc::clone(&held);
            spawn(async move {
                std::future::pending::<()>().await;
                drop(held);
            });
        }
        sleep(MS).await;
        // These were not polled yet.
        for _ in 0..10 {
            let held = Rc::clone(&held);
            spawn(async move { drop(held) });
        }
        assert_eq!(tasks_running(), 1010);
        end_tasks(Duration::from_secs(2)).await;
        assert_eq!(tasks_running(), 0);
        assert_eq!(Rc::strong_count(&held), 1);
        let again = Rc::new(Cell::new(false));
        spawn({
            let again = Rc::clone(&again);
            async move { again.set(true) }
        });
        until("a new task", || again.get()).await;
    });
}

/// Trap 3.
#[test]
fn timers_fire_while_two_tasks_keep_each_other_busy() {
    on_core(async {
        let (ping, pong) = (Rc::new(Notify::new()), Rc::new(Notify::new()));
        for (mine, theirs) in [(&ping, &pong), (&pong, &ping)] {
            let (mine, theirs) = (Rc::clone(mine), Rc::clone(theirs));
            spawn(async move {
                loop {
                    mine.notified().await;
                    theirs.notify();
                }
            });
        }
        ping.notify();
        let begun = Instant::now();
        for _ in 0..10 {
            sleep(10 * MS).await;
        }
        assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    });
}

/// Trap 4.
#[test]
fn a_task_that_wakes_itself_starves_nobody() {
    on_core(async {
        let rounds = Rc::new(Cell::new(0u64));
        spawn({
            let rounds = Rc::clone(&rounds);
            poll_fn(move |context| {
                rounds.set(rounds.get() + 1);
                context.waker().wake_by_ref();
                Poll::<()>::Pending
            })
        });
        let others = Rc::new(Cell::new(0));
        for _ in 0..100 {
            let others = Rc::clone(&others);
            spawn(async move {
                sleep(5 * MS).await;
                others.set(others.get() + 1);
            });
        }
        until("the others", || others.get() == 100).await;
        assert!(rounds.get() > 1000);
    });
}

#[test]
fn stepping_back_lets_ready_tasks_go_first() {
    on_core(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        for name in ["a", "b"] {
            let order = Rc::clone(&order);
            spawn(async move {
                for round in 0..3 {
                    order.borrow_mut().push((round, name));
                    let mut stepped_back = false;
                    poll_fn(|context| {
                        if std::mem::replace(&mut stepped_back, true) {
                            return Poll::Ready(());
                        }
                        tasks::after_the_others(context);
                        Poll::Pending
                    })
                    .await;
                }
            });
        }
        until("both end", || tasks_running() == 0).await;
        let expected = [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a"), (2, "b")];
        assert_eq!(*order.borrow(), expected);
    });
}

/// Trap 7: whatever a task of a core holds is freed on the core's thread, even when a sender
/// outlives the core.
#[test]
fn nothing_of_a_core_is_freed_on_another_thread() {
    struct Freed(Arc<parking_lot::Mutex<Vec<ThreadId>>>);
    impl Drop for Freed {
        fn drop(&mut self) {
            self.0.lock().push(thread::current().id());
        }
    }
    struct Word;
    impl Weigh for Word {
        fn bytes(&self) -> usize {
            1
        }
    }
    let threads = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (sender, receiver) = inbox::<Word>(10, 10);
    let (answer, question) = oneshot::<Word>();
    let seen = Arc::clone(&threads);
    let receiver = parking_lot::Mutex::new(Some((receiver, question)));
    let core_thread = Arc::new(parking_lot::Mutex::new(None));
    let core_id = Arc::clone(&core_thread);
    let cores = Cores::start(CoreOptions::default(), 1, move |_| {
        let (mut receiver, question) = receiver.lock().take().unwrap();
        *core_id.lock() = Some(thread::current().id());
        let (first, second) = (Freed(Arc::clone(&seen)), Freed(Arc::clone(&seen)));
        async move {
            spawn(async move {
                let _first = Rc::new(first);
                receiver.drain(&mut Vec::new()).await;
            });
            spawn(async move {
                let _second = Rc::new(second);
                let _ = question.await;
            });
            sleep(MS).await;
        }
    })
    .unwrap();
    cores.join().unwrap();
    assert!(matches!(sender.push(Word), Err(Undelivered::Closed(Word))));
    assert!(answer.send(Word).is_err());
    let core_thread = core_thread.lock().unwrap();
    assert_eq!(*threads.lock(), [core_thread, core_thread]);
}

#[test]
fn sleeps_and_timeouts_and_races() {
    on_core(async {
        let begun = Instant::now();
        assert_eq!(timeout(20 * MS, std::future::pending::<()>()).await, Err(Elapsed));
        assert!(begun.elapsed() >= 20 * MS);
        assert_eq!(timeout(20 * MS, async { 7 }).await, Ok(7));
        // Both are ready: the first wins.
        assert_eq!(race(async { 1 }, async { 2 }).await, Either::Left(1));
        assert_eq!(race(sleep(50 * MS), async { 2 }).await, Either::Right(2));
        sleep(Duration::ZERO).await;
    });
}

#[test]
fn a_sleep_wakes_the_task_that_polled_it_last() {
    on_core(async {
        for wait in [Duration::ZERO, 30 * MS] {
            let mut sleeping = Box::pin(sleep(wait));
            // This task looks at it once, another one waits for it.
            let first = poll_fn(|context| Poll::Ready(sleeping.as_mut().poll(context))).await;
            assert!(first.is_pending());
            let done = Rc::new(Cell::new(false));
            spawn({
                let done = Rc::clone(&done);
                async move {
                    sleeping.await;
                    done.set(true);
                }
            });
            until("the other task", || done.get()).await;
        }
    });
}

#[test]
fn a_race_holds_each_future_once() {
    let big = || async {
        let block = [1u8; 1000];
        std::future::pending::<()>().await;
        assert_eq!(block[0], 1);
    };
    let size = size_of_val(&race(big(), big()));
    assert!(size < 2200, "{size}");
    let timer = size_of_val(&sleep(MS));
    println!("a timer takes {timer} bytes");
    let size = size_of_val(&timeout(MS, big()));
    assert!(size < 1200 + timer, "{size}");
}

#[test]
fn a_deadline_expires_once_and_can_be_armed_again() {
    on_core(async {
        let deadline = Deadline::new();
        let begun = Instant::now();
        deadline.set(150 * MS);
        deadline.expired().await;
        let took = begun.elapsed();
        assert!((150 * MS..400 * MS).contains(&took), "{took:?}");
        assert!(deadline.is_expired());
        // Moved later before it is due, then taken back.
        deadline.set(100 * MS);
        assert!(!deadline.is_expired());
        sleep(50 * MS).await;
        deadline.set(300 * MS);
        assert_eq!(timeout(200 * MS, deadline.expired()).await, Err(Elapsed));
        deadline.clear();
        assert_eq!(timeout(400 * MS, deadline.expired()).await, Err(Elapsed));
        // Moved earlier, while the wheel sleeps for the later time.
        deadline.set(Duration::from_secs(100));
        sleep(10 * MS).await;
        let begun = Instant::now();
        deadline.set(100 * MS);
        deadline.expired().await;
        assert!(begun.elapsed() < 350 * MS, "{:?}", begun.elapsed());
    });
}

#[test]
fn deadlines_beyond_the_wheel_and_beyond_reason() {
    on_core(async {
        let far = [Deadline::new(), Deadline::new()];
        far[0].set(Duration::from_mins(10));
        far[1].set(Duration::MAX);
        assert_eq!(timeout(150 * MS, far[0].expired()).await, Err(Elapsed));
        assert!(!far[1].is_expired());
    });
}

#[test]
fn ten_thousand_deadlines_armed_again_and_again_stay_cheap() {
    on_core(async {
        let deadlines: Vec<_> = (0..10_000).map(|_| Deadline::new()).collect();
        let begun = Instant::now();
        for _ in 0..20 {
            for deadline in &deadlines {
                deadline.set(Duration::from_secs(15));
            }
        }
        let per_set = begun.elapsed() / 200_000;
        println!("one set: {per_set:?}");
        assert_eq!(deadline::entries_queued(), 10_000);
        assert!(per_set < 5 * MS / 1000, "{per_set:?}");
        // Connections that come and go leave the wheel as full as their number.
        drop(deadlines);
        for _ in 0..50_000 {
            Deadline::new().set(Duration::from_secs(15));
        }
        assert!(deadline::entries_queued() <= 10_000);
    });
}

#[test]
fn an_idle_wheel_stops_turning() {
    on_core(async {
        let deadline = Deadline::new();
        deadline.set(MS);
        deadline.expired().await;
        sleep(10 * MS).await;
        assert!(!deadline::is_turning());
    });
}

#[test]
fn notify_keeps_one_permit_and_loses_no_wake_up() {
    on_core(async {
        let notify = Rc::new(Notify::new());
        notify.notify();
        notify.notify();
        notify.notified().await;
        assert_eq!(timeout(5 * MS, notify.notified()).await, Err(Elapsed));
        // A waiter that was dropped does not swallow the permit of another.
        let woken = Rc::new(Cell::new(false));
        spawn({
            let (notify, woken) = (Rc::clone(&notify), Rc::clone(&woken));
            async move {
                notify.notified().await;
                woken.set(true);
            }
        });
        let _ = timeout(MS, notify.notified()).await;
        notify.notify();
        until("the waiter", || woken.get()).await;
    });
}

#[test]
fn stop_reaches_everyone_and_forgets_who_left() {
    on_core(async {
        let stop = Stop::new();
        let seen = Rc::new(Cell::new(0));
        for _ in 0..100 {
            let (stop, seen) = (stop.clone(), Rc::clone(&seen));
            spawn(async move {
                for _ in 0..10 {
                    let _ = timeout(MS, stop.stopped()).await;
                }
                stop.stopped().await;
                seen.set(seen.get() + 1);
            });
        }
        sleep(30 * MS).await;
        assert!(stop.places() <= 100, "{}", stop.places());
        assert!(!stop.is_stopped());
        stop.stop();
        until("all to stop", || seen.get() == 100).await;
        stop.stopped().await;
    });
}

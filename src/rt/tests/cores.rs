//! Cores, tasks, time, messages.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::super::*;
use super::{on_core, until};

#[test]
fn the_driver_is_the_one_asked_for() {
    let epoll = CoreOptions { driver: DriverChoice::Epoll, ..CoreOptions::default() };
    assert_eq!(run_once(epoll, async { driver_name() }).unwrap(), "epoll");
    let forced = std::env::var("MONOIO_FORCE_LEGACY_DRIVER").is_ok_and(|value| value == "1");
    let auto = run_once(CoreOptions::default(), async { driver_name() }).unwrap();
    assert_eq!(auto == "epoll", forced || !monoio::utils::detect_uring());
    assert_eq!(driver_name(), "none");
}

//! Several cores: whatever core a connection falls to, a session is one thing.

use serde_json::json;

use crate::harness::{Client, Events, Request, Ringway, Service, Setup, call, cancel, eventually, initialize, ping, rpc};

const HOPS: &str = "ringway_cross_core_hops_total";
const HOLD: (&str, &str, &str, &str) = ("hold", "GET", "/hold", "");

fn four_cores() -> Setup {
    Setup::new().set("runtime.cores", 4)
}

/// Repeats `round` until it has happened both within a core and across cores, and at least
/// `least` times. Which core a connection falls to is the kernel's choice.
fn on_any_core(server: &Ringway, least: usize, mut round: impl FnMut()) {
    let (mut within, mut across) = (0, 0);
    for number in 0..400 {
        let before = server.metric(HOPS);
        round();
        let hops = server.metric(HOPS) - before;
        if hops > 0.0 { across += 1 } else { within += 1 }
        if number + 1 >= least && within > 0 && across > 0 {
            return;
        }
    }
    panic!("{within} rounds within a core, {across} across cores");
}

#[test]
fn post_streams_resume_on_any_core() {
    let service = Service::holding();
    let server = four_cores().api(&service.base(), &[HOLD]).start();
    let client = Client::open(&server);
    let mut number = 0;
    let mut broken = Vec::new();
    for _ in 0..8 {
        number += 1;
        let mut posted = client.post_stream(&call(number, "hold", json!({})));
        broken.push((number, posted.primed()));
    }
    service.release();
    let mut at = broken.iter().cycle();
    on_any_core(&server, 16, || {
        let (number, event) = at.next().unwrap();
        let mut again = client.stream(Some(event)).unwrap();
        let rest = again.rest();
        assert_eq!(rest.len(), 1, "{rest:?}");
        assert_eq!(rest[0]["id"], *number);
    });
}

//! Limits over levels, callers, catalogs and cores.

use std::sync::atomic::AtomicU32;

use super::*;
use crate::catalog::SideEffect;
use crate::catalog::fixture;
use crate::governance::Limited;
use crate::identity::KeyId;

const SECOND: u64 = 1_000_000_000;

/// Limits of tenant, client application, callers and one tool, in the words of a file.
struct Written {
    tenant: &'static str,
    client: &'static str,
    caller: &'static str,
    tool: &'static str,
}

const NOTHING: Written = Written { tenant: "", client: "", caller: "", tool: "" };

impl Written {
    fn view(&self) -> Arc<View> {
        fixture::view(&format!(
            "
[[tenant]]
id = 'acme'
limits = {{ {} }}
[[client_application]]
tenant = 'acme'
id = 'desk'
limits = {{ {} }}
caller_limits = {{ {} }}
[[connection]]
tenant = 'acme'
id = 'api'
base_url = 'http://127.0.0.1:1/'
[[toolset]]
tenant = 'acme'
id = 'pets'
kind = 'rest'
connection = 'api'
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'free'
description = 'Free of a limit.'
method = 'GET'
path = '/free'
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'limited'
description = 'Has a limit.'
method = 'POST'
path = '/limited'
{}
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'pets'
",
            self.tenant, self.client, self.caller, self.tool
        ))
    }
}

fn caller(seed: u32) -> Caller {
    Caller::Key(KeyId::parse(&format!("{seed:012}")).unwrap())
}

fn refused(taken: Result<(), Limited>) -> (Level, Class, u64) {
    let limited = taken.unwrap_err();
    (limited.level, limited.class, u64::try_from(limited.retry_after.as_nanos()).unwrap())
}

fn granted(handles: &Handles, class: Class, tries: u32, now_ns: u64) -> u32 {
    (0..tries).filter(|_| handles.take(class, 1, now_ns).is_ok()).count() as u32
}

#[test]
fn without_limits_everything_is_granted() {
    let handles = Limiter::default().handles(&NOTHING.view(), Caller::Open);
    assert_eq!(granted(&handles, Class::Requests, 1_000, 0), 1_000);
    assert!(handles.listen().is_ok());
    assert!(handles.usage(None, 0).is_empty());
}

#[test]
fn each_level_holds_for_those_it_is_for() {
    let view = Written {
        tenant: "requests = { count = 12 }",
        client: "requests = { count = 10 }",
        caller: "requests = { count = 6 }",
        ..NOTHING
    }
    .view();
    let limiter = Limiter::default();
    let (one, other) = (limiter.handles(&view, caller(1)), limiter.handles(&view, caller(2)));
    assert_eq!(granted(&one, Class::Requests, 20, 0), 6);
    assert_eq!(
        refused(one.take(Class::Requests, 1, 0)),
        (Level::Caller, Class::Requests, 10 * SECOND)
    );
    assert_eq!(granted(&other, Class::Requests, 20, 0), 4);
    let expected = (Level::ClientApplication, Class::Requests, 6 * SECOND);
    assert_eq!(refused(other.take(Class::Requests, 1, 0)), expected);
    // Classes are apart.
    assert_eq!(granted(&other, Class::Light, 100, 0), 100);
}

#[test]
fn a_refused_request_uses_up_nothing_at_any_level() {
    let view = Written {
        tenant: "requests = { count = 100 }",
        client: "requests = { count = 100 }",
        caller: "requests = { count = 1 }",
        ..NOTHING
    }
    .view();
    let limiter = Limiter::default();
    let handles = limiter.handles(&view, caller(1));
    assert_eq!(granted(&handles, Class::Requests, 50, 0), 1);
    let left: Vec<u32> = handles.usage(None, 0).iter().map(|usage| usage.remaining).collect();
    assert_eq!(left, [99, 99, 0]);
}

#[test]
fn the_longest_wait_is_the_one_told() {
    let view = Written {
        client: "requests = { count = 1, seconds = 60 }",
        caller: "requests = { count = 1, seconds = 600 }",
        ..NOTHING
    }
    .view();
    let handles = Limiter::default().handles(&view, caller(1));
    handles.take(Class::Requests, 1, 0).unwrap();
    let expected = (Level::Caller, Class::Requests, 590 * SECOND);
    assert_eq!(refused(handles.take(Class::Requests, 1, 10 * SECOND)), expected);
    handles.take(Class::Requests, 1, 600 * SECOND).unwrap();
}

#[test]
fn calls_count_by_weight_in_calls_mutations_and_the_tools_own_limit() {
    let view = Written {
        client: "tool_calls = { count = 100 }, mutations = { count = 9 }",
        tool: "weight = 3\nlimit = { count = 6 }",
        ..NOTHING
    }
    .view();
    let handles = Limiter::default().handles(&view, caller(1));
    let (free, limited) = (view.tool("free").unwrap(), view.tool("limited").unwrap());
    let call = |tool: &CompiledTool, side_effect| handles.take_call(tool, side_effect, 0);
    let left =
        || handles.usage(Some(limited), 0).iter().map(|usage| usage.remaining).collect::<Vec<_>>();
    assert_eq!(left(), [100, 9, 6]);
    call(free, SideEffect::Read).unwrap();
    assert_eq!(left(), [99, 9, 6]);
    call(free, SideEffect::Destructive).unwrap();
    assert_eq!(left(), [98, 8, 6]);
    call(limited, SideEffect::Write).unwrap();
    assert_eq!(left(), [95, 5, 3]);
    call(limited, SideEffect::Read).unwrap();
    assert_eq!(left(), [92, 5, 0]);
    let expected = (Level::Tool, Class::ToolCalls, 30 * SECOND);
    assert_eq!(refused(call(limited, SideEffect::Read)), expected);
    assert_eq!(left(), [92, 5, 0]);
    for _ in 0..5 {
        call(free, SideEffect::Write).unwrap();
    }
    let level = refused(call(free, SideEffect::Write)).0;
    assert_eq!((level, left()), (Level::ClientApplication, vec![87, 0, 0]));
}

#[test]
fn streams_have_places() {
    let view =
        Written { client: "listening_streams = 3", caller: "listening_streams = 2", ..NOTHING }
            .view();
    let limiter = Limiter::default();
    let (one, other) = (limiter.handles(&view, caller(1)), limiter.handles(&view, caller(2)));
    let _first = one.listen().unwrap();
    let second = one.listen().unwrap();
    assert_eq!(one.listen().unwrap_err().level, Level::Caller);
    let third = other.listen().unwrap();
    assert_eq!(other.listen().unwrap_err().level, Level::ClientApplication);
    drop(third);
    // One that was refused by its own cap has taken no place of the client application.
    let left: Vec<u32> = one.usage(None, 0).iter().map(|usage| usage.remaining).collect();
    assert_eq!(left, [1, 0]);
    drop(second);
    assert!(one.listen().is_ok());
}

#[test]
fn a_new_catalog_goes_on_where_the_rate_is_the_same() {
    let limiter = Limiter::default();
    let old = Written {
        client: "requests = { count = 5 }, listening_streams = 1",
        caller: "requests = { count = 9 }",
        tool: "limit = { count = 2 }",
        ..NOTHING
    };
    let old_view = old.view();
    let handles = limiter.handles(&old_view, caller(1));
    assert_eq!(granted(&handles, Class::Requests, 4, 0), 4);
    let tool = old_view.tool("limited").unwrap();
    handles.take_call(tool, SideEffect::Read, 0).unwrap();
    let stream = handles.listen().unwrap();
    drop(handles);

    let new_view = Written {
        client: "requests = { count = 5 }, listening_streams = 1, light = { count = 1 }",
        ..old
    }
    .view();
    let handles = limiter.handles(&new_view, caller(1));
    assert!(Arc::ptr_eq(handles.view(), &new_view));
    assert_eq!(granted(&handles, Class::Requests, 9, 0), 1);
    assert!(handles.listen().is_err());
    drop(stream);
    assert!(handles.listen().is_ok());
    let tool = new_view.tool("limited").unwrap();
    handles.take_call(tool, SideEffect::Read, 0).unwrap();
    assert!(handles.take_call(tool, SideEffect::Read, 0).is_err());

    let other_rate = Written { client: "requests = { count = 6 }", ..NOTHING }.view();
    let handles = limiter.handles(&other_rate, caller(1));
    assert_eq!(granted(&handles, Class::Requests, 9, 0), 6);
    // And back: what was used then is not forgotten.
    let handles = limiter.handles(&old_view, caller(1));
    assert_eq!(granted(&handles, Class::Requests, 9, 0), 0);
}

#[test]
fn handles_of_a_caller_are_one() {
    let limiter = Limiter::default();
    let view = Written { caller: "requests = { count = 1 }", ..NOTHING }.view();
    let one = limiter.handles(&view, caller(1));
    assert!(Arc::ptr_eq(&one, &limiter.handles(&view, caller(1))));
    assert!(!Arc::ptr_eq(&one, &limiter.handles(&view, caller(2))));
}

fn sweep_all(limiter: &Limiter, now_ns: u64) -> SweptAccounts {
    let mut all = SweptAccounts::default();
    for _ in 0..SHARDS {
        let swept = limiter.sweep(now_ns);
        all = SweptAccounts { dropped: all.dropped + swept.dropped, kept: swept.kept };
    }
    all
}

#[test]
fn accounts_nobody_uses_are_dropped_when_they_are_full_again() {
    let limiter = Limiter::default();
    let view = Written { caller: "requests = { count = 60, listening_streams = 1 }", ..NOTHING };
    let view =
        Written { caller: "requests = { count = 60 }, listening_streams = 1", ..view }.view();
    for seed in 0..100 {
        let handles = limiter.handles(&view, caller(seed));
        assert_eq!(granted(&handles, Class::Requests, 30, 0), 30);
    }
    let kept = limiter.handles(&view, caller(0));
    assert_eq!(sweep_all(&limiter, 29 * SECOND), SweptAccounts { dropped: 0, kept: 100 });
    assert_eq!(sweep_all(&limiter, 31 * SECOND), SweptAccounts { dropped: 99, kept: 1 });
    assert_eq!(limiter.callers.len(), 1);
    assert_eq!(limiter.gauges.len(), 1);
    drop((kept, view));
    assert_eq!(sweep_all(&limiter, 31 * SECOND), SweptAccounts { dropped: 1, kept: 0 });
    assert_eq!((limiter.callers.len(), limiter.views.len(), limiter.gauges.len()), (0, 0, 0));
}

#[test]
fn callers_beyond_the_bound_share_an_account() {
    let limiter = Limiter::new(3);
    let view = Written { caller: "requests = { count = 10 }", ..NOTHING }.view();
    let all: Vec<_> = (0..50).map(|seed| limiter.handles(&view, caller(seed))).collect();
    let each: Vec<u32> =
        all.iter().map(|handles| granted(handles, Class::Requests, 20, 0)).collect();
    assert_eq!(each[..4], [10, 10, 10, 10]);
    assert_eq!(each[4..].iter().sum::<u32>(), 0);
    assert_eq!(limiter.accounts.len(), 4);
    assert!(limiter.callers.len() <= 3);
}

#[test]
fn cores_together_get_what_the_levels_allow() {
    let view = Written {
        tenant: "requests = { count = 30000 }",
        client: "requests = { count = 20000 }",
        caller: "requests = { count = 8000 }",
        ..NOTHING
    }
    .view();
    let limiter = Limiter::default();
    let total = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let (limiter, view, total) = (&limiter, &view, &total);
            scope.spawn(move || {
                // Two threads a caller.
                let handles = limiter.handles(view, caller(seed % 2));
                total.fetch_add(granted(&handles, Class::Requests, 9_000, 0), Ordering::Relaxed);
            });
        }
    });
    let handles = limiter.handles(&view, caller(9));
    let total = total.into_inner() + granted(&handles, Class::Requests, 9_000, 0);
    // A refusal in the instant of another's refund costs one of 20,000 at most now and then; what
    // is refused is not used up, so the rest is there for the last one.
    assert_eq!(total, 20_000);
    let left: Vec<u32> = handles.usage(None, 0).iter().map(|usage| usage.remaining).collect();
    assert_eq!(left[..2], [10_000, 0]);
}

#[test]
#[ignore = "a measurement"]
fn a_take_costs() {
    let limits = "requests = { count = 10000000, seconds = 1 }";
    let view = Written { tenant: limits, client: limits, caller: limits, ..NOTHING }.view();
    let handles = Limiter::default().handles(&view, caller(1));
    let started = std::time::Instant::now();
    for now_ns in 0..100_000 {
        handles.take(Class::Requests, 1, now_ns * 1_000).unwrap();
    }
    println!("{:?} for a take at three levels", started.elapsed() / 100_000);
}

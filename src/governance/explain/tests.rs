//! What an operator is told, for each way a call can go.

use super::*;
use crate::catalog::fixture;
use crate::catalog::{Grace, Snapshot};

/// Monday, 2024-01-01, 12:00 UTC.
const NOON_MS: u64 = 1_704_110_400_000;

const CATALOG: &str = "
[[tenant]]
id = 'acme'
DEFAULT
[[client_application]]
tenant = 'acme'
id = 'desk'
limits = { tool_calls = { count = 2 } }
caller_limits = { requests = { count = 9 } }
CLIENT_POLICY
[[connection]]
tenant = 'acme'
id = 'api'
base_url = 'http://127.0.0.1:1/'
[[toolset]]
tenant = 'acme'
id = 'pets'
kind = 'rest'
connection = 'api'
[[toolset]]
tenant = 'acme'
id = 'other'
kind = 'rest'
connection = 'api'
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'list pets'
description = 'Lists.'
method = 'GET'
path = '/pets'
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'change'
description = 'Changes.'
method = 'POST'
path = '/change'
fields = [{ source_field_name = 'how', location = 'query', type = 'string' }]
side_effect_by = { argument = 'how', values = { drop = 'destructive' } }
[[tool]]
tenant = 'acme'
toolset = 'pets'
name = 'unpublished'
description = 'Not yet.'
method = 'GET'
path = '/new'
enabled = false
[[tool]]
tenant = 'acme'
toolset = 'other'
name = 'elsewhere'
description = 'Of another toolset.'
method = 'GET'
path = '/else'
[[assignment]]
tenant = 'acme'
client_application = 'desk'
toolset = 'pets'
ASSIGNMENT_POLICY
";

#[derive(Clone, Copy)]
struct Case {
    default: &'static str,
    client: &'static str,
    assignment: &'static str,
}

const PLAIN: Case = Case { default: "", client: "", assignment: "" };

impl Case {
    fn explained_with(&self, limiter: &Limiter, tool: &str, trust: Trust) -> Explanation {
        let text = CATALOG
            .replace("DEFAULT", self.default)
            .replace("CLIENT_POLICY", self.client)
            .replace("ASSIGNMENT_POLICY", self.assignment);
        let (entities, view) = (fixture::entities(&text), fixture::view(&text));
        let upstreams = [UpstreamStanding {
            toolset: "docs".to_owned(),
            waiting: vec!["search".to_owned(), "unpublished".to_owned()],
            refused: vec!["wipe".to_owned()],
            error: None,
        }];
        let upstreams = &upstreams;
        let question =
            Question { tool, trust, caller: None, now_ms: NOON_MS, now_ns: 0, upstreams };
        explain(&question, &entities, &view, limiter)
    }

    fn explained(&self, tool: &str) -> Explanation {
        self.explained_with(&Limiter::default(), tool, Trust::Medium)
    }
}

/// Each step in short.
fn steps(call: &ExplainedCall) -> Vec<(&'static str, Option<u32>, Option<bool>)> {
    call.steps.iter().map(|step| (step.policy, step.rule, step.allows)).collect()
}

#[test]
fn what_a_server_offers_and_is_withheld_is_told_with_where_to_look() {
    for (asked, expected) in [
        ("search", "waits for approval: see `ringway upstream show acme/docs`"),
        ("docs/search", "waits for approval"),
        ("docs/wipe", "an operator refused it"),
        ("pets/search", "There is no such tool"),
        // Written down as a tool of another toolset.
        ("unpublished", "It is not published"),
    ] {
        let explained = PLAIN.explained(asked);
        assert_eq!(explained.conclusion, Conclusion::Hidden, "{asked}");
        assert!(explained.because.contains(expected), "{asked}: {}", explained.because);
    }
}

#[test]
fn without_policies_a_call_is_allowed_by_the_tenants_default() {
    for asked in ["pets/list pets", "list pets", "list_pets"] {
        let explained = PLAIN.explained(asked);
        assert_eq!(explained.conclusion, Conclusion::Allowed, "{explained:?}");
        let tool = explained.tool.unwrap();
        assert_eq!((&*tool.toolset, &*tool.operation, tool.weight), ("pets", "list pets", 1));
        assert!(tool.name.is_some());
        let [call] = &explained.calls[..] else { panic!("{:?}", explained.calls) };
        assert_eq!((call.side_effect, call.reason), (SideEffect::Read, "allowed"));
        assert_eq!(steps(call), [("tenant", None, Some(true))]);
        let limits: Vec<_> = explained
            .limits
            .iter()
            .map(|limit| (limit.level, limit.class, limit.count, limit.remaining))
            .collect();
        let expected =
            [("client_application", "tool_calls", 2, Some(2)), ("caller", "requests", 9, None)];
        assert_eq!(limits, expected);
    }
}

#[test]
fn the_rules_are_told_in_their_order_up_to_the_one_that_decides() {
    let case = Case {
        client: "[[client_application.policy.rules]]
effect = 'deny'
tools = ['other/*']
[[client_application.policy.rules]]
effect = 'deny'
side_effects = ['destructive']
[[client_application.policy.rules]]
effect = 'allow'
[[client_application.policy.rules]]
effect = 'deny'",
        assignment: "[[assignment.policy.rules]]
effect = 'allow'
tools = ['list*']",
        ..PLAIN
    };
    let explained = case.explained("list pets");
    assert_eq!(explained.conclusion, Conclusion::Allowed, "{explained:?}");
    let expected = [
        ("client_application", Some(1), None),
        ("client_application", Some(2), None),
        ("client_application", Some(3), Some(true)),
        ("assignment", Some(1), Some(true)),
    ];
    assert_eq!(steps(&explained.calls[0]), expected);
    assert_eq!(explained.calls[0].steps[0].origin, "a.toml:5");

    let explained = case.explained("change");
    assert_eq!(explained.conclusion, Conclusion::Depends, "{explained:?}");
    let [write, destructive] = &explained.calls[..] else { panic!("{:?}", explained.calls) };
    assert!(write.allowed && !destructive.allowed);
    assert_eq!(destructive.reason, "denied_by_rule");
}

#[test]
fn a_tool_every_call_of_which_is_denied_is_hidden() {
    let explained = Case { default: "default_deny = true", ..PLAIN }.explained("list pets");
    assert_eq!(explained.conclusion, Conclusion::Hidden);
    assert_eq!(explained.calls[0].reason, "default_deny");
    assert_eq!(steps(&explained.calls[0]), [("tenant", None, Some(false))]);
    assert_eq!(explained.tool.unwrap().name, None);
}

#[test]
fn trust_and_time_are_for_the_call() {
    let case = Case {
        client: "[[client_application.policy.rules]]
effect = 'allow'
required_trust = 'high'",
        assignment: "[[assignment.policy.rules]]
effect = 'allow'
windows = [{ days = ['mon', 'tue'], from = '20:00', to = '04:00', utc_offset = '+02:00' }]",
        ..PLAIN
    };
    let explained = case.explained("list pets");
    assert_eq!(explained.conclusion, Conclusion::Refused);
    assert_eq!(explained.calls[0].reason, "trust_too_low");
    assert!(explained.because.contains("trust `high`"), "{}", explained.because);

    let explained = case.explained_with(&Limiter::default(), "list pets", Trust::High);
    assert_eq!(explained.calls[0].reason, "outside_window");
    assert!(explained.because.contains("2024-01-01T18:00:00Z"), "{}", explained.because);
    let step = &explained.calls[0].steps[1];
    assert_eq!(step.next_opening.as_deref(), Some("2024-01-01T18:00:00Z"));
    assert!(step.text.ends_with("mon tue 20:00-04:00 +02:00"), "{}", step.text);
}

#[test]
fn what_is_observed_is_allowed_and_said() {
    let case = Case {
        client: "[client_application.policy]
mode = 'observe'
[[client_application.policy.rules]]
effect = 'deny'",
        ..PLAIN
    };
    let explained = case.explained("list pets");
    assert_eq!(explained.conclusion, Conclusion::Allowed);
    assert_eq!(explained.calls[0].reason, "observed_denied_by_rule");
    assert!(explained.calls[0].steps[0].observes);
    assert!(explained.because.contains("only observes"), "{}", explained.because);
}

#[test]
fn a_limit_that_is_used_up_is_named() {
    let limiter = Limiter::default();
    let text = CATALOG
        .replace("DEFAULT", "")
        .replace("CLIENT_POLICY", "")
        .replace("ASSIGNMENT_POLICY", "");
    let view = fixture::view(&text);
    let handles = limiter.handles(&view, Caller::Open);
    handles.take(Class::ToolCalls, 2, 0).unwrap();
    let explained = PLAIN.explained_with(&limiter, "list pets", Trust::Medium);
    assert_eq!(explained.conclusion, Conclusion::Limited);
    assert!(explained.because.contains("tool calls"), "{}", explained.because);
}

#[test]
fn what_is_not_in_the_view_says_why() {
    let off = Case { assignment: "enabled = false", ..PLAIN };
    for (case, asked, expected) in [
        (PLAIN, "nothing", "no such tool"),
        (PLAIN, "unpublished", "not published"),
        (PLAIN, "elsewhere", "not assigned"),
        (off, "list pets", "switched off (a.toml:56)"),
    ] {
        let explained = case.explained(asked);
        assert_eq!(explained.conclusion, Conclusion::Hidden, "{asked}");
        assert!(explained.because.contains(expected), "{asked}: {}", explained.because);
        assert!(explained.calls.is_empty() && explained.limits.is_empty());
    }
}

#[test]
fn meta_tools_of_the_runtime_are_its_own() {
    let search = "tool_listing = 'search'";
    let explained = Case { client: search, ..PLAIN }.explained("search_tools");
    assert_eq!(explained.conclusion, Conclusion::Allowed);
    assert!(explained.because.contains("tool by tool"), "{}", explained.because);
}

#[test]
fn a_name_that_went_is_told_for_how_long_it_goes_on() {
    let before = CATALOG
        .replace("DEFAULT", "")
        .replace("CLIENT_POLICY", "")
        .replace("ASSIGNMENT_POLICY", "");
    let after = before.replacen("name = 'list pets'", "name = 'all pets'", 1);
    let (older, entities) = (fixture::snapshot(&before), fixture::entities(&after));
    let grace = Grace { now_ms: NOON_MS, callable_ms: 60_000 };
    let newer = Snapshot::recompile(&older, &entities, 2, grace).unwrap();
    let view = newer.view("acme", "desk").unwrap();
    let explained = |now_ms| {
        let (trust, caller, now_ns) = (Trust::Medium, None, 0);
        let question =
            Question { tool: "list_pets", trust, caller, now_ms, now_ns, upstreams: &[] };
        explain(&question, &entities, view, &Limiter::default())
    };
    let former = explained(NOON_MS + 1);
    assert_eq!(former.conclusion, Conclusion::Allowed, "{former:?}");
    assert!(former.because.contains("goes on until 2024-01-01T12:01:00Z"), "{}", former.because);
    let gone = explained(NOON_MS + 60_001);
    assert_eq!((gone.conclusion, &*gone.because), (Conclusion::Hidden, Reason::ToolGone.summary()));
}

#[test]
fn an_explanation_is_json() {
    let json = serde_json::to_value(PLAIN.explained("list pets")).unwrap();
    assert_eq!((&json["conclusion"], &json["trust"]), (&"allowed".into(), &"medium".into()));
    assert_eq!(json["calls"][0]["side_effect"], "read");
}

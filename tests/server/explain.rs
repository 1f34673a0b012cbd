//! `ringway explain`: from what an operator wrote to why a call goes as it goes.

use crate::harness::Setup;

const POLICY: &str = "
[[tenant]]
id = \"acme\"
[[client_application]]
tenant = \"acme\"
id = \"desk\"
caller_limits = { requests = { count = 7 } }
[[client_application.policy.rules]]
effect = \"deny\"
tools = [\"list_sessions\"]
[[client_application.policy.rules]]
effect = \"allow\"
required_trust = \"high\"
[[toolset]]
tenant = \"acme\"
id = \"own\"
kind = \"builtin\"
[[assignment]]
tenant = \"acme\"
client_application = \"desk\"
toolset = \"own\"
";

#[test]
fn an_operator_is_told_which_rule_it_was() {
    let server = Setup::new().catalog(POLICY).start();
    let explain = |words: &[&str]| {
        let words: Vec<&str> =
            ["explain", "--client", "acme/desk"].iter().chain(words).copied().collect();
        server.command(&words)
    };
    let hidden = explain(&["--tool", "list_sessions"]).succeeded().stdout;
    for part in ["HIDDEN", "denied_by_rule", "* client application rule 1", "catalog.toml:"] {
        assert!(hidden.contains(part), "no {part:?} in:\n{hidden}");
    }
    let refused = explain(&["--tool", "own/list_tools"]).succeeded().stdout;
    for part in ["REFUSED", "trust_too_low", "rule 1: passed over", "requests of the caller: 7 in"]
    {
        assert!(refused.contains(part), "no {part:?} in:\n{refused}");
    }
    let allowed =
        explain(&["--tool", "list_tools", "--trust", "high", "--json"]).succeeded().stdout;
    assert!(allowed.contains("\"conclusion\": \"allowed\""), "{allowed}");

    let made = ["key", "create", "--client", "acme/desk", "--trust", "high"];
    let key = server.command(&made).succeeded().stdout;
    let id = key.trim().split('_').nth(1).unwrap();
    let with_key = explain(&["--tool", "list_tools", "--key", id]).succeeded().stdout;
    assert!(with_key.contains("ALLOWED") && with_key.contains("7 left"), "{with_key}");

    explain(&["--tool", "list_tools", "--key", "000000000000"]).failed_with(&["no key"]);
    explain(&["--tool", "list_tools", "--trust", "total"]).failed_with(&["low, medium and high"]);
    let nobody = ["explain", "--client", "acme/nobody", "--tool", "x"];
    server.command(&nobody).failed_with(&["acme/nobody", "ringway status"]);
}

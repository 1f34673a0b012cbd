//! Whereto calls may go: what is not public needs the tenant's allowance, whatever it is called.

use serde_json::{Value, json};

use crate::harness::{Client, NEWEST, Service, Setup};

const TOOL: (&str, &str, &str, &str) = ("find", "GET", "/find", "");

fn text(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The demo tenant with these allowances.
fn tenant(allowances: &str) -> String {
    format!("[[tenant]]\nid = \"demo\"\negress_allowances = [{allowances}]\n")
}

#[test]
fn an_allowance_opens_a_network_and_its_end_closes_it_at_once() {
    let service = Service::echo();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"] {
        let base = format!("http://{host}:{}", service.port());
        let server = Setup::new().set("runtime.cores", 1).api(&base, &[TOOL]).start();
        let client = Client::keyless(&server, "demo/public").in_session(NEWEST);
        let works = host != "0.0.0.0";
        if works {
            assert_eq!(client.called("find", json!({}))["structuredContent"]["method"], "GET");
            service.asked();
        }
        // A socket that was opened before is of no more use.
        server.apply(&tenant("\"10.0.0.0/8\""));
        let from = server.logged();
        let told = text(&client.called("find", json!({})));
        assert!(told.ends_with("its address is not allowed by the operator's egress policy"));
        assert!(!told.contains(host) && !told.contains("127.0.0.1"), "{told}");
        let line = server.wait_for_log(from, "downstream call failed");
        for part in ["egress_allowances", "tenant `demo`"] {
            assert!(line.contains(part), "no {part} in {line}");
        }
        server.apply(&tenant("\"0.0.0.0/8\", \"127.0.0.0/8\", \"::1/128\""));
        assert_eq!(client.called("find", json!({}))["structuredContent"]["method"], "GET");
        service.asked();
    }
}

#[test]
fn tenants_do_not_share_what_they_may_reach() {
    let service = Service::echo();
    let other = format!(
        "[[tenant]]\nid = \"strict\"\n[[client_application]]\ntenant = \"strict\"\nid = \"app\"\n\
         open = true\n[[connection]]\ntenant = \"strict\"\nid = \"api\"\nbase_url = \"{}\"\n\
         [[toolset]]\ntenant = \"strict\"\nid = \"api\"\nkind = \"rest\"\nconnection = \"api\"\n\
         [[tool]]\ntenant = \"strict\"\ntoolset = \"api\"\nname = \"find\"\ndescription = \"d\"\n\
         method = \"GET\"\npath = \"/find\"\n\
         [[assignment]]\ntenant = \"strict\"\nclient_application = \"app\"\ntoolset = \"api\"\n",
        service.base()
    );
    let server =
        Setup::new().set("runtime.cores", 1).api(&service.base(), &[TOOL]).catalog(&other).start();
    let open = Client::keyless(&server, "demo/public").in_session(NEWEST);
    assert_eq!(open.called("find", json!({}))["isError"], false);
    service.asked();
    let strict = Client::keyless(&server, "strict/app").in_session(NEWEST);
    assert!(text(&strict.called("find", json!({}))).contains("egress policy"));
    assert!(service.is_quiet(), "the other tenant's socket was used");
}

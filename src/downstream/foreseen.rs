//! Calls that will fail, told before they are made: nothing that keeps a catalog from being used.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::catalog::{Connection, Endpoint, Entities, Entity, Problem};
use crate::settings::Network;

use super::egress::Egress;
use super::secret_places::missing;

/// Secrets and certificates that are not where a catalog says, seen from this process, and
/// addresses that its tenants may not reach. Reads files: not for a core.
pub fn foreseen_failures(entities: &Entities, egress: &Egress) -> Vec<Problem> {
    let tenants = entities
        .tenants
        .iter()
        .map(|tenant| (tenant.value.id.as_str(), tenant.value.egress_allowances.as_slice()));
    let tenants: HashMap<&str, &[Network]> = tenants.collect();
    let mut problems = Vec::new();
    for entry in &entities.connections {
        let connection = &entry.value;
        let allowances = tenants.get(connection.tenant.as_str()).copied().unwrap_or_default();
        let closed = closed(connection, allowances, egress);
        for fault in missing(connection).into_iter().chain(closed) {
            let message = format!("{}: {fault}", connection.name());
            problems.push(Problem::new(&entry.origin, message));
        }
    }
    problems
}

/// Names are for the resolver, and may mean something else by the time of a call.
fn closed(connection: &Connection, allowances: &[Network], egress: &Egress) -> Option<String> {
    let endpoint = Endpoint::parse(&connection.base_url).ok()?;
    let addresses: &[IpAddr] = match endpoint.host.parse() {
        Ok(address) => &[address],
        Err(_) if &*endpoint.host == "localhost" => {
            &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
        }
        Err(_) => return None,
    };
    let mut denied = None;
    for address in addresses {
        // One that is open will do.
        denied = Some(egress.judge(allowances, *address).err()?);
    }
    let denied = denied?;
    Some(format!("base_url: {}", denied.advice(connection.tenant.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::fixture::entities;

    #[test]
    fn what_is_closed_or_missing_is_told_with_its_place() {
        let told = |base_url: &str, tenant: &str, more: &str| {
            let text = format!(
                "[[tenant]]\nid = \"acme\"\n{tenant}\n[[connection]]\ntenant = \"acme\"\n\
                 id = \"api\"\nbase_url = \"{base_url}\"\n{more}\n"
            );
            let problems = foreseen_failures(&entities(&text), &Egress::default());
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let closed = told("http://10.1.2.3", "", "");
        for part in ["connection acme/api: base_url: 10.1.2.3", "private", "egress_allowances"] {
            assert!(closed.contains(part), "{closed}");
        }
        assert!(told("http://localhost:80", "", "").contains("loopback"));
        assert_eq!(told("http://localhost", "egress_allowances = [\"::1\"]", ""), "");
        assert_eq!(told("http://10.1.2.3", "egress_allowances = [\"10.0.0.0/8\"]", ""), "");
        assert_eq!(told("https://api.example.com", "", ""), "");
        let missing = "credentials = [{ kind = \"bearer\", token = { file = \"/nowhere/x\" } }]";
        let missing = told("https://api.example.com", "", missing);
        assert!(
            missing.contains("credentials[0].token: the file /nowhere/x: No such"),
            "{missing}"
        );
    }
}

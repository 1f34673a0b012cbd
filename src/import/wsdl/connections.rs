//! Where the services are reached, and what callers prove themselves with there.

use super::super::DescribedConnection;
use super::policy::Asked;
use super::ports::Address;
use crate::catalog::Credential;
use crate::import::placeholders::{self, USERNAME, from_environment};

/// One for each host and what is asked for there.
#[derive(Debug, Default)]
pub(super) struct Connections {
    list: Vec<(Option<String>, Vec<Asked>, DescribedConnection)>,
}

impl Connections {
    /// The place of the connection for an address, which is added where it is new.
    pub(super) fn place(&mut self, service: &str, address: &Address, asked: &[Asked]) -> usize {
        let mut asked = asked.to_vec();
        asked.sort_unstable();
        asked.dedup();
        let known = self
            .list
            .iter()
            .position(|(base_url, known, _)| *base_url == address.base_url && *known == asked);
        known.unwrap_or_else(|| {
            let connection = described(service, address, &asked);
            self.list.push((address.base_url.clone(), asked, connection));
            self.list.len() - 1
        })
    }

    pub(super) fn into_list(self) -> Vec<DescribedConnection> {
        self.list.into_iter().map(|(_, _, connection)| connection).collect()
    }
}

fn described(service: &str, address: &Address, asked: &[Asked]) -> DescribedConnection {
    let mut credentials = Vec::new();
    let mut notes = Vec::new();
    if address.base_url.is_none() {
        notes.push("the description does not say where the service is; give its URL".to_owned());
    }
    for each in asked {
        match each {
            Asked::UsernameToken { is_digest } => {
                let variable = variable(service, "WS_SECURITY_PASSWORD");
                notes.push(format!(
                    "the service asks for a UsernameToken: set its `username`, and put the \
                     password into the environment as {variable}"
                ));
                credentials.push(Credential::WsSecurity {
                    username: USERNAME.to_owned(),
                    password: from_environment(&variable),
                    digest: *is_digest,
                });
            }
            Asked::Basic => {
                let variable = variable(service, "BASIC_PASSWORD");
                notes.push(format!(
                    "the service asks for HTTP Basic: set its `username`, and put the password \
                     into the environment as {variable}"
                ));
                credentials.push(Credential::Basic {
                    username: USERNAME.to_owned(),
                    password: from_environment(&variable),
                });
            }
            Asked::Certificate => {
                notes.push(
                    "the service asks for a certificate of its clients: set `client_certificate`"
                        .to_owned(),
                );
            }
            Asked::Timestamp => {
                notes.push("the service may ask for a Timestamp in the security header".to_owned());
            }
        }
    }
    DescribedConnection {
        name: service.to_owned(),
        base_url: address.base_url.clone(),
        credentials,
        notes,
    }
}

/// A variable named after the connection and what it is for.
fn variable(service: &str, purpose: &str) -> String {
    placeholders::variable(&format!("{service} {purpose}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_once_and_secrets_are_named() {
        let mut connections = Connections::default();
        let at = |base: &str| Address { base_url: Some(base.to_owned()), path: "/".to_owned() };
        let token = [Asked::UsernameToken { is_digest: true }];
        assert_eq!(connections.place("Größen-Shop", &at("https://a.test"), &token), 0);
        assert_eq!(connections.place("Other", &at("https://a.test"), &token), 0);
        assert_eq!(connections.place("Other", &at("https://a.test"), &[]), 1);
        let list = connections.into_list();
        let password = from_environment("GR_EN_SHOP_WS_SECURITY_PASSWORD");
        assert_eq!(
            list[0].credentials,
            [Credential::WsSecurity { username: USERNAME.to_owned(), password, digest: true }]
        );
    }
}

//! `[listen]`: where Ringway listens.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use super::Findings;
use super::optional::{self, address_help};

/// Addresses of the runtime and admin planes, and their TLS files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// Address and port of the runtime plane.
    #[serde(deserialize_with = "address")]
    pub runtime: SocketAddr,
    /// Unix socket of the admin plane; none: `admin.sock` in the data directory.
    #[serde(with = "optional")]
    pub admin_socket: Option<PathBuf>,
    /// Loopback address and port on which the admin plane also listens; none: socket only.
    #[serde(with = "optional")]
    pub admin_address: Option<SocketAddr>,
    /// PEM file with the certificate chain of the runtime plane; none: plain HTTP.
    #[serde(with = "optional")]
    pub certificate: Option<PathBuf>,
    /// PEM file with the private key of that certificate.
    #[serde(with = "optional")]
    pub key: Option<PathBuf>,
    /// Connections the kernel queues before they are accepted, per core.
    pub backlog: u32,
    /// The URL under which clients reach the runtime plane; none: what they sent as Host.
    #[serde(with = "optional")]
    pub public_url: Option<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            runtime: (Ipv4Addr::LOCALHOST, 8420).into(),
            admin_socket: None,
            admin_address: None,
            certificate: None,
            key: None,
            backlog: 1024,
            public_url: None,
        }
    }
}

impl Listen {
    /// Checks this section.
    pub fn validate(&self, findings: &mut Findings) {
        findings.within("listen.backlog", self.backlog, 1..=65_535);
        match (&self.certificate, &self.key) {
            (Some(_), None) => findings.add(
                "listen.certificate",
                "set without `key`: TLS needs both files (or neither, for plain HTTP)",
            ),
            (None, Some(_)) => findings.add(
                "listen.key",
                "set without `certificate`: TLS needs both files (or neither, for plain HTTP)",
            ),
            _ => {}
        }
        if let Some(address) = self.admin_address
            && !address.ip().is_loopback()
        {
            findings.add(
                "listen.admin_address",
                format!(
                    "{address} is not a loopback address: use 127.0.0.1:<port> or [::1]:<port>"
                ),
            );
        }
        if let Some(address) = self.admin_address
            && address.port() != 0
            && address == self.runtime
        {
            findings.add("listen.admin_address", "is the address of the runtime plane");
        }
        if let Some(text) = &self.public_url
            && let Err(message) = public_url(text)
        {
            findings.add("listen.public_url", message);
        }
    }
}

/// A public URL is a place to append paths to.
fn public_url(text: &str) -> Result<(), String> {
    let url = url::Url::parse(text).map_err(|e| format!("`{text}` is not a URL: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{text}` must begin with http:// or https://"));
    }
    let plain = url.query().is_none() && url.fragment().is_none();
    if !plain || !url.username().is_empty() || url.password().is_some() {
        return Err("must be scheme, host, port and path only".to_owned());
    }
    Ok(())
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| serde::de::Error::custom(address_help(&text)))
}

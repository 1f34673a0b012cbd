//! Which addresses a call may go to.
//!
//! Judged on resolved addresses, and the connection is made to exactly those: a name that resolves into a
//! blocked network is refused however it is spelled. An IPv6 form that carries an IPv4 address (mapped,
//! translated, 6to4) is judged as that IPv4 address too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// A network that could not be read from its text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a network: write an address and its prefix length, as in \"10.0.0.0/8\"")]
pub struct NetworkError {
    text: String,
}

/// An address range: `10.0.0.0/8`, `fe80::/10`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    V4 { base: u32, mask: u32 },
    V6 { base: u128, mask: u128 },
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().ok()?)),
            None => (text.trim(), None),
        };
        match address.parse().ok()? {
            IpAddr::V4(address) => {
                let prefix = prefix.unwrap_or(32);
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(prefix)?).unwrap_or(0);
                Some(Self::V4 { base: u32::from(address) & mask, mask })
            }
            IpAddr::V6(address) => {
                let prefix = prefix.unwrap_or(128);
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(prefix)?).unwrap_or(0);
                Some(Self::V6 { base: u128::from(address) & mask, mask })
            }
        }
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4 { base, mask }, IpAddr::V4(address)) => u32::from(address) & mask == base,
            (Self::V6 { base, mask }, IpAddr::V6(address)) => u128::from(address) & mask == base,
            _ => false,
        }
    }
}

/// The networks no call may reach.
#[derive(Debug, Clone, Default)]
pub struct Egress {
    blocked: Vec<Network>,
}

impl Egress {
    /// Reads `downstream.blocked_networks`.
    pub fn new<T: AsRef<str>>(blocked: &[T]) -> Result<Self, NetworkError> {
        let blocked = blocked
            .iter()
            .map(|text| {
                let text = text.as_ref();
                Network::parse(text).ok_or_else(|| NetworkError { text: text.to_owned() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { blocked })
    }

    /// Whether a call may go to `address`.
    pub fn allows(&self, address: IpAddr) -> bool {
        let blocks = |address: IpAddr| self.blocked.iter().any(|network| network.contains(address));
        if blocks(address) {
            return false;
        }
        match address {
            // The kernel takes the unspecified address for this host.
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => !blocks(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => !blocks(Ipv6Addr::LOCALHOST.into()),
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => embedded(address).is_none_or(|inner| self.allows(inner.into())),
        }
    }
}

/// The IPv4 address inside an IPv6 one: mapped (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, next: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(next));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] => Some(low(a, b)),
        [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(blocked: &[&str], address: &str) -> bool {
        Egress::new(blocked).unwrap().allows(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_judged_by_range() {
        let blocked = ["169.254.0.0/16", "fe80::/10", "10.0.0.7", "127.0.0.0/8"];
        let table = [
            ("169.254.169.254", false),
            ("169.253.255.255", true),
            ("10.0.0.7", false),
            ("10.0.0.8", true),
            ("fe80::1", false),
            ("febf::1", false),
            ("fec0::1", true),
            ("::ffff:169.254.169.254", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("2002:a9fe:a9fe::1", false),
            ("2001:db8::1", true),
            ("0.0.0.0", false),
            ("::ffff:0.0.0.0", false),
        ];
        for (address, expected) in table {
            assert_eq!(allows(&blocked, address), expected, "{address}");
        }
        assert!(allows(&[], "127.0.0.1"));
        assert!(!allows(&["0.0.0.0/0"], "8.8.8.8"));
        assert!(!allows(&["::/0"], "::1") && allows(&["::/0"], "8.8.8.8"));
    }

    #[test]
    fn what_is_no_network_is_named() {
        for text in ["10.0.0.0/33", "fe80::/129", "localhost", "10.0.0/8", "10.0.0.0/-1", ""] {
            let error = Egress::new(&[text]).unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}

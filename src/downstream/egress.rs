//! Which addresses a call may go to.
//!
//! Judged on resolved addresses, and the connection is made to exactly those: a name that resolves
//! into a blocked network is refused however it is spelled. An IPv6 form that carries an IPv4
//! address (mapped, translated, 6to4) is judged as that IPv4 address too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::settings::Network;

/// The networks no call may reach (`downstream.blocked_networks`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Egress {
    blocked: Vec<Network>,
}

impl Egress {
    pub(crate) fn new(blocked: Vec<Network>) -> Self {
        Self { blocked }
    }

    /// Whether a call may go to `address`.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        if self.blocks(address) {
            return false;
        }
        match address {
            // The kernel takes the unspecified address for this host.
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => !self.blocks(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => !self.blocks(Ipv6Addr::LOCALHOST.into()),
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => embedded(address).is_none_or(|inner| self.allows(inner.into())),
        }
    }

    fn blocks(&self, address: IpAddr) -> bool {
        self.blocked.iter().any(|network| network.contains(address))
    }
}

/// The IPv4 address inside an IPv6 one: mapped (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056).
pub(crate) fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
            Some(joined(a, b))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(blocked: &[&str], address: &str) -> bool {
        let blocked = blocked.iter().map(|text| text.parse().unwrap()).collect();
        Egress::new(blocked).allows(address.parse().unwrap())
    }

    #[test]
    fn addresses_are_judged_by_range_in_every_spelling() {
        let blocked = ["169.254.0.0/16", "fe80::/10", "10.0.0.7", "127.0.0.0/8"];
        let table = [
            ("169.254.169.254", false),
            ("169.253.255.255", true),
            ("10.0.0.7", false),
            ("10.0.0.8", true),
            ("fe80::1", false),
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
        assert!(!allows(&["::1"], "::") && allows(&["::1"], "::2"));
    }
}

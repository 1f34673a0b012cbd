//! Which addresses may be connected to: the one policy for calls, tokens, keys and documents.
//!
//! An address that is not public (this host, private, link-local, of a provider's own network, not
//! of one host, for documents only) is closed unless the tenant's `egress_allowances` name it;
//! what `downstream.blocked_networks` names is closed whatever a tenant says.
//!
//! Judged on resolved addresses, and the connection is made to exactly those: a name that resolves
//! into a closed network is refused however it is spelled. An IPv6 form that carries an IPv4
//! address (mapped, translated, 6to4) is judged as that IPv4 address too.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::settings::Network;

/// The policy: the networks nobody may reach (`downstream.blocked_networks`), and those that need an
/// allowance.
#[derive(Debug, Clone, Default)]
pub struct Egress {
    blocked: Arc<[Network]>,
}

/// An address that may not be connected to. Its text is for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Denied {
    /// The address.
    pub address: IpAddr,
    /// Why.
    pub reason: DenialReason,
}

/// Why an address may not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialReason {
    /// Settings close its network.
    Blocked(Network),
    /// It is not public: what it is, and the whole range of its kind.
    NotPublic(&'static str, Range),
}

/// A range of addresses that are not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    address: IpAddr,
    prefix: u8,
}

impl fmt::Display for Range {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

impl Denied {
    /// What the operator can do about it, for this tenant.
    pub fn advice(&self, tenant: &str) -> String {
        let Self { address, reason } = self;
        match reason {
            DenialReason::Blocked(network) => format!(
                "{address} is in {network}, which downstream.blocked_networks closes to all tenants"
            ),
            DenialReason::NotPublic(what, range) => format!(
                "{address} is {what} ({range}): to let tenant `{tenant}` reach it, add \
                 \"{address}\" or its network to the tenant's egress_allowances"
            ),
        }
    }
}

impl Egress {
    /// The policy with these networks closed to everybody.
    pub fn new(blocked: &[Network]) -> Self {
        Self { blocked: blocked.into() }
    }

    /// Whether somebody with these allowances may connect to `address`.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, allowances: &[Network], address: IpAddr) -> Result<(), Denied> {
        let denied = |reason| Err(Denied { address, reason });
        if let Some(network) = self.blocking(address) {
            return denied(DenialReason::Blocked(network));
        }
        // The kernel takes the unspecified address for this host.
        let really = match address {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Some(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Some(Ipv6Addr::LOCALHOST.into()),
            _ => None,
        };
        if let Some(network) = really.and_then(|address| self.blocking(address)) {
            return denied(DenialReason::Blocked(network));
        }
        let inner = match address {
            IpAddr::V6(address) => embedded(address).map(IpAddr::V4),
            IpAddr::V4(_) => None,
        };
        let is_allowed = allowances.iter().any(|network| network.contains(address));
        match (inner, not_public(address)) {
            // One that only wraps another is as public as that one is.
            (Some(inner), _) => match self.judge(allowances, inner) {
                Err(Denied { reason: DenialReason::NotPublic(..), .. }) if is_allowed => Ok(()),
                judged => judged.map_err(|inner| Denied { address, ..inner }),
            },
            (None, Some((what, range))) if !is_allowed => {
                denied(DenialReason::NotPublic(what, range))
            }
            _ => Ok(()),
        }
    }

    fn blocking(&self, address: IpAddr) -> Option<Network> {
        self.blocked.iter().find(|network| network.contains(address)).copied()
    }
}

/// The IPv4 address inside an IPv6 one: mapped (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => {
            Some(joined(a, b))
        }
        _ => None,
    }
}

type Kinds<Address> = &'static [(Address, u8, &'static str)];

const PRIVATE: &str = "a private address";
const LOOPBACK: &str = "a loopback address";
const LINK_LOCAL: &str = "a link-local address, where clouds keep their metadata";
const METADATA: &str = "an address where clouds keep their metadata";
const SHARED: &str = "an address of a provider's own network";
const MULTICAST: &str = "a multicast address";
const UNSPECIFIED: &str = "an unspecified address, which is this host";
const DOCUMENTATION: &str = "an address for documentation";
const RESERVED: &str = "a reserved address";

/// What is not globally reachable in IANA's registry of special addresses, and multicast.
const V4: Kinds<Ipv4Addr> = &[
    (Ipv4Addr::new(127, 0, 0, 0), 8, LOOPBACK),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(100, 64, 0, 0), 10, SHARED),
    (Ipv4Addr::new(0, 0, 0, 0), 8, UNSPECIFIED),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(198, 18, 0, 0), 15, RESERVED),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

const V6: Kinds<Ipv6Addr> = &[
    (Ipv6Addr::LOCALHOST, 128, LOOPBACK),
    (Ipv6Addr::UNSPECIFIED, 128, UNSPECIFIED),
    (Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0), 32, METADATA),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, PRIVATE),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
    // Among them IPv4-compatible addresses, which nobody has any more.
    (Ipv6Addr::UNSPECIFIED, 8, RESERVED),
    (Ipv6Addr::new(0x0100, 0, 0, 0, 0, 0, 0, 0), 8, RESERVED),
    // Among them Teredo's, which carry an IPv4 address in disguise.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, RESERVED),
];

/// What an address is that is not public, and the range of its kind.
fn not_public(address: IpAddr) -> Option<(&'static str, Range)> {
    match address {
        IpAddr::V4(address) => {
            let bits = address.to_bits();
            let (first, prefix, what) = V4.iter().find(|(first, prefix, _)| {
                (bits ^ first.to_bits()) >> (32 - u32::from(*prefix)) == 0
            })?;
            Some((*what, Range { address: IpAddr::V4(*first), prefix: *prefix }))
        }
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            let (first, prefix, what) = V6.iter().find(|(first, prefix, _)| {
                (bits ^ first.to_bits()) >> (128 - u32::from(*prefix)) == 0
            })?;
            Some((*what, Range { address: IpAddr::V6(*first), prefix: *prefix }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(list: &[&str]) -> Vec<Network> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn judged(blocked: &[&str], allowed: &[&str], address: &str) -> Result<(), Denied> {
        let (blocked, allowed) = (networks(blocked), networks(allowed));
        Egress::new(&blocked).judge(&allowed, address.parse().unwrap())
    }

    fn allows(blocked: &[&str], allowed: &[&str], address: &str) -> bool {
        judged(blocked, allowed, address).is_ok()
    }

    #[test]
    fn what_is_not_public_needs_an_allowance() {
        let closed = [
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("::1", "loopback"),
            ("10.0.0.0", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("169.254.169.254", "metadata"),
            ("fe80::1", "metadata"),
            ("fd00:ec2::254", "metadata"),
            ("100.100.100.200", "metadata"),
            ("168.63.129.16", "metadata"),
            ("100.64.0.1", "provider"),
            ("100.127.255.255", "provider"),
            ("fc00::1", "private"),
            ("fdff::1", "private"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("ff02::1", "multicast"),
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("::", "unspecified"),
            ("192.0.2.1", "documentation"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("2001:db8::1", "documentation"),
            ("3fff::1", "documentation"),
            ("255.255.255.255", "reserved"),
            ("198.19.0.1", "reserved"),
            ("192.0.0.192", "reserved"),
            ("2001::1", "reserved"),
            ("64:ff9b:1::1", "reserved"),
            ("::7f00:1", "reserved"),
            // IPv4 in IPv6.
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("64:ff9b::a9fe:a9fe", "metadata"),
            ("2002:a00:1::1", "private"),
            ("::ffff:0.0.0.0", "unspecified"),
        ];
        for (address, what) in closed {
            let denied = judged(&[], &[], address).expect_err(address);
            let told = denied.advice("acme");
            assert!(told.contains(what) && told.contains("tenant `acme`"), "{address}: {told}");
            assert!(told.contains("egress_allowances"), "{told}");
            assert!(allows(&[], &["0.0.0.0/0", "::/0"], address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "169.253.255.255",
            "100.63.0.1",
            "100.128.0.1",
            "223.255.255.255",
            "198.20.0.1",
            "2606:4700::1111",
            "2a00::1",
            "2001:200::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(allows(&[], &[], address), "{address}");
        }
    }

    #[test]
    fn an_allowance_opens_what_it_names_and_no_more() {
        let local = ["127.0.0.0/8", "::1/128"];
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            assert!(allows(&[], &local, address), "{address}");
        }
        for address in ["10.0.0.1", "169.254.169.254", "0.0.0.0", "::"] {
            assert!(!allows(&[], &local, address), "{address}");
        }
        assert!(allows(&[], &["10.1.2.0/24"], "10.1.2.3"));
        assert!(!allows(&[], &["10.1.2.0/24"], "10.1.3.3"));
        assert!(allows(&[], &["2002::/16"], "2002:a00:1::1"), "its outer form is named");
    }

    #[test]
    fn what_settings_close_stays_closed_in_every_spelling() {
        let blocked = ["169.254.0.0/16", "fe80::/10", "10.0.0.7", "127.0.0.0/8"];
        let all = ["0.0.0.0/0", "::/0"];
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
            assert_eq!(allows(&blocked, &all, address), expected, "{address}");
        }
        assert!(!allows(&["0.0.0.0/0"], &all, "8.8.8.8"));
        assert!(!allows(&["::1"], &all, "::") && allows(&["::1"], &all, "::2"));
        let told = judged(&blocked, &all, "10.0.0.7").unwrap_err().advice("acme");
        assert!(told.contains("10.0.0.7/32") && told.contains("blocked_networks"), "{told}");
    }
}

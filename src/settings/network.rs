//! A range of addresses, written `169.254.0.0/16` or as a single address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A range of addresses. Bits behind the prefix are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

/// A text that is not a [`Network`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Not `address/prefix`.
    #[error("`{text}` is not a network such as 10.0.0.0/8 or fe80::/10")]
    Malformed {
        /// What was written.
        text: String,
    },
    /// The address has bits behind the prefix, so what was meant is not certain.
    #[error("`{text}` has bits set behind its prefix; did you mean {meant}?")]
    BitsBehindPrefix {
        /// What was written.
        text: String,
        /// The network that holds it.
        meant: Network,
    },
}

impl Network {
    /// A network known to be right when it was written.
    pub(super) const fn fixed(address: IpAddr, prefix: u8) -> Self {
        Self { address, prefix }
    }

    /// The first address of the range.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits all its addresses share.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether `address` lies in the range. An IPv4 address that comes mapped into IPv6 is judged
    /// as the IPv4 address it reaches.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.prefix) == Some(self.address)
            || masked(address, self.prefix) == Some(self.address)
    }
}

/// The address without the bits behind `prefix`; none where the prefix is too long.
fn masked(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) => {
            let shift = 32u32.checked_sub(prefix.into())?;
            let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
            Some(IpAddr::V4((v4.to_bits() & mask).into()))
        }
        IpAddr::V6(v6) => {
            let shift = 128u32.checked_sub(prefix.into())?;
            let mask = u128::MAX.checked_shl(shift).unwrap_or(0);
            Some(IpAddr::V6((v6.to_bits() & mask).into()))
        }
    }
}

impl From<IpAddr> for Network {
    /// The network of one address.
    fn from(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let malformed = || NetworkError::Malformed { text: text.to_owned() };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => {
                if !prefix.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(malformed());
                }
                (address, Some(prefix.parse::<u8>().map_err(|_| malformed())?))
            }
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let prefix = prefix.unwrap_or(if address.is_ipv4() { 32 } else { 128 });
        let first = masked(address, prefix).ok_or_else(malformed)?;
        let network = Self { address: first, prefix };
        if first != address {
            return Err(NetworkError::BitsBehindPrefix { text: text.to_owned(), meant: network });
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn reads_and_writes() {
        for text in ["169.254.0.0/16", "fe80::/10", "0.0.0.0/0", "::/0", "10.1.2.3/32"] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("10.1.2.3").to_string(), "10.1.2.3/32");
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "x/8", "::/129", "10.0.0/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        let error = "10.1.2.3/8".parse::<Network>().unwrap_err();
        assert!(error.to_string().contains("10.0.0.0/8"), "{error}");
    }

    #[test]
    fn contains_what_it_should() {
        let link_local = network("169.254.0.0/16");
        assert!(link_local.contains("169.254.169.254".parse().unwrap()));
        assert!(link_local.contains("::ffff:169.254.169.254".parse().unwrap()));
        assert!(!link_local.contains("169.253.255.255".parse().unwrap()));
        assert!(!link_local.contains("::1".parse().unwrap()));
        assert!(network("fe80::/10").contains("febf::1".parse().unwrap()));
        assert!(!network("fe80::/10").contains("fec0::1".parse().unwrap()));
        assert!(network("::/0").contains("::1".parse().unwrap()));
        assert!(network("::ffff:0:0/96").contains("::ffff:1.2.3.4".parse().unwrap()));
    }
}

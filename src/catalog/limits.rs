//! How much somebody may use, as written down.

use serde::{Deserialize, Serialize};

/// Largest count or burst of a rate, and most units of one call.
pub const RATE_COUNT_MAX: u32 = 10_000_000;
/// Longest time a rate may be about: 31 days.
pub const RATE_SECONDS_MAX: u32 = 31 * 86_400;

/// So many units in so much time, and how many of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Units in `seconds`.
    pub count: u32,
    /// The time `count` is for.
    #[serde(default = "minute")]
    pub seconds: u32,
    /// Most units at once; `count` where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl Rate {
    /// Most units at once.
    pub fn burst(self) -> u32 {
        self.burst.unwrap_or(self.count)
    }

    /// What is wrong with it; `key` is where it stands.
    pub(super) fn check(self, key: &str, faults: &mut Vec<String>) {
        let mut within = |name: &str, value: u32, max: u32| {
            if value == 0 || value > max {
                faults.push(format!("{key}.{name}: expected 1 to {max}"));
            }
        };
        within("count", self.count, RATE_COUNT_MAX);
        within("seconds", self.seconds, RATE_SECONDS_MAX);
        within("burst", self.burst.unwrap_or(1), RATE_COUNT_MAX);
    }
}

fn minute() -> u32 {
    60
}

/// What a tenant, a client application or a caller may use. What is absent is not limited there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Messages and REST requests other than the `light` ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Rate>,
    /// Calls whose side effect is not `read`, each by its tool's weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutations: Option<Rate>,
    /// Calls of tools, each by its tool's weight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Rate>,
    /// `initialize`, `ping` and notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub light: Option<Rate>,
    /// Listening streams open at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening_streams: Option<u32>,
}

impl Limits {
    /// What is wrong with them; `key` is where they stand.
    pub(super) fn check(&self, key: &str, faults: &mut Vec<String>) {
        for (name, rate) in [
            ("requests", self.requests),
            ("mutations", self.mutations),
            ("tool_calls", self.tool_calls),
            ("light", self.light),
        ] {
            if let Some(rate) = rate {
                rate.check(&format!("{key}.{name}"), faults);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_for_a_minute_where_nothing_else_is_said() {
        let rate: Rate = toml::from_str("count = 5").unwrap();
        assert_eq!(rate, Rate { count: 5, seconds: 60, burst: None });
        assert_eq!(rate.burst(), 5);
        assert!(toml::from_str::<Rate>("count = 5\nper = 1").is_err());
    }

    #[test]
    fn every_rate_is_judged_with_its_place() {
        let rate = |count, seconds, burst| Some(Rate { count, seconds, burst });
        let limits = Limits {
            requests: rate(0, 60, Some(1)),
            mutations: rate(1, 0, None),
            tool_calls: rate(1, RATE_SECONDS_MAX + 1, None),
            light: rate(1, 1, Some(0)),
            listening_streams: Some(0),
        };
        let mut faults = Vec::new();
        limits.check("limits", &mut faults);
        let places: Vec<&str> = faults.iter().filter_map(|fault| fault.split(':').next()).collect();
        assert_eq!(
            places,
            [
                "limits.requests.count",
                "limits.mutations.seconds",
                "limits.tool_calls.seconds",
                "limits.light.burst"
            ]
        );
    }
}

//! Who may call what and when, as written down: rules, patterns, time windows.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ToolPattern;
use super::model::is_default;

/// Most rules of one policy.
pub const POLICY_RULES_MAX: usize = 200;
/// Most patterns of one list.
pub const PATTERNS_MAX: usize = 200;
/// Most patterns of all rules of a policy: each is looked at for each tool.
pub const POLICY_PATTERNS_MAX: usize = 1_000;
/// Most time windows of one rule.
pub const WINDOWS_MAX: usize = 32;

/// What a call does to the world, the worse the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
    /// It destroys or overwrites something.
    Destructive,
}

impl SideEffect {
    /// The word used in files and lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
}

/// How far a caller is trusted.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Least.
    Low,
    /// What a key has where nothing else is said.
    #[default]
    Medium,
    /// Most.
    High,
}

impl Trust {
    /// The word used in files and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The trust with that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Low, Self::Medium, Self::High].into_iter().find(|trust| trust.as_str() == text)
    }
}

/// Whether a policy is obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyMode {
    /// What it denies is not done.
    #[default]
    Enforce,
    /// What it would deny is done and recorded.
    Observe,
}

/// What a rule that matches decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyEffect {
    /// The call is allowed.
    Allow,
    /// The call is denied.
    Deny,
}

/// Rules in their order: the first one that matches decides. Where none does, a call is allowed,
/// or denied where the tenant has `default_deny`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Whether it is obeyed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: PolicyMode,
    /// In the order in which they are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
}

/// One rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// What it decides.
    pub effect: PolicyEffect,
    /// The tools it is about; all, where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolPattern>,
    /// The side effects it is about; all, where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<SideEffect>,
    /// Least trust of a caller it allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_trust: Option<Trust>,
    /// When it allows; always, where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<TimeWindow>,
}

impl Policy {
    /// What is wrong with it.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        if self.rules.len() > POLICY_RULES_MAX {
            faults.push(format!("policy.rules: more than {POLICY_RULES_MAX}"));
            return;
        }
        let patterns: usize = self.rules.iter().map(|rule| rule.tools.len()).sum();
        if patterns > POLICY_PATTERNS_MAX {
            faults.push(format!("policy.rules: more than {POLICY_PATTERNS_MAX} patterns together"));
        }
        for (rule, number) in self.rules.iter().zip(1_u32..) {
            let mut fault = |text: &str| {
                faults.push(format!("policy.rules: rule {number}: {text}"));
            };
            if rule.tools.len() > PATTERNS_MAX {
                fault(&format!("tools: more than {PATTERNS_MAX} patterns"));
            }
            if rule.windows.len() > WINDOWS_MAX {
                fault(&format!("windows: more than {WINDOWS_MAX}"));
            }
            let is_conditional = rule.required_trust.is_some() || !rule.windows.is_empty();
            if rule.effect == PolicyEffect::Deny && is_conditional {
                fault("`required_trust` and `windows` are conditions of `allow` only");
            }
            for window in &rule.windows {
                if window.from == window.to {
                    fault("windows: `from` and `to` are alike; a whole day is 00:00 to 24:00");
                }
                if window.from == ClockTime::MIDNIGHT_AFTER {
                    fault("windows: `from` is before 24:00");
                }
            }
        }
    }
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the days of the week")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// A time of day on some days of the week. Where it ends before it begins it goes on over midnight,
/// and belongs to the day it began on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeWindow {
    /// The days it begins on; all, where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Weekday>,
    /// Its first minute.
    pub from: ClockTime,
    /// The minute after its last.
    pub to: ClockTime,
    /// How far its clock is ahead of UTC.
    #[serde(default, skip_serializing_if = "is_default")]
    pub utc_offset: UtcOffset,
}

/// A time of day as `HH:MM`, up to `24:00`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockTime(u16);

impl ClockTime {
    /// The end of a day.
    const MIDNIGHT_AFTER: Self = Self(24 * 60);

    /// Reads `HH:MM`.
    pub fn parse(text: &str) -> Option<Self> {
        let minutes = minutes(text)?;
        (minutes <= Self::MIDNIGHT_AFTER.0).then_some(Self(minutes))
    }

    /// Minutes since midnight.
    pub fn minutes(self) -> u16 {
        self.0
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// A distance from UTC as `+HH:MM` or `-HH:MM`, at most 14 hours.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UtcOffset(i16);

impl UtcOffset {
    /// Reads `+HH:MM` or `-HH:MM`.
    pub fn parse(text: &str) -> Option<Self> {
        const MINUTES_MAX: i16 = 14 * 60;
        let (sign, rest) = match text.split_at_checked(1)? {
            ("+", rest) => (1, rest),
            ("-", rest) => (-1, rest),
            _ => return None,
        };
        let minutes = i16::try_from(minutes(rest)?).ok()?;
        (minutes <= MINUTES_MAX).then_some(Self(sign * minutes))
    }

    /// Minutes ahead of UTC.
    pub fn minutes(self) -> i16 {
        self.0
    }
}

impl fmt::Display for UtcOffset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = (if self.0 < 0 { '-' } else { '+' }, self.0.unsigned_abs());
        write!(formatter, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// The minutes of `HH:MM`.
fn minutes(text: &str) -> Option<u16> {
    let &[h1, h2, b':', m1, m2] = text.as_bytes() else { return None };
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let hours = digit(h1)? * 10 + digit(h2)?;
    let minutes = digit(m1)? * 10 + digit(m2)?;
    (minutes < 60).then_some(hours * 60 + minutes)
}

/// Text in files, a number in memory.
macro_rules! as_text {
    ($name:ident, $rule:literal) => {
        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| {
                    let shown = super::names::shortened(&text);
                    serde::de::Error::custom(format!("{shown:?}: expected {}", $rule))
                })
            }
        }
    };
}
as_text!(ClockTime, "a time such as 08:30, up to 24:00");
as_text!(UtcOffset, "an offset such as +02:00, at most 14 hours");

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "
mode = 'observe'
[[rules]]
effect = 'deny'
tools = ['pets/del*', 'drop_*']
side_effects = ['destructive']
[[rules]]
effect = 'allow'
required_trust = 'high'
windows = [{ days = ['mon', 'fri'], from = '22:00', to = '06:00', utc_offset = '-03:30' }]
";

    #[test]
    fn policies_are_read_and_written() {
        let policy: Policy = toml::from_str(RULES).unwrap();
        assert_eq!(policy.mode, PolicyMode::Observe);
        let window = &policy.rules[1].windows[0];
        assert_eq!((window.from.minutes(), window.to.minutes()), (1320, 360));
        assert_eq!(window.utc_offset.minutes(), -210);
        let written = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&written).unwrap(), policy);
        let mut faults = Vec::new();
        policy.check(&mut faults);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(serde_json::to_string(&Policy::default()).unwrap(), "{}");
    }

    #[test]
    fn times_and_offsets_are_read_strictly() {
        for good in ["00:00", "08:30", "23:59", "24:00"] {
            assert_eq!(ClockTime::parse(good).unwrap().to_string(), good);
        }
        for bad in ["", "8:30", "24:01", "12:60", "12-30", "ab:cd", "12:30 ", "+1:30", "１2:30"] {
            assert_eq!(ClockTime::parse(bad), None, "{bad}");
        }
        for good in ["+00:00", "+14:00", "-14:00", "+05:45", "-00:30"] {
            assert_eq!(UtcOffset::parse(good).unwrap().to_string(), good);
        }
        for bad in ["", "+", "00:00", "+14:01", "Z", "é0:00", "+-1:00"] {
            assert_eq!(UtcOffset::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (from, to, expected) in [
            ("effect = 'allow'", "effect = 'deny'", "rule 2: `required_trust` and `windows`"),
            ("to = '06:00'", "to = '22:00'", "rule 2: windows: `from` and `to` are alike"),
            ("from = '22:00'", "from = '24:00'", "rule 2: windows: `from` is before"),
        ] {
            let policy: Policy = toml::from_str(&RULES.replacen(from, to, 1)).unwrap();
            let mut faults = Vec::new();
            policy.check(&mut faults);
            assert!(faults.len() == 1 && faults[0].contains(expected), "{faults:?}");
        }
        for (from, to) in
            [("'22:00'", "'25:00'"), ("'high'", "'total'"), ("'mon'", "'monday'"), ("days", "day")]
        {
            assert!(toml::from_str::<Policy>(&RULES.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}

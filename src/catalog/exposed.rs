//! The names clients call tools by, made from the names operations have where they come from.
//!
//! Models' interfaces refuse a whole request for one name outside `[A-Za-z_][A-Za-z0-9_-]*` or over
//! 64 bytes, so a name is fitted into that alphabet and into the budget of the client application.
//!
//! Invariants:
//! - a name depends on the operation, its toolset, the budget and on which other tools of the view
//!   want the same name; never on the order of anything, and not on which tools a policy hides;
//! - what is cut off is told apart by the beginning of a hash, so that it stays told apart when
//!   tools come and go;
//! - where several tools want one name none gets it: each takes its toolset in front, and where
//!   that does not help a hash at its end.

use std::collections::HashMap;

use aws_lc_rs::digest;
use smallvec::SmallVec;

use super::ToolName;
use super::schema_hash::hexadecimal;

/// Bytes of a name where a client application says nothing.
pub(super) const NAME_BUDGET: u8 = 48;

/// Hexadecimal digits of a hash at a name's end; more of them after the first try.
const TAIL_DIGITS: usize = 8;
const LONG_TAIL_DIGITS: usize = 12;

/// How often a name is tried before its tool is given up. From the third try on each is another
/// hash, so this is never reached but by somebody who reckoned it out.
const TRIES_MAX: u8 = 8;

/// A tool that wants a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanting<'a> {
    pub(super) toolset: &'a str,
    pub(super) operation: &'a str,
    /// What the name is made from: the operation's, or what an operator wants.
    pub(super) name: &'a str,
}

/// The name of an operation that nobody else in the view wants.
pub(super) fn natural(operation: &str, budget: u8) -> ToolName {
    let stem = fitted(operation);
    if stem.is_empty() {
        // Nothing of it is left.
        return tailed("tool", &[operation], TAIL_DIGITS, budget);
    }
    within(stem, &[operation], budget)
}

/// Names for all `tools`, each its own and none of those `is_reserved` says.
///
/// # Errors
/// The places of tools that cannot be told apart: they are one tool twice.
pub(super) fn resolve(
    tools: &[Wanting<'_>],
    budget: u8,
    is_reserved: impl Fn(&str) -> bool,
) -> Result<Vec<ToolName>, Vec<usize>> {
    type Holders = SmallVec<[usize; 2]>;
    let mut tries = vec![0_u8; tools.len()];
    let mut names: Vec<ToolName> = tools.iter().map(|tool| natural(tool.name, budget)).collect();
    let mut holders: HashMap<ToolName, Holders> = HashMap::with_capacity(names.len());
    let mut touched: Vec<ToolName> = names.clone();
    for (place, name) in names.iter().enumerate() {
        holders.entry(name.clone()).or_default().push(place);
    }
    loop {
        // In rounds: who moves on is decided for all names before anybody takes another one.
        let mut moving = Holders::new();
        for name in touched.drain(..) {
            let crowded = |held: &Holders| held.len() > 1 || is_reserved(name.as_str());
            if holders.get(&name).is_some_and(crowded) {
                moving.extend(holders.remove(&name).unwrap_or_default());
            }
        }
        if moving.is_empty() {
            return Ok(names);
        }
        let stuck: Vec<usize> =
            moving.iter().copied().filter(|place| tries[*place] == TRIES_MAX).collect();
        if !stuck.is_empty() {
            return Err(stuck);
        }
        for place in moving {
            tries[place] += 1;
            names[place] = attempt(tools[place], tries[place], budget);
            holders.entry(names[place].clone()).or_default().push(place);
            touched.push(names[place].clone());
        }
    }
}

fn attempt(tool: Wanting<'_>, tries: u8, budget: u8) -> ToolName {
    let Wanting { toolset, operation, name } = tool;
    let digits = if tries <= 2 { TAIL_DIGITS } else { LONG_TAIL_DIGITS };
    let salt = tries.to_string();
    match tries {
        0 => natural(name, budget),
        1 => within(fitted(&format!("{toolset}_{name}")), &[toolset, operation], budget),
        2 => tailed(&fitted(name), &[toolset, operation], digits, budget),
        _ => tailed(&fitted(name), &[toolset, operation, &salt], digits, budget),
    }
}

/// `text` in the alphabet of names; empty where nothing of it is left.
fn fitted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if !text.contains(|letter: char| letter.is_ascii_alphanumeric()) {
        return String::new();
    }
    let mut name = String::with_capacity(text.len() + 1);
    let mut gap = false;
    for letter in text.trim().chars() {
        if is_plain(letter) {
            if gap || (name.is_empty() && (letter.is_ascii_digit() || letter == '-')) {
                name.push('_');
            }
            gap = false;
            name.push(letter);
        } else {
            gap = true;
        }
    }
    name
}

/// `stem` where it fits into the budget, else its beginning with a hash.
fn within(stem: String, identity: &[&str], budget: u8) -> ToolName {
    if stem.len() <= usize::from(budget) {
        ToolName::made(stem)
    } else {
        tailed(&stem, identity, TAIL_DIGITS, budget)
    }
}

fn tailed(stem: &str, identity: &[&str], digits: usize, budget: u8) -> ToolName {
    let stem = if stem.is_empty() { "tool" } else { stem };
    let room = usize::from(budget).saturating_sub(digits + 1).max(1);
    // A stem is plain ASCII.
    let kept = stem.get(..room.min(stem.len())).unwrap_or("t");
    let kept = match kept.trim_end_matches(['_', '-']) {
        "" => "_",
        kept => kept,
    };
    let mut name = format!("{kept}_");
    let mut context = digest::Context::new(&digest::SHA256);
    for part in identity {
        context.update(part.as_bytes());
        // No toolset and no salt has it, so parts cannot run into each other.
        context.update(b"/");
    }
    let hash = context.finish();
    name.push_str(&hexadecimal(hash.as_ref().get(..digits / 2).unwrap_or_default()));
    ToolName::made(name)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    fn named(tools: &[(&str, &str)], budget: u8) -> Vec<String> {
        let wanting: Vec<Wanting<'_>> = tools
            .iter()
            .map(|&(toolset, operation)| Wanting { toolset, operation, name: operation })
            .collect();
        let names = resolve(&wanting, budget, |name| name == "call_tool").unwrap();
        names.iter().map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn names_are_fitted_into_the_alphabet() {
        for (operation, expected) in [
            ("list_pets", "list_pets"),
            ("List-Pets", "List-Pets"),
            ("pets.list", "pets_list"),
            ("pets . list", "pets_list"),
            ("Größe ändern", "Gr_e_ndern"),
            ("(a)", "_a"),
            ("docs/search", "docs_search"),
            ("/a//b/", "_a_b"),
            ("2fa", "_2fa"),
            ("-x", "_-x"),
            ("_", "tool_8a7f73e7"),
            ("犬", "tool_6f9d4cb5"),
        ] {
            let name = natural(operation, 48);
            if expected.starts_with("tool_") {
                assert!(name.as_str().starts_with("tool_") && name.as_str().len() == 13, "{name}");
            } else {
                assert_eq!(name.as_str(), expected, "{operation}");
            }
        }
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let long = "get_the_very_long_report_of_all_the_orders_of_a_customer_by_month";
        let name = natural(long, 48);
        assert_eq!(name.as_str().len(), 48);
        assert!(name.as_str().starts_with("get_the_very_long_report_of_all_the_ord"), "{name}");
        assert_ne!(name, natural(&format!("{long}s"), 48));
        assert_eq!(name, natural(long, 48));
        assert!(natural(long, 16).as_str().len() <= 16);
    }

    #[test]
    fn who_wants_one_name_gets_another_one_each() {
        assert_eq!(named(&[("a", "list"), ("b", "show")], 48), ["list", "show"]);
        assert_eq!(named(&[("a", "list"), ("b", "list")], 48), ["a_list", "b_list"]);
        // The name with the toolset in front may be taken too.
        let names = named(&[("a", "list"), ("b", "list"), ("c", "a_list")], 48);
        assert_eq!(names[1], "b_list");
        assert!(names[0].starts_with("list_") && names[0].len() == 13, "{names:?}");
        assert_eq!(names[2], "c_a_list");
        // In one toolset its name does not tell anything apart.
        let names = named(&[("a", "p.l"), ("a", "p l")], 48);
        assert!(names.iter().all(|name| name.starts_with("p_l_")), "{names:?}");
        assert_eq!(named(&[("a", "call_tool")], 48), ["a_call_tool"]);
    }

    #[test]
    fn one_tool_twice_is_told() {
        let twice = [Wanting { toolset: "a", operation: "b", name: "b" }; 2];
        assert_eq!(resolve(&twice, 48, |_| false).unwrap_err(), [0, 1]);
    }

    fn tools() -> impl Strategy<Value = Vec<(String, String)>> {
        // Few letters, so that much collides.
        let operation =
            prop_oneof!["[ab_./]{1,4}", "(a_|b_){1,30}[ab]", "[ -~]{1,80}", "\\PC{1,20}",];
        prop::collection::btree_set(("[ab]{1,2}", operation), 1..30)
            .prop_map(|tools| tools.into_iter().collect())
    }

    proptest! {
        #[test]
        fn names_are_valid_unique_and_independent_of_order(
            (tools, shuffled) in tools().prop_flat_map(|tools| {
                (Just(tools.clone()), Just(tools).prop_shuffle())
            }),
            budget in 16_u8..=64,
        ) {
            fn all(tools: &[(String, String)], budget: u8) -> BTreeMap<(String, String), String> {
                let pairs: Vec<(&str, &str)> = tools
                    .iter()
                    .map(|(toolset, operation)| (toolset.as_str(), operation.as_str()))
                    .collect();
                tools.iter().cloned().zip(named(&pairs, budget)).collect()
            }
            let names = all(&tools, budget);
            prop_assert_eq!(&names, &all(&shuffled, budget));
            let distinct: HashSet<&String> = names.values().collect();
            prop_assert_eq!(distinct.len(), tools.len());
            for name in names.values() {
                prop_assert!(ToolName::new(name).is_ok(), "{}", name);
                prop_assert!(name.len() <= usize::from(budget), "{}", name);
                prop_assert!(name != "call_tool");
            }
        }

        #[test]
        fn a_tool_keeps_its_name_when_strangers_come(tools in tools(), budget in 16_u8..=64) {
            let (toolset, operation) = &tools[0];
            let alone = named(&[(toolset, operation)], budget);
            let with_stranger = named(&[(toolset, operation), ("z", "quite-other")], budget);
            prop_assert_eq!(&alone[0], &with_stranger[0]);
        }
    }
}

//! The names tools get.
//!
//! Invariants: a name depends on its operation, on which operations of the description wish for the
//! same name, and on what is published; never on the order of anything. A tool that is there keeps
//! its name. Where several operations wish for one name none gets it: each gets the beginning of a
//! hash of its key at its end.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use aws_lc_rs::digest;

use crate::catalog::{OPERATION_NAME_BYTES_MAX, OperationName};

/// Hexadecimal digits of a hash at a name's end, and how many are tried when a name is taken.
const TAIL_DIGITS: [usize; 4] = [8, 16, 32, 64];

/// An operation that wants a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) key: &'a str,
    pub(super) name: &'a str,
}

/// Names for all operations, by their keys. `kept` are those that some have already, `taken` those
/// of other tools.
pub(super) fn names(
    wishes: &[Wish<'_>],
    kept: &BTreeMap<String, OperationName>,
    taken: &HashSet<String>,
) -> BTreeMap<String, OperationName> {
    let mut names = BTreeMap::new();
    let mut used: HashSet<String> = taken.clone();
    used.extend(kept.values().map(|name| name.as_str().to_owned()));
    let mut wanted: HashMap<String, usize> = HashMap::new();
    // By key: the order of the description does not count.
    let mut stems: BTreeMap<&str, (String, bool)> = BTreeMap::new();
    for wish in wishes {
        if let Entry::Vacant(place) = stems.entry(wish.key) {
            let (stem, is_whole) = fitted(wish);
            *wanted.entry(stem.clone()).or_default() += 1;
            place.insert((stem, is_whole));
        }
    }
    let mut crowded = Vec::new();
    for (key, (stem, is_whole)) in &stems {
        if let Some(name) = kept.get(*key) {
            names.insert((*key).to_owned(), name.clone());
            continue;
        }
        let is_free = *is_whole && wanted.get(stem) == Some(&1) && !used.contains(stem);
        match OperationName::new(stem) {
            Ok(name) if is_free => {
                names.insert((*key).to_owned(), name);
            }
            _ => crowded.push((*key, stem)),
        }
    }
    used.extend(names.values().map(|name| name.as_str().to_owned()));
    for (key, stem) in crowded {
        let hash = hexadecimal(key);
        let tries = TAIL_DIGITS.iter().map(|digits| tailed(stem, &hash[..*digits]));
        let free = tries.filter_map(|text| OperationName::new(&text).ok());
        if let Some(name) = free.into_iter().find(|name| !used.contains(name.as_str())) {
            used.insert(name.as_str().to_owned());
            names.insert(key.to_owned(), name);
        }
    }
    names
}

/// A wish within the rule of names, and whether all of it is there. A slash has no place in what is
/// named here: in patterns it parts a toolset from its tool.
fn fitted(wish: &Wish<'_>) -> (String, bool) {
    let name = if wish.name.trim().is_empty() { wish.key } else { wish.name };
    let plain = |letter: char| if letter.is_control() || letter == '/' { '_' } else { letter };
    let name: String = name.trim().chars().map(plain).collect();
    let is_whole = name.len() <= OPERATION_NAME_BYTES_MAX;
    (name, is_whole)
}

fn tailed(stem: &str, tail: &str) -> String {
    let room = OPERATION_NAME_BYTES_MAX - tail.len() - 1;
    format!("{}_{tail}", &stem[..stem.floor_char_boundary(room)])
}

/// The SHA-256 of a text.
pub(super) fn hexadecimal(text: &str) -> String {
    use std::fmt::Write as _;
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    hash.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(wishes: &[(&str, &str)], kept: &[(&str, &str)], taken: &[&str]) -> Vec<String> {
        let list: Vec<Wish<'_>> = wishes.iter().map(|(key, name)| Wish { key, name }).collect();
        let kept = kept
            .iter()
            .map(|(key, name)| ((*key).to_owned(), OperationName::new(name).unwrap()))
            .collect();
        let taken = taken.iter().map(|name| (*name).to_owned()).collect();
        let names = names(&list, &kept, &taken);
        wishes.iter().map(|(key, _)| names[*key].as_str().to_owned()).collect()
    }

    #[test]
    fn wishes_are_granted_where_nobody_else_has_them() {
        assert_eq!(
            named(&[("GET /a", "listA"), ("GET /b", "listB")], &[], &[]),
            ["listA", "listB"]
        );
        assert_eq!(named(&[("GET /a", " pets/list\n")], &[], &[]), ["pets_list"]);
        assert_eq!(named(&[("GET /a", " ")], &[], &[]), ["GET _a"]);
        let twice = named(&[("GET /a", "get"), ("GET /b", "get")], &[], &[]);
        let tail = |key: &str| format!("get_{}", &hexadecimal(key)[..8]);
        assert_eq!(twice, [tail("GET /a"), tail("GET /b")]);
        assert_eq!(named(&[("GET /a", "get")], &[], &["get"]), [tail("GET /a")]);
        let longer = named(&[("GET /a", "get")], &[], &["get", &tail("GET /a")]);
        assert_eq!(longer, [format!("get_{}", &hexadecimal("GET /a")[..16])]);
        let long = named(&[("GET /a", &"ä".repeat(200))], &[], &[]);
        assert!(long[0].len() <= OPERATION_NAME_BYTES_MAX && long[0].contains("ä_"), "{long:?}");
    }

    #[test]
    fn tools_that_are_there_keep_their_names() {
        let kept = [("GET /a", "mine")];
        assert_eq!(named(&[("GET /a", "get")], &kept, &[]), ["mine"]);
        // One that comes later does not take the name of one that is there.
        let kept = [("GET /a", "get")];
        let names = named(&[("GET /a", "get"), ("GET /b", "get")], &kept, &[]);
        assert_eq!(names[0], "get");
        assert!(names[1].starts_with("get_"), "{names:?}");
    }

    proptest! {
        #[test]
        fn names_are_unique_and_do_not_depend_on_the_order(
            (wishes, shuffled) in prop::collection::btree_map("[a-d]{1,2}", "[xy/_]{0,3}", 0..12)
                .prop_map(|map| map.into_iter().collect::<Vec<_>>())
                .prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle()))
        ) {
            let of = |list: &[(String, String)]| {
                let list: Vec<Wish<'_>> =
                    list.iter().map(|(key, name)| Wish { key, name }).collect();
                names(&list, &BTreeMap::new(), &HashSet::new())
            };
            let found = of(&wishes);
            prop_assert_eq!(&found, &of(&shuffled));
            prop_assert_eq!(found.len(), wishes.len());
            let different: HashSet<&str> = found.values().map(OperationName::as_str).collect();
            prop_assert_eq!(different.len(), wishes.len());
        }
    }
}

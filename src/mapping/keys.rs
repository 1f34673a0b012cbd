//! Property keys that every model can write: `[A-Za-z_][A-Za-z0-9_-]*`, at most [`KEY_BYTES_MAX`].
//!
//! APIs call their fields `@type`, `filter[status]` or `Größe`. A key is made from each such name,
//! and the compiled plans know both, so nothing is lost on the way back. Which key a field gets
//! depends on its own name and on those beside it, never on their order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Location;

/// The longest property key that is shown to a client, in bytes.
pub const KEY_BYTES_MAX: usize = 64;
/// `_` and eight digits.
const TAIL_BYTES: usize = 9;
/// For a name without a single character that a key may have.
const NAMELESS: &str = "field";

/// Whether clients are shown this name as it is.
pub(super) fn is_key(name: &str) -> bool {
    let starts = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() <= KEY_BYTES_MAX
        && name.as_bytes().first().is_some_and(starts)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A field that wants a key in one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    /// What it wants to be called.
    pub(super) name: &'a str,
    /// A rule says so; else it is the name on the side of the API.
    pub(super) is_said: bool,
    /// Where the field goes. Of two equal names the first place keeps it.
    pub(super) location: Location,
    /// Its name on the side of the API, unique among the wishes of one location.
    pub(super) source: &'a str,
}

impl Wish<'_> {
    /// The first in this order gets what it wants.
    fn rank(&self) -> (bool, bool, Location, &str) {
        (!self.is_said, !is_key(self.name), self.location, self.source)
    }
}

/// The keys of all fields of one object, in the order of the wishes. `reserved` is nobody's key.
pub(super) fn assign(wishes: &[Wish<'_>], reserved: Option<&str>) -> Vec<Box<str>> {
    let mut order: Vec<(usize, &Wish<'_>)> = wishes.iter().enumerate().collect();
    order.sort_unstable_by(|(_, left), (_, right)| left.rank().cmp(&right.rank()));
    let mut keys = vec![Box::<str>::default(); wishes.len()];
    let mut holders: HashMap<Box<str>, Option<Location>> =
        reserved.into_iter().map(|key| (key.into(), None)).collect();
    let mut give = |index: usize, key: Box<str>| {
        if let Some(slot) = keys.get_mut(index) {
            *slot = key;
        }
    };
    // Those who can have their name first, so that nobody else's way out takes it from them.
    order.retain(|&(index, wish)| match holders.entry(cleaned(wish.name).into()) {
        Entry::Occupied(_) => true,
        Entry::Vacant(free) => {
            give(index, free.key().clone());
            free.insert(Some(wish.location));
            false
        }
    });
    for (index, wish) in order {
        let key = beside(wish, &holders);
        give(index, key.clone());
        holders.insert(key, Some(wish.location));
    }
    keys
}

/// Another key for a field whose own is taken: with its place behind it where that tells the two
/// apart, else with a tail.
fn beside(wish: &Wish<'_>, holders: &HashMap<Box<str>, Option<Location>>) -> Box<str> {
    let name = cleaned(wish.name);
    if holders.get(&*name).copied().flatten() != Some(wish.location) {
        let placed = format!("{name}_{}", wish.location);
        if placed.len() <= KEY_BYTES_MAX && !holders.contains_key(&*placed) {
            return placed.into_boxed_str();
        }
    }
    let mut seed = format!("{}\n{}", wish.location, wish.source);
    loop {
        let key = with_tail(&name, &seed);
        if !holders.contains_key(&key) {
            return key;
        }
        seed.push('+');
    }
}

/// A name in the alphabet of keys and short enough.
fn cleaned(name: &str) -> Cow<'_, str> {
    if is_key(name) {
        return Cow::Borrowed(name);
    }
    let foreign =
        |character: char| !character.is_ascii_alphanumeric() && !matches!(character, '_' | '-');
    let parts: Vec<&str> = name.split(foreign).filter(|part| !part.is_empty()).collect();
    let mut key = parts.join("_");
    if key.is_empty() {
        return Cow::Owned(with_tail(NAMELESS, name).into_string());
    }
    if key.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
        key.insert(0, '_');
    }
    if key.len() > KEY_BYTES_MAX {
        Cow::Owned(with_tail(&key, name).into_string())
    } else {
        Cow::Owned(key)
    }
}

/// `key` is ASCII; as much of it as there is room for, and a tail that is told by `seed`.
fn with_tail(key: &str, seed: &str) -> Box<str> {
    let kept = key.get(..KEY_BYTES_MAX - TAIL_BYTES).unwrap_or(key);
    format!("{kept}_{:08x}", crc32fast::hash(seed.as_bytes())).into_boxed_str()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wish(name: &str) -> Wish<'_> {
        Wish { name, is_said: false, location: Location::Body, source: name }
    }

    fn keys(names: &[&str]) -> Vec<String> {
        let wishes: Vec<_> = names.iter().map(|name| wish(name)).collect();
        assign(&wishes, None).into_iter().map(String::from).collect()
    }

    #[test]
    fn names_are_cleaned() {
        let names = ["id", "@type", "$filter", "a.b", "1st", "-x", "Größe", "a--b", "x[y][z]", "_"];
        let expected = ["id", "type", "filter", "a_b", "_1st", "_-x", "Gr_e", "a--b", "x_y_z", "_"];
        assert_eq!(keys(&names), expected);
        assert!(keys(&["日本"])[0].starts_with("field_"));
        let long = "a".repeat(KEY_BYTES_MAX + 1);
        assert_eq!(keys(&[&long])[0].len(), KEY_BYTES_MAX);
        assert_eq!(keys(&[&long[1..]])[0], long[1..]);
    }

    #[test]
    fn who_has_the_name_already_keeps_it() {
        let shown = keys(&["@type", "type", "type "]);
        assert_eq!(shown[1], "type");
        assert!(shown[0].starts_with("type_") && shown[2].starts_with("type_"), "{shown:?}");
        let said = Wish { is_said: true, source: "kind", ..wish("type") };
        let shown = assign(&[wish("type"), said], None);
        assert_eq!(&*shown[1], "type");
        assert_ne!(&*shown[0], "type");
    }

    #[test]
    fn places_tell_names_apart() {
        let query = Wish { location: Location::Query, ..wish("id") };
        let taken = Wish { location: Location::Query, ..wish("id_body") };
        assert_eq!(assign(&[wish("id"), query], None), ["id_body", "id"].map(Box::from));
        let shown = assign(&[wish("id"), query, taken], None);
        assert_eq!((&*shown[1], &*shown[2]), ("id", "id_body"));
        assert!(shown[0].starts_with("id_") && &*shown[0] != "id_body");
        assert_ne!(&*assign(&[wish("x")], Some("x"))[0], "x");
    }

    proptest! {
        #[test]
        fn keys_are_legal_distinct_and_free_of_order(
            names in prop::collection::btree_set("[a_.\\-é1]{1,4}|a{60,70}\\.?|.{1,3}", 1..40),
            turn in 0_usize..40,
        ) {
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            let shown = keys(&names);
            let distinct: std::collections::HashSet<_> = shown.iter().collect();
            prop_assert_eq!(distinct.len(), names.len());
            prop_assert!(shown.iter().all(|key| is_key(key)));
            for (name, key) in names.iter().zip(&shown) {
                prop_assert!(!is_key(name) || name == key);
            }
            let turn = turn % names.len();
            names.rotate_left(turn);
            let mut turned = keys(&names);
            turned.rotate_right(turn);
            prop_assert_eq!(turned, shown);
        }
    }
}

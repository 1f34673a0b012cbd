//! What keeps a value from its place, and so what a client writes inside of its value.

use super::{DEEP_LEVELS_MAX, Encoding, Style};
use crate::http::is_token_byte;
use crate::json::{Kind, Raw};
use crate::mapping::style::compact;
use crate::mapping::{Location, ParameterStyle, placement};

/// How long such a value may be written: each of its values repeats the names above it.
const DEEP_BYTES_MAX: usize = 1024 * 1024;

impl Style {
    /// No value may have a slash at its edge.
    pub(in crate::mapping) const fn keep_edges(&mut self) {
        self.keeps_edges = true;
    }

    /// What stands between values and looks the same in one.
    pub(super) fn delimiter(&self) -> Option<char> {
        match (self.kind, self.explode) {
            (ParameterStyle::Label, true) => Some('.'),
            (ParameterStyle::SpaceDelimited, false) => Some(' '),
            (ParameterStyle::PipeDelimited, false) => Some('|'),
            (ParameterStyle::Simple, _) | (ParameterStyle::Form, false)
                if self.encoding == Encoding::Plain =>
            {
                Some(',')
            }
            _ => None,
        }
    }

    /// What keeps a value from its place; `None` when nothing does.
    pub(in crate::mapping) fn problem(
        &self,
        location: Location,
        raw: Raw<'_>,
    ) -> Option<&'static str> {
        if raw.is_null() {
            let is_path = location == Location::Path;
            return is_path.then_some("must not be null, because it is a part of the path");
        }
        if self.is_json() {
            return placement::text_problem(location, &compact(raw.text()));
        }
        if self.is_deep() {
            let mut deep = Deep { style: self, path: self.own_name.to_string(), bytes: 0 };
            return deep.problem(raw, DEEP_LEVELS_MAX);
        }
        let is_object = raw.kind() == Kind::Object;
        let delimiter = self.delimiter().filter(|_| is_object || raw.kind() == Kind::Array);
        let has_delimiter =
            |text: &str| delimiter.is_some_and(|delimiter| text.contains(delimiter));
        let at_edge =
            |text: &str| self.keeps_edges.then(|| placement::edge_problem(text)).flatten();
        let gives_names = is_object && self.explode && self.is_list() && !self.objects_are_json;
        let (mut problem, mut count) = (None, 0_usize);
        self.for_each(raw, |name, text| {
            count += 1;
            problem = problem
                .or_else(|| placement::text_problem(location, text))
                .or_else(|| at_edge(text))
                .or_else(|| has_delimiter(text).then_some(DELIMITER));
            let Some(name) = name.filter(|_| problem.is_none()) else { return };
            problem = placement::text_problem(location, name)
                .or_else(|| at_edge(name))
                .or_else(|| has_delimiter(name).then_some(DELIMITER))
                .or_else(|| self.name_problem(location, name, gives_names));
        });
        let is_empty = location == Location::Path && count == 0;
        problem.or_else(|| is_empty.then_some(placement::EMPTY))
    }

    fn name_problem(
        &self,
        location: Location,
        name: &str,
        gives_names: bool,
    ) -> Option<&'static str> {
        if self.encoding == Encoding::Plain && self.explode && name.contains('=') {
            return Some("must not have a member with '=' in its name, because it ends the name");
        }
        if !gives_names {
            return None;
        }
        if name.is_empty() {
            return Some("must not have a member without a name");
        }
        if location == Location::Cookie && !name.bytes().all(is_token_byte) {
            return Some("has a member whose name cannot be that of a cookie");
        }
        self.is_taken(name).then_some(TAKEN)
    }

    /// Also where it is a part of a value that is: `a[b]` of `a`. Some servers do not tell capitals.
    fn is_taken(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is_known =
            |name: &str| self.taken.binary_search_by(|known| (**known).cmp(name)).is_ok();
        is_known(&name) || name.split_once('[').is_some_and(|(head, _)| is_known(head))
    }
}

const DELIMITER: &str = "must not have a value with the character that separates values here";
const TAKEN: &str = "must not have a member with the name of another field of the request";

/// Looks at a value whose members become names in brackets.
struct Deep<'s> {
    style: &'s Style,
    path: String,
    bytes: usize,
}

impl Deep<'_> {
    fn problem(&mut self, raw: Raw<'_>, levels: usize) -> Option<&'static str> {
        let length = self.path.len();
        match (raw.kind(), levels.checked_sub(1)) {
            (Kind::Null, _) => None,
            (Kind::Object, Some(levels)) => {
                for (name, value) in raw.entries() {
                    if name.is_empty() || name.contains(['[', ']']) {
                        return Some("must not have a member with an empty name, '[' or ']' in it");
                    }
                    self.path.push('[');
                    self.path.push_str(&name);
                    self.path.push(']');
                    if self.is_taken() {
                        return Some(TAKEN);
                    }
                    let problem = self.problem(value, levels);
                    self.path.truncate(length);
                    if problem.is_some() {
                        return problem;
                    }
                }
                None
            }
            (Kind::Array, Some(levels)) => raw.items().find_map(|item| {
                self.path.push_str("[]");
                let problem = self.problem(item, levels);
                self.path.truncate(length);
                problem
            }),
            _ => {
                self.bytes += self.path.len() + raw.text().len();
                (self.bytes > DEEP_BYTES_MAX).then_some("is too large to be written with its names")
            }
        }
    }

    fn is_taken(&self) -> bool {
        let path = self.path.to_ascii_lowercase();
        self.style.taken.binary_search_by(|known| (**known).cmp(&path)).is_ok()
    }
}

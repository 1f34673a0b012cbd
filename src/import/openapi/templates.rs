//! Paths of a description: their placeholders, and what they ask for in their query.

/// Longest query of a path, in fields.
const ASKED_MAX: usize = 100;

/// A path as a tool has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) path: String,
    /// Names within braces, each as often as it stands there.
    pub(super) placeholders: Vec<String>,
    pub(super) asked: Vec<Asked>,
}

/// A field of the query that stands in the path: `?q={text}` or `{?q}` (RFC 6570).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// In the query.
    pub(super) name: String,
    /// Within braces.
    pub(super) argument: String,
    pub(super) is_required: bool,
}

impl Asked {
    /// The name of the argument, where it is not that of the field.
    pub(super) fn exposed(&self) -> Option<String> {
        (self.argument != self.name).then(|| self.argument.clone())
    }
}

impl Template {
    /// Reads a path; `declared` are the parameters that are said to be in it.
    ///
    /// # Errors
    /// Why no request can be made of its query.
    pub(super) fn of(path: &str, declared: &[&str]) -> Result<Self, String> {
        let mut template = Self::default();
        let (path, query) = split(path, &mut template.asked);
        let mut fixed: Vec<&str> = Vec::new();
        for pair in query.as_deref().unwrap_or_default().split('&') {
            if !pair.contains('{') {
                fixed.push(pair);
                continue;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, pair));
            let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
            let argument = inside.filter(|inside| !inside.contains(['{', '}'])).map(bare);
            let (Some(argument), false) = (argument, name.contains('{') && name != value) else {
                return Err("a placeholder is a part of a field of its path's query".to_owned());
            };
            let name = if name == value { argument } else { name };
            template.asked.push(Asked {
                name: name.to_owned(),
                argument: argument.to_owned(),
                is_required: true,
            });
        }
        if template.asked.len() > ASKED_MAX {
            return Err(format!("its path has more than {ASKED_MAX} placeholders in its query"));
        }
        (template.path, template.placeholders) = renamed(&path, declared);
        fixed.retain(|pair| !pair.is_empty());
        if !fixed.is_empty() {
            template.path.push('?');
            template.path.push_str(&fixed.join("&"));
        }
        Ok(template)
    }

    /// The field of the query that has this placeholder.
    pub(super) fn asked_by(&self, argument: &str) -> Option<&Asked> {
        self.asked.iter().find(|asked| asked.argument == argument)
    }
}

/// The path and its query, without the expressions of RFC 6570 that are fields of the query.
fn split(path: &str, asked: &mut Vec<Asked>) -> (String, Option<String>) {
    let (mut before, mut query): (String, Option<String>) = (String::new(), None);
    let mut rest = path;
    while let Some(at) = rest.find(['{', '?']) {
        let (plain, from) = rest.split_at(at);
        query.as_mut().unwrap_or(&mut before).push_str(plain);
        let end = from.strip_prefix('{').and_then(closing).map(|end| end + 2);
        let Some((expression, behind)) = end.and_then(|end| from.split_at_checked(end)) else {
            rest = &from[1..];
            match &mut query {
                None if from.starts_with('?') => query = Some(String::new()),
                out => out.as_mut().unwrap_or(&mut before).push_str(&from[..1]),
            }
            continue;
        };
        rest = behind;
        let Some(names) = expression.strip_prefix("{?").or(expression.strip_prefix("{&")) else {
            query.as_mut().unwrap_or(&mut before).push_str(expression);
            continue;
        };
        let names = names.trim_end_matches('}').split(',').map(bare);
        asked.extend(names.filter(|name| !name.is_empty()).take(ASKED_MAX).map(|name| Asked {
            name: name.to_owned(),
            argument: name.to_owned(),
            is_required: false,
        }));
    }
    query.as_mut().unwrap_or(&mut before).push_str(rest);
    (before, query)
}

/// The name within braces without a pattern or a modifier.
fn bare(inside: &str) -> &str {
    let name = inside.split(':').next().unwrap_or(inside);
    name.trim_start_matches('+').trim_end_matches('*').trim()
}

/// A path with its placeholders under the names that parameters have: `{id:[0-9]+}` and `{+id}` are
/// `{id}` where that is declared.
fn renamed(path: &str, declared: &[&str]) -> (String, Vec<String>) {
    let mut out = String::with_capacity(path.len());
    let mut names = Vec::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some(end) = closing(after) else { break };
        let (inside, after) = (&after[..end], &after[end + 1..]);
        out.push_str(before);
        let bare = bare(inside);
        let name = if declared.contains(&inside) {
            inside
        } else {
            let same = |known: &&&str| known.eq_ignore_ascii_case(bare);
            declared.iter().find(same).copied().unwrap_or(inside)
        };
        out.push('{');
        out.push_str(name);
        out.push('}');
        names.push(name.to_owned());
        rest = after;
    }
    out.push_str(rest);
    (out, names)
}

/// Where a placeholder ends; an expression in it may have braces of its own.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_have_the_names_of_their_parameters() {
        for (path, declared, expected) in [
            ("/a/{id}/b", vec!["id"], "/a/{id}/b"),
            ("/{id:[0-9]{2}}/x", vec!["id"], "/{id}/x"),
            ("/{+name}:undelete", vec!["name"], "/{name}:undelete"),
            ("/{petid}", vec!["petId"], "/{petId}"),
            ("/{a}/{b}/x/{a}", vec!["a", "b"], "/{a}/{b}/x/{a}"),
            ("/{a", vec!["a"], "/{a"),
            ("/{other}", vec!["a"], "/{other}"),
        ] {
            assert_eq!(renamed(path, &declared).0, expected, "{path}");
        }
    }

    #[test]
    fn what_stands_in_the_query_is_a_field_of_it() {
        let shown = |path: &str| {
            let template = Template::of(path, &["id"])?;
            let asked: Vec<String> = template
                .asked
                .iter()
                .map(|one| format!("{}={} {}", one.name, one.argument, one.is_required))
                .collect();
            Ok::<_, String>((template.path, asked.join(", ")))
        };
        for (path, expected, asked) in [
            ("/a/{id}?q={text}&fixed=1", "/a/{id}?fixed=1", "q=text true"),
            ("/a?{q}", "/a", "q=q true"),
            ("/a?x={y:[0-9]+}", "/a", "x=y true"),
            ("/a{?q,limit*}", "/a", "q=q false, limit=limit false"),
            ("/a?v=1{&page}", "/a?v=1", "page=page false"),
            ("/{id:[0-9]?}/x?a", "/{id}/x?a", ""),
            ("/a?b?c", "/a?b?c", ""),
            ("/{a", "/{a", ""),
            ("/a?", "/a", ""),
        ] {
            assert_eq!(shown(path).unwrap(), (expected.to_owned(), asked.to_owned()), "{path}");
        }
        for path in ["/a?q=x{y}", "/a?{k}={v}", "/a?q={a}{b}"] {
            assert!(shown(path).is_err(), "{path}");
        }
    }
}

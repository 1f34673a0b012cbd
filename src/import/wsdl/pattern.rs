//! Regular expressions of XML Schema as ones of JSON Schema.
//!
//! The two differ: those of XML Schema match the whole value, have no anchors, and have classes of
//! their own. What is the same in both is taken over; an expression with anything else is not, and
//! is told in words instead.

/// Longest expression taken over.
const BYTES_MAX: usize = 500;
/// Most characters and classes, each as often as it is repeated: the automaton grows with them.
const COST_MAX: u64 = 1_000;
/// How deep groups may nest.
const GROUPS_MAX: usize = 16;

/// The alternatives as one expression, where all of them can be taken over.
pub(super) fn converted(patterns: &[&str]) -> Option<String> {
    let all: Vec<String> = patterns.iter().map(|pattern| one(pattern)).collect::<Option<_>>()?;
    let joined = all.join("|");
    (joined.len() <= BYTES_MAX).then(|| format!("^(?:{joined})$"))
}

fn one(pattern: &str) -> Option<String> {
    if pattern.len() > BYTES_MAX {
        return None;
    }
    let mut out = String::new();
    // What each open group costs so far, and the last thing in it.
    let mut costs = vec![0_u64];
    let mut last = 0_u64;
    let mut can_repeat = false;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        can_repeat = match letter {
            '^' | '$' => {
                out.push('\\');
                out.push(letter);
                true
            }
            '(' => {
                costs.push(0);
                // `(?` would be an extension that XML Schema does not have.
                if costs.len() > GROUPS_MAX || letters.peek() == Some(&'?') {
                    return None;
                }
                out.push_str("(?:");
                false
            }
            ')' => {
                last = costs.pop()?;
                out.push(')');
                true
            }
            '|' => {
                out.push('|');
                false
            }
            '*' | '+' | '?' => {
                if !can_repeat {
                    return None;
                }
                out.push(letter);
                false
            }
            '{' => {
                if !can_repeat {
                    return None;
                }
                // Once it is counted already.
                let more = counts(&mut letters, &mut out)?.saturating_sub(1);
                let cost = costs.last_mut()?;
                *cost = cost.checked_add(last.checked_mul(more)?)?;
                false
            }
            '}' | ']' => return None,
            '[' => {
                class(&mut letters, &mut out)?;
                true
            }
            '\\' => {
                escape(&mut letters, &mut out)?;
                true
            }
            plain => {
                out.push(plain);
                true
            }
        };
        if can_repeat {
            last = if letter == ')' { last } else { 1 };
            let cost = costs.last_mut()?;
            *cost = cost.checked_add(last)?;
        }
        if costs.last().is_none_or(|cost| *cost > COST_MAX) {
            return None;
        }
    }
    (costs.len() == 1).then_some(out)
}

type Letters<'p> = std::iter::Peekable<std::str::Chars<'p>>;

/// `n}`, `n,}` or `n,m}`; gives the largest number in it.
fn counts(letters: &mut Letters<'_>, out: &mut String) -> Option<u64> {
    let text: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
    let (least, most) = text.split_once(',').unwrap_or((&text, &text));
    let least_count: u64 = least.parse().ok()?;
    let most_count: u64 = if most.is_empty() { least_count } else { most.parse().ok()? };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    if !is_plain || most_count < least_count {
        return None;
    }
    out.push('{');
    out.push_str(&text);
    out.push('}');
    Some(least_count.max(most_count).max(1))
}

/// A class up to its `]`. One inside another, which is a subtraction, is not taken over.
fn class(letters: &mut Letters<'_>, out: &mut String) -> Option<()> {
    out.push('[');
    if letters.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut is_empty = true;
    loop {
        match letters.next()? {
            ']' if !is_empty => break,
            ']' | '[' => return None,
            '\\' => escape(letters, out)?,
            // Set operations of other dialects.
            '-' if matches!(letters.peek(), Some('-' | '[')) => return None,
            letter @ ('&' | '~') if letters.peek() == Some(&letter) => return None,
            '^' => out.push_str("\\^"),
            letter => out.push(letter),
        }
        is_empty = false;
    }
    out.push(']');
    Some(())
}

fn escape(letters: &mut Letters<'_>, out: &mut String) -> Option<()> {
    let letter = letters.next()?;
    let is_same = matches!(
        letter,
        'n' | 'r'
            | 't'
            | '\\'
            | '|'
            | '.'
            | '?'
            | '*'
            | '+'
            | '('
            | ')'
            | '{'
            | '}'
            | '-'
            | '['
            | ']'
            | '^'
            | 'd'
            | 'D'
            | 's'
            | 'S'
            | 'w'
            | 'W'
            | '$'
            | '/'
    );
    if !is_same {
        return None;
    }
    // Only some dialects know an escaped slash.
    if letter != '/' {
        out.push('\\');
    }
    out.push(letter);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_dialects_have_is_taken_over() {
        for (pattern, expected) in [
            ("[A-Z]{3}", "^(?:[A-Z]{3})$"),
            ("a|b", "^(?:a|b)$"),
            ("(a(b)?){2,3}", "^(?:(?:a(?:b)?){2,3})$"),
            ("$1^", "^(?:\\$1\\^)$"),
            ("[^a\\-\\]^]\\d+\\.\\/", "^(?:[^a\\-\\]\\^]\\d+\\./)$"),
            ("[0-9]{4}-[0-9]{2}", "^(?:[0-9]{4}-[0-9]{2})$"),
            ("[\\da-f]{999}", "^(?:[\\da-f]{999})$"),
        ] {
            assert_eq!(converted(&[pattern]).as_deref(), Some(expected), "{pattern}");
        }
        assert_eq!(converted(&["a", "b+"]).unwrap(), "^(?:a|b+)$");
    }

    #[test]
    fn everything_else_is_left_to_words() {
        for pattern in [
            "\\i\\c*",
            "\\p{IsBasicLatin}",
            "[a-z-[aeiou]]",
            "(?i)a",
            "a**",
            "*a",
            "a{2,1}",
            "a{",
            "a{1001}",
            "(a{100}){100}",
            "[]",
            "[a",
            "(a",
            "a)",
            "]",
            "}",
            "\\",
            "[a&&b]",
            "a{,3}",
        ] {
            assert_eq!(converted(&[pattern]), None, "{pattern}");
        }
        assert_eq!(converted(&[&"a".repeat(501)]), None);
        assert_eq!(converted(&[&"(".repeat(20)]), None);
    }
}

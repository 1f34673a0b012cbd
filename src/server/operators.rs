//! Who an operator is: the user at the other end of the admin socket, and who they say they are.

use std::fs;

use super::connection::Plane;
use crate::http::RequestView;

/// Longest author taken, in characters.
const AUTHOR_CHARACTERS_MAX: usize = 128;
/// The users of this machine.
const USERS_FILE: &str = "/etc/passwd";
/// Stands in the place of a user where the system vouches for none. No user has such a name.
const UNVERIFIED: &str = "(unverified)";

/// What is known of the author of a request.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    user: Option<u32>,
    said: Option<String>,
}

impl Operator {
    /// Of a request of the admin plane.
    ///
    /// # Errors
    /// `X-Author` is no name.
    pub(crate) fn of(plane: Plane, request: &RequestView<'_>) -> Result<Self, String> {
        let user = match plane {
            Plane::Admin { user } => user,
            _ => None,
        };
        let said = header(request, "x-author").map(name).transpose()?;
        Ok(Self { user, said })
    }

    /// The author as the change log has it: first the user whom the system vouches for, or that
    /// nobody does, then what they call themselves, in quotes. Nothing that a client says can look
    /// like what the system does. Reads a file; not for a core.
    pub(crate) fn author(&self) -> String {
        let user = self.user.map(user_name);
        match (&self.said, user) {
            (Some(said), Some(user)) if *said != user => format!("{user} as {said:?}"),
            (_, Some(user)) => user,
            (Some(said), None) => format!("{UNVERIFIED} {said:?}"),
            (None, None) => UNVERIFIED.to_owned(),
        }
    }
}

/// The first value of a field of a request, by its name in lower case.
pub(crate) fn header<'a>(request: &RequestView<'a>, name: &str) -> Option<&'a [u8]> {
    let mut headers = request.headers();
    headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn name(value: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(value).unwrap_or_default().trim();
    let count = text.chars().count();
    if count == 0 || count > AUTHOR_CHARACTERS_MAX || text.chars().any(char::is_control) {
        return Err(format!(
            "X-Author: expected a name of 1 to {AUTHOR_CHARACTERS_MAX} characters"
        ));
    }
    Ok(text.to_owned())
}

fn user_name(user: u32) -> String {
    let users = fs::read_to_string(USERS_FILE).unwrap_or_default();
    name_in(&users, user).unwrap_or_else(|| format!("uid {user}"))
}

/// The name of a user in the lines of a file as `/etc/passwd`: name, password, id, ...
fn name_in(users: &str, user: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let id: u32 = fields.nth(1)?.parse().ok()?;
        (id == user).then(|| name.chars().take(AUTHOR_CHARACTERS_MAX).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\n:x:1:\nbad\nada:x:1000:1000::/home/ada:\n";
        assert_eq!(name_in(users, 0).as_deref(), Some("root"));
        assert_eq!(name_in(users, 1000).as_deref(), Some("ada"));
        assert_eq!(name_in(users, 1), None);
    }

    #[test]
    fn the_system_vouches_for_users_and_nobody_for_names() {
        let author =
            |user, said: Option<&str>| Operator { user, said: said.map(str::to_owned) }.author();
        assert_eq!(author(None, None), "(unverified)");
        assert_eq!(author(None, Some("ada")), "(unverified) \"ada\"");
        assert_eq!(author(Some(0), None), "root");
        assert_eq!(author(Some(0), Some("root")), "root");
        assert_eq!(author(Some(0), Some("ada")), "root as \"ada\"");
        let forged = author(None, Some("x\" root as \"ada"));
        assert_eq!(forged, "(unverified) \"x\\\" root as \\\"ada\"");
        assert_eq!(author(None, Some("root as \"ada\"")), "(unverified) \"root as \\\"ada\\\"\"");
        assert_eq!(author(Some(4_000_000_000), None), "uid 4000000000");
    }

    #[test]
    fn names_are_short_and_in_one_line() {
        assert_eq!(name(b" ada ").unwrap(), "ada");
        assert_eq!(name("ä".repeat(128).as_bytes()).unwrap().chars().count(), 128);
        for bad in ["", "  ", "a\tb", &"a".repeat(129)] {
            assert!(name(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(name(b"\xff").is_err());
    }
}

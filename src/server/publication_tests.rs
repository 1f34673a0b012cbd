use tempfile::TempDir;

use super::*;
use crate::catalog::{Deprecated, Kind, fixture::entities as read};

const CATALOG: &str = r#"
[[tenant]]
id = "a"
[[client_application]]
tenant = "a"
id = "desk"
[[client_application]]
tenant = "a"
id = "idle"
[[connection]]
tenant = "a"
id = "api"
base_url = "http://127.0.0.1:9"
[[toolset]]
tenant = "a"
id = "set"
kind = "rest"
connection = "api"
[[assignment]]
tenant = "a"
client_application = "desk"
toolset = "set"
"#;

fn tool(name: &str) -> String {
    format!(
        "[[tool]]\ntenant = \"a\"\ntoolset = \"set\"\nname = \"{name}\"\ndescription = \"d\"\n\
         method = \"GET\"\npath = \"/{name}\"\n"
    )
}

struct Fixture {
    folder: TempDir,
    settings: Settings,
}

impl Fixture {
    fn new() -> Self {
        let mut settings = Settings::default();
        settings.store.free_bytes_min = 0;
        Self { folder: tempfile::tempdir().unwrap(), settings }
    }

    /// Runs `body` with a store that is opened for it and closed after it.
    fn run<T>(&self, body: impl FnOnce(&Publication) -> T) -> T {
        let store = Store::open(self.folder.path(), self.settings.store.clone()).unwrap();
        let seal = Seal::open(self.folder.path()).unwrap();
        let publication =
            Publication::load(&store, seal, &self.settings, Entities::default(), Vec::new())
                .unwrap();
        let result = body(&publication);
        drop(publication);
        store.stop().unwrap();
        result
    }
}

fn apply(publication: &Publication, text: &str, prune: bool) -> Result<Applied, ChangeError> {
    publication.apply(Intent::own(Action::Apply), read(text), prune)
}

fn left_of(publication: &Publication, name: &str) -> Option<Deprecated> {
    let published = publication.current();
    published.snapshot.view("a", "desk").unwrap().deprecated(name, time::now_ms())
}

#[test]
fn tools_that_went_are_known_after_a_restart() {
    let fixture = Fixture::new();
    let both = format!("{CATALOG}{}{}", tool("stays"), tool("goes"));
    let one = format!("{CATALOG}{}", tool("stays"));
    fixture.run(|publication| {
        apply(publication, &both, false).unwrap();
        assert!(left_of(publication, "goes").is_none());
        apply(publication, &one, true).unwrap();
        assert!(matches!(left_of(publication, "goes"), Some(Deprecated::Callable { .. })));
    });
    fixture.run(|publication| {
        assert!(matches!(left_of(publication, "goes"), Some(Deprecated::Callable { .. })));
        // It comes back, and nothing is left of its absence; nor in the store.
        publication.rollback(Intent::own(Action::Rollback), 1).unwrap();
        assert!(left_of(publication, "goes").is_none());
        assert!(publication.past.lock().former_rows.is_empty());
    });
    fixture.run(|publication| {
        assert!(left_of(publication, "goes").is_none());
        assert_eq!(publication.current().snapshot.version(), 3);
    });
}

#[test]
fn a_wrong_change_leaves_everything_as_it_was() {
    let fixture = Fixture::new();
    fixture.run(|publication| {
        apply(publication, CATALOG, false).unwrap();
        let before = (publication.version(), publication.entities());
        let error =
            apply(publication, "[[toolset]]\ntenant = \"b\"\nid = \"x\"\nkind = \"rest\"\n", false);
        assert!(matches!(error, Err(ChangeError::Problems(_))));
        let error = publication.rollback(Intent::own(Action::Rollback), 7);
        assert!(matches!(error, Err(ChangeError::Log(ChangeLogError::NoSuchVersion { .. }))));
        let error = apply(publication, "", true);
        assert!(matches!(error, Err(ChangeError::Refused(_))));
        let stale = Intent { expected: Some(0), ..Intent::own(Action::Apply) };
        let error = publication.apply(stale, read(&tool("late")), false);
        assert!(matches!(error, Err(ChangeError::Conflict(_))));
        let dry = Intent { dry_run: true, ..Intent::own(Action::Apply) };
        let applied = publication.apply(dry, read(&tool("dry")), false).unwrap();
        assert_eq!((applied.changes.len(), applied.version), (1, 1));
        assert_eq!(publication.version(), before.0);
        assert!(Arc::ptr_eq(&publication.entities(), &before.1));
        assert_eq!(publication.history(None, 9).unwrap().0.len(), 1);
    });
}

#[test]
fn what_did_not_change_is_taken_over() {
    let fixture = Fixture::new();
    fixture.run(|publication| {
        apply(publication, &format!("{CATALOG}{}", tool("one")), false).unwrap();
        let before = publication.current();
        apply(publication, &tool("two"), false).unwrap();
        let after = publication.current();
        let view = |published: &Published, client| published.snapshot.view("a", client).cloned();
        let (one, other) = (view(&before, "idle").unwrap(), view(&after, "idle").unwrap());
        assert!(Arc::ptr_eq(&one, &other), "a view nothing happened to was compiled again");
        let first = |published: &Published| {
            view(published, "desk").unwrap().tool("one").unwrap().tool.clone()
        };
        assert!(Arc::ptr_eq(&first(&before), &first(&after)));
    });
}

#[test]
fn a_rollback_over_many_changes_finds_the_way() {
    let fixture = Fixture::new();
    fixture.run(|publication| {
        let mut states = Vec::new();
        apply(publication, CATALOG, false).unwrap();
        states.push(publication.entities());
        for number in 0..6 {
            let name = ["x", "y", "z"][number % 3];
            if number % 2 == 0 {
                apply(publication, &tool(name).replace("\"d\"", &format!("\"{number}\"")), false)
                    .unwrap();
            } else {
                apply(publication, CATALOG, true).unwrap();
            }
            states.push(publication.entities());
        }
        for (index, state) in states.iter().enumerate().rev() {
            let version = index as u64 + 1;
            publication.rollback(Intent::own(Action::Rollback), version).unwrap();
            assert!(state.difference(&publication.entities()).is_empty(), "version {version}");
        }
        let newest = publication.history(None, 1).unwrap().0.remove(0);
        assert_eq!((newest.action, newest.restored), (Action::Rollback, Some(1)));
        let change = publication.change_of(newest.version).unwrap();
        assert!(change.entities.iter().all(|change| change.kind == Kind::Tool));
    });
}

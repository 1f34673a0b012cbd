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
    /// What was accepted before.
    definitions: UpstreamDefinitions,
}

impl Fixture {
    fn new() -> Self {
        let mut settings = Settings::default();
        settings.store.free_bytes_min = 0;
        Self {
            folder: tempfile::tempdir().unwrap(),
            settings,
            definitions: UpstreamDefinitions::new(),
        }
    }

    /// Runs `body` with a store that is opened for it and closed after it.
    fn run<T>(&self, body: impl FnOnce(&Publication) -> T) -> T {
        self.run_with("", body)
    }

    /// The same with files of the settings that say this.
    fn run_with<T>(&self, files: &str, body: impl FnOnce(&Publication) -> T) -> T {
        let store = Store::open(self.folder.path(), self.settings.store.clone()).unwrap();
        let seal = Seal::open(self.folder.path()).unwrap();
        let publication = Publication::load(
            &store,
            seal,
            &self.settings,
            read(files),
            Vec::new(),
            self.definitions.clone(),
        )
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
        let error = publication.rollback(Intent::own(Action::Rollback), 0);
        assert!(matches!(error, Err(ChangeError::Refused(_))), "all would go");
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

fn has(publication: &Publication, name: &str) -> bool {
    publication.entities().tools.iter().any(|entry| entry.value.name.as_str() == name)
}

fn remove(publication: &Publication, name: &str) {
    let removed = publication.change(Intent::own(Action::Delete), |current| {
        let mut newer = current.clone();
        newer.tools.retain(|entry| entry.value.name.as_str() != name);
        Ok(newer)
    });
    assert!(removed.unwrap().is_made);
}

fn reload(publication: &Publication, files: &str) -> Applied {
    publication.reload(&Intent::own(Action::Reload), &read(files)).unwrap()
}

#[test]
fn what_was_removed_stays_away_until_its_file_says_something_new() {
    let fixture = Fixture::new();
    let files = format!("{CATALOG}{}{}", tool("one"), tool("two"));
    fixture.run_with(&files, |publication| {
        remove(publication, "one");
        // Other lines are no other content.
        let moved = format!("\n\n{CATALOG}{}{}", tool("two"), tool("one"));
        assert!(!reload(publication, &moved).is_made);
        assert!(!has(publication, "one") && has(publication, "two"));
    });
    let other = files.replace("/two", "/other");
    fixture.run_with(&files, |publication| {
        assert!(!has(publication, "one"), "a restart brought it back");
        assert_eq!(publication.current().snapshot.version(), 2);
        assert_eq!(reload(publication, &other).changes.len(), 1);
        assert!(!has(publication, "one"));
    });
    fixture.run_with(&other.replace("/one", "/new"), |publication| {
        assert!(has(publication, "one"), "its file changed");
        remove(publication, "one");
        // Who applies a file means what it says.
        apply(publication, &other, false).unwrap();
        assert!(has(publication, "one"));
        remove(publication, "one");
        // What no file declared for a while is news.
        reload(publication, &format!("{CATALOG}{}", tool("two")));
        reload(publication, &other);
        assert!(has(publication, "one"));
    });
}

#[test]
fn what_was_changed_stays_so_until_its_file_says_something_new() {
    let fixture = Fixture::new();
    let files = format!("{CATALOG}{}", tool("one"));
    let path_of = |publication: &Publication| publication.entities().tools[0].value.path.clone();
    fixture.run_with(&files, |publication| {
        apply(publication, &tool("one").replace("/one", "/changed"), false).unwrap();
        reload(publication, &files);
        assert_eq!(path_of(publication), "/changed");
    });
    fixture.run_with(&files, |publication| {
        assert_eq!(path_of(publication), "/changed");
        reload(publication, &files.replace("/one", "/new"));
        assert_eq!(path_of(publication), "/new");
    });
}

#[test]
fn where_news_cannot_stand_alone_all_of_the_files_is_taken() {
    let fixture = Fixture::new();
    let files = format!("{CATALOG}{}", tool("one"));
    fixture.run_with(&files, |publication| {
        let emptied = publication.change(Intent::own(Action::Delete), |_| Ok(Entities::default()));
        assert!(emptied.unwrap().is_made);
        assert!(!reload(publication, &files).is_made);
    });
    fixture.run_with(&format!("{files}{}", tool("two")), |publication| {
        assert!(has(publication, "one") && has(publication, "two"));
    });
}

const SECRET: &str = "s3cr3t-of-an-earlier-release";

fn holds(row: &[u8], text: &str) -> bool {
    row.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn rows_of_releases_that_sealed_nothing_are_read_and_sealed() {
    let fixture = Fixture::new();
    let headers = format!("\"http://127.0.0.1:9\"\nheaders = {{ A = \"{SECRET}\" }}");
    let entities = read(&CATALOG.replace("\"http://127.0.0.1:9\"", &headers));
    let changes = Entities::default().changes(&entities);
    let open = || Store::open(fixture.folder.path(), fixture.settings.store.clone()).unwrap();
    let store = open();
    let mut batch = Batch::new();
    for (key, value) in entities.rows() {
        batch.put(Tree::Catalog, &key, &value);
    }
    let record = record(Intent::own(Action::Apply), 1, None, changes);
    // The key of version 1, as the change log makes it.
    batch.put(Tree::Catalog, b"change/9e3779b97f4a7c15", &record.encode());
    store.write_blocking(batch).unwrap();
    assert!(all_rows(&store, Tree::Catalog).unwrap().iter().any(|(_, row)| holds(row, SECRET)));
    store.stop().unwrap();

    let secret = |publication: &Publication| {
        publication.entities().connections[0].value.headers["A"].expose().to_owned()
    };
    fixture.run(|publication| {
        assert_eq!(secret(publication), SECRET);
        assert_eq!(publication.change_of(1).unwrap(), record);
        assert_eq!(publication.history(None, 9).unwrap().0, std::slice::from_ref(&record.header));
    });
    let store = open();
    for (key, row) in all_rows(&store, Tree::Catalog).unwrap() {
        assert!(!holds(&row, SECRET));
        match () {
            () if ChangeLog::is_record(&key) => {
                assert!(ChangeRecord::entities_of(&row).unwrap().0, "the entities are sealed");
            }
            () => assert_eq!(row[0] == 2, key.starts_with(b"connection/")),
        }
    }
    store.stop().unwrap();
    fixture.run(|publication| {
        assert_eq!(secret(publication), SECRET);
        let removed = CATALOG.split("[[connection]]").next().unwrap();
        apply(publication, removed, true).unwrap();
        publication.rollback(Intent::own(Action::Apply), 1).unwrap();
        assert_eq!(secret(publication), SECRET);
    });
}

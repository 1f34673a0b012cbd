//! Reads the sources one after the other into one table, remembering who wrote which key.
//!
//! The default settings, written as a table, are the list of known keys and of their kinds. Every
//! value is tried on its own, so that an error is laid at the line that caused it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::{Origin, Problem, Settings, SettingsError, TOML_DEPTH_MAX, too_deep_at};

/// Begins every variable that is a setting.
const PREFIX: &str = "RINGWAY_";

/// Stands between the sections and the key in a variable's name.
const SEPARATOR: &str = "__";

/// Names the settings file when no path is given.
const FILE_VARIABLE: &str = "RINGWAY_CONFIG";

/// Variables with the prefix that are no settings but the command line's own.
pub const COMMAND_LINE_VARIABLES: [&str; 2] = [FILE_VARIABLE, "RINGWAY_ADMIN"];

/// The variables of this process that concern Ringway. Bytes that are no UTF-8 are replaced, so
/// that such a value is refused by its name instead of being overlooked.
pub fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect()
}

impl Settings {
    /// Loads settings: defaults, the file at `path` (or the one `RINGWAY_CONFIG` names; none of
    /// both: no file), `conf.d/*.toml` beside it in name order, then the other variables.
    ///
    /// # Errors
    /// A file that cannot be read, or everything that is wrong in all of them together.
    pub fn load(
        path: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let mut variables: Vec<_> =
            environment.filter(|(name, _)| name.starts_with(PREFIX)).collect();
        variables.sort_unstable();
        let named = variables
            .iter()
            .find(|(name, value)| name == FILE_VARIABLE && !value.is_empty())
            .map(|(_, value)| PathBuf::from(value));
        let mut layers = Layers::new();
        if let Some(path) = path.or(named.as_deref()) {
            layers.file(path)?;
            for beside in files_beside(path)? {
                layers.file(&beside)?;
            }
        }
        for (name, value) in &variables {
            layers.variable(name, value);
        }
        layers.finish()
    }
}

/// Kubernetes gives every container variables named after its services; one called `ringway` makes
/// `RINGWAY_SERVICE_HOST`, `RINGWAY_PORT`, `RINGWAY_PORT_8420_TCP_ADDR` and the like.
fn is_of_a_cluster(name: &str) -> bool {
    let given = name.starts_with("RINGWAY_SERVICE_") || name.starts_with("RINGWAY_PORT");
    given && !name.contains(SEPARATOR)
}

/// `conf.d/*.toml` beside `path`, in name order.
fn files_beside(path: &Path) -> Result<Vec<PathBuf>, SettingsError> {
    let directory = path.parent().unwrap_or(Path::new("")).join("conf.d");
    let read_error = |source| SettingsError::Read { path: directory.clone(), source };
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read_error(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(read_error)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// What has been read so far.
struct Layers {
    /// Known keys, with the default of each.
    known: Table,
    /// The defaults overlaid with every value that was accepted.
    merged: Table,
    /// Who wrote the values that are not defaults, by full key.
    origins: BTreeMap<String, Origin>,
    problems: Vec<Problem>,
}

impl Layers {
    fn new() -> Self {
        // Defaults hold nothing that TOML cannot; were it otherwise, every key would be reported
        // as unknown, and the tests would not pass.
        let known = Table::try_from(Settings::default()).unwrap_or_default();
        Self { merged: known.clone(), known, origins: BTreeMap::new(), problems: Vec::new() }
    }

    fn file(&mut self, path: &Path) -> Result<(), SettingsError> {
        let text = fs::read_to_string(path)
            .map_err(|source| SettingsError::Read { path: path.to_owned(), source })?;
        let origin_at = |offset: usize| Origin::File {
            path: path.to_owned(),
            line: 1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count(),
        };
        if let Some(offset) = too_deep_at(&text) {
            let (origin, key) = (origin_at(offset), String::new());
            self.problems.push(Problem { origin, key, message: too_deep() });
            return Ok(());
        }
        // Parsed twice: one form knows the places, the other is plain values.
        match (DeTable::parse(&text), text.parse::<Table>()) {
            (Ok(places), Ok(values)) => {
                let known = self.known.clone();
                self.table("", &known, places.get_ref(), &values, &origin_at);
            }
            (Err(error), _) | (_, Err(error)) => {
                let offset = error.span().map_or(0, |span| span.start);
                let message = error.message().replace('\n', " ");
                let origin = origin_at(offset);
                self.problems.push(Problem { origin, key: String::new(), message });
            }
        }
        Ok(())
    }

    /// Takes every key of one table. Depth is bounded by that of `known`.
    fn table(
        &mut self,
        prefix: &str,
        known: &Table,
        places: &DeTable<'_>,
        values: &Table,
        origin_at: &dyn Fn(usize) -> Origin,
    ) {
        for (name, place) in places {
            let origin = origin_at(name.span().start);
            let name: &str = name.get_ref();
            let key = joined(prefix, name);
            let Some(value) = values.get(name) else { continue };
            match (known.get(name), place.get_ref(), value) {
                (None, _, _) => {
                    let message = unknown(prefix, name, known);
                    self.problems.push(Problem { origin, key, message });
                }
                (Some(Value::Table(known)), DeValue::Table(places), Value::Table(values)) => {
                    self.table(&key, known, places, values, origin_at);
                }
                (Some(Value::Table(_)), _, _) => {
                    let message = format!("is a section: write [{key}] and its keys below");
                    self.problems.push(Problem { origin, key, message });
                }
                (Some(known), _, value) => {
                    let known = known.clone();
                    self.take(origin, key, &known, value.clone());
                }
            }
        }
    }

    fn variable(&mut self, name: &str, text: &str) {
        if COMMAND_LINE_VARIABLES.contains(&name) || is_of_a_cluster(name) {
            return;
        }
        let origin = Origin::Variable(name.to_owned());
        let path = name.strip_prefix(PREFIX).unwrap_or(name).to_ascii_lowercase();
        let parts: Vec<&str> = path.split(SEPARATOR).collect();
        let mut known = &self.known;
        let mut prefix = String::new();
        let mut parts = parts.iter().peekable();
        while let Some(part) = parts.next() {
            let key = joined(&prefix, part);
            match known.get(*part) {
                Some(Value::Table(inner)) if parts.peek().is_some() => known = inner,
                Some(leaf) if parts.peek().is_none() && !leaf.is_table() => {
                    let leaf = leaf.clone();
                    match from_text(&leaf, text) {
                        Ok(value) => self.take(origin, key, &leaf, value),
                        Err(message) => self.problems.push(Problem { origin, key, message }),
                    }
                    return;
                }
                _ => {
                    let message = format!(
                        "{} (a variable is written like \
                         RINGWAY_RUNTIME__MCP__PAGE_SIZE, two underscores between sections)",
                        unknown(&prefix, part, known)
                    );
                    self.problems.push(Problem { origin, key, message });
                    return;
                }
            }
            prefix = key;
        }
    }

    /// Takes one value, if the settings can hold it.
    fn take(&mut self, origin: Origin, key: String, known: &Value, value: Value) {
        if !known.same_type(&value) {
            let message = format!("must be {}, not {}", with_article(known), with_article(&value));
            self.problems.push(Problem { origin, key, message });
            return;
        }
        let previous = place(&mut self.merged, &key).map(|slot| std::mem::replace(slot, value));
        match Settings::deserialize(self.merged.clone()) {
            Ok(_) => {
                self.origins.insert(key, origin);
            }
            Err(error) => {
                if let (Some(slot), Some(previous)) = (place(&mut self.merged, &key), previous) {
                    *slot = previous;
                }
                let message = error.message().replace('\n', " ");
                self.problems.push(Problem { origin, key, message });
            }
        }
    }

    fn finish(mut self) -> Result<Settings, SettingsError> {
        let settings = match Settings::deserialize(self.merged.clone()) {
            Ok(settings) => settings,
            Err(error) => {
                let message = error.message().to_owned();
                let origin = Origin::Default;
                self.problems.push(Problem { origin, key: String::new(), message });
                return Err(SettingsError::Wrong(self.problems));
            }
        };
        for finding in settings.validate() {
            let origin = self.origins.get(finding.key).cloned().unwrap_or(Origin::Default);
            let key = finding.key.to_owned();
            self.problems.push(Problem { origin, key, message: finding.message });
        }
        if self.problems.is_empty() {
            Ok(settings)
        } else {
            Err(SettingsError::Wrong(self.problems))
        }
    }
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// The slot of a full key that is known to exist.
fn place<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    let (sections, name) = key.rsplit_once('.')?;
    let mut table = table;
    for section in sections.split('.') {
        table = table.get_mut(section)?.as_table_mut()?;
    }
    table.get_mut(name)
}

fn unknown(prefix: &str, name: &str, known: &Table) -> String {
    let names: Vec<&str> = known.keys().map(String::as_str).collect();
    let place = if prefix.is_empty() { "sections".to_owned() } else { format!("in [{prefix}]") };
    let known = names.join(", ");
    let guess = names
        .iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| format!(" (did you mean `{candidate}`?)"))
        .unwrap_or_default();
    format!("unknown key `{name}`{guess}; known {place}: {known}")
}

/// Edits between two names (Levenshtein), for names short enough to be a misspelling.
fn distance(left: &str, right: &str) -> usize {
    const LENGTH_MAX: usize = 64;
    if left.len() > LENGTH_MAX || right.len() > LENGTH_MAX {
        return usize::MAX;
    }
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, &from) in left.as_bytes().iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, &to) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

/// A variable's text as a value of the kind its key has.
fn from_text(known: &Value, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    match known {
        Value::Boolean(_) => match trimmed {
            "true" => Ok(Value::Boolean(true)),
            "false" => Ok(Value::Boolean(false)),
            _ => Err(format!("must be true or false, not `{text}`")),
        },
        Value::Integer(_) => trimmed
            .replace('_', "")
            .parse()
            .map(Value::Integer)
            .map_err(|_| format!("must be an integer, not `{text}`")),
        Value::Array(_) if trimmed.starts_with('[') => {
            if too_deep_at(trimmed).is_some() {
                return Err(too_deep());
            }
            match format!("list = {trimmed}").parse::<Table>() {
                Ok(mut table) => match table.remove("list") {
                    Some(list) if table.is_empty() => Ok(list),
                    _ => Err("must be one list".to_owned()),
                },
                Err(error) => Err(format!("is not a TOML list: {}", error.message())),
            }
        }
        Value::Array(_) => Ok(Value::Array(
            trimmed
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| Value::String(part.to_owned()))
                .collect(),
        )),
        _ => Ok(Value::String(text.to_owned())),
    }
}

fn too_deep() -> String {
    format!("nested deeper than {TOML_DEPTH_MAX} levels")
}

fn with_article(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a float",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

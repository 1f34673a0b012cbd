//! The documents of a description, from wherever the operator says.
//!
//! Invariants: a file leads to files below its own directory, however its links go; to the network
//! only where the operator allows it; what came from the network leads to the network alone
//! ([`Location`] has no other way). Everything is bounded before it is in memory.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use url::{Host, Url};

use super::super::{CommandError, output};
use super::Format;
use crate::{
    downstream::{FetchError, FetchRules, Fetched, Fetcher},
    import::{
        self, Archive, DOCUMENT_BYTES_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Description,
        Detected, Documents, ImportError, Location, Options, Step, detect,
    },
    rt::{self, ClientTls, CoreOptions, Resolver, WorkerPool},
    settings::{self, Network},
};

/// Longest time for all documents together.
const READ_WITHIN: Duration = Duration::from_mins(10);
/// Documents fetched at a time.
const FETCHED_TOGETHER: usize = 8;
/// How often a description may say that it misses documents: one deeper each time.
const ROUNDS_MAX: usize = DOCUMENTS_MAX;
/// How much is read in all these rounds together, in bytes: each reads what is there from its
/// beginning.
const REREAD_BYTES_MAX: usize = 2 << 30;
/// Threads that resolve names.
const RESOLVING_THREADS: usize = 2;
/// Longest text of a source that is shown, in characters.
const SHOWN_CHARACTERS_MAX: usize = 200;
/// How much of a file tells what it is.
const HEAD_BYTES: u64 = 64 << 10;

/// A description that was found, with what it may lead to.
#[derive(Debug)]
pub(in crate::cli) struct Source {
    root: Location,
    files: Files,
}

#[derive(Debug)]
enum Files {
    /// Of a directory, by its path without links.
    Directory(PathBuf),
    Archive(Box<Archive>),
    None,
}

/// A location, and what came from there or why nothing did.
type Asked = (Location, Result<Fetched, String>);

/// What a source is, as far as it is known before all of it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Kind {
    /// A description of an API.
    Description,
    /// Something else: a catalog file, most likely.
    Other,
}

/// A source as an error or a log names it: without what a URL might carry.
pub(in crate::cli) fn shown(source: &str) -> String {
    let text = source.split(['?', '#']).next().unwrap_or(source);
    let text = if is_url(source) { text } else { source };
    output::tame(&text.chars().take(SHOWN_CHARACTERS_MAX).collect::<String>())
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// Whether the host of a URL is an address itself: where a name leads is up to somebody else.
fn is_address(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.trim_end_matches('.') == "localhost",
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    }
}

fn usage(error: impl ToString) -> CommandError {
    CommandError::Usage(error.to_string())
}

impl Source {
    /// Finds the description: `root` names it where the source has several files.
    pub(in crate::cli) fn open(text: &str, root: Option<&str>) -> Result<Self, CommandError> {
        if is_url(text) {
            let root = Location::parse(text).map_err(usage)?;
            return Ok(Self { root, files: Files::None });
        }
        if text.contains("://") {
            return Err(usage(format!("{}: only http and https URLs are read", shown(text))));
        }
        let path = Path::new(text);
        let failed = |source| CommandError::File { path: path.to_owned(), source };
        let real = path.canonicalize().map_err(failed)?;
        if real.is_dir() {
            let files = Files::Directory(real.clone());
            let paths = candidates(&real).map_err(failed)?;
            return Self { root: chosen(text, root, &paths, |at| head(&real.join(at)))?, files }
                .checked(text);
        }
        let name = real.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| usage(format!("{}: its name is no text", shown(text))))?;
        let first = head(&real).map_err(failed)?;
        if detect(&first) == Some(Detected::Zip) {
            let bytes = read_file(&real, DOCUMENTS_BYTES_MAX as u64).map_err(failed)?;
            let mut archive = Archive::open(&shown(text), bytes).map_err(usage)?;
            let locations: Vec<Location> = archive.locations().cloned().collect();
            let paths: Vec<String> = locations.iter().map(ToString::to_string).collect();
            let read = |at: &str| {
                let location = Location::bundle(at).map_err(io::Error::other)?;
                archive.read(&location).map_err(io::Error::other)
            };
            let root = chosen(text, root, &paths, read)?;
            return Ok(Self { root, files: Files::Archive(Box::new(archive)) });
        }
        let directory = real.parent().unwrap_or(Path::new("/")).to_owned();
        let root = Location::bundle(name).map_err(usage)?;
        Ok(Self { root, files: Files::Directory(directory) })
    }

    fn checked(self, text: &str) -> Result<Self, CommandError> {
        let Files::Directory(directory) = &self.files else { return Ok(self) };
        match open_below(directory, &self.root) {
            Ok(_) => Ok(self),
            Err(reason) => Err(usage(format!("{}: {}: {reason}", shown(text), self.root))),
        }
    }

    /// Where the description is, where that is on the network.
    pub(in crate::cli) fn url(&self) -> Option<&Location> {
        Some(&self.root).filter(|root| root.is_remote())
    }

    fn read_file(&mut self, location: &Location) -> Result<Vec<u8>, String> {
        match &mut self.files {
            Files::Directory(directory) => {
                let path = open_below(directory, location)?;
                read_file(&path, DOCUMENT_BYTES_MAX as u64).map_err(|error| error.to_string())
            }
            Files::Archive(archive) => archive.read(location),
            Files::None => Err("it is no URL".to_owned()),
        }
    }
}

/// The path of a document, which is below the directory however its links go.
fn open_below(directory: &Path, location: &Location) -> Result<PathBuf, String> {
    let below = location.bundle_path().ok_or("its name is no text")?;
    let is_plain = below.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !is_plain || below.contains('\0') {
        return Err("it leads out of the directory".to_owned());
    }
    let real = directory.join(below).canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(directory) {
        return Err("it leads out of the directory".to_owned());
    }
    Ok(real)
}

fn open(path: &Path) -> io::Result<fs::File> {
    // Opening a pipe waits for somebody to write to it, and a device would be read for ever. What
    // was followed has been followed.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a file")) }
}

fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("larger than {bytes_max} bytes")));
    }
    Ok(bytes)
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(HEAD_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files right in a directory that may be a description.
fn candidates(directory: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)?.take(DOCUMENTS_MAX + 1) {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if entry.path().is_file() && !name.starts_with('.') {
            paths.push(name);
        }
    }
    paths.sort();
    Ok(paths)
}

/// The file that is the description: the one named, else the only one that looks like one, those
/// nearest to the top first.
fn chosen(
    text: &str,
    root: Option<&str>,
    paths: &[String],
    mut head: impl FnMut(&str) -> io::Result<Vec<u8>>,
) -> Result<Location, CommandError> {
    if let Some(root) = root {
        return Location::bundle(root).map_err(usage);
    }
    let is_document = |path: &&String| {
        let extension = Path::new(path.as_str()).extension().and_then(|one| one.to_str());
        matches!(extension, Some("json" | "yaml" | "yml" | "wsdl" | "xml"))
    };
    let depth = |path: &str| path.matches('/').count();
    let documents: Vec<&String> = paths.iter().filter(is_document).collect();
    let depths: BTreeSet<usize> = documents.iter().map(|path| depth(path)).collect();
    for level in depths {
        let of_level = documents.iter().filter(|path| depth(path) == level);
        let found: Vec<&str> = of_level
            .map(|path| path.as_str())
            .filter(|path| {
                head(path).is_ok_and(|bytes| {
                    matches!(detect(&bytes), Some(Detected::OpenApi | Detected::Wsdl))
                })
            })
            .collect();
        match found.as_slice() {
            [] => {}
            [only] => return Location::bundle(only).map_err(usage),
            several => {
                let several = output::tame(&several.join(", "));
                return Err(usage(format!(
                    "{} has several descriptions: name one with --root: {several}",
                    shown(text)
                )));
            }
        }
    }
    Err(usage(format!("{} has no description of an API in it", shown(text))))
}

/// How a source is read.
#[derive(Debug)]
pub(in crate::cli) struct Reading<'a> {
    /// What its first document looks like, where absent.
    pub(in crate::cli) format: Option<Format>,
    pub(in crate::cli) options: Options,
    pub(in crate::cli) allow_remote: bool,
    /// Whether the host of the source may be anywhere, although it is a name.
    pub(in crate::cli) allow_private: bool,
    /// For whom.
    pub(in crate::cli) tenant: &'a str,
    /// Networks that are not public and may be reached.
    pub(in crate::cli) allowances: Vec<Network>,
    pub(in crate::cli) settings: &'a settings::Downstream,
}

impl Reading<'_> {
    /// Reads the description, document by document.
    pub(in crate::cli) fn read(&self, source: Source) -> Result<Description, CommandError> {
        self.read_within(source, REREAD_BYTES_MAX)
    }

    fn read_within(
        &self,
        mut source: Source,
        reread_bytes_max: usize,
    ) -> Result<Description, CommandError> {
        let until = Instant::now() + READ_WITHIN;
        let mut documents = Documents::new();
        let root = source.root.clone();
        self.add(&mut source, &mut documents, vec![root], until)?;
        if let Some(reason) = documents.why_missing(&source.root) {
            return Err(usage(ImportError::missing(&source.root, reason)));
        }
        let seems = documents.get(&source.root).and_then(detect).and_then(Format::of);
        let format = match (self.format, seems) {
            (Some(format), Some(other)) if format != other => {
                return Err(usage(ImportError::unusable(
                    &source.root,
                    format!("it is another kind of description: say `import {}`", other.word()),
                )));
            }
            (Some(format), _) | (None, Some(format)) => format,
            (None, None) => {
                let reason = "it is no OpenAPI, Swagger or WSDL document";
                return Err(usage(ImportError::unusable(&source.root, reason)));
            }
        };
        let read = match format {
            Format::Openapi => import::openapi::read,
            Format::Wsdl => import::wsdl::read,
        };
        let mut reread: usize = 0;
        for _ in 0..ROUNDS_MAX {
            reread = reread.saturating_add(documents.bytes());
            if reread > reread_bytes_max || Instant::now() > until {
                let reason =
                    "its documents lead to each other in too long a row; put them together";
                return Err(usage(ImportError::unusable(&source.root, reason)));
            }
            match read(&documents, &source.root, &self.options).map_err(usage)? {
                Step::Done(description) => return Ok(description),
                Step::Need(missing) => {
                    let known = documents.len();
                    self.add(&mut source, &mut documents, missing, until)?;
                    if documents.len() == known {
                        break;
                    }
                }
            }
        }
        Err(usage(ImportError::unusable(&source.root, "its documents never come to an end")))
    }

    /// Adds documents, or why they cannot be had: what needs one of those is skipped, not all.
    fn add(
        &self,
        source: &mut Source,
        documents: &mut Documents,
        wanted: Vec<Location>,
        until: Instant,
    ) -> Result<(), CommandError> {
        let (remote, local): (Vec<_>, Vec<_>) = wanted.into_iter().partition(Location::is_remote);
        for location in local {
            match source.read_file(&location) {
                Ok(bytes) => documents.add(&location, bytes),
                Err(reason) => documents.refuse(&location, reason),
            }
            .map_err(usage)?;
        }
        if !(source.root.is_remote() || self.allow_remote) {
            for location in &remote {
                let reason = "it is on the network: --allow-remote lets a file refer to it";
                documents.refuse(location, reason.to_owned()).map_err(usage)?;
            }
            return Ok(());
        }
        for some in remote.chunks(FETCHED_TOGETHER) {
            if Instant::now() > until {
                return Err(usage(format!("no end within {} s", READ_WITHIN.as_secs())));
            }
            for (location, fetched) in self.fetch(source, some)? {
                let added = match fetched {
                    Ok(Fetched { url, bytes }) => {
                        let base = Location::parse(&url).map_err(usage)?;
                        documents.add_from(&location, base, bytes)
                    }
                    Err(reason) => documents.refuse(&location, reason),
                };
                added.map_err(usage)?;
            }
        }
        Ok(())
    }

    fn fetch(&self, source: &Source, some: &[Location]) -> Result<Vec<Asked>, CommandError> {
        let mut rules = FetchRules::new(self.tenant, self.settings, DOCUMENT_BYTES_MAX);
        rules.allowed.clone_from(&self.allowances);
        let named = source.url().and_then(|url| Url::parse(url.as_str()).ok());
        let is_name = named.as_ref().is_some_and(|url| !is_address(url));
        rules.named = named.filter(|url| self.allow_private || is_address(url));
        rt::install_crypto_provider();
        // Where no https server can be verified, plain http still works.
        let tls = ClientTls::new(&self.settings.extra_roots).ok();
        let started = WorkerPool::start(RESOLVING_THREADS, FETCHED_TOGETHER * 2);
        let workers = started.map_err(usage)?;
        let fetcher = Fetcher::new(rules, Resolver::new(workers.clone()), tls);
        let fetching = async {
            let mut fetched = Vec::with_capacity(some.len());
            for location in some {
                let document = fetcher.fetch(location.as_str()).await;
                let is_root = *location == source.root;
                fetched.push((
                    location.clone(),
                    document.map_err(|error| match error {
                        FetchError::Refused { .. } if is_root && is_name => {
                            format!("{error}; or name it for this import with --allow-private")
                        }
                        error => error.to_string(),
                    }),
                ));
            }
            fetched
        };
        let fetched = rt::run_once(CoreOptions::default(), fetching).map_err(usage);
        workers.stop();
        fetched
    }
}

/// What a source is, from its beginning; a directory or archive by what is in it.
pub(in crate::cli) fn kind_of(text: &str) -> Result<Kind, CommandError> {
    if is_url(text) {
        return Ok(Kind::Description);
    }
    let path = Path::new(text);
    let failed = |source| CommandError::File { path: path.to_owned(), source };
    let of = |bytes: &[u8]| match detect(bytes) {
        Some(Detected::OpenApi | Detected::Wsdl) => Kind::Description,
        _ => Kind::Other,
    };
    let real = path.canonicalize().map_err(failed)?;
    let is_bundle = real.is_dir() || detect(&head(&real).map_err(failed)?) == Some(Detected::Zip);
    if !is_bundle {
        return Ok(of(&head(&real).map_err(failed)?));
    }
    // A directory without a description may be one of catalog files.
    let Ok(mut source) = Source::open(text, None) else { return Ok(Kind::Other) };
    let root = source.root.clone();
    Ok(source.read_file(&root).map_or(Kind::Other, |bytes| of(&bytes)))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;

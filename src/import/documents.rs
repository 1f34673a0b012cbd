//! The documents an import reads, and where each is.

use std::collections::HashMap;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::ImportError;

/// Most documents of one import.
pub const DOCUMENTS_MAX: usize = 2_000;
/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;
/// Largest size of all documents of one import together, in bytes.
pub const DOCUMENTS_BYTES_MAX: usize = 256 << 20;
/// Longest location, in bytes.
pub const LOCATION_BYTES_MAX: usize = 8 << 10;

/// The scheme of what is inside a bundle: a directory, an archive, or the file that was named.
const BUNDLE: &str = "bundle";
/// What stands for something else in a URL's path.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'\\');

/// Where a document is: an `http` or `https` URL, or a path inside the bundle as `bundle:/a/b.yaml`.
/// Without a fragment, which is no part of where a document is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(Url);

impl Location {
    /// Reads an absolute location; a fragment is dropped.
    ///
    /// # Errors
    /// When it is none, or none that an import reads.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        check_length(text)?;
        let url =
            Url::parse(text).map_err(|error| ImportError::location(text, error.to_string()))?;
        Self::checked(url, text)
    }

    /// A path inside the bundle; `/` separates its parts, and it need not start with one.
    ///
    /// # Errors
    /// When it is too long, or leads out of the bundle.
    pub fn bundle(path: &str) -> Result<Self, ImportError> {
        check_length(path)?;
        if path.split('/').any(|part| part == "..") {
            return Err(ImportError::location(path, "it leads out of the bundle"));
        }
        let encoded = utf8_percent_encode(path.trim_start_matches('/'), PATH);
        Self::parse(&format!("{BUNDLE}:/{encoded}"))
    }

    /// Where `reference`, which stands in the document at this location, leads to (RFC 3986
    /// section 5.2); a fragment is dropped.
    ///
    /// # Errors
    /// When it leads nowhere, or where no document of this location may lead: from the network to a
    /// file.
    pub fn join(&self, reference: &str) -> Result<Self, ImportError> {
        check_length(reference)?;
        let reason = |error: url::ParseError| ImportError::location(reference, error.to_string());
        let joined = Self::checked(self.0.join(reference).map_err(reason)?, reference)?;
        if self.is_remote() && !joined.is_remote() {
            let reason = "a document from the network leads to the network only";
            return Err(ImportError::location(reference, reason));
        }
        Ok(joined)
    }

    fn checked(mut url: Url, text: &str) -> Result<Self, ImportError> {
        let refused = |reason: &str| Err(ImportError::location(text, reason));
        if !matches!(url.scheme(), "http" | "https" | BUNDLE) {
            return refused("only http and https URLs and files of the bundle are read");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("a user or password in a URL is not taken");
        }
        if url.scheme() == BUNDLE && (url.cannot_be_a_base() || url.has_host()) {
            return refused("a file of the bundle is written as bundle:/path");
        }
        url.set_fragment(None);
        if url.scheme() == BUNDLE {
            url.set_query(None);
        }
        check_length(url.as_str())?;
        Ok(Self(url))
    }

    /// As text, percent-encoded.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is on the network.
    pub fn is_remote(&self) -> bool {
        self.0.scheme() != BUNDLE
    }

    /// The path inside the bundle without a `/` in front, decoded; `None` where the location is on
    /// the network or the path is no text.
    pub fn bundle_path(&self) -> Option<String> {
        if self.is_remote() {
            return None;
        }
        let path = self.0.path().trim_start_matches('/');
        percent_decode_str(path).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    }
}

fn check_length(text: &str) -> Result<(), ImportError> {
    if text.len() > LOCATION_BYTES_MAX {
        let reason = format!("it is longer than {LOCATION_BYTES_MAX} bytes");
        return Err(ImportError::location(text, reason));
    }
    Ok(())
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bundle_path() {
            Some(path) => formatter.write_str(&path),
            None => formatter.write_str(self.as_str()),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

/// The documents of one import. Each is there with its bytes, or it is known why it is not.
#[derive(Default)]
pub struct Documents {
    found: HashMap<Location, Found>,
    bytes: usize,
}

struct Found {
    /// What the document's own references are relative to, where it is another location.
    base: Option<Location>,
    content: Result<Vec<u8>, String>,
}

impl Documents {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a document.
    ///
    /// # Errors
    /// When there would be too many, or too large ones.
    pub fn add(&mut self, location: &Location, bytes: Vec<u8>) -> Result<(), ImportError> {
        self.insert(location, None, Ok(bytes))
    }

    /// Adds a document that was asked for at `location` and came from `base`, after redirects: its
    /// references are relative to `base` (RFC 3986 section 5.1.3).
    ///
    /// # Errors
    /// As [`Documents::add`].
    pub fn add_from(
        &mut self,
        location: &Location,
        base: Location,
        bytes: Vec<u8>,
    ) -> Result<(), ImportError> {
        self.insert(location, Some(base), Ok(bytes))
    }

    /// Says why the document at `location` cannot be had: what needs it is skipped.
    ///
    /// # Errors
    /// When there would be too many.
    pub fn refuse(&mut self, location: &Location, reason: String) -> Result<(), ImportError> {
        self.insert(location, None, Err(reason))
    }

    fn insert(
        &mut self,
        location: &Location,
        base: Option<Location>,
        content: Result<Vec<u8>, String>,
    ) -> Result<(), ImportError> {
        let size = content.as_ref().map_or(0, Vec::len);
        if size > DOCUMENT_BYTES_MAX {
            return Err(ImportError::DocumentTooLarge { location: location.to_string() });
        }
        let replaced = self.found.get(location).map(Found::size);
        if replaced.is_none() && self.found.len() >= DOCUMENTS_MAX {
            return Err(ImportError::TooManyDocuments);
        }
        let bytes = self.bytes - replaced.unwrap_or_default() + size;
        if bytes > DOCUMENTS_BYTES_MAX {
            return Err(ImportError::DocumentsTooLarge);
        }
        self.bytes = bytes;
        self.found.insert(location.clone(), Found { base, content });
        Ok(())
    }

    /// The document's bytes, where it is there.
    pub fn get(&self, location: &Location) -> Option<&[u8]> {
        self.found.get(location)?.content.as_deref().ok()
    }

    /// Why the document cannot be had, where it was asked for in vain. A location that has neither
    /// bytes nor a reason is to be asked for.
    pub fn why_missing(&self, location: &Location) -> Option<&str> {
        self.found.get(location)?.content.as_ref().err().map(String::as_str)
    }

    /// What references in the document at `location` are relative to.
    pub fn base<'a>(&'a self, location: &'a Location) -> &'a Location {
        self.found.get(location).and_then(|found| found.base.as_ref()).unwrap_or(location)
    }

    /// How large all of them are together.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many were asked for.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl Found {
    fn size(&self) -> usize {
        self.content.as_ref().map_or(0, Vec::len)
    }
}

impl fmt::Debug for Documents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Documents")
            .field("count", &self.found.len())
            .field("bytes", &self.bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_joined_as_rfc_3986_says_and_stay_where_they_may() {
        let join = |base: &str, reference: &str| {
            let joined = Location::parse(base).unwrap().join(reference);
            joined.map(|location| location.as_str().to_owned()).map_err(|error| error.to_string())
        };
        for (base, reference, expected) in [
            ("bundle:/a/b.yaml", "c.yaml", "bundle:/a/c.yaml"),
            ("bundle:/a/b.yaml", "./c.yaml#/x", "bundle:/a/c.yaml"),
            ("bundle:/a/b.yaml", "../c.yaml", "bundle:/c.yaml"),
            ("bundle:/a/b.yaml", "../../../c.yaml", "bundle:/c.yaml"),
            ("bundle:/a/b.yaml", "/c.yaml", "bundle:/c.yaml"),
            ("bundle:/a/b.yaml", "#/x", "bundle:/a/b.yaml"),
            ("bundle:/a/b.yaml", "c.yaml?x", "bundle:/a/c.yaml"),
            ("bundle:/a/b.yaml", "https://x.test/c", "https://x.test/c"),
            ("https://x.test/a/b", "c?d=1#e", "https://x.test/a/c?d=1"),
            ("https://x.test/a/b", "//y.test/c", "https://y.test/c"),
            ("https://x.test/a/b", "http://y.test/c", "http://y.test/c"),
        ] {
            assert_eq!(join(base, reference).unwrap(), expected, "{base} {reference}");
        }
        for (base, reference) in [
            ("https://x.test/a", "bundle:/etc/passwd"),
            ("https://x.test/a", "file:///etc/passwd"),
            ("bundle:/a", "file:///etc/passwd"),
            ("bundle:/a", "//host/x"),
            ("bundle:/a", "bundle:opaque"),
            ("bundle:/a", "data:text/plain,x"),
            ("https://x.test/a", "https://user:secret@x.test/"),
            ("https://x.test/a", "https://["),
        ] {
            assert!(join(base, reference).is_err(), "{base} {reference}");
        }
        let long = "x".repeat(LOCATION_BYTES_MAX + 1);
        assert!(join("bundle:/a", &long).unwrap_err().len() < 400);
    }

    #[test]
    fn paths_of_a_bundle_come_back_as_they_went_in() {
        for path in ["a.yaml", "a b/größe#1?.xsd", "100%/x", "a\\b", "x/%2e%2e/y"] {
            let location = Location::bundle(path).unwrap();
            assert_eq!(location.bundle_path().as_deref(), Some(path), "{location:?}");
            assert_eq!(location.to_string(), path);
            assert_eq!(Location::parse(location.as_str()).unwrap(), location);
        }
        assert!(Location::bundle("../a").is_err() && Location::bundle("a/../b").is_err());
        assert_eq!(Location::bundle("/a").unwrap(), Location::bundle("a").unwrap());
        assert_eq!(Location::parse("https://x.test/a").unwrap().bundle_path(), None);
    }

    #[test]
    fn documents_are_there_or_known_to_be_missing() {
        let mut documents = Documents::new();
        let at = |path: &str| Location::bundle(path).unwrap();
        documents.add(&at("a"), b"one".to_vec()).unwrap();
        documents.refuse(&at("b"), "gone".to_owned()).unwrap();
        let base = Location::parse("https://x.test/v2/c").unwrap();
        documents.add_from(&at("c"), base.clone(), b"three".to_vec()).unwrap();
        assert_eq!(documents.get(&at("a")), Some(b"one".as_slice()));
        assert_eq!(
            (documents.get(&at("b")), documents.why_missing(&at("b"))),
            (None, Some("gone"))
        );
        assert_eq!((documents.get(&at("d")), documents.why_missing(&at("d"))), (None, None));
        assert_eq!((documents.base(&at("a")), documents.base(&at("c"))), (&at("a"), &base));
        documents.add(&at("a"), b"longer".to_vec()).unwrap();
        assert_eq!((documents.len(), documents.bytes), (3, 11));
    }

    #[test]
    fn documents_are_bounded() {
        let mut documents = Documents::new();
        let at = |path: &str| Location::bundle(path).unwrap();
        let large = documents.add(&at("large"), vec![0; DOCUMENT_BYTES_MAX + 1]);
        assert!(matches!(large, Err(ImportError::DocumentTooLarge { .. })));
        for place in 0..DOCUMENTS_MAX {
            documents.refuse(&at(&place.to_string()), String::new()).unwrap();
        }
        assert_eq!(documents.add(&at("more"), Vec::new()), Err(ImportError::TooManyDocuments));
        documents.add(&at("0"), vec![0; DOCUMENT_BYTES_MAX]).unwrap();
        documents.bytes = DOCUMENTS_BYTES_MAX;
        assert_eq!(documents.add(&at("1"), vec![0]), Err(ImportError::DocumentsTooLarge));
    }
}

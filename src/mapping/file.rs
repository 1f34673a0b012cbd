//! Files among the arguments: what a client writes for one, and what is sent of it.
//!
//! A file is `{"filename": …, "contentType": …, "base64": …}`, of which only the bytes must be there,
//! or a text: the URI of a resource that the runtime holds, or a `data:` URI for clients whose models
//! are shown texts only. Base64 of either alphabet is taken, with padding or without; line ends in
//! it are passed over. Everything is checked before anything is sent.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value, json};

use super::media::is_media_type;
use crate::http::multipart::parameter;
use crate::json::{Kind, Raw};

/// The largest file that is sent, in bytes.
pub const FILE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many files of one call may be resources.
pub const RESOURCES_MAX: usize = 32;
/// Longest name of a file, in bytes.
const FILENAME_BYTES_MAX: usize = 255;
/// Longest URI of a resource, in bytes.
const URI_BYTES_MAX: usize = 2_048;

/// What holds anything.
pub(super) const OCTETS: &str = "application/octet-stream";

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, ANY_PADDING);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, ANY_PADDING);

const NO_BASE64: &str = "is not base64 of the file's bytes";
const TOO_LARGE: &str = "is larger than the 32 MiB that are sent";

/// A resource that a file of a call stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUse {
    /// The field, by its exposed name: `photos[1]`.
    pub field: String,
    /// What the client wrote.
    pub uri: String,
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What they are.
    pub content_type: Option<Box<str>>,
    /// What the file is to be called.
    pub filename: Option<Box<str>>,
}

/// The resources of one call, by URI.
#[derive(Debug, Default)]
pub struct Resources(Vec<(String, Resource)>);

impl Resources {
    /// None at all.
    pub const NONE: Self = Self(Vec::new());

    /// Adds one.
    pub fn add(&mut self, uri: String, resource: Resource) {
        self.0.push((uri, resource));
    }

    fn get(&self, uri: &str) -> Option<&Resource> {
        self.0.iter().find(|(known, _)| known == uri).map(|(_, resource)| resource)
    }
}

/// A file as a client wrote it.
#[derive(Debug)]
pub(super) struct FileValue<'a> {
    pub(super) filename: Option<Cow<'a, str>>,
    pub(super) content_type: Option<Cow<'a, str>>,
    content: Content<'a>,
}

#[derive(Debug)]
enum Content<'a> {
    Base64(Cow<'a, str>),
    Resource(Cow<'a, str>),
}

impl<'a> FileValue<'a> {
    /// `None` for what the schema of a file does not take.
    pub(super) fn read(raw: Raw<'a>) -> Option<Self> {
        let member = |name: &str| raw.get(name)?.as_str();
        match raw.kind() {
            Kind::Object => Some(Self {
                filename: member("filename"),
                content_type: member("contentType"),
                content: Content::Base64(member("base64")?),
            }),
            Kind::String => {
                let uri = raw.as_str()?;
                let is_data =
                    uri.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
                if is_data { Self::of_data_uri(&uri) } else { Some(Self::of_resource(uri)) }
            }
            _ => None,
        }
    }

    fn of_resource(uri: Cow<'a, str>) -> Self {
        Self { filename: None, content_type: None, content: Content::Resource(uri) }
    }

    /// RFC 2397: `data:image/png;base64,…`.
    fn of_data_uri(uri: &str) -> Option<Self> {
        let (media, data) = uri.get(5..)?.split_once(',')?;
        let at = media.len().checked_sub(";base64".len())?;
        let (media, marker) = (media.get(..at)?, media.get(at..)?);
        let content_type = (!media.is_empty()).then(|| Cow::Owned(media.to_owned()));
        let filename = parameter(media, "name").map(|name| Cow::Owned(name.into_owned()));
        let content = Content::Base64(Cow::Owned(data.to_owned()));
        marker.eq_ignore_ascii_case(";base64").then_some(Self { filename, content_type, content })
    }

    /// What keeps it from being sent; `None` when nothing does.
    fn problem(&self) -> Option<&'static str> {
        if self.filename.as_ref().is_some_and(|name| name.len() > FILENAME_BYTES_MAX) {
            return Some("has a filename of more than 255 bytes");
        }
        if self.content_type.as_ref().is_some_and(|given| !is_media_type(given)) {
            return Some("has a contentType that is no media type, such as \"image/png\"");
        }
        match &self.content {
            Content::Resource(uri) if uri.is_empty() || uri.len() > URI_BYTES_MAX => {
                Some("is neither a file nor the URI of a resource")
            }
            Content::Resource(_) => None,
            Content::Base64(text) if text.len() / 4 * 3 > FILE_BYTES_MAX => Some(TOO_LARGE),
            Content::Base64(text) => decoded(text).is_none().then_some(NO_BASE64),
        }
    }

    /// The URI of the resource that it is.
    pub(super) fn resource(&self) -> Option<&str> {
        match &self.content {
            Content::Resource(uri) => Some(uri),
            Content::Base64(_) => None,
        }
    }

    /// Completes it from the resource that it is, and gives its bytes. It was checked; a resource
    /// that is not there is empty.
    pub(super) fn bytes<'r>(&mut self, resources: &'r Resources) -> Cow<'r, [u8]>
    where
        'r: 'a,
    {
        match &self.content {
            Content::Base64(text) => Cow::Owned(decoded(text).unwrap_or_default()),
            Content::Resource(uri) => {
                let Some(resource) = resources.get(uri) else { return Cow::Borrowed(&[]) };
                self.content_type = resource.content_type.as_deref().map(Cow::Borrowed);
                self.filename = resource.filename.as_deref().map(Cow::Borrowed);
                Cow::Borrowed(&resource.bytes)
            }
        }
    }
}

/// What is wrong with the value of a field of files; `None` when nothing is.
pub(super) fn problem(raw: Raw<'_>) -> Option<&'static str> {
    match FileValue::read(raw) {
        Some(file) => file.problem(),
        None => Some("is no file: a data: URI has to end with \";base64,\" and the file's bytes"),
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let is_blank = |byte: u8| matches!(byte, b'\r' | b'\n' | b' ');
    let text = if text.bytes().any(is_blank) {
        Cow::Owned(text.bytes().filter(|byte| !is_blank(*byte)).collect())
    } else {
        Cow::Borrowed(text.as_bytes())
    };
    let engine =
        if text.iter().any(|byte| matches!(byte, b'-' | b'_')) { URL_SAFE } else { STANDARD };
    engine.decode(text).ok()
}

/// What clients are shown of a file.
pub(super) fn schema() -> Map<String, Value> {
    let schema = json!({"anyOf": [
        {
            "type": "object",
            "description": "A file by its bytes.",
            "properties": {
                "filename": {"type": "string", "description": "What the file is called."},
                "contentType": {
                    "type": "string",
                    "description": "What it holds, such as image/png.",
                },
                "base64": {
                    "type": "string",
                    "contentEncoding": "base64",
                    "description": "Its bytes in base64.",
                },
            },
            "required": ["base64"],
            "additionalProperties": false,
        },
        {
            "type": "string",
            "description": "A file by the URI of a resource of this server, or by its bytes as \
                            data:image/png;base64,…",
        },
    ]});
    if let Value::Object(words) = schema { words } else { Map::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::guard;

    fn bytes(text: &str) -> Result<Vec<u8>, &'static str> {
        let raw = guard(text.as_bytes()).unwrap().root();
        if let Some(problem) = problem(raw) {
            return Err(problem);
        }
        let none = Resources::NONE;
        Ok(FileValue::read(raw).unwrap().bytes(&none).into_owned())
    }

    #[test]
    fn bytes_are_taken_in_every_spelling() {
        for (text, expected) in [
            (r#"{"base64":""}"#, &b""[..]),
            (r#"{"base64":"+/8="}"#, b"\xfb\xff"),
            (r#"{"base64":"+/8"}"#, b"\xfb\xff"),
            (r#"{"base64":"-_8="}"#, b"\xfb\xff"),
            (r#"{"base64":"aGV\r\nsbG8=\n"}"#, b"hello"),
            (r#"{"base64":"aGVsbG8=","filename":"a.txt","contentType":"text/plain"}"#, b"hello"),
            (r#""data:text/plain;base64,aGVsbG8=""#, b"hello"),
            (r#""DATA:;BASE64,aGVsbG8=""#, b"hello"),
        ] {
            assert_eq!(bytes(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_file_is_told_before_anything_is_sent() {
        let long = format!(r#"{{"base64":"","filename":"{}"}}"#, "x".repeat(256));
        for (text, expected) in [
            (r#"{"base64":"a"}"#, NO_BASE64),
            (r#"{"base64":"a=b="}"#, NO_BASE64),
            (r#"{"base64":"aGVs!"}"#, NO_BASE64),
            (r#"{"base64":"+_8="}"#, NO_BASE64),
            (r#"{"base64":"é"}"#, NO_BASE64),
            (r#""data:text/plain,hello""#, "is no file: a data: URI"),
            (r#""data:""#, "is no file: a data: URI"),
            (r#""data:x;base64,é""#, "has a contentType"),
            (r#"{"base64":"","contentType":"image"}"#, "has a contentType"),
            (r#"{"base64":"","contentType":"a/b\r\nX: 1"}"#, "has a contentType"),
            (&long, "has a filename"),
            (r#""""#, "is neither a file"),
        ] {
            let problem = bytes(text).unwrap_err();
            assert!(problem.starts_with(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn a_resource_completes_the_file_that_it_is() {
        let raw = guard(br#""runtime://results/x""#).unwrap().root();
        let mut resources = Resources::default();
        let content_type = Some("application/json".into());
        let resource = Resource { bytes: b"[1]".to_vec(), content_type, filename: None };
        resources.add("runtime://results/x".to_owned(), resource);
        let mut file = FileValue::read(raw).unwrap();
        assert_eq!(file.resource(), Some("runtime://results/x"));
        assert_eq!(&*file.bytes(&resources), b"[1]");
        assert_eq!(file.content_type.as_deref(), Some("application/json"));
    }
}

//! Media types, as far as bodies need them.

use crate::http::is_token_byte;
use crate::http::multipart::parameter;

/// Whether it is one media type with its parameters (RFC 9110 section 8.3.1), in visible characters.
pub(super) fn is_media_type(text: &str) -> bool {
    let is_shown = text.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    let essence = essence(text);
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_token_byte);
    is_shown
        && !essence.contains('*')
        && essence.split_once('/').is_some_and(|(group, kind)| is_token(group) && is_token(kind))
}

/// The type without its parameters.
pub(super) fn essence(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

/// `application/json`, and what says that it is JSON as well.
pub(super) fn is_json(text: &str) -> bool {
    let essence = essence(text).to_ascii_lowercase();
    essence.split_once('/').is_some_and(|(_, kind)| kind == "json" || kind.ends_with("+json"))
}

/// `application/xml`, and what says that it is XML as well.
pub(super) fn is_xml(text: &str) -> bool {
    let essence = essence(text).to_ascii_lowercase();
    essence.split_once('/').is_some_and(|(_, kind)| kind == "xml" || kind.ends_with("+xml"))
}

/// A type of text with its charset: what is sent is always UTF-8.
pub(super) fn with_charset(text: &str) -> String {
    let is_text = essence(text).to_ascii_lowercase().starts_with("text/");
    if is_text && parameter(text, "charset").is_none() {
        format!("{text}; charset=utf-8")
    } else {
        text.to_owned()
    }
}

/// The first of a list that is one type and no range: `image/png` of `image/*, image/png`.
pub(super) fn first_of(list: &str) -> Option<&str> {
    list.split(',').map(str::trim).find(|one| is_media_type(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_told() {
        for text in ["a/b", "image/png", "text/plain; charset=\"utf-8\"", "application/vnd.x+json"]
        {
            assert!(is_media_type(text), "{text}");
        }
        for text in ["", "a", "a/", "/b", "a/*", "*/*", "a/b\r\nX: 1", "é/b", "a b/c", "a/b, c/d"]
        {
            assert!(!is_media_type(text), "{text}");
        }
        for text in ["application/json", "Application/Problem+JSON; a=b", "text/json"] {
            assert!(is_json(text), "{text}");
        }
        for text in ["application/jsonx", "application/xml", "json", "text/plain; a=/json"] {
            assert!(!is_json(text), "{text}");
        }
        for text in ["application/xml", "text/XML; charset=utf-8", "application/atom+xml"] {
            assert!(is_xml(text), "{text}");
        }
        for text in ["application/xmlx", "xml", "text/html", "text/plain; a=/xml"] {
            assert!(!is_xml(text), "{text}");
        }
        assert_eq!(with_charset("text/csv"), "text/csv; charset=utf-8");
        assert_eq!(with_charset("text/csv;charset=x"), "text/csv;charset=x");
        assert_eq!(with_charset("application/xml"), "application/xml");
        assert_eq!(first_of("image/*, image/png"), Some("image/png"));
        assert_eq!(first_of("image/*"), None);
    }
}

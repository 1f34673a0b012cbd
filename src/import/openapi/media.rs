//! Media types, as far as they say how a body is written.

pub(super) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) fn is_xml(essence: &str) -> bool {
    matches!(essence, "application/xml" | "text/xml") || essence.ends_with("+xml")
}

/// XML for the data of an API; what is `message/imdn+xml` has a form of its own.
pub(super) fn is_data(essence: &str) -> bool {
    is_xml(essence) && (essence.starts_with("application/") || essence.starts_with("text/"))
}

/// Types whose bytes have no members.
pub(super) fn is_opaque(essence: &str) -> bool {
    let group = essence.split('/').next().unwrap_or_default();
    matches!(group, "image" | "audio" | "video" | "font")
        || matches!(
            essence,
            "application/octet-stream" | "application/pdf" | "application/zip" | "application/gzip"
        )
}

pub(super) fn is_text(essence: &str) -> bool {
    const TEXTS: [&str; 9] = [
        "application/yaml",
        "application/x-yaml",
        "application/graphql",
        "application/javascript",
        "application/sql",
        "application/x-ndjson",
        "application/jsonl",
        "application/jwt",
        "application/json-seq",
    ];
    (essence.starts_with("text/") && !is_xml(essence) && essence != "text/*")
        || TEXTS.contains(&essence)
        || essence.ends_with("+yaml")
}

/// Parts that are known by their place and have no names.
pub(super) fn is_nameless(essence: &str) -> bool {
    matches!(essence, "multipart/mixed" | "multipart/related")
}

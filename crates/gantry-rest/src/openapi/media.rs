//! Media types: what kind of content they are.

/// Without parameters, in small letters.
pub(crate) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether this is JSON, or may be.
pub(crate) fn is_json(media: &str) -> bool {
    is_json_for_sure(media) || is_any(media)
}

/// Whether this is JSON and nothing else.
pub(crate) fn is_json_for_sure(media: &str) -> bool {
    let essence = essence(media);
    matches!(essence.as_str(), "application/json" | "text/json" | "json") || essence.ends_with("+json")
}

/// Whether this says nothing about what it is.
pub(crate) fn is_any(media: &str) -> bool {
    matches!(essence(media).as_str(), "*/*" | "application/*" | "*")
}

/// Whether this is XML.
pub(crate) fn is_xml(media: &str) -> bool {
    let essence = essence(media);
    matches!(essence.as_str(), "application/xml" | "text/xml") || essence.ends_with("+xml")
}

/// Whether a person could read it.
pub(crate) fn is_text(media: &str) -> bool {
    const TEXTS: [&str; 11] = [
        "application/graphql",
        "application/javascript",
        "application/json-lines",
        "application/jsonl",
        "application/ndjson",
        "application/sparql-query",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/yaml",
    ];
    let essence = essence(media);
    essence.starts_with("text/")
        || is_xml(media)
        || TEXTS.contains(&essence.as_str())
        || essence.ends_with("+yaml")
}

/// Whether this is neither JSON nor a text nor a form: an image, an archive, plain bytes.
pub(crate) fn is_bytes(media: &str) -> bool {
    let essence = essence(media);
    essence.contains('/')
        && !is_json(media)
        && !is_text(media)
        && !essence.starts_with("multipart/")
        && essence != "application/x-www-form-urlencoded"
}

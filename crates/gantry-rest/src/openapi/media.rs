//! Media types.

/// Without parameters, in small letters.
pub(crate) fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether this is JSON, or may be.
pub(crate) fn is_json(media: &str) -> bool {
    is_only_json(media) || is_any(media)
}

/// Whether this is JSON and nothing else.
pub(crate) fn is_only_json(media: &str) -> bool {
    let essence = essence(media);
    matches!(essence.as_str(), "application/json" | "text/json" | "json") || essence.ends_with("+json")
}

/// Whether this may be of every type.
pub(crate) fn is_any(media: &str) -> bool {
    matches!(essence(media).as_str(), "*/*" | "application/*" | "*")
}

/// Whether a person could read it.
pub(crate) fn is_text(media: &str) -> bool {
    const TEXTS: [&str; 12] = [
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
        "application/xml",
        "application/yaml",
    ];
    let essence = essence(media);
    essence.starts_with("text/")
        || essence.ends_with("+xml")
        || essence.ends_with("+yaml")
        || TEXTS.contains(&essence.as_str())
}

pub(crate) fn is_multipart(media: &str) -> bool {
    essence(media).starts_with("multipart/")
}

pub(crate) fn is_form(media: &str) -> bool {
    essence(media) == "application/x-www-form-urlencoded"
}

/// Whether this is neither JSON nor a text nor a form: an image, an archive, plain bytes.
pub(crate) fn is_bytes(media: &str) -> bool {
    media.contains('/') && !is_json(media) && !is_text(media) && !is_multipart(media) && !is_form(media)
}

/// Whether it is `type/subtype`, with or without parameters, and can stand in a header. A range (`image/*`) is not.
pub(crate) fn is_valid(media: &str) -> bool {
    let is_token = |text: &str| {
        let is_mark = |byte: u8| b"!#$&'+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
    };
    media.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        && essence(media).split_once('/').is_some_and(|(name, subtype)| is_token(name) && is_token(subtype))
}

/// The character set that it names.
pub(crate) fn charset(media: &str) -> Option<&str> {
    media.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

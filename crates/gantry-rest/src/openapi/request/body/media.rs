//! Media types: which of them can be sent.

/// The media type that is sent: the document's, or this one where the document only has a range of them.
///
/// # Errors
/// The document has none that could be a header.
pub(in crate::openapi::request) fn sent(media: &str, instead: &str) -> Result<String, String> {
    let media = media.trim();
    if is_range(media) {
        return Ok(instead.to_owned());
    }
    if !is_valid(media) {
        return Err(format!("the document has the media type {media:?} for the body, which is none"));
    }
    Ok(media.to_owned())
}

/// The first of a list of media types (`image/png, image/jpeg`) that is one and not a range.
pub(in crate::openapi::request) fn first(list: &str) -> Option<&str> {
    list.split(',').map(str::trim).find(|media| is_valid(media))
}

/// Whether it is `type/subtype`, with or without parameters, and can stand in a header.
pub(in crate::openapi::request) fn is_valid(media: &str) -> bool {
    let is_token = |text: &str| {
        let is_mark = |byte: u8| b"!#$&'+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
    };
    let whole = media.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let names = essence(media).split_once('/');
    whole && names.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Without parameters.
pub(in crate::openapi::request) fn essence(media: &str) -> &str {
    media.split(';').next().unwrap_or_default().trim()
}

/// Whether what is sent as this is JSON.
pub(in crate::openapi::request) fn is_json(media: &str) -> bool {
    let essence = essence(media).to_ascii_lowercase();
    essence.ends_with("/json") || essence.ends_with("+json")
}

/// The character set that it names.
pub(in crate::openapi::request) fn charset(media: &str) -> Option<&str> {
    media.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    })
}

/// `*/*`, `image/*`.
fn is_range(media: &str) -> bool {
    essence(media).split('/').any(|name| name == "*")
}

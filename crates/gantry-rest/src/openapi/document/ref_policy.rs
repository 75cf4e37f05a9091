//! Which documents references may lead to, and the names of documents and references in messages.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use url::Url;

// Limit: characters of a name or a reference in a message.
const SHOWN: usize = 200;
// Limit: bytes of a location. Relative references make each one longer than that of its document.
const LOCATION_BYTES: usize = 8 * 1024;

/// Checks that a document may be read on behalf of a root document.
pub(super) fn check(root: &Url, url: &Url) -> Result<(), &'static str> {
    if url.as_str().len() > LOCATION_BYTES {
        return Err("is too long");
    }
    match (root.scheme(), url.scheme()) {
        ("file", "file") => file(root, url),
        ("file", _) => Err("leads out of the folder of the specification"),
        ("http" | "https", "http" | "https") => server(root, url),
        ("http" | "https", "file") => Err("leads to a file, but the specification came from a server"),
        _ => Err("leads to another server"),
    }
}

fn file(root: &Url, url: &Url) -> Result<(), &'static str> {
    if url.host().is_some() {
        return Err("leads to another machine");
    }
    if url.query().is_some() {
        return Err("has a query, which files do not have");
    }
    // Parsing removed `..` from the URL, but an encoded slash becomes a slash in the path of the file.
    let hidden = |part: &Cow<'_, [u8]>| {
        part.iter().any(|byte| b"/\\\0".contains(byte)) || [b".".as_slice(), b".."].contains(&part.as_ref())
    };
    match below(root, url) {
        Some(rest) if rest.iter().any(hidden) => Err("leads out of the folder of the specification"),
        Some(rest) if rest.last().is_none_or(|last| last.is_empty()) => Err("leads to a folder"),
        Some(_) => Ok(()),
        None => Err("leads out of the folder of the specification"),
    }
}

fn server(root: &Url, url: &Url) -> Result<(), &'static str> {
    if url.origin() != root.origin() {
        return Err("leads to another server");
    }
    let user = |url: &Url| (url.username().to_owned(), url.password().map(str::to_owned));
    if user(url) != (String::new(), None) && user(url) != user(root) {
        return Err("has credentials of its own");
    }
    Ok(())
}

/// The segments of a path below the folder of the root document.
fn below<'a>(root: &'a Url, url: &'a Url) -> Option<Vec<Cow<'a, [u8]>>> {
    let mut folder = parts(root);
    folder.pop();
    let parts = parts(url);
    parts.starts_with(&folder).then(|| parts.into_iter().skip(folder.len()).collect())
}

fn parts(url: &Url) -> Vec<Cow<'_, [u8]>> {
    url.path().split('/').skip(1).map(|part| Cow::from(percent_decode_str(part))).collect()
}

/// The name of a document in messages: its path from the folder of the root document, without a user or a query, which
/// may hold secrets.
pub(super) fn name(root: &Url, url: &Url) -> String {
    let near = root.origin() == url.origin() || (root.scheme() == "file" && url.scheme() == "file");
    let rest = if near { below(root, url) } else { None };
    let name = match rest {
        Some(rest) => rest.iter().map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join("/"),
        None if url.scheme() == "file" => {
            parts(url).last().map(|part| String::from_utf8_lossy(part).into_owned()).unwrap_or_default()
        }
        None => format!("{}{}", url.host_str().unwrap_or_default(), url.path()),
    };
    let name = if name.is_empty() { url.host_str().unwrap_or("the document").to_owned() } else { name };
    name.chars().take(SHOWN).map(|character| if character.is_control() { '?' } else { character }).collect()
}

/// A reference for messages, without a user or a query.
pub(super) fn display_ref(reference: &str) -> String {
    let (address, fragment) = match reference.split_once('#') {
        Some((address, fragment)) => (address, Some(fragment)),
        None => (reference, None),
    };
    let address = address.split('?').next().unwrap_or_default();
    let mut shown = match address.split_once("//") {
        Some((scheme, rest)) => {
            let (authority, path) =
                rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}//{host}{}", path.map(|path| format!("/{path}")).unwrap_or_default())
        }
        None => address.to_owned(),
    };
    if let Some(fragment) = fragment {
        shown.push('#');
        shown.push_str(fragment);
    }
    if shown.chars().count() > SHOWN {
        shown = shown.chars().take(SHOWN).chain(['…']).collect();
    }
    format!("{shown:?}")
}

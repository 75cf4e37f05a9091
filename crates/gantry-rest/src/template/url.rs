//! An address with placeholders in its path and its query.

use super::text::Path;
use super::{Arguments, Text};
use crate::encode;
use gantry_egress::Url;
use serde_json::Value;

/// An address whose path and query come from arguments; scheme, host and port are fixed.
#[derive(Clone)]
pub(crate) struct UrlTemplate {
    /// Scheme, host and port, without a `/` at the end.
    origin: String,
    /// What is between the slashes of the path.
    segments: Vec<Text>,
    query: Vec<Pair>,
}

impl std::fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlTemplate").finish_non_exhaustive()
    }
}

#[derive(Clone)]
enum Pair {
    /// Text of the address, which is encoded already.
    Written(Text),
    /// A name and a value, which are not.
    Plain { name: Text, value: Text },
}

impl UrlTemplate {
    /// Reads an address and what is added to its query.
    ///
    /// # Errors
    /// It is no address, or one whose host is not fixed.
    pub(crate) fn parse(url: &str, query: &[(String, String)]) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("the url has to begin with https:// or http://")?;
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
            return Err("the url has to begin with https:// or http://".to_owned());
        }
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains("${") {
            return Err("the host of the url must not depend on arguments; write it out".to_owned());
        }
        let origin = format!("{scheme}://{authority}");
        Url::parse(&origin).map_err(|error| format!("the url cannot be read: {error}"))?;
        let rest = without_fragment(rest);
        let (path, own) = split_query(rest);
        if path.contains('\\') {
            // It would count as a `/`, and what stands beside it as a part of its own.
            return Err("the path of the url has a \\; write / instead".to_owned());
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = cut(path, '/').into_iter().map(Text::parse).collect::<Result<_, _>>()?;
        let mut pairs = Vec::new();
        for pair in cut(own, '&').into_iter().filter(|pair| !pair.is_empty()) {
            pairs.push(written(pair)?);
        }
        for (name, value) in query {
            pairs.push(Pair::Plain { name: Text::parse(name)?, value: Text::parse(value)? });
        }
        Ok(Self { origin, segments, query: pairs })
    }

    /// Its placeholders.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let texts = self.segments.iter().chain(self.query.iter().flat_map(Pair::texts));
        texts.flat_map(Text::paths)
    }

    /// Scheme, host and port. A user or a password may be among it.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// What of the query is fixed: names, each with a value or with parts of one, both as they are meant.
    pub(crate) fn fixed(&self) -> Vec<(String, String)> {
        self.query.iter().flat_map(Pair::fixed).collect()
    }

    /// The parts of the path that are fixed.
    pub(crate) fn fixed_segments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(Text::literals)
    }

    /// The address for these arguments.
    ///
    /// # Errors
    /// An argument cannot be a part of the path.
    pub(crate) fn fill(&self, arguments: &Arguments) -> Result<Url, String> {
        let mut address = self.origin.clone();
        for segment in &self.segments {
            address.push('/');
            address.push_str(&fill_segment(segment, arguments)?);
        }
        let mut pairs = Vec::new();
        self.query.iter().for_each(|pair| pair.fill(arguments, &mut pairs));
        if !pairs.is_empty() {
            address.push('?');
            address.push_str(&pairs.join("&"));
        }
        Url::parse(&address).map_err(|error| format!("the arguments make no address: {error}"))
    }
}

impl Pair {
    fn texts(&self) -> impl Iterator<Item = &Text> {
        let (first, second) = match self {
            Self::Written(text) => (text, None),
            Self::Plain { name, value } => (name, Some(value)),
        };
        std::iter::once(first).chain(second)
    }

    /// The name, with the parts of the value that no argument changes.
    fn fixed(&self) -> Vec<(String, String)> {
        let (name, parts): (String, Vec<String>) = match self {
            Self::Written(text) => {
                let mut literals = text.literals();
                let Some((name, first)) = literals.next().and_then(|first| first.split_once('=')) else {
                    return Vec::new();
                };
                (encode::plain(name), [first].into_iter().chain(literals).map(encode::plain).collect())
            }
            Self::Plain { name, value } => {
                (name.fill(&Arguments::default()), value.literals().map(str::to_owned).collect())
            }
        };
        parts.into_iter().map(|part| (name.clone(), part)).collect()
    }

    fn fill(&self, arguments: &Arguments, pairs: &mut Vec<String>) {
        let encoded = |value: String| encode::component(&value);
        match self {
            Self::Written(text) => pairs.push(text.fill_with(arguments, str::to_owned, encoded)),
            Self::Plain { name, value } => match value.sole() {
                Some(path) => {
                    let value = path.find(arguments).unwrap_or(&Value::Null);
                    encode::add_pairs(pairs, &name.fill(arguments), value);
                }
                None => {
                    let (name, value) = (name.fill(arguments), value.fill(arguments));
                    pairs.push(format!("{}={}", encode::component(&name), encode::component(&value)));
                }
            },
        }
    }
}

/// A pair that is a part of the address. One whose value is an argument is treated like those that are added.
fn written(pair: &str) -> Result<Pair, String> {
    if let Some((name, value)) = cut_once(pair, '=') {
        let (name, value) = (Text::parse(name)?, Text::parse(value)?);
        let plain = name.literal().is_some_and(|name| encode::component(name) == name);
        if plain && value.sole().is_some() {
            return Ok(Pair::Plain { name, value });
        }
    }
    Ok(Pair::Written(Text::parse(pair)?))
}

fn fill_segment(segment: &Text, arguments: &Arguments) -> Result<String, String> {
    for path in segment.paths() {
        match path.find(arguments) {
            None | Some(Value::Null) => {
                return Err(format!("the argument {path} is needed: it is a part of the address"));
            }
            Some(Value::String(text)) if text.is_empty() => {
                return Err(format!("the argument {path} must not be empty: it is a part of the address"));
            }
            Some(Value::Array(_) | Value::Object(_)) => {
                return Err(format!(
                    "the argument {path} is a part of the address and cannot be a list or an object"
                ));
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {}
        }
    }
    let filled = segment.fill_with(arguments, str::to_owned, |value| encode::component(&value));
    let leads_away = matches!(filled.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    match segment.paths().next() {
        Some(path) if leads_away => {
            Err(format!("the argument {path} must not be . or ..: it is a part of the address"))
        }
        _ => Ok(filled),
    }
}

/// Cuts a text, but not within a placeholder.
fn cut(text: &str, at: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((part, behind)) = cut_once(rest, at) {
        parts.push(part);
        rest = behind;
    }
    parts.push(rest);
    parts
}

fn cut_once(text: &str, at: char) -> Option<(&str, &str)> {
    let mut depth = false;
    let mut before = ' ';
    for (n, c) in text.char_indices() {
        match c {
            '{' if before == '$' => depth = true,
            '}' => depth = false,
            _ if c == at && !depth => {
                return Some((text.get(..n)?, text.get(n + c.len_utf8()..)?));
            }
            _ => {}
        }
        before = c;
    }
    None
}

fn without_fragment(text: &str) -> &str {
    cut_once(text, '#').map_or(text, |(before, _)| before)
}

fn split_query(text: &str) -> (&str, &str) {
    cut_once(text, '?').unwrap_or((text, ""))
}

//! URLs with placeholders in path and query.

use super::text::Path;
use super::{Arguments, Text};
use crate::encode;
use gantry_egress::Url;
use serde_json::Value;

/// A URL whose path and query are filled from arguments; scheme, host and port are fixed.
#[derive(Clone)]
pub(crate) struct UrlTemplate {
    /// Scheme, host and port, without a `/` at the end.
    origin: String,
    /// The segments of the path.
    segments: Vec<Text>,
    query: Vec<Pair>,
}

impl std::fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlTemplate").finish_non_exhaustive()
    }
}

/// A pair of the query.
#[derive(Clone)]
struct Pair {
    name: Text,
    /// None if there is no `=`.
    value: Option<Text>,
    /// The pair is written in the URL, so that its literals are percent-encoded already.
    encoded: bool,
}

impl UrlTemplate {
    /// Parses a URL and the pairs that are added to its query.
    ///
    /// # Errors
    /// It is no URL, its host has a placeholder, or a placeholder is malformed.
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
        let rest = cut_once(rest, '#').map_or(rest, |(before, _)| before);
        let (path, own) = cut_once(rest, '?').unwrap_or((rest, ""));
        if path.contains('\\') {
            // URL parsers read it as `/`, which would split a segment in two.
            return Err("the path of the url has a \\; write / instead".to_owned());
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = cut(path, '/').into_iter().map(Text::parse).collect::<Result<_, _>>()?;
        let mut pairs = Vec::new();
        for pair in cut(own, '&').into_iter().filter(|pair| !pair.is_empty()) {
            let (name, value) = cut_once(pair, '=').map_or((pair, None), |(name, value)| (name, Some(value)));
            let value = value.map(Text::parse).transpose()?;
            pairs.push(Pair { name: Text::parse(name)?, value, encoded: true });
        }
        for (name, value) in query {
            pairs.push(Pair { name: Text::parse(name)?, value: Some(Text::parse(value)?), encoded: false });
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

    /// The literal parts of the query: names, each with a part of its value, both decoded.
    pub(crate) fn fixed(&self) -> Vec<(String, String)> {
        self.query.iter().flat_map(Pair::fixed).collect()
    }

    /// The literal parts of the path.
    pub(crate) fn fixed_segments(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(Text::literals)
    }

    /// The URL for these arguments.
    ///
    /// # Errors
    /// An argument is missing, or cannot be a part of the path.
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
        std::iter::once(&self.name).chain(&self.value)
    }

    fn decoded(&self, literal: &str) -> String {
        if self.encoded { encode::query_decoded(literal) } else { literal.to_owned() }
    }

    /// The name without its placeholders, with each part of the value that no argument changes.
    fn fixed(&self) -> Vec<(String, String)> {
        let name: String = self.name.literals().map(|part| self.decoded(part)).collect();
        let parts = self.value.iter().flat_map(Text::literals);
        parts.map(|part| (name.clone(), self.decoded(part))).collect()
    }

    fn fill(&self, arguments: &Arguments, pairs: &mut Vec<String>) {
        if let Some(path) = self.value.as_ref().and_then(Text::sole) {
            let name = self.name.fill_with(arguments, |literal| self.decoded(literal), |value| value);
            encode::add_pairs(pairs, &name, path.find(arguments).unwrap_or(&Value::Null));
            return;
        }
        let literal = |text: &str| if self.encoded { text.to_owned() } else { encode::component(text) };
        let filled = |text: &Text| text.fill_with(arguments, literal, |value| encode::component(&value));
        let value = self.value.as_ref().map(|value| format!("={}", filled(value)));
        pairs.push(filled(&self.name) + &value.unwrap_or_default());
    }
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

/// Splits a text, but not within a placeholder.
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

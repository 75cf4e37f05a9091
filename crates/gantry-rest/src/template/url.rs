//! URLs with placeholders in path and query.

use super::text::find;
use super::{Arguments, Text};
use crate::encode;
use gantry_egress::Url;
use gantry_provider::redact::Redactor;
use serde_json::Value;

/// The shortest part of a path that can be a key.
const KEY_BYTES: usize = 20;

/// A URL whose path and query are filled from arguments; scheme, host and port are fixed.
pub(crate) struct UrlTemplate {
    /// Scheme, host and port, without a `/` at the end.
    origin: String,
    segments: Vec<Text>,
    /// The pairs of the query, with literals that are percent-encoded; without a value if there is no `=`.
    query: Vec<(Text, Option<Text>)>,
}

impl UrlTemplate {
    /// Parses a URL and the pairs that are added to its query.
    ///
    /// # Errors
    /// It is no URL, its host has a placeholder, or a placeholder is malformed.
    pub(crate) fn parse(url: &str, query: &[(String, String)]) -> Result<Self, String> {
        let is_web =
            |(scheme, _): &(&str, &str)| ["http", "https"].iter().any(|it| scheme.eq_ignore_ascii_case(it));
        let (scheme, rest) =
            url.split_once("://").filter(is_web).ok_or("the url has to begin with https:// or http://")?;
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains("${") {
            return Err("the host of the url must not depend on arguments; write it out".to_owned());
        }
        let origin = format!("{scheme}://{authority}");
        Url::parse(&origin).map_err(|error| format!("the url cannot be read: {error}"))?;
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (path, own) = rest.split_once('?').unwrap_or((rest, ""));
        if path.contains('\\') {
            // URL parsers read it as `/`, which would split a segment in two.
            return Err("the path of the url has a \\; write / instead".to_owned());
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = path.split('/').map(Text::parse).collect::<Result<_, _>>()?;
        let mut pairs = Vec::new();
        for pair in own.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').map_or((pair, None), |(name, value)| (name, Some(value)));
            pairs.push((Text::parse(name)?, value.map(Text::parse).transpose()?));
        }
        for (name, value) in query {
            let encoded = |text| Text::parse(text).map(Text::with_encoded_literals);
            pairs.push((encoded(name)?, Some(encoded(value)?)));
        }
        Ok(Self { origin, segments, query: pairs })
    }

    /// Its placeholders.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        let pairs = self.query.iter().flat_map(|(name, value)| std::iter::once(name).chain(value));
        self.segments.iter().chain(pairs).flat_map(|text| &text.paths)
    }

    /// Has its secrets masked: user and password, keys in the path, and values in the query whose names say it.
    pub(crate) fn add_to(&self, secrets: &mut Redactor) {
        if let Ok(origin) = Url::parse(&self.origin) {
            secrets.add_user(&origin);
        }
        let parts = self.segments.iter().flat_map(Text::literals);
        parts.filter(|part| is_key(part)).for_each(|part| secrets.add(part));
        for (name, value) in &self.query {
            let name: String = name.literals().map(encode::query_decoded).collect();
            let parts = value.iter().flat_map(Text::literals);
            parts.for_each(|part| secrets.add_named(&name, &encode::query_decoded(part)));
        }
    }

    /// The URL for these arguments.
    pub(crate) fn fill(&self, arguments: &Arguments) -> Result<Url, String> {
        let mut address = self.origin.clone();
        for segment in &self.segments {
            address.push('/');
            address.push_str(&fill_segment(segment, arguments)?);
        }
        let mut pairs = Vec::new();
        for (name, value) in &self.query {
            let filled = |text: &Text| text.fill_with(arguments, |value| encode::component(&value));
            match value {
                Some(value) if let Some(path) = value.sole() => {
                    let value = find(path, arguments).unwrap_or(&Value::Null);
                    encode::add_pairs(&mut pairs, &encode::query_decoded(&filled(name)), value, false);
                }
                Some(value) => pairs.push(format!("{}={}", filled(name), filled(value))),
                None => pairs.push(filled(name)),
            }
        }
        if !pairs.is_empty() {
            address.push('?');
            address.push_str(&pairs.join("&"));
        }
        Url::parse(&address).map_err(|error| format!("the arguments make no address: {error}"))
    }
}

/// Whether a part of a path looks like a key: some services have them there.
fn is_key(part: &str) -> bool {
    let has = |test: fn(&char) -> bool| part.chars().any(|c| test(&c));
    part.len() >= KEY_BYTES && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
}

fn fill_segment(segment: &Text, arguments: &Arguments) -> Result<String, String> {
    for path in &segment.paths {
        let what = match find(path, arguments) {
            None | Some(Value::Null) => "is needed",
            Some(Value::String(text)) if text.is_empty() => "must not be empty",
            Some(Value::Array(_) | Value::Object(_)) => "cannot be a list or an object",
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => continue,
        };
        return Err(format!("the argument {path} {what}: it is a part of the address"));
    }
    let filled = segment.fill_with(arguments, |value| encode::component(&value));
    let leads_away = matches!(filled.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    match segment.paths.first() {
        Some(path) if leads_away => {
            Err(format!("the argument {path} must not be . or ..: it is a part of the address"))
        }
        _ => Ok(filled),
    }
}

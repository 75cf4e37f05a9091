//! Media types: what a `Content-Type` header says about a body, and the body as text.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use http::HeaderValue;
use std::borrow::Cow;

/// How far into an HTML page `<meta charset>` is looked for.
const CHARSET_WITHIN: usize = 1024;

#[derive(Debug, Clone, Default)]
pub struct MediaType {
    essence: String,
    charset: Option<String>,
}

/// Kinds of bodies that are read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    Json,
    /// One JSON value per line.
    Ndjson,
    /// Server-sent events.
    Events,
    Text,
    Image,
    Audio,
    Binary,
    /// The header is missing, or names a type that could be text or not.
    Unknown,
}

impl MediaType {
    /// The type that a `Content-Type` header names.
    #[must_use]
    pub fn of(header: Option<&HeaderValue>) -> Self {
        header.map(|header| Self::parse(&String::from_utf8_lossy(header.as_bytes()))).unwrap_or_default()
    }

    /// Parses `type/subtype; charset=x`. Everything parses; a malformed type is of no known kind.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
        });
        Self { essence, charset }
    }

    /// `type/subtype` in lower case without parameters; empty if the header is missing.
    #[must_use]
    pub fn essence(&self) -> &str {
        &self.essence
    }

    /// How such a body is read.
    #[must_use]
    pub fn kind(&self) -> BodyKind {
        let essence = self.essence.as_str();
        match essence {
            "application/json" | "text/json" | "application/x-json" => BodyKind::Json,
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-lines"
            | "application/jsonlines" => BodyKind::Ndjson,
            "text/event-stream" => BodyKind::Events,
            "application/octet-stream" | "application/pdf" | "application/zip" | "application/gzip" => {
                BodyKind::Binary
            }
            _ if essence.ends_with("+json") => BodyKind::Json,
            "application/javascript"
            | "application/x-javascript"
            | "application/ecmascript"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/sql"
            | "application/graphql"
            | "application/x-www-form-urlencoded"
            | "application/csv"
            | "application/json-seq" => BodyKind::Text,
            _ if essence.starts_with("text/") || self.is_xml() => BodyKind::Text,
            _ if essence.starts_with("image/") => BodyKind::Image,
            _ if essence.starts_with("audio/") => BodyKind::Audio,
            _ if essence.starts_with("video/") || essence.starts_with("font/") => BodyKind::Binary,
            _ => BodyKind::Unknown,
        }
    }

    /// Whether the type says that the body is text of some kind.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.kind(), BodyKind::Json | BodyKind::Ndjson | BodyKind::Events | BodyKind::Text)
    }

    #[must_use]
    pub fn is_html(&self) -> bool {
        matches!(self.essence(), "text/html" | "application/xhtml+xml")
    }

    #[must_use]
    pub fn is_xml(&self) -> bool {
        matches!(self.essence(), "application/xml" | "text/xml") || self.essence.ends_with("+xml")
    }

    /// The body as text: by the header's charset, else by the page's own, else UTF-8, else Windows-1252. A byte order
    /// mark outranks them all.
    #[must_use]
    pub fn decode<'a>(&self, body: &'a [u8]) -> Cow<'a, str> {
        let declared = self.charset.clone().or_else(|| self.is_html().then(|| charset_of(body))?);
        let encoding = declared.and_then(|label| Encoding::for_label(label.as_bytes()));
        let fallback = || if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 };
        encoding.unwrap_or_else(fallback).decode(body).0
    }
}

/// The charset that an HTML page declares: `<meta charset=…>` and its older form.
fn charset_of(body: &[u8]) -> Option<String> {
    let start = String::from_utf8_lossy(body.get(..CHARSET_WITHIN).unwrap_or(body)).to_ascii_lowercase();
    let (_, after) = start.split_once("charset=")?;
    let label = after.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
    let label = end.and_then(|end| label.get(..end)).unwrap_or(label);
    (!label.is_empty()).then(|| label.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_decoded_by_what_is_declared_and_else_by_what_it_is() {
        let decoded = |kind: &str, body: &[u8]| MediaType::parse(kind).decode(body).into_owned();
        assert_eq!(decoded("text/plain; Charset=\"latin1\"", b"\xe9"), "é");
        assert_eq!(decoded("text/html", b"<meta charset=iso-8859-2>\xb1"), "<meta charset=iso-8859-2>ą");
        assert_eq!(decoded("text/plain", b"charset=iso-8859-2 \xb1"), "charset=iso-8859-2 ±");
        assert_eq!(decoded("", "é".as_bytes()), "é");
        assert_eq!(decoded("text/plain; charset=latin1", b"\xef\xbb\xbfx"), "x");
    }

    #[test]
    fn kinds_are_recognised_by_type_suffix_and_family() {
        for (text, kind) in [
            ("application/problem+json; charset=utf-8", BodyKind::Json),
            ("Application/X-NDJSON", BodyKind::Ndjson),
            ("text/event-stream", BodyKind::Events),
            ("application/json-seq", BodyKind::Text),
            ("application/geo+json-seq", BodyKind::Unknown),
            ("application/atom+xml", BodyKind::Text),
            ("image/svg+xml", BodyKind::Text),
            ("image/png", BodyKind::Image),
            ("video/mp4", BodyKind::Binary),
            ("", BodyKind::Unknown),
        ] {
            assert_eq!(MediaType::parse(text).kind(), kind, "{text}");
        }
    }
}

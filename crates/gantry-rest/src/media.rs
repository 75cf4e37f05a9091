//! What a service says that a body is.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// A media type.
#[derive(Debug, Clone, Default)]
pub(super) struct Media {
    /// In lower case, without parameters; empty if nothing is said.
    pub(super) essence: String,
    charset: Option<String>,
}

/// The kinds of bodies that are read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    /// A JSON value per line.
    Ndjson,
    /// JSON values behind record separators.
    JsonSequence,
    Events,
    Text,
    Image,
    Audio,
    Binary,
    /// It says nothing that would help.
    Unsaid,
}

impl Media {
    /// The type that a text says, in lower case and without parameters.
    pub(super) fn named(essence: String) -> Self {
        Self { essence, charset: None }
    }

    pub(super) fn of(header: Option<&http::HeaderValue>) -> Self {
        let text = header.map(|header| String::from_utf8_lossy(header.as_bytes()).into_owned());
        let text = text.unwrap_or_default();
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
        });
        Self { essence, charset }
    }

    pub(super) fn kind(&self) -> Kind {
        let essence = self.essence.as_str();
        match essence {
            "application/json" | "text/json" | "application/x-json" => Kind::Json,
            "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-lines"
            | "application/jsonlines" => Kind::Ndjson,
            "application/json-seq" => Kind::JsonSequence,
            "text/event-stream" => Kind::Events,
            "application/octet-stream" | "application/pdf" | "application/zip" | "application/gzip" => {
                Kind::Binary
            }
            _ if essence.ends_with("+json-seq") => Kind::JsonSequence,
            _ if essence.ends_with("+json") => Kind::Json,
            _ if essence.starts_with("text/") || essence.ends_with("+xml") || is_text(essence) => Kind::Text,
            _ if essence.starts_with("image/") => Kind::Image,
            _ if essence.starts_with("audio/") => Kind::Audio,
            _ if essence.starts_with("video/") || essence.starts_with("font/") => Kind::Binary,
            _ => Kind::Unsaid,
        }
    }

    /// The bytes as text.
    pub(super) fn decode(&self, body: &[u8]) -> String {
        let said = self.charset.as_ref().and_then(|label| Encoding::for_label(label.as_bytes()));
        let encoding = said.unwrap_or(if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 });
        // A mark at the beginning of the text knows better.
        encoding.decode(body).0.into_owned()
    }
}

fn is_text(essence: &str) -> bool {
    matches!(
        essence,
        "application/xml"
            | "application/javascript"
            | "application/ecmascript"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/sql"
            | "application/graphql"
            | "application/x-www-form-urlencoded"
            | "application/csv"
    )
}

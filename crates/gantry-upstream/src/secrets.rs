//! The secrets of a server's configuration (variables and headers), which are masked wherever Gantry repeats what the
//! server or its process says about itself. Results of tools are passed on unchanged.

use crate::config::{ServerSettings, TransportConfig};
use gantry_core::raw;
use gantry_core::redact::MASK;

/// The shortest value that is masked: shorter ones are flags and numbers, which occur in any text.
const SECRET_BYTES: usize = 8;

/// The values of one server's environment and headers.
#[derive(Default)]
pub(super) struct Secrets {
    /// Longest first, as they stand in plain text and between quotes.
    values: Vec<String>,
}

impl Secrets {
    /// Those of this server.
    pub(super) fn of(settings: &ServerSettings) -> Self {
        let values: Vec<&String> = match &settings.transport {
            TransportConfig::Stdio { env, .. } => env.values().collect(),
            TransportConfig::Http(remote)
            | TransportConfig::Sse(remote)
            | TransportConfig::WebSocket(remote) => remote.headers.iter().map(|(_, value)| value).collect(),
            TransportConfig::Tcp(_) => Vec::new(),
        };
        // `Bearer x` is a secret as a whole and in its last word.
        let words = |value: &&String| [(*value).clone(), value.rsplit(' ').next().unwrap_or_default().into()];
        let mut values: Vec<String> = values.iter().flat_map(words).flat_map(spellings).collect();
        values.retain(|secret| secret.len() >= SECRET_BYTES);
        values.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// A text with the secrets masked.
    pub(super) fn hide(&self, text: String) -> String {
        self.values.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret, MASK) } else { text }
        })
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// A value as it stands in a string of JSON, and in a string of JSON that is carried as text.
fn spellings(value: String) -> [String; 3] {
    let quoted = |text: &str| {
        let text = raw::quoted(text);
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text).to_owned()
    };
    let once = quoted(&value);
    [quoted(&once), once, value]
}

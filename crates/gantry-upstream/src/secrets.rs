//! The secrets that the configuration gives a server: its environment and its headers.

use crate::config::{ServerSettings, TransportConfig};
use gantry_provider::redact::{PERHAPS_SECRET_BYTES, Redactor};

/// Masks the secrets of this server.
pub(super) fn redactor(settings: &ServerSettings) -> Redactor {
    let mut redactor = Redactor::default();
    match &settings.transport {
        TransportConfig::Stdio { env, .. } => {
            // `Bearer x` is a secret as a whole and in its last word.
            let words = env.values().flat_map(|value| [value, value.rsplit(' ').next().unwrap_or_default()]);
            words.filter(|word| word.len() >= PERHAPS_SECRET_BYTES).for_each(|word| redactor.add(word));
        }
        TransportConfig::Http(remote) | TransportConfig::Sse(remote) | TransportConfig::WebSocket(remote) => {
            for (name, value) in &remote.headers {
                redactor.add_header(name, value);
                if value.len() >= PERHAPS_SECRET_BYTES {
                    redactor.add(value);
                }
            }
        }
        TransportConfig::Tcp(_) => {}
    }
    redactor
}

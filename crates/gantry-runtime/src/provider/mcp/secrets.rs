//! The secrets that the configuration gives a server: its environment and its headers.

use crate::servers::{Reach, ServerSettings};
use gantry_provider::redact::{PERHAPS_SECRET_BYTES, Redactor};

/// Masks the secrets of this server.
pub(super) fn redactor(settings: &ServerSettings) -> Redactor {
    let mut redactor = Redactor::default();
    match &settings.reach {
        Reach::Stdio { env, .. } => {
            // `Bearer x` is a secret as a whole and in its last word.
            let words = env.values().flat_map(|value| [value, value.rsplit(' ').next().unwrap_or_default()]);
            words.filter(|word| word.len() >= PERHAPS_SECRET_BYTES).for_each(|word| redactor.add(word));
        }
        Reach::Http(remote) | Reach::Sse(remote) | Reach::WebSocket(remote) => {
            remote.headers.iter().for_each(|(name, value)| redactor.add_header(name, value));
        }
        Reach::Tcp(_) => {}
    }
    redactor
}

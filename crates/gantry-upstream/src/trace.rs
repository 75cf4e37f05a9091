//! Sees the messages of a replica: notes for health checks that one came in and, with `traceMCP`, emits each as an event.
//!
//! What the configuration gives the server is masked in all that it sends, before anything else reads it. In events,
//! values under keys that name a secret are masked too, also in JSON that a message carries as text.

use gantry_core::{redact, truncate::truncate};
use gantry_mcp::client::Trace;
use gantry_provider::redact::Redactor;
use gantry_provider::server::Observer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of one message that are shown.
const FRAME_BYTES: usize = 4096;

/// Bytes beyond those that are shown that are searched for secrets.
const MARGIN_BYTES: usize = 16 * 1024;

/// How deep JSON may be carried as text in JSON.
const DEPTH: usize = 4;

#[derive(Debug)]
pub(super) struct FrameTap {
    pub(super) server: Arc<str>,
    pub(super) secrets: Arc<Redactor>,
    pub(super) heard: Arc<AtomicBool>,
    /// Gets every message, if that is wanted.
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl Trace for FrameTap {
    fn frame(&self, sent: bool, text: &str) {
        // Text that a program prints besides its messages does not prove that it still answers requests.
        if !sent && text.trim_start().starts_with(['{', '[']) {
            self.heard.store(true, Ordering::Relaxed);
        }
        if let Some(observer) = &self.observer {
            observer.frame(&self.server, sent, redacted(text, &self.secrets));
        }
    }

    fn masked(&self, text: &str) -> Option<String> {
        self.secrets.masked_message(text)
    }
}

/// A message with secrets masked. One that cannot be parsed, and so not be searched for secrets, is not shown.
fn redacted(frame: &str, secrets: &Redactor) -> String {
    let masked = match redact::masked(frame, DEPTH) {
        Ok(masked) => masked,
        Err(error) => return format!("({} bytes that cannot be shown: {error})", frame.len()),
    };
    // Cut first: a frame may have megabytes. A secret that the first cut splits lies beyond the second.
    let start = truncate(&masked, FRAME_BYTES + MARGIN_BYTES);
    truncate(&secrets.mask(start.to_owned()), FRAME_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ServerOptions;
    use gantry_core::redact::MASK;

    fn shown(options: &ServerOptions, frame: &str) -> String {
        redacted(frame, &options.redactor())
    }

    fn plainly(frame: &str) -> String {
        shown(&ServerOptions::default(), frame)
    }

    #[test]
    fn secrets_are_masked_and_long_frames_cut() {
        assert_eq!(plainly(r#"{"b":1.0,"a":"x"}"#), r#"{"b":1.0,"a":"x"}"#);
        assert!(!plainly(r#"{"params":{"api_key":"s3cret"}}"#).contains("s3cret"));
        assert!(!plainly(r#"{"api_key":"s3cret""#).contains("s3cret"));
        assert_eq!(plainly(&format!("\"{}\"", "x".repeat(FRAME_BYTES))).len(), FRAME_BYTES);
    }

    #[test]
    fn secrets_in_json_that_is_carried_as_text_are_masked() {
        let inner = r#"{"a":1.10,"deep":[{"password":"s3cret"}]}"#;
        let frame = serde_json::json!({ "result": { "content": [{ "type": "text", "text": inner }] } });
        let shown = plainly(&frame.to_string());
        assert!(!shown.contains("s3cret") && shown.contains(MASK), "{shown}");
        let harmless = r#"{"text":"{\"a\": 1.10}"}"#;
        assert_eq!(plainly(harmless), harmless, "what hides nothing stays as it is");
    }

    #[test]
    fn what_the_configuration_gives_a_server_is_masked_wherever_it_stands() {
        let headers =
            [("Authorization", "Bearer hunter2-\"x\""), ("X-Flag", "on")].map(|(k, v)| (k.into(), v.into()));
        let options = ServerOptions { headers: headers.into(), ..ServerOptions::default() };
        let inner = serde_json::json!({ "seen": "hunter2-\"x\"", "flag": "on" }).to_string();
        for frame in [serde_json::json!({ "t": "hunter2-\"x\" on" }), serde_json::json!({ "t": inner })] {
            let shown = shown(&options, &frame.to_string());
            assert!(!shown.contains("hunter2") && shown.contains("on"), "{shown}");
        }
    }
}

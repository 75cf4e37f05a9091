//! Emits every message of a server as an event (`traceMCP`), with secrets masked: values under keys that name a secret,
//! also in JSON that a message carries as text, and values that the server's configuration gives it.

use gantry_core::{json, redact, shape};
use gantry_mcp::client::Trace;
use gantry_provider::redact::Redactor;
use gantry_provider::server::Observer;
use serde_json::Value;
use std::sync::Arc;

/// Bytes of one message that are shown.
const FRAME_BYTES: usize = 4096;

/// Bytes beyond those that are shown that are searched for secrets.
const MARGIN_BYTES: usize = 16 * 1024;

/// How deep JSON may be carried as text in JSON.
const DEPTH: usize = 4;

/// Emits the messages of one server.
#[derive(Debug)]
pub(super) struct FrameLog {
    server: Arc<str>,
    observer: Arc<dyn Observer>,
    secrets: Arc<Redactor>,
}

impl FrameLog {
    /// Emits the messages of this server to the observer.
    pub(super) fn new(server: &Arc<str>, secrets: &Arc<Redactor>, observer: &Arc<dyn Observer>) -> Self {
        Self { server: Arc::clone(server), observer: Arc::clone(observer), secrets: Arc::clone(secrets) }
    }

    /// A message with secrets masked. One that cannot be parsed, and so not be searched for secrets, is not shown.
    fn redacted(&self, frame: &str) -> String {
        let masked = match masked(frame, DEPTH) {
            Ok(masked) => masked,
            Err(error) => return format!("({} bytes that cannot be shown: {error})", frame.len()),
        };
        // Cut first: a frame may have megabytes. A secret that the first cut splits lies beyond the second.
        let start = shape::truncated(&masked, FRAME_BYTES + MARGIN_BYTES);
        shape::truncated(&self.secrets.mask(start.into_owned()), FRAME_BYTES).into_owned()
    }
}

impl Trace for FrameLog {
    fn frame(&self, sent: bool, text: &str) {
        self.observer.frame(&self.server, sent, self.redacted(text));
    }
}

/// JSON text with the values of secret keys masked; unchanged if there are none.
fn masked(text: &str, depth: usize) -> Result<String, json::Error> {
    let canonical = json::canonical(text)?;
    let text = if canonical.is_sensitive() { redact::shown(&canonical, usize::MAX) } else { text.to_owned() };
    if depth == 0 || !text.contains('\\') {
        return Ok(text);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return Ok(text) };
    Ok(if mask_carried(&mut value, depth) { value.to_string() } else { text })
}

/// Masks secrets in JSON that is carried as text. Returns whether anything was masked.
fn mask_carried(value: &mut Value, depth: usize) -> bool {
    match value {
        Value::String(text) if text.starts_with(['{', '[']) => match masked(text, depth - 1) {
            Ok(masked) if masked != *text => {
                *text = masked;
                true
            }
            Ok(_) | Err(_) => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |found, item| mask_carried(item, depth) | found),
        Value::Object(members) => {
            members.values_mut().fold(false, |found, member| mask_carried(member, depth) | found)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Remote, TransportConfig};
    use crate::context::NoObserver;
    use gantry_core::redact::MASK;

    fn shown(transport: TransportConfig, frame: &str) -> String {
        let settings = crate::tests::settings(transport);
        let secrets = Arc::new(crate::secrets::redactor(&settings));
        let observer: Arc<dyn Observer> = Arc::new(NoObserver);
        FrameLog::new(&settings.id, &secrets, &observer).redacted(frame)
    }

    fn plainly(frame: &str) -> String {
        shown(TransportConfig::Tcp(Vec::new()), frame)
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
            vec![("Authorization".into(), "Bearer hunter2-\"x\"".into()), ("X-Flag".into(), "on".into())];
        let transport = TransportConfig::Http(Remote { urls: vec!["http://a/".into()], headers });
        let inner = serde_json::json!({ "seen": "hunter2-\"x\"", "flag": "on" }).to_string();
        for frame in [serde_json::json!({ "t": "hunter2-\"x\" on" }), serde_json::json!({ "t": inner })] {
            let shown = shown(transport.clone(), &frame.to_string());
            assert!(!shown.contains("hunter2") && shown.contains("on"), "{shown}");
        }
    }
}

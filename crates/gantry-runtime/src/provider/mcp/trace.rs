//! Shows every frame of a server to whoever debugs it, without what must not be seen.

use crate::event::{EventKind, Events};
use gantry_core::{json, redact, shape};
use gantry_mcp::client::Trace;
use std::sync::Arc;

/// What is shown of one frame.
const FRAME_BYTES: usize = 4096;

/// Sees the frames of one server.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) server: Arc<str>,
    pub(super) events: Arc<Events>,
}

impl Trace for Frames {
    fn frame(&self, sent: bool, text: &str) {
        let (server, text) = (Arc::clone(&self.server), shown(text).into());
        self.events.emit(None, EventKind::McpFrame { server, sent, text });
    }
}

/// A frame as it may be shown. One in which secrets cannot be found is not shown at all.
fn shown(frame: &str) -> String {
    match json::canonical(frame) {
        Ok(canonical) if canonical.is_sensitive() => redact::shown(&canonical, FRAME_BYTES),
        Ok(_) => shape::truncated(frame, FRAME_BYTES).into_owned(),
        Err(error) => format!("({} bytes that cannot be shown: {error})", frame.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_long_frames_cut() {
        assert_eq!(shown(r#"{"b":1.0,"a":"x"}"#), r#"{"b":1.0,"a":"x"}"#);
        assert!(!shown(r#"{"params":{"api_key":"s3cret"}}"#).contains("s3cret"));
        assert!(!shown(r#"{"api_key":"s3cret""#).contains("s3cret"));
        assert_eq!(shown(&format!("\"{}\"", "x".repeat(FRAME_BYTES))).len(), FRAME_BYTES);
    }
}

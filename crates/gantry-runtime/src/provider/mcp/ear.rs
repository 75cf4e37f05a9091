//! Hears that a server says something, whatever it is, and shows it to whoever debugs the server.

use super::trace::Frames;
use gantry_mcp::client::Trace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Hears everything that comes from one replica.
#[derive(Debug)]
pub(super) struct Ear {
    /// Set by every message.
    pub(super) heard: Arc<AtomicBool>,
    /// Where every frame is shown, if it is.
    pub(super) frames: Option<Frames>,
}

impl Trace for Ear {
    fn frame(&self, sent: bool, text: &str) {
        // What a program prints besides its messages does not say that it still reads them.
        if !sent && text.trim_start().starts_with(['{', '[']) {
            self.heard.store(true, Ordering::Relaxed);
        }
        if let Some(frames) = &self.frames {
            frames.frame(sent, text);
        }
    }
}

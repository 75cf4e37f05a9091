//! Hears that a server says something, whatever it is, and shows it to whoever debugs the server.

use crate::trace::FrameLog;
use gantry_mcp::client::Trace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Hears everything that comes from one replica.
#[derive(Debug)]
pub(super) struct FrameTap {
    /// Set by every message.
    pub(super) heard: Arc<AtomicBool>,
    /// Shows every frame, if that is wanted.
    pub(super) log: Option<FrameLog>,
}

impl Trace for FrameTap {
    fn frame(&self, sent: bool, text: &str) {
        // What a program prints besides its messages does not say that it still reads them.
        if !sent && text.trim_start().starts_with(['{', '[']) {
            self.heard.store(true, Ordering::Relaxed);
        }
        if let Some(log) = &self.log {
            log.frame(sent, text);
        }
    }
}

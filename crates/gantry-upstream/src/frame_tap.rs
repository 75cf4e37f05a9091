//! Taps the messages of a replica: notes for health checks that one came in and, with `traceMCP`, shows each of them.

use crate::trace::FrameLog;
use gantry_mcp::client::Trace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sees every message from and to one replica.
#[derive(Debug)]
pub(super) struct FrameTap {
    /// Set by every message that comes in.
    pub(super) heard: Arc<AtomicBool>,
    /// Shows every frame, if that is wanted.
    pub(super) log: Option<FrameLog>,
}

impl Trace for FrameTap {
    fn frame(&self, sent: bool, text: &str) {
        // Text that a program prints besides its messages does not prove that it still answers requests.
        if !sent && text.trim_start().starts_with(['{', '[']) {
            self.heard.store(true, Ordering::Relaxed);
        }
        if let Some(log) = &self.log {
            log.frame(sent, text);
        }
    }
}

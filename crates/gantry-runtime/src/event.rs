//! Events: what happened, told once. Emitting one writes the log line, counts the metric and feeds the stream, so the
//! three can not drift apart. (The ledger is not telemetry: the record stage writes it.)

use crate::clock;
use crate::metrics::Metrics;
use gantry_core::id::{CallId, SessionId};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Events that a newcomer can still read.
const RECENT: usize = 1000;

/// Events that a slow reader may fall behind before it misses some.
const BACKLOG: usize = 4096;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// A session began.
    SessionOpened { session: SessionId, principal: Arc<str>, agent: Option<Arc<str>>, door: &'static str },
    /// A session ended.
    SessionClosed { session: SessionId },
    /// A session was cancelled, and its calls with it.
    SessionCanceled { session: SessionId },
    /// A call is about to run.
    ToolStarted {
        call: CallId,
        session: SessionId,
        tool: Arc<str>,
        namespace: Arc<str>,
        parameters: Arc<str>,
    },
    /// A call ended, however it did.
    ToolFinished(Box<Finished>),
    /// A result was too large for the conversation and was stored.
    OutputStored { call: CallId, session: SessionId, handle: String, bytes: u64 },
    /// Calls of a process that died are open; nobody knows whether they took effect.
    CallsRecovered { calls: Vec<CallId> },
    /// An MCP server is ready.
    ServerUp { server: Arc<str>, era: &'static str, tools: usize },
    /// An MCP server is down; it is tried again.
    ServerDown { server: Arc<str>, reason: Arc<str> },
    /// A provider has other tools now.
    ToolsChanged { server: Arc<str>, added: Vec<Arc<str>>, changed: Vec<Arc<str>>, removed: Vec<Arc<str>> },
    /// A request that is no tool call was answered: a resource was read, a prompt got, a task asked about.
    RequestAnswered {
        session: SessionId,
        method: &'static str,
        subject: Arc<str>,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
    /// A message went to an MCP server (`sent`) or came from it; secrets are masked.
    McpFrame { server: Arc<str>, sent: bool, text: Arc<str> },
}

/// How a call ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// The call.
    pub call: CallId,
    /// Its session.
    pub session: SessionId,
    /// The tool's displayed name, or what was asked for.
    pub tool: Arc<str>,
    /// The provider's namespace; empty where no tool was found.
    pub namespace: Arc<str>,
    /// `ok` or `failed`.
    pub status: &'static str,
    /// The error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The error as a log has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// How long it took.
    pub latency_ms: u64,
    /// The same, for the histogram.
    #[serde(skip)]
    pub latency_us: u64,
    /// Size of the arguments.
    pub characters_in: u64,
    /// Size of the result.
    pub characters_out: u64,
    /// Whether the answer came from the cache.
    pub cached: bool,
}

/// An event with its place in time.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Its number in this process.
    pub seq: u64,
    /// When it happened.
    #[serde(serialize_with = "as_iso", rename = "at")]
    pub at_us: i64,
    /// The identity that it is about; what is about none is for those who may see all.
    #[serde(skip)]
    pub principal: Option<Arc<str>>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

fn as_iso<S: serde::Serializer>(us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&clock::iso(*us))
}

impl EventKind {
    fn log(&self) {
        match self {
            Self::ToolStarted { tool, parameters, .. } => {
                tracing::debug!(target: "gantry::tool", "tool request → {tool}\n    parameters: {parameters}");
            }
            Self::ToolFinished(f) if f.status == "ok" => tracing::debug!(
                target: "gantry::tool",
                "tool response ← {}\n    latency: {}ms, output: {} chars, status: ok", f.tool, f.latency_ms, f.characters_out
            ),
            Self::ToolFinished(f) => tracing::warn!(
                target: "gantry::tool",
                "tool response ← {}\n    latency: {}ms, status: failed, error: {}",
                one_line(&f.tool), f.latency_ms, one_line(f.error.as_deref().unwrap_or_default())
            ),
            Self::CallsRecovered { calls } => tracing::warn!(
                "{} calls of a process that died are open; whether they took effect is unknown, see gantry audit --state OUTCOME_UNKNOWN",
                calls.len()
            ),
            Self::OutputStored { handle, bytes, .. } => {
                tracing::debug!("output of {bytes} bytes stored as {handle}")
            }
            Self::SessionOpened { session, principal, .. } => {
                tracing::debug!("session {session} opened for {principal}")
            }
            Self::SessionClosed { session } => tracing::debug!("session {session} closed"),
            Self::SessionCanceled { session } => tracing::info!("session {session} canceled"),
            Self::ServerUp { server, era, tools } => {
                tracing::info!("server {server} is ready: {tools} tools, speaks {era}");
            }
            Self::ServerDown { server, reason } => {
                tracing::warn!("server {server} is not available: {}", one_line(reason));
            }
            Self::ToolsChanged { server, added, changed, removed } => tracing::info!(
                "tools of {server} changed: {} added, {} changed, {} removed",
                added.len(),
                changed.len(),
                removed.len()
            ),
            Self::RequestAnswered { method, subject, status, error, .. } => tracing::debug!(
                "{method} {}: {status}{}{}",
                one_line(subject),
                if error.is_some() { ", " } else { "" },
                one_line(error.as_deref().unwrap_or_default())
            ),
            Self::McpFrame { server, sent, text } => tracing::info!(
                target: "gantry::trace", "{server} {} {}", if *sent { "→" } else { "←" }, one_line(text)
            ),
        }
    }
}

/// A text from outside that cannot pass for a log line of its own.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The stream of events of this process.
#[derive(Debug)]
pub struct Events {
    metrics: Metrics,
    sender: broadcast::Sender<Arc<Event>>,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    next: u64,
    events: VecDeque<Arc<Event>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { metrics: Metrics::default(), sender: broadcast::channel(BACKLOG).0, recent: Mutex::default() }
    }
}

impl Events {
    /// Tells what happened to this identity, or to none in particular.
    pub fn emit(&self, principal: Option<&Arc<str>>, kind: EventKind) {
        kind.log();
        self.metrics.count(&kind);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let event =
            Arc::new(Event { seq: recent.next, at_us: clock::now_us(), principal: principal.cloned(), kind });
        recent.next += 1;
        if recent.events.len() == RECENT {
            recent.events.pop_front();
        }
        recent.events.push_back(Arc::clone(&event));
        // Sent under the lock, so that a subscriber sees each event once: in the past or in the stream.
        if self.sender.receiver_count() > 0 {
            self.sender.send(event).ok(); // The last listener may have left just now.
        }
    }

    /// What happened lately, oldest first, and the stream of what happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> (Vec<Arc<Event>>, broadcast::Receiver<Arc<Event>>) {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        (recent.events.iter().cloned().collect(), self.sender.subscribe())
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

//! Events: what happened, said once. Emitting one writes the log line, counts the metric and feeds the stream, so the
//! three cannot drift apart. (The ledger is not telemetry: the record stage writes it.)

use crate::clock::{self, Timestamp};
use crate::metrics::Metrics;
use gantry_core::State;
use gantry_core::id::{ApprovalId, CallId, SessionId};
use gantry_core::truncate::truncate;
use gantry_store::ApprovalRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Entries of a list that a log line shows.
const LISTED: usize = 10;

/// Limit: bytes of a log line; a list of tools can be long.
const LINE_BYTES: usize = 16 * 1024;

/// Events that a new subscriber can still read.
const RECENT: usize = 1000;

/// Events that a slow subscriber may fall behind before it misses some.
const BACKLOG: usize = 4096;

/// Something that happened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// A call is held, or something happened to one that is. The row is without arguments: events are kept for new
    /// subscribers, and arguments may be large.
    Approval(
        #[serde(serialize_with = "approval_fields")]
        #[schemars(with = "HeldCall<'static>")]
        Arc<ApprovalRow>,
    ),
    /// A result was too large for the conversation and was stored.
    OutputStored { call: CallId, session: SessionId, handle: String, bytes: u64 },
    /// Calls of a process that died are open; whether they took effect is unknown.
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
    /// A project turns to another agent; what runs for the one before may take this long to end.
    AgentSwitchStarted { from: Option<Arc<str>>, to: Option<Arc<str>>, grace_ms: u64 },
    /// All that the agent before had is being closed. Calls that did not end in time are cut off.
    Teardown { agent: Option<Arc<str>>, forced: bool, calls: usize },
    /// The agent before has nothing left: no process, no connection, no tool.
    TeardownFinished { agent: Option<Arc<str>>, sessions: usize, servers: usize },
    /// What the new agent may use is being put together, with the configuration of now.
    Build { agent: Option<Arc<str>>, servers: Vec<Arc<str>> },
    /// The new agent has its tools.
    AgentSwitchFinished { from: Option<Arc<str>>, to: Option<Arc<str>>, tools: usize, took_ms: u64 },
    /// The new agent could not be built.
    AgentSwitchFailed { to: Option<Arc<str>>, reason: Arc<str> },
    /// A changed configuration holds from now on.
    ConfigurationApplied { projects: Vec<Arc<str>> },
    /// A changed configuration was refused; the one before holds.
    ConfigurationRefused { reason: Arc<str> },
    /// A changed configuration is held until an administrator applies it; the one before holds.
    ConfigurationHeld { reason: Arc<str> },
    /// A message went to an MCP server (`sent`) or came from it; secrets are masked.
    McpFrame { server: Arc<str>, sent: bool, text: Arc<str> },
}

/// How a held call stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ApprovalEvent")]
struct HeldCall<'a> {
    approval: ApprovalId,
    call: CallId,
    session: SessionId,
    tool: &'a str,
    state: State,
    agent_path: &'a [Arc<str>],
    /// Why a person is asked.
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<&'a str>,
    /// Why it was decided or ended like this.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

fn approval_fields<S: Serializer>(row: &ApprovalRow, serializer: S) -> Result<S::Ok, S::Error> {
    let decision = row.decision.as_ref();
    let reason = decision.and_then(|decision| decision.reason.as_deref());
    let held = HeldCall {
        approval: row.id,
        call: row.call,
        session: row.session,
        tool: &row.name,
        state: row.state,
        agent_path: &row.details.agent_path,
        reason: &row.details.reason,
        decided_by: decision.map(|decision| &*decision.by),
        why: reason.or(row.message.as_deref()),
    };
    held.serialize(serializer)
}

/// How a call ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FinishedEvent")]
pub struct Finished {
    /// The call.
    pub call: CallId,
    /// Its session.
    pub session: SessionId,
    /// The tool's displayed name, or what was asked for.
    pub tool: Arc<str>,
    /// The provider's namespace; empty where no tool was found.
    pub namespace: Arc<str>,
    /// How it ended.
    #[schemars(extend("enum" = ["ok", "failed"]))]
    pub status: &'static str,
    /// The error's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gantry_core::ErrorCode>")]
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

#[derive(Debug, Clone)]
pub struct Event {
    pub seq: u64,
    pub at_us: i64,
    pub project: Option<Arc<str>>,
    /// The identity that it is about; an event without one is for administrators.
    pub principal: Option<Arc<str>>,
    pub kind: EventKind,
}

/// What events of all types have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventLine {
    /// Its number in the process.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The project that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
    /// The event as the log has it, in one line.
    pub message: String,
}

/// An event as the stream has it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventView<'a> {
    /// Its place in time, and its log line.
    #[serde(flatten)]
    pub line: EventLine,
    /// What happened.
    #[serde(flatten)]
    pub kind: &'a EventKind,
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> Self {
        let project = event.project.clone();
        let message = event.kind.message(project.as_deref());
        let line = EventLine { seq: event.seq, at: Timestamp(event.at_us), project, message };
        Self { line, kind: &event.kind }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        EventView::from(self).serialize(serializer)
    }
}

impl EventKind {
    /// Writes the log line; `error` is for what an operator has to mend.
    fn log(&self, project: Option<&str>) {
        match self {
            Self::ToolStarted { .. } => tracing::debug!(target: "gantry::tool", "{}", self.text(project)),
            Self::ToolFinished(finished) if finished.status == "ok" => {
                tracing::debug!(target: "gantry::tool", "{}", self.text(project));
            }
            Self::ToolFinished(_) => tracing::warn!(target: "gantry::tool", "{}", self.text(project)),
            Self::McpFrame { .. } => tracing::info!(target: "gantry::trace", "{}", self.text(project)),
            Self::AgentSwitchFailed { .. } | Self::ConfigurationRefused { .. } => {
                tracing::error!("{}", self.text(project));
            }
            Self::CallsRecovered { .. }
            | Self::ServerDown { .. }
            | Self::ConfigurationHeld { .. }
            | Self::Teardown { forced: true, .. } => {
                tracing::warn!("{}", self.text(project));
            }
            Self::SessionOpened { .. }
            | Self::SessionClosed { .. }
            | Self::OutputStored { .. }
            | Self::RequestAnswered { .. } => tracing::debug!("{}", self.text(project)),
            Self::SessionCanceled { .. }
            | Self::Approval(_)
            | Self::ServerUp { .. }
            | Self::ToolsChanged { .. }
            | Self::AgentSwitchStarted { .. }
            | Self::Teardown { .. }
            | Self::TeardownFinished { .. }
            | Self::Build { .. }
            | Self::AgentSwitchFinished { .. }
            | Self::ConfigurationApplied { .. } => tracing::info!("{}", self.text(project)),
        }
    }

    /// The log line of the event, in one line.
    pub fn message(&self, project: Option<&str>) -> String {
        one_line(truncate(&self.text(project), LINE_BYTES))
    }

    /// The text of the log line. Those of calls and of frames have shapes that are promised, and that of calls left open by a
    /// crash says what to do; all others are the type of the event and its fields.
    fn text(&self, project: Option<&str>) -> String {
        if let Self::ToolStarted { tool, parameters, .. } = self {
            format!("tool request → {tool}\n    parameters: {parameters}")
        } else if let Self::ToolFinished(finished) = self {
            finished.text()
        } else if let Self::CallsRecovered { calls } = self {
            format!(
                "{} calls of a process that died are open; whether they took effect is unknown, see gantry audit \
                 --state OUTCOME_UNKNOWN",
                calls.len()
            )
        } else if let Self::McpFrame { server, sent, text } = self {
            let arrow = if *sent { "→" } else { "←" };
            format!("{server} {arrow} {}", one_line(text))
        } else {
            self.line(project)
        }
    }

    /// The event as one line, such as `server_up server=files era=modern tools=4`.
    fn line(&self, project: Option<&str>) -> String {
        let mut line = String::new();
        if let Some(project) = project.filter(|project| *project != crate::projects::DEFAULT) {
            line = format!("[{project}] ");
        }
        let Ok(Value::Object(fields)) = serde_json::to_value(self) else { return line };
        for (name, value) in &fields {
            match value {
                Value::Null => {}
                Value::String(kind) if name == "type" => line.push_str(kind),
                Value::String(word) if is_word(word) => line.push_str(&format!(" {name}={word}")),
                // A list can have thousands of entries; the stream of events has them all.
                Value::Array(all) if all.len() > LISTED => line.push_str(&format!(" {name}=({})", all.len())),
                // Quoted as JSON, so that no text from outside passes for a field of its own.
                Value::String(_) | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    line.push_str(&format!(" {name}={value}"));
                }
            }
        }
        one_line(truncate(&line, LINE_BYTES))
    }
}

impl Finished {
    fn text(&self) -> String {
        let Self { tool, latency_ms, characters_out, .. } = self;
        if self.status == "ok" {
            return format!(
                "tool response ← {tool}\n    latency: {latency_ms}ms, output: {characters_out} chars, status: ok"
            );
        }
        let (tool, error) = (one_line(tool), one_line(self.error.as_deref().unwrap_or_default()));
        format!("tool response ← {tool}\n    latency: {latency_ms}ms, status: failed, error: {error}")
    }
}

/// Whether a text can stand in a line without quotes.
fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '='))
}

/// A text from outside that cannot pass for a log line of its own.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The stream of events of this process, for one project of it or for the process as a whole.
#[derive(Debug, Clone, Default)]
pub struct Events {
    project: Option<Arc<str>>,
    stream: Arc<Stream>,
}

#[derive(Debug)]
struct Stream {
    metrics: Metrics,
    sender: broadcast::Sender<Arc<Event>>,
    recent: Mutex<VecDeque<Arc<Event>>>,
}

impl Default for Stream {
    fn default() -> Self {
        Self { metrics: Metrics::default(), sender: broadcast::channel(BACKLOG).0, recent: Mutex::default() }
    }
}

impl Events {
    /// The same stream, for what happens in this project.
    pub(crate) fn for_project(&self, project: &Arc<str>) -> Self {
        Self { project: Some(Arc::clone(project)), stream: Arc::clone(&self.stream) }
    }

    /// Records what happened to this identity, or to none in particular.
    pub(crate) fn emit(&self, principal: Option<&Arc<str>>, kind: EventKind) {
        kind.log(self.project.as_deref());
        let stream = &*self.stream;
        stream.metrics.count(self.project.as_deref().unwrap_or_default(), &kind);
        let (project, principal) = (self.project.clone(), principal.cloned());
        let mut recent = stream.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = recent.back().map_or(0, |last| last.seq + 1);
        let event = Arc::new(Event { seq, at_us: clock::now_us(), project, principal, kind });
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(Arc::clone(&event));
        // Sent under the lock, so that a subscriber sees each event once: in the past or in the stream.
        if stream.sender.receiver_count() > 0 {
            stream.sender.send(event).ok(); // The last listener may have left just now.
        }
    }

    /// What happened lately, oldest first, and the stream of what happens from now on.
    pub fn subscribe(&self) -> (Vec<Arc<Event>>, broadcast::Receiver<Arc<Event>>) {
        let recent = self.stream.recent.lock().unwrap_or_else(PoisonError::into_inner);
        (recent.iter().cloned().collect(), self.stream.sender.subscribe())
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.stream.metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_its_type_and_fields() {
        let down =
            EventKind::ServerDown { server: "files".into(), reason: "gone\n[WRN] \u{9b}forged".into() };
        assert_eq!(down.line(Some("p")), r#"[p] server_down server=files reason="gone\n[WRN]  forged""#);
        let forged = EventKind::ServerDown { server: "a".into(), reason: "x\" server=b reason=\"y".into() };
        assert_eq!(forged.line(None), r#"server_down server=a reason="x\" server=b reason=\"y""#);
        let changed = EventKind::Teardown { agent: None, forced: false, calls: 2 };
        assert_eq!(changed.line(Some(crate::projects::DEFAULT)), "teardown forced=false calls=2");
        let tools = vec!["x".repeat(100).into(); 1000];
        let many =
            EventKind::ToolsChanged { server: "s".into(), added: tools, changed: vec![], removed: vec![] };
        assert!(many.line(None).len() <= LINE_BYTES);
    }
}

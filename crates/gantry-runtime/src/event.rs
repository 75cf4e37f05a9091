//! Events: what happened, told once. Emitting one writes the log line, counts the metric and feeds the stream, so the
//! three can not drift apart. (The ledger is not telemetry: the record stage writes it.)

use crate::clock;
use crate::metrics::Metrics;
use gantry_core::State;
use gantry_core::id::{ApprovalId, CallId, SessionId};
use gantry_store::ApprovalRow;
use serde::Serialize;
use std::borrow::Cow;
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
    /// A call is held, or something happened to one that is.
    Approval(Box<ApprovalChanged>),
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
    /// A message went to an MCP server (`sent`) or came from it; secrets are masked.
    McpFrame { server: Arc<str>, sent: bool, text: Arc<str> },
}

/// How a call that is held, or was, stands.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalChanged {
    /// The approval.
    pub approval: ApprovalId,
    /// The call.
    pub call: CallId,
    /// Its session.
    pub session: SessionId,
    /// The tool's displayed name.
    pub tool: Arc<str>,
    /// Where it stands.
    pub state: State,
    /// The agents above the caller, and the caller's own last.
    pub agent_path: Vec<Arc<str>>,
    /// Why a person is asked.
    pub reason: Arc<str>,
    /// Who decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Arc<str>>,
    /// Why it stands as it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// Those who may decide see it too: in which they are limited by project and tool, so they need these.
    #[serde(skip)]
    pub row: Arc<ApprovalRow>,
}

impl ApprovalChanged {
    pub(crate) fn of(row: &ApprovalRow) -> Self {
        let decision = row.decision.as_ref();
        // Events are kept for newcomers, and arguments may be large.
        Self {
            approval: row.id,
            call: row.call,
            session: row.session,
            tool: Arc::clone(&row.name),
            state: row.state,
            agent_path: row.asked.agent_path.clone(),
            reason: Arc::clone(&row.asked.reason),
            decided_by: decision.map(|decision| Arc::clone(&decision.by)),
            message: decision.and_then(|decision| decision.reason.clone()).or_else(|| row.message.clone()),
            row: Arc::new(row.without_arguments()),
        }
    }

    fn log(&self, place: &str) {
        let Self { approval, tool, state, reason, .. } = self;
        match (&self.decided_by, state) {
            (_, State::PendingApproval) => {
                tracing::info!("{place}{tool} waits for a person: {} ({approval})", one_line(reason));
            }
            (Some(by), _) => tracing::info!("{place}{tool} ({approval}) is {state}, decided by {by}"),
            (None, _) => tracing::info!("{place}{tool} ({approval}) is {state}"),
        }
    }
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
    /// The project that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<Arc<str>>,
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
    /// Writes the log line. `place` says which project it is about, if that is not the default one.
    fn log(&self, place: &str) {
        match self {
            Self::ToolStarted { tool, parameters, .. } => {
                tracing::debug!(target: "gantry::tool", "tool request → {tool}\n    parameters: {parameters}");
            }
            Self::ToolFinished(finished) => finished.log(),
            Self::Approval(approval) => approval.log(place),
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
                tracing::info!("{place}server {server} is ready: {tools} tools, speaks {era}");
            }
            Self::ServerDown { server, reason } => {
                tracing::warn!("{place}server {server} is not available: {}", one_line(reason));
            }
            Self::ToolsChanged { server, added, changed, removed } => tracing::info!(
                "{place}tools of {server} changed: {} added, {} changed, {} removed",
                added.len(),
                changed.len(),
                removed.len()
            ),
            Self::RequestAnswered { method, subject, status, error, .. } => {
                let error = error.as_deref().map(|error| format!(", {}", one_line(error)));
                tracing::debug!("{method} {}: {status}{}", one_line(subject), error.unwrap_or_default());
            }
            Self::AgentSwitchStarted { from, to, grace_ms } => tracing::info!(
                "{place}switching from {} to {}: running calls have {grace_ms} ms to end",
                agent_name(from.as_ref()),
                agent_name(to.as_ref())
            ),
            Self::Teardown { agent, forced, calls } => log_teardown(agent.as_ref(), *forced, *calls),
            Self::TeardownFinished { agent, sessions, servers } => {
                let agent = agent_name(agent.as_ref());
                tracing::info!("{agent} is gone: {sessions} sessions and {servers} servers closed");
            }
            Self::Build { agent, servers } => {
                let servers = if servers.is_empty() { "no servers".to_owned() } else { servers.join(", ") };
                tracing::info!("building {} with {servers}", agent_name(agent.as_ref()));
            }
            Self::AgentSwitchFinished { to, tools, took_ms, .. } => {
                tracing::info!(
                    "{place}{} is active with {tools} tools after {took_ms} ms",
                    agent_name(to.as_ref())
                );
            }
            Self::AgentSwitchFailed { to, reason } => {
                tracing::error!("{} could not be built: {}", agent_name(to.as_ref()), one_line(reason))
            }
            Self::ConfigurationApplied { projects } => {
                tracing::info!("the changed configuration holds now, for {}", projects.join(", "));
            }
            Self::ConfigurationRefused { reason } => {
                tracing::error!("the changed configuration is refused, the one before holds: {reason}")
            }
            Self::McpFrame { server, sent, text } => tracing::info!(
                target: "gantry::trace", "{server} {} {}", if *sent { "→" } else { "←" }, one_line(text)
            ),
        }
    }
}

impl Finished {
    fn log(&self) {
        let Self { tool, latency_ms, characters_out, .. } = self;
        if self.status == "ok" {
            tracing::debug!(
                target: "gantry::tool",
                "tool response ← {tool}\n    latency: {latency_ms}ms, output: {characters_out} chars, status: ok"
            );
        } else {
            let (tool, error) = (one_line(tool), one_line(self.error.as_deref().unwrap_or_default()));
            tracing::warn!(
                target: "gantry::tool",
                "tool response ← {tool}\n    latency: {latency_ms}ms, status: failed, error: {error}"
            );
        }
    }
}

fn log_teardown(agent: Option<&Arc<str>>, forced: bool, calls: usize) {
    let agent = agent_name(agent);
    if forced {
        tracing::warn!("{calls} calls of {agent} did not end in time and are cut off");
    } else {
        tracing::info!("tearing down {agent}");
    }
}

/// How a log line begins that is about this project.
fn place(project: Option<&str>) -> Cow<'static, str> {
    match project {
        None | Some(crate::projects::DEFAULT) => "".into(),
        Some(project) => format!("[{project}] ").into(),
    }
}

/// An agent in a sentence.
fn agent_name(agent: Option<&Arc<str>>) -> String {
    agent.map_or_else(|| "no agent in particular".to_owned(), |agent| format!("agent {agent}"))
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
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    next: u64,
    events: VecDeque<Arc<Event>>,
}

impl Default for Stream {
    fn default() -> Self {
        Self { metrics: Metrics::default(), sender: broadcast::channel(BACKLOG).0, recent: Mutex::default() }
    }
}

impl Events {
    /// The same stream, for what happens in this project.
    #[must_use]
    pub fn of(&self, project: &Arc<str>) -> Self {
        Self { project: Some(Arc::clone(project)), stream: Arc::clone(&self.stream) }
    }

    /// Tells what happened to this identity, or to none in particular.
    pub fn emit(&self, principal: Option<&Arc<str>>, kind: EventKind) {
        kind.log(&place(self.project.as_deref()));
        let stream = &*self.stream;
        stream.metrics.count(self.project.as_deref().unwrap_or_default(), &kind);
        let (project, principal) = (self.project.clone(), principal.cloned());
        let mut recent = stream.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Arc::new(Event { seq: recent.next, at_us: clock::now_us(), project, principal, kind });
        recent.next += 1;
        if recent.events.len() == RECENT {
            recent.events.pop_front();
        }
        recent.events.push_back(Arc::clone(&event));
        // Sent under the lock, so that a subscriber sees each event once: in the past or in the stream.
        if stream.sender.receiver_count() > 0 {
            stream.sender.send(event).ok(); // The last listener may have left just now.
        }
    }

    /// What happened lately, oldest first, and the stream of what happens from now on.
    #[must_use]
    pub fn subscribe(&self) -> (Vec<Arc<Event>>, broadcast::Receiver<Arc<Event>>) {
        let recent = self.stream.recent.lock().unwrap_or_else(PoisonError::into_inner);
        (recent.events.iter().cloned().collect(), self.stream.sender.subscribe())
    }

    /// The counters.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.stream.metrics
    }
}

//! Counters and histograms in the Prometheus text form.

use crate::event::EventKind;
use crate::queue;
use gantry_provider::{HealthStatus, ProviderStatus};
use gantry_store::Stats;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    namespace: Arc<str>,
    status: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NamespaceLabel {
    namespace: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueLabel {
    queue: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    project: Arc<str>,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WebhookLabel {
    project: Arc<str>,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ServerLabel {
    project: Arc<str>,
    server: Arc<str>,
}

fn labels(namespace: &Arc<str>, status: &'static str, code: &'static str) -> CallLabels {
    CallLabels { namespace: Arc::clone(namespace), status, code }
}

/// What every call of a namespace touches.
#[derive(Debug, Clone)]
struct NamespaceCounters {
    ok: Counter,
    latency: Histogram,
    characters_in: Counter,
    characters_out: Counter,
}

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Family<CallLabels, Counter>,
    /// There are as many as there are providers.
    namespaces: RwLock<HashMap<Arc<str>, NamespaceCounters>>,
    latency: Family<NamespaceLabel, Histogram>,
    characters_in: Family<NamespaceLabel, Counter>,
    characters_out: Family<NamespaceLabel, Counter>,
    cache_hits: Counter,
    outputs: Counter,
    sessions: Counter,
    approvals: Family<StateLabel, Counter>,
    webhooks: Family<WebhookLabel, Counter>,
    queue_depth: Family<QueueLabel, Gauge>,
    queue_in_use: Family<QueueLabel, Gauge>,
    queue_wait: Family<QueueLabel, Gauge>,
    queue_rejected: Family<QueueLabel, Gauge>,
    ledger_entries: Gauge,
    ledger_commits: Gauge,
    ledger_lost: Gauge,
    server_light: Family<ServerLabel, Gauge>,
    server_latency: Family<ServerLabel, Gauge<f64, AtomicU64>>,
    server_tools: Family<ServerLabel, Gauge>,
    server_failures: Family<ServerLabel, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("gantry");
        // 50 µs to about 50 s.
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_05, 4.0, 11));
        let latency = Family::new_with_constructor(buckets);
        let mut metrics = Self {
            calls: Family::default(),
            namespaces: RwLock::default(),
            latency,
            characters_in: Family::default(),
            characters_out: Family::default(),
            cache_hits: Counter::default(),
            outputs: Counter::default(),
            sessions: Counter::default(),
            approvals: Family::default(),
            webhooks: Family::default(),
            queue_depth: Family::default(),
            queue_in_use: Family::default(),
            queue_wait: Family::default(),
            queue_rejected: Family::default(),
            ledger_entries: Gauge::default(),
            ledger_commits: Gauge::default(),
            ledger_lost: Gauge::default(),
            server_light: Family::default(),
            server_latency: Family::default(),
            server_tools: Family::default(),
            server_failures: Family::default(),
            registry: Registry::default(),
        };
        metrics.register(&mut registry);
        metrics.registry = registry;
        metrics
    }
}

impl Metrics {
    fn register(&self, r: &mut Registry) {
        r.register("tool_calls", "Tool calls by outcome", self.calls.clone());
        r.register_with_unit("tool_latency", "How long tool calls took", Unit::Seconds, self.latency.clone());
        r.register("tool_characters_in", "Size of arguments", self.characters_in.clone());
        r.register("tool_characters_out", "Size of results", self.characters_out.clone());
        r.register("cache_hits", "Calls answered from the cache", self.cache_hits.clone());
        r.register("outputs_stored", "Results stored because of their size", self.outputs.clone());
        r.register("sessions_opened", "Sessions opened", self.sessions.clone());
        r.register("approvals", "Steps of held calls, by the state they led to", self.approvals.clone());
        let sent = "Messages to webhooks by outcome";
        r.register("webhook_messages", sent, self.webhooks.clone());
        r.register("queue_depth", "Calls that wait", self.queue_depth.clone());
        r.register("queue_in_use", "Calls that run", self.queue_in_use.clone());
        r.register("queue_last_wait_milliseconds", "The last wait", self.queue_wait.clone());
        r.register("queue_rejected", "Calls turned away since the start", self.queue_rejected.clone());
        r.register("ledger_entries", "Ledger entries written by this process", self.ledger_entries.clone());
        r.register("ledger_commits", "Ledger groups committed by this process", self.ledger_commits.clone());
        r.register("ledger_lost", "Reads whose record was lost", self.ledger_lost.clone());
        let light = "How an MCP server is doing: 3 green, 2 yellow, 1 red, 0 off";
        r.register("server_light", light, self.server_light.clone());
        let latency = "How long an MCP server took to answer last";
        r.register_with_unit("server_latency", latency, Unit::Seconds, self.server_latency.clone());
        r.register("server_tools", "Tools of an MCP server", self.server_tools.clone());
        r.register("server_failures", "How often an MCP server went down", self.server_failures.clone());
    }

    /// Counts a message to a project's webhook that was `taken`, or `failed`.
    pub(crate) fn count_webhook(&self, project: &Arc<str>, outcome: &'static str) {
        self.webhooks.get_or_create(&WebhookLabel { project: Arc::clone(project), outcome }).inc();
    }

    pub(crate) fn count(&self, project: &str, event: &EventKind) {
        match event {
            EventKind::ToolFinished(f) => {
                let counters = self.of_namespace(&f.namespace);
                match f.code {
                    None => counters.ok.inc(),
                    Some(code) => self.calls.get_or_create(&labels(&f.namespace, f.status, code)).inc(),
                };
                counters.latency.observe(Duration::from_micros(f.latency_us).as_secs_f64());
                counters.characters_in.inc_by(f.characters_in);
                counters.characters_out.inc_by(f.characters_out);
                if f.cached {
                    self.cache_hits.inc();
                }
            }
            EventKind::OutputStored { .. } => {
                self.outputs.inc();
            }
            EventKind::SessionOpened { .. } => {
                self.sessions.inc();
            }
            EventKind::Approval(approval) => {
                let label = StateLabel { project: project.into(), state: approval.state.as_str() };
                self.approvals.get_or_create(&label).inc();
            }
            EventKind::SessionClosed { .. }
            | EventKind::SessionCanceled { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::CallsRecovered { .. }
            | EventKind::ServerUp { .. }
            | EventKind::ToolsChanged { .. }
            | EventKind::RequestAnswered { .. }
            | EventKind::AgentSwitchStarted { .. }
            | EventKind::Teardown { .. }
            | EventKind::TeardownFinished { .. }
            | EventKind::Build { .. }
            | EventKind::AgentSwitchFinished { .. }
            | EventKind::AgentSwitchFailed { .. }
            | EventKind::ConfigurationApplied { .. }
            | EventKind::ConfigurationRefused { .. }
            | EventKind::McpFrame { .. } => {}
            EventKind::ServerDown { server, .. } => {
                self.server_failures
                    .get_or_create(&ServerLabel { project: project.into(), server: Arc::clone(server) })
                    .inc();
            }
        }
    }

    /// The counters of a namespace, looked up once per call.
    fn of_namespace(&self, namespace: &Arc<str>) -> NamespaceCounters {
        let known = self.namespaces.read().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned();
        known.unwrap_or_else(|| {
            let label = NamespaceLabel { namespace: Arc::clone(namespace) };
            let counters = NamespaceCounters {
                ok: self.calls.get_or_create(&labels(namespace, "ok", "")).clone(),
                latency: self.latency.get_or_create(&label).clone(),
                characters_in: self.characters_in.get_or_create(&label).clone(),
                characters_out: self.characters_out.get_or_create(&label).clone(),
            };
            let mut namespaces = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
            namespaces.insert(Arc::clone(namespace), counters.clone());
            counters
        })
    }

    fn measure(&self, servers: &[ProviderStatus]) {
        // A server that is gone must not keep its last light.
        self.server_light.clear();
        self.server_latency.clear();
        self.server_tools.clear();
        for status in servers {
            let label = ServerLabel { project: Arc::clone(&status.project), server: Arc::clone(&status.id) };
            self.server_light.get_or_create(&label).set(match status.health {
                HealthStatus::Green => 3,
                HealthStatus::Yellow => 2,
                HealthStatus::Red => 1,
                HealthStatus::Off => 0,
            });
            self.server_tools.get_or_create(&label).set(i64::try_from(status.tools).unwrap_or(i64::MAX));
            if let Some(ms) = status.latency_ms {
                self.server_latency.get_or_create(&label).set(ms / 1000.0);
            }
        }
    }

    /// The page that `/metrics` serves.
    #[must_use]
    pub fn page(&self, queues: &[queue::Snapshot], ledger: Stats, servers: &[ProviderStatus]) -> String {
        self.measure(servers);
        let gauge = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        for queue in queues {
            let label = QueueLabel { queue: queue.name.to_string() };
            self.queue_depth.get_or_create(&label).set(gauge(queue.depth as u64));
            self.queue_in_use.get_or_create(&label).set(gauge(queue.in_use as u64));
            self.queue_wait.get_or_create(&label).set(gauge(queue.last_wait_ms));
            self.queue_rejected.get_or_create(&label).set(gauge(queue.rejected));
        }
        self.ledger_entries.set(gauge(ledger.entries));
        self.ledger_commits.set(gauge(ledger.commits));
        self.ledger_lost.set(gauge(ledger.lost));
        let mut page = String::new();
        // Writing into a string does not fail; if it ever did, an empty page says so to whoever scrapes it.
        encode(&mut page, &self.registry).ok();
        page
    }
}

//! Counters and histograms in the Prometheus text form.

use crate::event::EventKind;
use crate::queue;
use gantry_provider::{HealthStatus, ProviderStatus};
use gantry_store::Stats;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry, Unit};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Names and values that tell the series of a metric apart. Values come from enums and the configuration.
type Labels = Vec<(&'static str, Arc<str>)>;

fn labels<const N: usize>(labels: [(&'static str, &str); N]) -> Labels {
    labels.into_iter().map(|(name, value)| (name, value.into())).collect()
}

fn call_labels(namespace: &str, status: &str, code: &str) -> Labels {
    labels([("namespace", namespace), ("status", status), ("code", code)])
}

/// What every call of a namespace counts.
#[derive(Debug, Clone)]
struct NamespaceCounters {
    ok: Counter,
    latency: Histogram,
    characters_in: Counter,
    characters_out: Counter,
}

/// A histogram of times from 50 µs to about 50 s.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 4.0, 11))
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// There are as many as there are providers.
    namespaces: RwLock<HashMap<Arc<str>, NamespaceCounters>>,
    calls: Family<Labels, Counter>,
    latency: Family<Labels, Histogram, fn() -> Histogram>,
    characters_in: Family<Labels, Counter>,
    characters_out: Family<Labels, Counter>,
    cache_hits: Counter,
    outputs: Counter,
    sessions: Counter,
    approvals: Family<Labels, Counter>,
    webhooks: Family<Labels, Counter>,
    server_failures: Family<Labels, Counter>,
}

/// Makes a metric that is on the page under this name.
fn new<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// The same for a metric of seconds.
fn seconds<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register_with_unit(name, help, Unit::Seconds, metric.clone());
    metric
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("gantry");
        let r = &mut registry;
        let times: Family<_, _, fn() -> Histogram> = Family::new_with_constructor(times);
        Self {
            namespaces: RwLock::default(),
            calls: new(r, "tool_calls", "Tool calls by outcome"),
            latency: seconds(r, "tool_latency", "How long tool calls took", times),
            characters_in: new(r, "tool_characters_in", "Size of arguments"),
            characters_out: new(r, "tool_characters_out", "Size of results"),
            cache_hits: new(r, "cache_hits", "Calls answered from the cache"),
            outputs: new(r, "outputs_stored", "Results stored because of their size"),
            sessions: new(r, "sessions_opened", "Sessions opened"),
            approvals: new(r, "approvals", "Steps of held calls, by the state they led to"),
            webhooks: new(r, "webhook_messages", "Messages to webhooks by outcome"),
            server_failures: new(r, "server_failures", "How often an MCP server went down"),
            registry,
        }
    }
}

impl Metrics {
    /// Counts a message to a project's webhook that was `taken`, or `failed`.
    pub(crate) fn count_webhook(&self, project: &Arc<str>, outcome: &'static str) {
        self.webhooks.get_or_create(&labels([("project", project), ("outcome", outcome)])).inc();
    }

    pub(crate) fn count(&self, project: &str, event: &EventKind) {
        if let EventKind::ToolFinished(f) = event {
            let counters = self.namespace_counters(&f.namespace);
            match f.code {
                None => counters.ok.inc(),
                Some(code) => self.calls.get_or_create(&call_labels(&f.namespace, f.status, code)).inc(),
            };
            counters.latency.observe(Duration::from_micros(f.latency_us).as_secs_f64());
            counters.characters_in.inc_by(f.characters_in);
            counters.characters_out.inc_by(f.characters_out);
            self.cache_hits.inc_by(u64::from(f.cached));
        } else if let EventKind::OutputStored { .. } = event {
            self.outputs.inc();
        } else if let EventKind::SessionOpened { .. } = event {
            self.sessions.inc();
        } else if let EventKind::Approval(approval) = event {
            let label = labels([("project", project), ("state", approval.state.as_str())]);
            self.approvals.get_or_create(&label).inc();
        } else if let EventKind::ServerDown { server, .. } = event {
            self.server_failures.get_or_create(&labels([("project", project), ("server", server)])).inc();
        }
    }

    /// The counters of a namespace, looked up once per call.
    fn namespace_counters(&self, namespace: &Arc<str>) -> NamespaceCounters {
        let known = self.namespaces.read().unwrap_or_else(PoisonError::into_inner).get(namespace).cloned();
        known.unwrap_or_else(|| {
            let label = labels([("namespace", namespace)]);
            let counters = NamespaceCounters {
                ok: self.calls.get_or_create(&call_labels(namespace, "ok", "")).clone(),
                latency: self.latency.get_or_create(&label).clone(),
                characters_in: self.characters_in.get_or_create(&label).clone(),
                characters_out: self.characters_out.get_or_create(&label).clone(),
            };
            let mut namespaces = self.namespaces.write().unwrap_or_else(PoisonError::into_inner);
            namespaces.insert(Arc::clone(namespace), counters.clone());
            counters
        })
    }

    /// The page that `/metrics` serves: what was counted, and gauges of this moment.
    pub fn page(&self, queues: &[queue::Snapshot], ledger: Stats, servers: &[ProviderStatus]) -> String {
        let mut page = String::new();
        // Writing into a string does not fail; if it ever did, a page without its end says so to the scraper.
        let encoded = encode_registry(&mut page, &self.registry)
            .and_then(|()| encode_registry(&mut page, &gauges(queues, ledger, servers)))
            .and_then(|()| encode_eof(&mut page));
        encoded.ok();
        page
    }
}

/// Gauges of queues, ledger and servers. Made for each page, so that a server that is gone leaves nothing behind.
fn gauges(queues: &[queue::Snapshot], ledger: Stats, servers: &[ProviderStatus]) -> Registry {
    let mut registry = Registry::with_prefix("gantry");
    let r = &mut registry;
    let gauge = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let depth: Family<Labels, Gauge> = new(r, "queue_depth", "Calls that wait");
    let in_use: Family<Labels, Gauge> = new(r, "queue_in_use", "Calls that run");
    let wait: Family<Labels, Gauge> = new(r, "queue_last_wait_milliseconds", "The last wait");
    let rejected: Family<Labels, Gauge> = new(r, "queue_rejected", "Calls turned away since the start");
    for queue in queues {
        let label = labels([("queue", &queue.name)]);
        depth.get_or_create(&label).set(gauge(queue.depth as u64));
        in_use.get_or_create(&label).set(gauge(queue.in_use as u64));
        wait.get_or_create(&label).set(gauge(queue.last_wait_ms));
        rejected.get_or_create(&label).set(gauge(queue.rejected));
    }
    for (name, help, count) in [
        ("ledger_entries", "Ledger entries written by this process", ledger.entries),
        ("ledger_commits", "Ledger groups committed by this process", ledger.commits),
        ("ledger_lost", "Reads whose record was lost", ledger.lost),
    ] {
        new::<Gauge>(r, name, help).set(gauge(count));
    }
    let light = "How an MCP server is doing: 3 green, 2 yellow, 1 red, 0 off";
    let light: Family<Labels, Gauge> = new(r, "server_light", light);
    let latency: Family<Labels, Gauge<f64, AtomicU64>> = Family::default();
    let latency = seconds(r, "server_latency", "How long an MCP server took to answer last", latency);
    let tools: Family<Labels, Gauge> = new(r, "server_tools", "Tools of an MCP server");
    for status in servers {
        let label = labels([("project", &status.project), ("server", &status.id)]);
        light.get_or_create(&label).set(match status.health {
            HealthStatus::Green => 3,
            HealthStatus::Yellow => 2,
            HealthStatus::Red => 1,
            HealthStatus::Off => 0,
        });
        tools.get_or_create(&label).set(gauge(status.tools as u64));
        if let Some(ms) = status.latency_ms {
            latency.get_or_create(&label).set(ms / 1000.0);
        }
    }
    registry
}

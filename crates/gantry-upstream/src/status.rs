//! The engine's interface to a server: start, restart, status and warnings.

use crate::options::DisabledReason;
use crate::server::UpstreamServer;
use crate::supervise;
use crate::view::{ReplicaState, ServerView};
use gantry_core::digest::Digest;
use gantry_provider::clock::Timestamp;
use gantry_provider::resources::ListKind;
use gantry_provider::server::{Server, ServerConfig};
use gantry_provider::{BoxFuture, HealthStatus, ProviderStatus, ReplicaStatus};
use serde_json::{Value, json};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How often a server that is to be closed is checked for requests under way.
const IDLE_CHECK: Duration = Duration::from_millis(20);

/// How many tools a warning names.
const NAMED: usize = 5;

impl Server for UpstreamServer {
    fn has_config(&self, config: &dyn ServerConfig) -> bool {
        let config: &dyn Any = config;
        config.downcast_ref() == Some(&self.settings)
    }

    fn start(self: Arc<Self>) {
        if self.settings.disabled.is_none() {
            for n in 0..self.replicas.len() {
                self.tasks.spawn(supervise::keep_alive(Arc::clone(&self), n));
            }
        }
    }

    fn restart(&self) {
        for (n, replica) in self.replicas.iter().enumerate() {
            // The status says at once that it is starting.
            self.update(n, ReplicaState::restarting);
            replica.restart.notify_one();
        }
    }

    fn idle(&self, grace: Duration) -> BoxFuture<'_, ()> {
        let idle = async {
            while self.view.load().replicas.iter().any(|state| state.in_flight.count() > 0) {
                sleep(IDLE_CHECK).await;
            }
        };
        Box::pin(async move {
            timeout(grace, idle).await.ok(); // The engine closes it then in any case.
        })
    }

    fn startup_timeout(&self) -> Duration {
        self.settings.options.startup_timeout.get()
    }

    fn has_settled(&self) -> bool {
        self.settings.disabled.is_some() || self.view.load().has_settled()
    }

    fn tools_digest(&self) -> Option<Digest> {
        self.listing().map(|listing| listing.tools_digest)
    }

    fn status(&self) -> ProviderStatus {
        let view = self.view.load();
        let (health, status) = self.summary(&view);
        let listing = view.listing.as_ref();
        let count = |kind| listing.map_or(0, |listing| listing.items(kind).len());
        let latency = view.replicas.iter().filter_map(|state| state.latency).min();
        let replicas = self.replicas.iter().zip(&view.replicas).map(|(replica, state)| ReplicaStatus {
            name: replica.name.clone(),
            health: state.health,
            in_flight: state.in_flight.count(),
            last_error: state.last_error.clone(),
        });
        ProviderStatus {
            id: self.id().clone(),
            project: self.context.project.clone(),
            agent: None,
            kind: self.settings.options.transport().as_str().into(),
            health,
            status: status.into(),
            since: view.since(),
            era: listing.map(|listing| listing.about.version.as_str().into()),
            latency_ms: latency.map(|time| time.as_secs_f64() * 1000.0),
            tools: listing.map_or(0, |listing| listing.tools.len()),
            quarantined: 0,
            resources: count(ListKind::Resources) + count(ListKind::Templates),
            prompts: count(ListKind::Prompts),
            last_error: self.last_error(&view),
            retry_at: view.retry_at(health),
            flags: listing.map(|listing| listing.flags()).unwrap_or_default(),
            replicas: if self.replicas.len() > 1 { replicas.collect() } else { Vec::new() },
            import: None,
        }
    }

    fn unavailable_reason(&self) -> Option<String> {
        (!self.view.load().is_ready()).then(|| self.why_unavailable())
    }

    fn warnings(&self) -> Vec<String> {
        let (id, view) = (self.id(), self.view.load());
        let mut warnings = Vec::new();
        let is_disabled = self.settings.disabled == Some(DisabledReason::Disabled);
        if !is_usable(self.summary(&view).0) && !is_disabled {
            warnings.push(self.why_unavailable());
        }
        let Some(listing) = &view.listing else { return warnings };
        warnings.extend(listing.warnings.iter().map(|warning| format!("server {id}: {warning}")));
        warnings.extend(listing.flags().iter().map(|flag| format!("server {id} looks suspicious: {flag}")));
        let violations = listing.tools.iter().filter_map(|tool| tool.output_check.violation());
        warnings.extend(violations.map(str::to_owned));
        let instructions = listing.about.instructions.as_deref();
        if instructions.is_some_and(|text| !self.context.pins.admits_instructions(id, text)) {
            warnings.push(format!(
                "server {id}: its instructions are not the pinned ones and are withheld; see `gantry lock diff {id}`"
            ));
        }
        let ready = self.replicas.iter().zip(&view.replicas).filter(|(_, state)| state.ready.is_some());
        for (replica, state) in ready {
            let differing = state.listing.as_ref().map(|own| own.differing(listing)).unwrap_or_default();
            if !differing.is_empty() {
                warnings.push(format!(
                    "server {id}: replica {} has other tools than the rest: {}; it is not called for those that differ",
                    replica.name,
                    name_some(&differing)
                ));
            }
        }
        warnings
    }

    fn remarks(&self, tool: &str) -> Vec<String> {
        let listing = self.listing();
        let definition = listing.as_ref().and_then(|listing| listing.tool(tool));
        let flags = definition.iter().flat_map(|definition| &definition.flags);
        let flags = flags.map(|flag| format!("it looks suspicious: {flag}"));
        let violation = definition.and_then(|definition| definition.output_check.violation());
        self.unavailable_reason().into_iter().chain(flags).chain(violation.map(str::to_owned)).collect()
    }
}

impl UpstreamServer {
    fn summary(&self, view: &ServerView) -> (HealthStatus, &'static str) {
        if self.settings.disabled.is_some() {
            return (HealthStatus::Off, "off");
        }
        let is_green = |health: &HealthStatus| *health == HealthStatus::Green;
        let mut all = view.replicas.iter().map(|state| &state.health);
        if view.is_ready() {
            return match (all.clone().all(is_green), all.any(is_green)) {
                (true, _) => (HealthStatus::Green, "ready"),
                (false, true) => (HealthStatus::Yellow, "ready"),
                (false, false) => (HealthStatus::Yellow, "slow"),
            };
        }
        let is_starting = all.any(|health| *health == HealthStatus::Yellow);
        if is_starting { (HealthStatus::Yellow, "starting") } else { (HealthStatus::Red, "down") }
    }

    fn last_error(&self, view: &ServerView) -> Option<String> {
        match &self.settings.disabled {
            Some(DisabledReason::Unusable(reason)) => Some(reason.clone()),
            Some(DisabledReason::Disabled) => None,
            None => view.replicas.iter().filter_map(|state| state.last_error.clone()).next_back(),
        }
    }

    /// Why requests cannot be sent right now, and when that may change.
    pub(crate) fn why_unavailable(&self) -> String {
        let view = self.view.load();
        let (id, (health, _)) = (self.id(), self.summary(&view));
        match (health, self.last_error(&view), view.retry_at(health)) {
            (HealthStatus::Off, Some(reason), _) => format!("server {id} is switched off: {reason}"),
            (HealthStatus::Off, None, _) => format!("server {id} is switched off (enabled: false)"),
            (_, Some(reason), Some(at)) => {
                format!("server {id} is down since {}: {reason}; it is tried again at {at}", view.since())
            }
            (_, Some(reason), None) => format!("server {id} is starting anew after this failure: {reason}"),
            (_, None, _) => format!("server {id} is still starting"),
        }
    }

    /// The same for programs, without the reason.
    pub(super) fn unavailable_details(&self) -> Value {
        let ProviderStatus { id, status, since, retry_at, .. } = self.status();
        json!({ "server": id, "status": status, "since": since, "retryAt": retry_at })
    }
}

impl ServerView {
    /// When the health changed last.
    fn since(&self) -> Timestamp {
        Timestamp(self.replicas.iter().map(|state| state.since_us).max().unwrap_or_default())
    }

    /// When a server that is down is tried again.
    fn retry_at(&self, health: HealthStatus) -> Option<Timestamp> {
        let at = self.replicas.iter().filter_map(|state| state.retry_us).min();
        at.filter(|_| !is_usable(health)).map(Timestamp)
    }
}

fn is_usable(health: HealthStatus) -> bool {
    matches!(health, HealthStatus::Green | HealthStatus::Yellow)
}

fn name_some(names: &BTreeSet<&str>) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = names.len() - first.len();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", first.join(", "))
}

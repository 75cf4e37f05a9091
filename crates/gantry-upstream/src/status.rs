//! The status of a server, for people and programs.

use crate::config::DisabledReason;
use crate::replica::{Replica, State};
use crate::server::UpstreamServer;
use gantry_provider::resources::ListKind;
use gantry_provider::{HealthStatus, ProviderStatus, clock};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How many tools a warning names.
const NAMED: usize = 5;

impl UpstreamServer {
    /// What `GET /api/v1/servers` shows of it.
    pub(crate) fn describe(&self) -> ProviderStatus {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (health, status) = self.summary(&states);
        let known = self.listing();
        let count = |kind| known.as_ref().map_or(0, |known| known.items(kind).len());
        ProviderStatus {
            id: self.id().clone(),
            project: self.context.project.clone(),
            agent: None,
            kind: self.settings.transport.kind(),
            health,
            status,
            since: since(&states),
            era: known.as_ref().map(|known| known.about.version.as_str()),
            latency_ms: states
                .iter()
                .filter_map(|state| state.latency)
                .min()
                .map(|time| time.as_secs_f64() * 1000.0),
            tools: known.as_ref().map_or(0, |known| known.tools.len()),
            quarantined: 0,
            resources: count(ListKind::Resources) + count(ListKind::Templates),
            prompts: count(ListKind::Prompts),
            last_error: self.last_error(&states),
            retry_at: retry_at(health, &states),
            flags: known.as_ref().map(|known| known.flags()).unwrap_or_default(),
            replicas: if self.replicas.len() > 1 {
                self.replicas.iter().map(Replica::status).collect()
            } else {
                Vec::new()
            },
        }
    }

    fn summary(&self, states: &[State]) -> (HealthStatus, &'static str) {
        if self.settings.disabled.is_some() {
            return (HealthStatus::Off, "off");
        }
        let all: Vec<HealthStatus> = states.iter().map(|state| state.health).collect();
        let ready = states.iter().any(|state| state.ready.is_some());
        let begins = states.iter().any(|state| state.ready.is_none() && state.health == HealthStatus::Yellow);
        match (ready, all.iter().all(|health| *health == HealthStatus::Green)) {
            (true, true) => (HealthStatus::Green, "ready"),
            (true, false) if all.contains(&HealthStatus::Green) => (HealthStatus::Yellow, "ready"),
            (true, false) => (HealthStatus::Yellow, "slow"),
            (false, _) if begins => (HealthStatus::Yellow, "starting"),
            (false, _) => (HealthStatus::Red, "down"),
        }
    }

    fn last_error(&self, states: &[State]) -> Option<String> {
        match &self.settings.disabled {
            Some(DisabledReason::Unusable(reason)) => Some(reason.clone()),
            Some(DisabledReason::Disabled) => None,
            None => states.iter().filter_map(|state| state.last_error.clone()).next_back(),
        }
    }

    /// Why requests cannot be sent right now, and when that may change.
    pub(crate) fn why_unavailable(&self) -> String {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (id, (health, _)) = (self.id(), self.summary(&states));
        match (health, self.last_error(&states), retry_at(health, &states)) {
            (HealthStatus::Off, Some(reason), _) => format!("server {id} is switched off: {reason}"),
            (HealthStatus::Off, None, _) => format!("server {id} is switched off (enabled: false)"),
            (_, Some(reason), Some(at)) => {
                format!("server {id} is down since {}: {reason}; it is tried again at {at}", since(&states))
            }
            (_, Some(reason), None) => format!("server {id} is starting anew after this failure: {reason}"),
            (_, None, _) => format!("server {id} is still starting"),
        }
    }

    /// The same for programs, without the reason.
    pub(super) fn unavailable_details(&self) -> Value {
        let ProviderStatus { id, status, since, retry_at, .. } = self.describe();
        json!({ "server": id, "status": status, "since": since, "retryAt": retry_at })
    }

    /// What looks wrong with it although it stops nothing else.
    pub(crate) fn list_warnings(&self) -> Vec<String> {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (id, (health, _)) = (self.id(), self.summary(&states));
        let mut warnings = Vec::new();
        let is_disabled = self.settings.disabled == Some(DisabledReason::Disabled);
        if !is_usable(health) && !is_disabled {
            warnings.push(self.why_unavailable());
        }
        let known = self.listing();
        warnings.extend(
            known.iter().flat_map(|known| &known.warnings).map(|warning| format!("server {id}: {warning}")),
        );
        let flags = known.as_ref().map(|known| known.flags()).unwrap_or_default();
        warnings.extend(flags.iter().map(|flag| format!("server {id} looks suspicious: {flag}")));
        warnings.extend(self.output_checks.violations(None));
        let instructions = known.as_ref().and_then(|known| known.about.instructions.as_deref());
        if instructions.is_some_and(|text| !self.context.pins.admits_instructions(id, text)) {
            warnings.push(format!(
                "server {id}: its instructions are not the pinned ones and are withheld; see `gantry lock diff {id}`"
            ));
        }
        let ready = self.replicas.iter().zip(&states).filter(|(_, state)| state.ready.is_some());
        for (replica, state) in ready {
            let (Some(own), Some(known)) = (&state.listing, &known) else { continue };
            let differing = own.differing(known);
            if !differing.is_empty() {
                warnings.push(format!(
                    "server {id}: replica {} has other tools than the rest: {}; it is not called for those that differ",
                    replica.name,
                    named(&differing)
                ));
            }
        }
        warnings
    }
}

/// When its health changed last.
fn since(states: &[State]) -> String {
    clock::iso(states.iter().map(|state| state.since_us).max().unwrap_or_default())
}

/// When a server that is down is tried again.
fn retry_at(health: HealthStatus, states: &[State]) -> Option<String> {
    let at = states.iter().filter_map(|state| state.retry_us).min();
    at.filter(|_| !is_usable(health)).map(clock::iso)
}

/// Whether a server in this state can be used.
fn is_usable(health: HealthStatus) -> bool {
    matches!(health, HealthStatus::Green | HealthStatus::Yellow)
}

/// The first few of these names.
fn named(names: &BTreeSet<&str>) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = names.len() - first.len();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", first.join(", "))
}

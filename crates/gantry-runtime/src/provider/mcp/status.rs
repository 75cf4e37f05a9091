//! How a server is doing, for people and programs.

use super::replica::{Replica, State};
use super::{McpServer, is_usable};
use crate::clock;
use crate::servers::{Light, Off, ServerStatus};
use gantry_core::pattern::Pattern;
use gantry_mcp::client::ListKind;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Tools that a warning names.
const NAMED: usize = 5;

impl McpServer {
    /// How it is doing. How many of its tools are quarantined only the pool knows.
    pub(crate) fn status(&self) -> ServerStatus {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (light, status) = self.glance(&states);
        let known = self.listing();
        let count = |kind| known.as_ref().map_or(0, |known| known.items(kind).len());
        ServerStatus {
            id: self.id().clone(),
            project: self.hub.project.clone(),
            agent: None,
            kind: self.settings.reach.kind(),
            light,
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
            retry_at: retry_at(light, &states),
            flags: known.as_ref().map(|known| known.flags()).unwrap_or_default(),
            replicas: if self.replicas.len() > 1 {
                self.replicas.iter().map(Replica::status).collect()
            } else {
                Vec::new()
            },
        }
    }

    fn glance(&self, states: &[State]) -> (Light, &'static str) {
        if self.settings.off.is_some() {
            return (Light::Off, "off");
        }
        let lights: Vec<Light> = states.iter().map(|state| state.light).collect();
        let ready = states.iter().any(|state| state.ready.is_some());
        let begins = states.iter().any(|state| state.ready.is_none() && state.light == Light::Yellow);
        match (ready, lights.iter().all(|light| *light == Light::Green)) {
            (true, true) => (Light::Green, "ready"),
            (true, false) if lights.contains(&Light::Green) => (Light::Yellow, "ready"),
            (true, false) => (Light::Yellow, "slow"),
            (false, _) if begins => (Light::Yellow, "starting"),
            (false, _) => (Light::Red, "down"),
        }
    }

    fn last_error(&self, states: &[State]) -> Option<String> {
        match &self.settings.off {
            Some(Off::Unusable(reason)) => Some(reason.clone()),
            Some(Off::Disabled) => None,
            None => states.iter().filter_map(|state| state.last_error.clone()).next_back(),
        }
    }

    /// Why requests cannot be sent right now, and when that may change.
    pub(crate) fn absence(&self) -> String {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (id, (light, _)) = (self.id(), self.glance(&states));
        match (light, self.last_error(&states), retry_at(light, &states)) {
            (Light::Off, Some(reason), _) => format!("server {id} is switched off: {reason}"),
            (Light::Off, None, _) => format!("server {id} is switched off (enabled: false)"),
            (_, Some(reason), Some(at)) => {
                format!("server {id} is down since {}: {reason}; it is tried again at {at}", since(&states))
            }
            (_, Some(reason), None) => format!("server {id} is starting anew after this failure: {reason}"),
            (_, None, _) => format!("server {id} is still starting"),
        }
    }

    /// The same for programs, without the reason.
    pub(super) fn absence_details(&self) -> Value {
        let ServerStatus { id, status, since, retry_at, .. } = self.status();
        json!({ "server": id, "status": status, "since": since, "retryAt": retry_at })
    }

    /// What looks wrong with it although it stops nothing else.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (id, (light, _)) = (self.id(), self.glance(&states));
        let mut warnings = Vec::new();
        let is_disabled = self.settings.off == Some(Off::Disabled);
        if !is_usable(light) && !is_disabled {
            warnings.push(self.absence());
        }
        let known = self.listing();
        warnings.extend(
            known.iter().flat_map(|known| &known.warnings).map(|warning| format!("server {id}: {warning}")),
        );
        let flags = known.as_ref().map(|known| known.flags()).unwrap_or_default();
        warnings.extend(flags.iter().map(|flag| format!("server {id} looks suspicious: {flag}")));
        warnings.extend(self.promises.broken(None));
        let options = self.options();
        let names = known.iter().flat_map(|known| &known.tools).map(|tool| tool.spec.name.as_str());
        let idle: Vec<&Pattern> = options.idle_denials(&self.origin, names).collect();
        warnings.extend(idle.iter().filter(|_| known.is_some()).map(|pattern| {
            format!("server {id}: {:?} in toolsDenied matches no tool; globs know * and ?", pattern.as_str())
        }));
        let said = known.as_ref().and_then(|known| known.about.instructions.as_deref());
        if said.is_some_and(|text| !self.hub.lock.admits_instructions(id, text)) {
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

/// When its light changed last.
fn since(states: &[State]) -> String {
    clock::iso(states.iter().map(|state| state.since_us).max().unwrap_or_default())
}

/// When a server that is down is tried again.
fn retry_at(light: Light, states: &[State]) -> Option<String> {
    let at = states.iter().filter_map(|state| state.retry_us).min();
    at.filter(|_| !is_usable(light)).map(clock::iso)
}

/// The first few of these names.
fn named(names: &BTreeSet<&str>) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).copied().collect();
    let more = names.len() - first.len();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{rest}", first.join(", "))
}

//! How a server is doing, for people and programs.

use super::replica::{Replica, State};
use super::{McpServer, is_usable};
use crate::clock;
use crate::provider::Provider as _;
use crate::servers::{Light, Off, ServerStatus};
use gantry_mcp::client::ListKind;

impl McpServer {
    /// How it is doing.
    pub(crate) fn status(&self) -> ServerStatus {
        let states: Vec<State> = self.replicas.iter().map(Replica::state).collect();
        let (light, status) = self.glance(&states);
        let known = self.listing();
        let count = |kind| known.as_ref().map_or(0, |known| known.items(kind).len());
        let tools = known.as_ref().map_or(&[][..], |known| &known.tools);
        let down = !is_usable(light);
        ServerStatus {
            id: self.id().clone(),
            project: self.hub.project.clone(),
            kind: self.settings.reach.kind(),
            light,
            status,
            since: clock::iso(states.iter().map(|state| state.since_us).max().unwrap_or_default()),
            era: known.as_ref().map(|known| known.about.version.as_str()),
            latency_ms: states
                .iter()
                .filter_map(|state| state.latency)
                .min()
                .map(|time| time.as_secs_f64() * 1000.0),
            tools: tools.len(),
            quarantined: tools.iter().filter(|tool| self.objection(&tool.spec.name).is_some()).count(),
            resources: count(ListKind::Resources) + count(ListKind::Templates),
            prompts: count(ListKind::Prompts),
            last_error: self.last_error(&states),
            retry_at: states.iter().filter(|_| down).filter_map(|state| state.retry_us).min().map(clock::iso),
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
        let (id, status) = (self.id(), self.status());
        match (status.light, status.last_error, status.retry_at) {
            (Light::Off, Some(reason), _) => format!("server {id} is switched off: {reason}"),
            (Light::Off, None, _) => format!("server {id} is switched off (enabled: false)"),
            (_, Some(reason), Some(at)) => {
                format!("server {id} is down: {reason}; it is tried again at {at}")
            }
            (_, Some(reason), None) => format!("server {id} is starting anew after this failure: {reason}"),
            (_, None, _) => format!("server {id} is still starting"),
        }
    }

    /// What looks wrong with it although it stops nothing else.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let (id, status) = (self.id(), self.status());
        let mut warnings = Vec::new();
        let is_disabled = self.settings.off == Some(Off::Disabled);
        if !is_usable(status.light) && !is_disabled {
            warnings.push(self.absence());
        }
        let known = self.listing();
        warnings.extend(
            known.iter().flat_map(|known| &known.warnings).map(|warning| format!("server {id}: {warning}")),
        );
        warnings.extend(status.flags.iter().map(|flag| format!("server {id} looks suspicious: {flag}")));
        let said = known.as_ref().and_then(|known| known.about.instructions.as_deref());
        if said.is_some_and(|text| !self.hub.lock.admits_instructions(id, text)) {
            warnings.push(format!(
                "server {id}: its instructions are not the pinned ones and are withheld; see `gantry lock diff {id}`"
            ));
        }
        for replica in &self.replicas {
            let state = replica.state();
            let differs = match (&state.listing, &known) {
                (Some(own), Some(known)) => state.ready.is_some() && !own.has_tools_of(known),
                _ => false,
            };
            if differs {
                warnings.push(format!("server {id}: replica {} has other tools than the rest", replica.name));
            }
        }
        warnings
    }
}

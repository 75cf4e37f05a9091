//! How an API is doing: whether its document could be read, and what became of it.

use super::{Api, ImportedApi, Shared};
use crate::auth;
use arc_swap::ArcSwapOption;
use gantry_provider::clock::{Timestamp, now_us};
use gantry_provider::{HealthStatus, ImportStatus, ProviderStatus};

/// The last attempt to read the document.
#[derive(Debug, Default)]
pub(super) struct LastRead(ArcSwapOption<(i64, Option<String>)>);

impl LastRead {
    /// Notes how an attempt ended, unless the one before ended the same way.
    pub(super) fn note(&self, outcome: &Result<(), String>) {
        let error = outcome.as_ref().err();
        if self.0.load().as_ref().is_none_or(|last| last.1.as_ref() != error) {
            self.0.store(Some((now_us(), error.cloned()).into()));
        }
    }
}

impl Api {
    pub(super) fn status(&self) -> ProviderStatus {
        let Shared { origin, last_read, loaded, .. } = &*self.shared;
        let (last, loaded) = (last_read.0.load(), loaded.load());
        let (since_us, last_error) = last.as_deref().cloned().unwrap_or_else(|| (now_us(), None));
        let (health, status) = match (loaded.is_some(), &last_error) {
            (true, None) => (HealthStatus::Green, "ready"),
            // It goes on with the document that it had.
            (true, Some(_)) => (HealthStatus::Yellow, "ready"),
            (false, None) => (HealthStatus::Yellow, "starting"),
            (false, Some(_)) => (HealthStatus::Red, "down"),
        };
        ProviderStatus {
            id: origin.provider.clone(),
            project: "".into(),
            agent: None,
            kind: "openapi".into(),
            health,
            status: status.into(),
            since: Timestamp(since_us),
            era: None,
            latency_ms: None,
            tools: loaded.as_ref().map_or(0, |loaded| loaded.tools.len()),
            quarantined: 0,
            resources: 0,
            prompts: 0,
            last_error,
            retry_at: None,
            flags: Vec::new(),
            replicas: Vec::new(),
            import: loaded.as_ref().map(|loaded| self.import_status(loaded)),
        }
    }

    fn import_status(&self, loaded: &ImportedApi) -> ImportStatus {
        let import = &loaded.import;
        ImportStatus {
            operations: import.total,
            left_out: import.filtered,
            skipped: import.total.saturating_sub(import.operations.len() + import.filtered),
            missing_credentials: auth::missing(import, &self.shared.options),
        }
    }
}

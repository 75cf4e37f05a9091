//! The configuration of a running Gantry: what holds, and what is read when the files change.

use super::plan::plan;
use crate::Extra;
use crate::config::{Config, Loaded, ProcessEnv, Source};
use gantry_runtime::projects::{Load, Plans};
use gantry_runtime::{Plan, ProcessOptions, queue};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What holds, and where it comes from.
#[derive(Debug)]
pub(crate) struct Configuration {
    source: Source,
    extra: Extra,
    /// The ledger that was opened at the start, whatever the file says by now.
    ledger: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    held: Arc<Loaded>,
    /// Read last, and not held yet.
    read: Option<Arc<Loaded>>,
}

impl Configuration {
    pub(super) fn new(source: Source, loaded: Loaded, extra: Extra) -> Self {
        let ledger = loaded.config.store.path.clone();
        Self { source, extra, ledger, state: Mutex::new(State { held: Arc::new(loaded), read: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What holds.
    pub(crate) fn held(&self) -> Arc<Loaded> {
        Arc::clone(&self.state().held)
    }

    /// For the process as a whole.
    pub(super) fn process(loaded: &Loaded) -> ProcessOptions {
        let queues = loaded.config.queues.iter().map(|(name, queue)| queue::Options {
            name: name.as_str().into(),
            concurrent: queue.concurrent,
            max_waiting: queue.max_waiting,
        });
        ProcessOptions {
            queues: queues.collect(),
            max_calls: loaded.config.main.defaults.max_concurrent_calls,
        }
    }

    /// The plans of all projects, or of those that are other than `before`.
    pub(super) fn plans(
        &self,
        loaded: &Loaded,
        before: Option<&Loaded>,
    ) -> anyhow::Result<BTreeMap<Arc<str>, Plan>> {
        // Every workspace is kept from the files that configure Gantry, so other files are other plans.
        let fenced = loaded.fenced(&self.ledger);
        let before = before.filter(|before| before.fenced(&self.ledger) == fenced);
        let mut plans = BTreeMap::new();
        for (name, project) in loaded.config.all() {
            if before.and_then(|before| before.config.project(name)) != Some(project) {
                plans.insert(Arc::from(name), plan(name, project, &fenced, &self.extra)?);
            }
        }
        Ok(plans)
    }

    fn read(&self) -> anyhow::Result<Option<Plans>> {
        let before = self.held();
        let loaded = Config::load(&self.source, &ProcessEnv)?;
        // Without a file Gantry starts on defaults, but a file that goes missing takes no rule with it.
        if let (Some(file), None) = (&before.file, &loaded.file) {
            anyhow::bail!("{} is gone; put it back, or restart Gantry to run on defaults", file.display());
        }
        if loaded == *before {
            return Ok(None);
        }
        for warning in loaded.warnings.iter().filter(|warning| !before.warnings.contains(warning)) {
            tracing::warn!("{warning}");
        }
        for (key, is_other) in needs_restart(&before.config, &loaded.config) {
            if is_other {
                tracing::warn!("{key} has changed; that takes effect when Gantry starts the next time");
            }
        }
        let mut changed = self.plans(&loaded, Some(&before))?;
        let projects = loaded.config.all().map(|(name, _)| (name.into(), changed.remove(name))).collect();
        let process = Self::process(&loaded);
        self.state().read = Some(Arc::new(loaded));
        Ok(Some(Plans { process, projects }))
    }
}

/// What a running process cannot change.
fn needs_restart(before: &Config, now: &Config) -> [(&'static str, bool); 2] {
    [("server", before.server != now.server), ("store", before.store != now.store)]
}

impl Load for Configuration {
    fn load(&self) -> Result<Option<Plans>, String> {
        self.read().map_err(|error| format!("{error:#}"))
    }

    fn keep(&self) {
        let mut state = self.state();
        if let Some(read) = state.read.take() {
            state.held = read;
        }
    }
}

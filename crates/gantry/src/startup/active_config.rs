//! The configuration of a running Gantry: what applies, and what is read when the files change.

use super::plan::{plan, validate};
use crate::Extra;
use crate::config::{self, Accepted, Config, Env, Loaded, MAIN_PROJECT, Source};
use gantry_runtime::projects::{Held, Load, Plans};
use gantry_runtime::{Plan, ProcessOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What applies, and where it comes from.
#[derive(Debug)]
pub(crate) struct ActiveConfig {
    source: Source,
    extra: Extra,
    /// The ledger that was opened at the start; a changed file cannot name another.
    ledger: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    current: Arc<Loaded>,
    /// Read last, and not applied yet.
    read: Option<Arc<Loaded>>,
    /// Read last, with what is said of it, if a person has to apply it.
    held: Option<(Arc<Loaded>, Held)>,
}

impl ActiveConfig {
    pub(crate) fn new(source: Source, loaded: Loaded, extra: Extra) -> Self {
        let ledger = loaded.config.store.clone();
        Self {
            source,
            extra,
            ledger,
            state: Mutex::new(State { current: Arc::new(loaded), read: None, held: None }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.state().current)
    }

    pub(super) fn process(loaded: &Loaded) -> ProcessOptions {
        let limits =
            loaded.config.project(MAIN_PROJECT).map(|project| project.limits.clone()).unwrap_or_default();
        let max_calls = limits.max_concurrent_calls.size();
        ProcessOptions { queues: loaded.config.queues.clone(), max_calls }
    }

    /// The plans of all projects, or of those that are other than `before`. Starts nothing.
    pub(crate) fn plans(
        &self,
        loaded: &Loaded,
        before: Option<&Loaded>,
    ) -> anyhow::Result<BTreeMap<Arc<str>, Plan>> {
        validate(loaded)?;
        // The tools of a workspace are kept from the files that configure Gantry, so other files are other plans.
        let protected = loaded.protected_paths(&self.ledger);
        let before = before.filter(|before| before.protected_paths(&self.ledger) == protected);
        let mut plans = BTreeMap::new();
        for (name, project) in loaded.config.all() {
            if before.and_then(|before| before.config.project(name)) != Some(project) {
                plans.insert(Arc::from(name), plan(name, project, &loaded.data, &protected, &self.extra)?);
            }
        }
        Ok(plans)
    }

    fn read(&self) -> anyhow::Result<Option<Plans>> {
        let before = self.current();
        let loaded = Config::load(&self.source, &Env::Process)?;
        // Without a file Gantry starts on defaults, but a file that goes missing takes no rule with it.
        if let (Some(file), None) = (&before.file, &loaded.file) {
            anyhow::bail!("{} is gone; put it back, or restart Gantry to run on defaults", file.display());
        }
        for warning in loaded.warnings.iter().filter(|warning| !before.warnings.contains(warning)) {
            tracing::warn!("{warning}");
        }
        let accepted = Accepted::read(&before.data).map_err(config::Error::from)?.unwrap_or_default();
        let reasons = loaded.reasons_to_hold(&before, &accepted);
        if reasons.is_empty() && loaded.is_like(&before) {
            let mut state = self.state();
            (state.current, state.held) = (Arc::new(loaded), None);
            return Ok(None);
        }
        let (old, new) = (&before.config, &loaded.config);
        for (key, is_other) in [("server", old.server != new.server), ("store", old.store != new.store)] {
            if is_other {
                tracing::warn!("{key} has changed; that takes effect when Gantry starts the next time");
            }
        }
        let mut changed = self.plans(&loaded, Some(&before))?;
        let projects = loaded.config.all().map(|(name, _)| (name.into(), changed.remove(name))).collect();
        let process = Self::process(&loaded);
        let mut state = self.state();
        let loaded = Arc::new(loaded);
        state.held = match state.held.take() {
            _ if reasons.is_empty() => None,
            Some((known, held)) if known == loaded && held.reasons == reasons => Some((known, held)),
            _ => {
                let revision = uuid::Uuid::new_v4().simple().to_string();
                Some((Arc::clone(&loaded), Held { revision, reasons }))
            }
        };
        state.read = Some(loaded);
        let held = state.held.as_ref().map(|(_, held)| held.clone());
        Ok(Some(Plans { process, projects, held }))
    }

    /// Files that are gone count as new if they come back. Blocks.
    pub(crate) fn forget_missing_files(&self) {
        if let Err(error) = Accepted::update(&self.current().data, Accepted::forget_missing) {
            tracing::error!("the list of accepted files cannot be written: {error}");
        }
    }
}

impl Load for ActiveConfig {
    fn load(&self) -> Result<Option<Plans>, String> {
        self.read().map_err(|error| format!("{error:#}"))
    }

    fn keep(&self) -> Result<(), String> {
        let read = self.state().read.take();
        let Some(read) = read else { return Ok(()) };
        // What tools could write from now on is known before they can.
        Accepted::add(&read)
            .map_err(|error| format!("the list of accepted files cannot be written: {error}"))?;
        let mut state = self.state();
        (state.current, state.held) = (read, None);
        Ok(())
    }
}

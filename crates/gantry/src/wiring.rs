//! From the configuration to running projects.

mod configuration;
mod plan;

pub(crate) use configuration::Configuration;
pub use plan::tools_reference;
pub(crate) use plan::{api_options, policies, private, rule};

use crate::Extra;
use crate::config::{Loaded, Problem, ProcessEnv, ServerReader, Source};
use anyhow::Context as _;
use gantry_runtime::{Plan, Projects, Services};
use gantry_server::ParseServer;
use gantry_store::Store;
use gantry_upstream::options::DisabledReason;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What has started.
pub(crate) struct Started {
    pub(crate) projects: Arc<Projects>,
    pub(crate) configuration: Arc<Configuration>,
}

/// Opens the store and starts the projects that the configuration describes.
pub(crate) async fn start(source: Source, loaded: Loaded, extra: Extra) -> anyhow::Result<Started> {
    let configuration = Arc::new(Configuration::new(source, loaded, extra));
    let held = configuration.held();
    let plans = configuration.plans(&held, None)?;
    let store = held.config.store.path.clone();
    let opened = tokio::task::spawn_blocking(move || Store::open(gantry_store::Options::new(store))).await?;
    let (store, recovery) = opened.context("cannot open the ledger")?;
    let services = Services::new(store, &recovery, Configuration::process(&held));
    let projects = Projects::start(services, plans, Some(Arc::clone(&configuration) as _)).await?;
    Ok(Started { projects, configuration })
}

/// The plans of the projects that a configuration describes. Nothing is started.
pub(crate) fn unstarted(
    source: Source,
    loaded: Loaded,
    extra: Extra,
) -> anyhow::Result<BTreeMap<Arc<str>, Plan>> {
    let configuration = Configuration::new(source, loaded, extra);
    configuration.plans(&configuration.held(), None)
}

/// Reads servers that are added while Gantry runs, by the configuration that holds at that moment.
pub(crate) fn server_parser(configuration: &Arc<Configuration>) -> Arc<ParseServer> {
    let configuration = Arc::clone(configuration);
    Arc::new(move |project, id, entry| {
        let (held, mut problems) = (configuration.held(), Vec::new());
        let project = held.config.project(project).ok_or("there is no such project")?;
        let (server, warnings) = ServerReader::new(&held, project)
            .read(id, entry, &ProcessEnv)
            .map_err(|error| in_words(error.problems()))?;
        let plan = plan::server_plan(id, &server, project.defaults.trace_mcp, &mut problems);
        match &server.off {
            _ if !problems.is_empty() => Err(in_words(&problems)),
            // In a file the other servers go on; here there is nobody else, so whoever adds it is told.
            Some(DisabledReason::Unusable(reason)) => Err(reason.clone()),
            Some(DisabledReason::Disabled) | None => Ok((plan, warnings)),
        }
    })
}

/// Problems without their places, for a text that is no file.
fn in_words(problems: &[Problem]) -> String {
    problems.iter().map(Problem::message).collect::<Vec<_>>().join("; ")
}

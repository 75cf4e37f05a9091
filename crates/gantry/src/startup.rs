//! From the configuration to running projects.

mod active_config;
mod plan;

pub(crate) use active_config::ActiveConfig;
pub(crate) use plan::{policy_problems, validate};

use crate::Extra;
use crate::config::{Accepted, Config, Env, Error, Loaded, MAIN_PROJECT, Problem, Source};
use anyhow::Context as _;
use gantry_core::tool::ToolSpec;
use gantry_runtime::{Projects, Services};
use gantry_server::ParseServer;
use gantry_store::Store;
use gantry_tools::workspace::ProtectedPaths;
use gantry_upstream::options::DisabledReason;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Started {
    pub(crate) projects: Arc<Projects>,
    pub(crate) configuration: Arc<ActiveConfig>,
}

/// Reads the configuration and checks all of it. The error has every problem, also of parts that other problems are in.
pub(crate) fn check(source: &Source, env: &Env) -> Result<Loaded, Error> {
    let (loaded, mut problems) = Config::examine(source, env)?;
    if let Err(others) = validate(&loaded) {
        problems.extend(others);
    }
    problems.into_result().map(|()| loaded)
}

/// Opens the store and starts the projects that the configuration describes.
pub(crate) async fn start(source: Source, loaded: Loaded, extra: Extra) -> anyhow::Result<Started> {
    let configuration = Arc::new(ActiveConfig::new(source, loaded, extra));
    let current = configuration.current();
    let plans = configuration.plans(&current, None)?;
    // What tools could write is known before they can.
    Accepted::add(&current).context("cannot write the list of accepted files")?;
    let store = current.config.store.clone();
    let opened = tokio::task::spawn_blocking(move || Store::open(gantry_store::Options::new(store))).await?;
    let (store, recovery) = opened.context("cannot open the ledger")?;
    let services = Services::new(store, &recovery, ActiveConfig::process(&current));
    let projects = Projects::start(services, plans, Some(Arc::clone(&configuration) as _)).await?;
    Ok(Started { projects, configuration })
}

/// Gantry's own tools in the project of a folder, for the page about them.
pub fn own_tool_specs(folder: &Path) -> anyhow::Result<Vec<ToolSpec>> {
    let loaded = Config::load(&Source::new(folder), &Env::from([]))?;
    let project = loaded.config.project(MAIN_PROJECT).context("there is no project")?;
    let own = plan::own_tools(project, &ProtectedPaths::default())?;
    Ok(own.providers.first().context("there are no own tools")?.tools())
}

/// Reads servers that are added while Gantry runs, by the configuration that applies at that moment.
pub(crate) fn server_parser(configuration: &Arc<ActiveConfig>) -> Arc<ParseServer> {
    let configuration = Arc::clone(configuration);
    Arc::new(move |project, id, entry| {
        let current = configuration.current();
        let project = current.config.project(project).ok_or("there is no such project")?;
        let (server, warnings) = current
            .read_server(project, id, entry, &Env::Process)
            // The text is no file, so a problem has no place.
            .map_err(|error| error.problems().iter().map(Problem::message).collect::<Vec<_>>().join("; "))?;
        // In a file the other servers go on; here this is the only one, so the caller is told.
        if let Some(DisabledReason::Unusable(reason)) = server.off() {
            return Err(reason);
        }
        Ok((plan::server_plan(id, &server, project.limits.trace_mcp), warnings))
    })
}

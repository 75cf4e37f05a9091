//! From the configuration of a project to the plan that its runtimes are built from.

mod own_tools;
mod rest;

pub(super) use own_tools::own_tools;

use crate::Extra;
use crate::config::{Accepted, Error, Loaded, McpServer, Problem, Project};
use anyhow::Context as _;
use gantry_core::policy::{Policies, RuleError, RuleSpec};
use gantry_runtime::options::{ProviderOptions, ServerPlan};
use gantry_runtime::{Options, Plan};
use gantry_tools::builtin::NAMESPACE;
use gantry_tools::workspace::ProtectedPaths;
use gantry_upstream::launch::Launch;
use gantry_upstream::{LockTrust, ServerSettings, UpstreamOptions};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks what only the providers and the policies can say: conditions, examples of rules, templates of requests.
/// The error has every problem, at its line.
pub(crate) fn validate(loaded: &Loaded) -> Result<(), Error> {
    let mut problems = Vec::new();
    for (name, project) in loaded.config.all() {
        // Rules are found by their numbers, which are others if one of them could not be read.
        let next = project.policies.len().to_string();
        let is_whole = !loaded.has(name, &["policies", &next]);
        let rules = if is_whole { project.policies.as_slice() } else { &[] };
        problems.extend(policy_problems(loaded, name, project, rules));
        rest::validate(loaded, name, project, &mut problems);
    }
    Error::all(problems)
}

/// What is wrong with the rules of a project, at its line. `rules` are those of the project, perhaps without their examples.
pub(crate) fn policy_problems(
    loaded: &Loaded,
    name: &str,
    project: &Project,
    rules: &[RuleSpec],
) -> Vec<Problem> {
    let Err(errors) = Policies::compile(rules, project.approvals.rules.clone()) else { return Vec::new() };
    let problem = |(n, error): (usize, RuleError)| {
        let rule = rules.get(n).map(|rule| rule.name.as_str()).unwrap_or_default();
        let (n, key) = (n.to_string(), error.key().unwrap_or_default());
        let inner = key.split(['.', '[', ']']).filter(|key| !key.is_empty());
        let keys: Vec<&str> = ["policies", &n].into_iter().chain(inner).collect();
        Problem::at(&loaded.locate(name, &keys), format!("policy {rule}: {error}"))
    };
    errors.into_iter().map(problem).collect()
}

/// Knows the lock files that count by the list in the data folder.
#[derive(Debug)]
struct AcceptedLocks(PathBuf);

impl LockTrust for AcceptedLocks {
    fn counts(&self, file: &Path) -> Result<bool, String> {
        let accepted = Accepted::read(&self.0).map_err(|problem| problem.to_string())?;
        Ok(accepted.is_none_or(|accepted| accepted.has(file)))
    }

    fn write(&self, file: &Path, write: &dyn Fn() -> io::Result<()>) -> io::Result<()> {
        let _lock = Accepted::update(&self.0, |accepted| accepted.insert(file))?;
        write()
    }
}

/// The plan of one project, with the data folder of all. Opens its workspace; starts nothing.
pub(super) fn plan(
    name: &str,
    project: &Project,
    data: &Path,
    protected: &ProtectedPaths,
    extra: &Extra,
) -> anyhow::Result<Plan> {
    let mut options = options(name, project, data)?;
    let own = own_tools(project, protected).with_context(|| format!("project {name}"))?;
    own.apply_default_timeouts(project, &mut options.providers);
    let rest = gantry_rest::providers(rest::rest_options(project)).map_err(anyhow::Error::msg)?;
    options.providers.extend(extra.options.iter().map(|(id, options)| (Arc::clone(id), options.clone())));
    let providers = own.providers.into_iter().chain(rest).chain(extra.providers.iter().cloned());
    Ok(Plan { options, providers: providers.collect() })
}

fn options(name: &str, project: &Project, data: &Path) -> anyhow::Result<Options> {
    let Project { places, limits, .. } = project;
    let builtin = project.builtin.iter().map(|(id, builtin)| (&**id, &builtin.options));
    let own = builtin.chain([(NAMESPACE, &project.tools.workspace.options)]);
    let mut providers: HashMap<Arc<str>, ProviderOptions> =
        own.map(|(id, options)| (Arc::from(id), options.clone())).collect();
    providers.extend(rest::provider_options(project));
    let servers = project.mcp_servers.iter();
    let servers = servers.map(|(id, server)| server_plan(id, server, limits.trace_mcp)).collect();
    let policies = Policies::compile(&project.policies, project.approvals.rules.clone());
    // What is wrong with a rule was found when the configuration was validated.
    let policies = policies.map_err(|errors| anyhow::anyhow!("{} policies cannot be used", errors.len()))?;
    let upstreams = UpstreamOptions {
        project: name.into(),
        data: places.data.clone(),
        lock_file: places.lock.clone(),
        lock_trust: Some(Arc::new(AcceptedLocks(data.to_owned()))),
        init_concurrency: limits.mcp_init_concurrency.size(),
    };
    Ok(Options {
        project: name.into(),
        limits: limits.clone(),
        policies: Arc::new(policies),
        approvals: project.approvals.options.clone(),
        agents: project.agents.iter().map(|(name, agent)| (name.as_str().into(), agent.clone())).collect(),
        providers,
        servers,
        server_factory: Arc::new(upstreams),
        ..Options::new(places.data.clone())
    })
}

pub(super) fn server_plan(id: &str, server: &McpServer, trace: bool) -> ServerPlan {
    let mut options = server.options.clone();
    options.trace.get_or_insert(trace);
    // A file that the server itself makes does not make it another server.
    let launch = Launch { data: Vec::new(), ..server.launch.clone() };
    let settings = ServerSettings { id: id.into(), options, launch, disabled: server.off() };
    ServerPlan { config: Arc::new(settings), options: server.tools.clone() }
}

#[cfg(test)]
mod tests;

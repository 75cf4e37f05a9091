//! From the configuration of a project to the plan that its runtimes are built from.

mod own;
mod page;
mod policies;
mod rest;

pub(crate) use own::private;
pub use page::tools_reference;
pub(crate) use policies::{policies, rule};
pub(crate) use rest::api_options;

use crate::Extra;
use crate::config::{Agent, Entries, Error, Located, McpServer, Problem, Project, ToolSource};
use anyhow::Context as _;
use gantry_core::pattern::Pattern;
use gantry_core::toolset::{Selection, ToolSelector};
use gantry_rest::NAMESPACE as REST;
use gantry_runtime::options::{AgentOptions, ProviderOptions, ServerPlan};
use gantry_runtime::{Options, Plan};
use gantry_tools::builtin::NAMESPACE;
use gantry_tools::workspace::ProtectedPaths;
use gantry_upstream::{ServerSettings, UpstreamOptions};
use std::collections::HashMap;
use std::sync::Arc;

/// The plan of one project. Opens its workspace; starts nothing.
pub(super) fn plan(
    name: &str,
    project: &Project,
    protected: &ProtectedPaths,
    extra: &Extra,
) -> anyhow::Result<Plan> {
    let mut options = options(name, project)?;
    let own = own::tools(project, protected).with_context(|| format!("project {name}"))?;
    own.give_time(project, &mut options.providers);
    let rest = rest::providers(project)?;
    options.providers.extend(extra.options.iter().map(|(id, options)| (Arc::clone(id), options.clone())));
    let providers = own.providers.into_iter().chain(rest).chain(extra.providers.iter().cloned());
    Ok(Plan { options, providers: providers.collect() })
}

fn options(name: &str, project: &Project) -> anyhow::Result<Options> {
    let mut problems = Vec::new();
    let agents = project
        .agents
        .iter()
        .map(|(name, agent)| (Arc::from(name.as_str()), agent_options(agent, project, &mut problems)))
        .collect();
    let catalogue = project.tools.builtin.iter().map(|(id, builtin)| (id.as_str(), &builtin.source));
    let sources = catalogue.chain([(NAMESPACE, &project.tools.workspace)]);
    let mut providers: HashMap<Arc<str>, ProviderOptions> =
        sources.map(|(id, source)| (Arc::from(id), provider(source, &mut problems))).collect();
    providers.extend(rest::options(project, &mut problems));
    let trace = project.defaults.trace_mcp;
    let servers = project.mcp_servers.iter();
    let servers = servers.map(|(id, server)| server_plan(id, server, trace, &mut problems)).collect();
    let policies = Arc::new(policies::compiled(project, &mut problems));
    own::check(project, &mut problems);
    if let Some(error) = Error::all(problems) {
        return Err(error.into());
    }
    let defaults = &project.defaults;
    let upstreams = UpstreamOptions {
        project: name.into(),
        data: project.data.clone(),
        lock_file: project.lock.clone(),
        init_concurrency: defaults.mcp_init_concurrency,
    };
    Ok(Options {
        project: name.into(),
        tool_timeout: defaults.tool_timeout,
        response_max_bytes: defaults.tool_response_max_bytes,
        context_budget: defaults.context_budget_tokens,
        retention: defaults.output_retention,
        max_depth: u32::try_from(defaults.max_depth).unwrap_or(u32::MAX),
        policies,
        approvals: project.approvals.options.clone(),
        agents,
        providers,
        servers,
        server_factory: Arc::new(upstreams),
        ..Options::new(project.data.clone())
    })
}

fn agent_options(agent: &Agent, project: &Project, problems: &mut Vec<Problem>) -> AgentOptions {
    AgentOptions {
        description: agent.description.clone().or_else(|| agent.display_name.clone()),
        model: agent.model.clone(),
        prompt: agent.prompt.clone(),
        selection: selection(agent, project, problems),
    }
}

/// What an agent has, may call and calls it.
fn selection(agent: &Agent, project: &Project, problems: &mut Vec<Problem>) -> Selection {
    let mut include = Vec::new();
    for entry in &agent.uses {
        let id = entry.value.as_str();
        if let Some(apis) = rest::apis(project, entry, problems) {
            include.extend(apis.into_iter().map(ToolSelector::Provider));
            continue;
        }
        let is_provider = [NAMESPACE, REST].contains(&id)
            || project.mcp_servers.contains_key(id)
            || project.tools.builtin.contains_key(id);
        let read = patterns(std::slice::from_ref(entry), problems).into_iter();
        match agent.entries {
            Entries::ProvidersAndTools if is_provider => include.push(ToolSelector::Provider(id.into())),
            // It may be the id of a server that is added while Gantry runs.
            Entries::ProvidersAndTools => include.extend(read.map(ToolSelector::ProviderOrTools)),
            Entries::Tools => include.extend(read.map(ToolSelector::Tools)),
        }
    }
    let aliases = agent.aliases.iter();
    Selection {
        include,
        allowed: agent.allowed.as_deref().map(|texts| patterns(texts, problems)),
        aliases: aliases.map(|(alias, tool)| (alias.as_str().into(), tool.value.as_str().into())).collect(),
        auto_approve: patterns(&agent.auto_approve, problems),
    }
}

fn patterns(texts: &[Located<String>], problems: &mut Vec<Problem>) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for text in texts {
        match Pattern::parse(&text.value) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => problems.push(Problem::at(&text.at, error.to_string())),
        }
    }
    patterns
}

fn provider(source: &ToolSource, problems: &mut Vec<Problem>) -> ProviderOptions {
    ProviderOptions {
        allowed: source.allowed.as_deref().map(|texts| patterns(texts, problems)),
        denied: patterns(&source.denied, problems),
        timeout: source.request_timeout,
        queue: source.queue.as_deref().map(Into::into),
        cache: source.cache,
        tools_timeout: source.tools_timeout.iter().map(|(tool, time)| (tool.clone(), time.value)).collect(),
        tools_queue: source
            .tools_queue
            .iter()
            .map(|(tool, queue)| (tool.clone(), queue.value.as_deref().map(Into::into)))
            .collect(),
        tools_cache: source
            .tools_cache
            .iter()
            .map(|(tool, time)| (tool.clone(), time.value.unwrap_or_default()))
            .collect(),
    }
}

/// A server as a runtime is given it.
pub(super) fn server_plan(
    id: &str,
    server: &McpServer,
    trace: bool,
    problems: &mut Vec<Problem>,
) -> ServerPlan {
    let mut options = (*server.options).clone();
    options.trace.get_or_insert(trace);
    let settings = ServerSettings { id: id.into(), options, disabled: server.off.clone() };
    ServerPlan { config: Arc::new(settings), options: provider(&server.source, problems) }
}

//! From the configuration to a running runtime.

use crate::Extra;
use crate::config::{
    Config, Decide, Error, Gated, Loaded, Located, Location, McpServer, Policy, Problem, ProcessEnv,
    ServerReader, ToolSource,
};
use crate::folder::Folder;
use anyhow::Context as _;
use gantry_core::pattern::Pattern;
use gantry_core::policy::{self, Policies, RequiresApproval, RuleSpec};
use gantry_core::toolset::Selection;
use gantry_runtime::options::ProviderOptions;
use gantry_runtime::provider::Provider;
use gantry_runtime::provider::workspace::{Fenced, Workspace};
use gantry_runtime::servers::{Off, ServerSettings};
use gantry_runtime::{Options, Runtime, queue};
use gantry_server::ParseServer;
use gantry_store::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens the store and starts the runtime that the configuration describes.
pub(crate) async fn start(loaded: Loaded, folder: &Folder, extra: Extra) -> anyhow::Result<Arc<Runtime>> {
    let config = loaded.config;
    let mut providers: Vec<Arc<dyn Provider>> = Vec::new();
    if config.tools.workspace.enabled {
        let mut hidden = vec![folder.path().to_owned()];
        hidden.extend(ledger_files(&config.store.path).filter(|file| !file.starts_with(folder.path())));
        let fenced = Fenced { hidden, sealed: loaded.governing };
        providers.push(Arc::new(Workspace::open(&config.workspace, fenced)?));
    }
    providers.extend(extra.providers);
    let store = config.store.path.clone();
    let mut options = options(&config, folder)?;
    options.lock_file = loaded.lock;
    options.providers.extend(extra.options);
    let opened = tokio::task::spawn_blocking(move || Store::open(gantry_store::Options::new(store))).await?;
    let (store, recovery) = opened.context("cannot open the ledger")?;
    let runtime = Runtime::start(options, providers, store, &recovery).await?;
    (extra.started)(&runtime);
    Ok(runtime)
}

/// Reads servers that are added while Gantry runs.
pub(crate) fn server_parser(loaded: &Loaded) -> Arc<ParseServer> {
    let (reader, trace) = (ServerReader::new(loaded), loaded.config.defaults.trace_mcp);
    Arc::new(move |id, entry| {
        let mut problems = Vec::new();
        let (server, warnings) =
            reader.read(id, entry, &ProcessEnv).map_err(|error| in_words(error.problems()))?;
        let settings = server_settings(id, &server, trace, &mut problems);
        match &settings.off {
            _ if !problems.is_empty() => Err(in_words(&problems)),
            // In a file the other servers go on; here there is nobody else, so whoever adds it is told.
            Some(Off::Unusable(reason)) => Err(reason.clone()),
            Some(Off::Disabled) | None => Ok((settings, warnings)),
        }
    })
}

/// Problems without their places, for a text that is no file.
fn in_words(problems: &[Problem]) -> String {
    problems.iter().map(Problem::message).collect::<Vec<_>>().join("; ")
}

/// The database and what SQLite keeps beside it.
fn ledger_files(database: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal"].into_iter().map(|suffix| {
        let mut file = database.as_os_str().to_owned();
        file.push(suffix);
        file.into()
    })
}

fn options(config: &Config, folder: &Folder) -> anyhow::Result<Options> {
    let mut problems = Vec::new();
    let agents = config
        .agents
        .iter()
        .map(|(name, agent)| {
            (Arc::from(name.as_str()), Selection { patterns: patterns(&agent.tools, &mut problems) })
        })
        .collect();
    let workspace = provider(&config.tools.workspace, &mut problems);
    let trace = config.defaults.trace_mcp;
    let servers =
        config.mcp_servers.iter().map(|(id, s)| server_settings(id, s, trace, &mut problems)).collect();
    let policies = policies(config, &mut problems);
    if let Some(error) = Error::all(problems) {
        return Err(error.into());
    }
    let queues = config.queues.iter().map(|(name, queue)| queue::Options {
        name: name.as_str().into(),
        concurrent: queue.concurrent,
        max_waiting: queue.max_waiting,
    });
    Ok(Options {
        tool_timeout: config.defaults.tool_timeout,
        response_max_bytes: config.defaults.tool_response_max_bytes,
        context_budget: config.defaults.context_budget_tokens,
        retention: config.defaults.output_retention,
        max_calls: config.defaults.max_concurrent_calls,
        queues: queues.collect(),
        policies,
        agents,
        providers: [(Arc::from("workspace"), workspace)].into(),
        servers,
        init_concurrency: config.defaults.mcp_init_concurrency,
        ..Options::new(folder.path().to_owned())
    })
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

fn server_settings(id: &str, server: &McpServer, trace: bool, problems: &mut Vec<Problem>) -> ServerSettings {
    ServerSettings {
        id: id.into(),
        reach: server.reach.clone(),
        protocol: server.protocol,
        prefix: server.prefix,
        declared: server.declared,
        startup_timeout: server.startup_timeout,
        health: server.health,
        trace: server.trace.unwrap_or(trace),
        off: server.off.clone(),
        options: provider(&server.source, problems),
    }
}

fn policies(config: &Config, problems: &mut Vec<Problem>) -> Policies {
    let requires = match &config.approvals.requires {
        Gated::All => RequiresApproval::Everything,
        Gated::None => RequiresApproval::Nothing,
        Gated::Tools(tools) => RequiresApproval::Listed(patterns(tools, problems)),
    };
    problems.extend(config.policies.iter().filter_map(misplaced));
    let specs: Vec<RuleSpec> = config.policies.iter().map(rule).collect();
    Policies::compile(&specs, requires).unwrap_or_else(|errors| {
        for (n, error) in errors {
            if let Some(policy) = config.policies.get(n) {
                problems.push(Problem::at(place(policy, &error), format!("policy {}: {error}", policy.name)));
            }
        }
        Policies::default()
    })
}

fn rule(policy: &Policy) -> RuleSpec {
    let decide = match policy.decide {
        Decide::Deny => policy::Decide::Deny,
        Decide::Ask => policy::Decide::Ask,
    };
    let values = |examples: &[Located<crate::config::Arguments>]| {
        examples.iter().map(|e| e.value.clone().into()).collect()
    };
    RuleSpec {
        name: policy.name.clone(),
        tools: policy.tools.iter().map(|tool| tool.value.clone()).collect(),
        when: policy.when.as_ref().map(|when| when.value.clone()),
        decide: Some(decide),
        reason: policy.reason.clone(),
        applies_to: match policy.decide {
            Decide::Deny => values(&policy.examples.deny),
            Decide::Ask => values(&policy.examples.ask),
        },
        passes: values(&policy.examples.pass),
    }
}

/// An example of a decision that the rule does not make; nothing would ever check it.
fn misplaced(policy: &Policy) -> Option<Problem> {
    let (decides, others, example) = match policy.decide {
        Decide::Deny => ("deny", "ask", policy.examples.ask.first()?),
        Decide::Ask => ("ask", "deny", policy.examples.deny.first()?),
    };
    let message = format!(
        "policy {}: examples.{others} is for rules that decide {others}, and this one decides {decides}; \
         move the example to examples.{decides}",
        policy.name
    );
    Some(Problem::at(&example.at, message))
}

/// The line that a rule's error is about.
fn place<'a>(policy: &'a Policy, error: &policy::RuleError) -> &'a Location {
    let examples =
        || [&policy.examples.deny, &policy.examples.ask, &policy.examples.pass].into_iter().flatten();
    let line = match error {
        policy::RuleError::Condition { .. } => policy.when.as_ref().map(|when| &when.at),
        policy::RuleError::Example { example, .. } => {
            let written = |located: &&Located<crate::config::Arguments>| {
                serde_json::to_string(&located.value).is_ok_and(|text| text == *example)
            };
            examples().find(written).map(|located| &located.at)
        }
        policy::RuleError::Pattern(_) | policy::RuleError::NoTools => None,
    };
    line.unwrap_or(&policy.at)
}

//! The REST services of a project.

use crate::config::{Loaded, Problem, Project};
use gantry_core::options::ToolKey;
use gantry_core::pattern::Pattern;
use gantry_rest::{NAMESPACE, RestOptions, provider_id};
use gantry_runtime::options::{ProviderOptions, QueueChoice};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How much longer a call may take than its stream. The tool itself ends that and says what came of it.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// How names begin that are not a tool's own name alone.
const WHOLE_NAMES: [&str; 4] = ["*", "@", "rest__", "openapi:"];

/// Reports what is wrong with the services that are switched on, at their entries. Nothing is read or sent.
pub(super) fn validate(loaded: &Loaded, name: &str, project: &Project, problems: &mut Vec<Problem>) {
    let RestOptions { private, inline, apis } = rest_options(project);
    let alone = |inline, apis| RestOptions { private: private.clone(), inline, apis };
    let tools = inline.into_iter().map(|it| ("restTools", it.name.clone(), alone(vec![it], vec![])));
    let apis = apis.into_iter().map(|it| ("openapiSpecs", it.id.clone(), alone(vec![], vec![it])));
    for (section, id, options) in tools.chain(apis) {
        if let Err(message) = gantry_rest::providers(options) {
            problems.push(Problem::at(&loaded.locate(name, &[section, &id]), message));
        }
    }
}

/// The services that are switched on.
pub(super) fn rest_options(project: &Project) -> RestOptions {
    let tools = project.rest_tools.values().filter(|tool| tool.off().is_none());
    let apis = project.apis.values().filter(|api| api.off().is_none());
    RestOptions {
        private: project.web.allow_private.clone(),
        inline: tools.filter_map(|tool| tool.tool.clone()).collect(),
        apis: apis.filter_map(|api| api.options.clone()).collect(),
    }
}

/// How the tools of the services are run, by provider.
pub(super) fn provider_options(project: &Project) -> HashMap<Arc<str>, ProviderOptions> {
    let mut all: HashMap<Arc<str>, ProviderOptions> = HashMap::new();
    if !project.rest_tools.is_empty() {
        all.insert(NAMESPACE.into(), single_requests(project));
    }
    for (id, api) in &project.apis {
        all.insert(provider_id(id).into(), with_id(id, &api.tools));
    }
    all
}

fn single_requests(project: &Project) -> ProviderOptions {
    let mut options = ProviderOptions::default();
    for (name, tool) in &project.rest_tools {
        let Ok(name) = name.parse::<ToolKey>() else { continue };
        let streaming = tool.tool.as_ref().and_then(|tool| tool.streaming.as_ref());
        let stream_time = || streaming.map(|streaming| streaming.timeout.get() + GRACE_PERIOD);
        if let Some(time) = tool.run.timeout.some().or_else(stream_time) {
            options.tools_timeout.insert(name.clone(), time.into());
        }
        if let Some(queue) = &tool.run.queue {
            options.tools_queue.insert(name.clone(), QueueChoice(Some(Arc::clone(queue))));
        }
        // It is said of this very tool, so it holds even if the tool writes.
        if let Some(time) = tool.run.cache.some() {
            options.tools_cache.insert(name, time.into());
        }
    }
    options
}

/// The same with the id in front of the names of tools, where the configuration leaves it out.
fn with_id(id: &str, options: &ProviderOptions) -> ProviderOptions {
    let whole = |pattern: &Pattern| {
        let name = pattern.as_str();
        let is_whole = name.strip_prefix(id).is_some_and(|rest| rest.starts_with('_'))
            || WHOLE_NAMES.iter().any(|start| name.starts_with(start));
        if is_whole {
            pattern.clone()
        } else {
            Pattern::parse(&format!("{id}_{name}")).unwrap_or(pattern.clone())
        }
    };
    let all = |patterns: &[Pattern]| patterns.iter().map(whole).collect::<Vec<_>>();
    ProviderOptions {
        allowed: options.allowed.as_deref().map(all),
        denied: all(&options.denied),
        tools_cache: both(id, &options.tools_cache),
        tools_queue: both(id, &options.tools_queue),
        tools_timeout: both(id, &options.tools_timeout),
        ..options.clone()
    }
}

/// What is said of a tool, under its whole name too. Nothing else can have that name.
fn both<T: Clone>(id: &str, of_tools: &BTreeMap<ToolKey, T>) -> BTreeMap<ToolKey, T> {
    let mut both = of_tools.clone();
    for (name, value) in of_tools {
        if let Ok(whole) = format!("{id}_{}", &**name).parse() {
            both.entry(whole).or_insert_with(|| value.clone());
        }
    }
    both
}

#[cfg(test)]
mod tests;

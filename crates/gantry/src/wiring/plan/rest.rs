//! The REST services of a project.

use super::own::private;
use super::{patterns, provider};
use crate::config::{Api, Error, Located, Location, Problem, Project, RestTool, ToolSource};
use gantry_core::pattern::Pattern;
use gantry_provider::Provider;
use gantry_rest::{ApiOptions, NAMESPACE, RestOptions, provider_id};
use gantry_runtime::options::ProviderOptions;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// How much longer a call may take than its stream. The tool itself ends that and says what came of it.
const GRACE: Duration = Duration::from_secs(10);

/// How tools are meant that are not named by their own name alone.
const WHOLE_NAMES: [&str; 4] = ["*", "@", "rest__", "openapi:"];

/// The providers of the services that are switched on. Nothing is read or sent.
pub(super) fn providers(project: &Project) -> anyhow::Result<Vec<Arc<dyn Provider>>> {
    let mut problems = Vec::new();
    let options = rest_options(project, &mut problems);
    if problems.is_empty() {
        match gantry_rest::providers(options.clone()) {
            Ok(providers) => return Ok(providers),
            Err(message) => problems.extend(placed(project, &options, message)),
        }
    }
    match Error::all(problems) {
        Some(error) => Err(error.into()),
        None => Ok(Vec::new()),
    }
}

/// What is wrong, at the entries that it is wrong with.
fn placed(project: &Project, all: &RestOptions, message: String) -> Vec<Problem> {
    let alone = || RestOptions { private: all.private.clone(), ..RestOptions::default() };
    let at = |at: &Location, place: &str, message: &str| {
        let said = message.strip_prefix(place).filter(|rest| rest.starts_with(['.', ':', ' ']));
        Problem::at(at, said.map_or_else(|| format!("{place}: {message}"), |rest| format!("{place}{rest}")))
    };
    let mut problems = Vec::new();
    for inline in &all.inline {
        let found = gantry_rest::providers(RestOptions { inline: vec![inline.clone()], ..alone() });
        if let (Err(message), Some(tool)) = (found, project.rest.tools.get(&inline.name)) {
            problems.push(at(&tool.at, &format!("restTools.{}", inline.name), &message));
        }
    }
    for api in &all.apis {
        let found = gantry_rest::providers(RestOptions { apis: vec![api.clone()], ..alone() });
        if let (Err(message), Some(entry)) = (found, project.rest.apis.get(&api.id)) {
            problems.push(at(&entry.at, &format!("openapiSpecs.{}", api.id), &message));
        }
    }
    if problems.is_empty() {
        problems.push(Problem::general(message));
    }
    problems
}

fn rest_options(project: &Project, problems: &mut Vec<Problem>) -> RestOptions {
    let tools = project.rest.tools.values().filter(|tool| tool.off.is_none());
    let apis = project.rest.apis.iter().filter(|(_, api)| api.off.is_none());
    RestOptions {
        private: private(&project.own.web),
        inline: tools.map(|tool| tool.inline.clone()).collect(),
        apis: apis.map(|(id, api)| api_options(id, api, problems)).collect(),
    }
}

/// An API as its provider takes it.
pub(crate) fn api_options(id: &str, api: &Api, problems: &mut Vec<Problem>) -> ApiOptions {
    let mut effects = Vec::new();
    for (pattern, effect) in &api.effects {
        let read = patterns(std::slice::from_ref(pattern), problems);
        effects.extend(read.into_iter().map(|pattern| (pattern, *effect)));
    }
    ApiOptions {
        id: id.to_owned(),
        spec: api.spec.clone(),
        base_url: api.base_url.clone(),
        server_variables: api.variables.clone(),
        headers: api.headers.clone(),
        auth: api.credentials.clone(),
        include_methods: api.methods.clone(),
        tag_filter: api.tags.clone(),
        include: api.include.as_deref().map(|texts| patterns(texts, problems)),
        exclude: patterns(&api.exclude, problems),
        effects,
    }
}

/// How the tools of the services are run, by provider.
pub(super) fn options(
    project: &Project,
    problems: &mut Vec<Problem>,
) -> impl Iterator<Item = (Arc<str>, ProviderOptions)> {
    let mut all: HashMap<Arc<str>, ProviderOptions> = HashMap::new();
    if !project.rest.tools.is_empty() {
        all.insert(NAMESPACE.into(), inline(&project.rest.tools));
    }
    for (id, api) in &project.rest.apis {
        all.insert(provider_id(id).into(), provider(&with_id(id, &api.source), problems));
    }
    all.into_iter()
}

fn inline(tools: &BTreeMap<String, RestTool>) -> ProviderOptions {
    let mut options = ProviderOptions::default();
    for (name, tool) in tools {
        let stream = || tool.inline.streaming.as_ref().map(|streaming| streaming.timeout + GRACE);
        if let Some(time) = tool.request_timeout.or_else(stream) {
            options.tools_timeout.insert(name.clone(), time);
        }
        if let Some(queue) = &tool.queue {
            options.tools_queue.insert(name.clone(), Some(queue.as_str().into()));
        }
        // It is said of this very tool, so it holds even if the tool writes.
        if let Some(time) = tool.cache {
            options.tools_cache.insert(name.clone(), time);
        }
    }
    options
}

/// The same with the id in front of the names of tools, where people leave it out.
fn with_id(id: &str, source: &ToolSource) -> ToolSource {
    let whole = |name: &str| {
        let is_whole = name.strip_prefix(id).is_some_and(|rest| rest.starts_with('_'))
            || WHOLE_NAMES.iter().any(|start| name.starts_with(start));
        if is_whole { name.to_owned() } else { format!("{id}_{name}") }
    };
    let texts = |texts: &[Located<String>]| {
        let text = |text: &Located<String>| Located { value: whole(&text.value), at: text.at.clone() };
        texts.iter().map(text).collect::<Vec<_>>()
    };
    ToolSource {
        allowed: source.allowed.as_deref().map(texts),
        denied: texts(&source.denied),
        tools_cache: both(id, &source.tools_cache),
        tools_queue: both(id, &source.tools_queue),
        tools_timeout: both(id, &source.tools_timeout),
        ..source.clone()
    }
}

/// What is said of a tool, under its whole name too. Nothing else can have that name, so nothing else is meant.
fn both<T: Clone>(id: &str, of_tools: &BTreeMap<String, T>) -> BTreeMap<String, T> {
    let mut both = of_tools.clone();
    for (name, value) in of_tools {
        both.entry(format!("{id}_{name}")).or_insert_with(|| value.clone());
    }
    both
}

/// The APIs that an entry `openapi:<id>` of an agent means; `None` if it is no such entry.
pub(super) fn apis(
    project: &Project,
    entry: &Located<String>,
    problems: &mut Vec<Problem>,
) -> Option<Vec<Arc<str>>> {
    entry.value.strip_prefix(&provider_id(""))?;
    let ids = project.rest.apis.keys().map(|id| provider_id(id));
    let meant: Vec<Arc<str>> = match Pattern::parse(&entry.value) {
        Ok(pattern) => ids.filter(|id| pattern.matches(id)).map(Into::into).collect(),
        Err(_) => Vec::new(),
    };
    if meant.is_empty() {
        let known: Vec<String> = project.rest.apis.keys().map(|id| provider_id(id)).collect();
        let advice = match known.as_slice() {
            [] => "no API is configured; add it under \"openapiSpecs\"".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        problems.push(Problem::at(&entry.at, format!("there is no API {:?}; {advice}", entry.value)));
    }
    Some(meant)
}

#[cfg(test)]
mod tests;

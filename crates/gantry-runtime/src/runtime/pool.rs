//! Building the pool: all tools of all providers, filtered, named and compiled.
//!
//! What is wrong with Gantry's own set-up is an error at the start. What an MCP server brings along while the program
//! runs can only cost that server its tools.

use super::Error;
use super::sources::Source;
use crate::queue::Queues;
use gantry_core::limits::TOOLS_PER_PROVIDER;
use gantry_core::names::{RESERVED_NAMESPACES, RESERVED_TOOLS, SEPARATOR, Style, sanitised};
use gantry_core::tool::{Settings, ToolKind, ToolSpec};
use gantry_core::toolset::{Candidate, Pool};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A pool, and what did not get into it.
#[derive(Debug, Default)]
pub(super) struct Built {
    /// The tools.
    pub(super) pool: Arc<Pool>,
    /// Providers that are left out, and why.
    pub(super) left_out: BTreeMap<Arc<str>, String>,
    /// Single tools that are left out: provider, tool, and why.
    pub(super) dropped: Vec<(Arc<str>, String, String)>,
}

/// Unites the tools of the providers. Compiling schemas is work, so this is not for an async worker.
pub(super) fn build(sources: &[Source], queues: &Queues) -> Built {
    let (mut candidates, mut bare) = (Vec::new(), HashMap::new());
    let rules = Rules::new(sources, queues);
    let mut built = Built::default();
    for source in sources {
        let id = source.id();
        let mut own = Vec::new();
        for (spec, settings) in admitted(source) {
            match rules.fault(source, &spec, &settings) {
                Some(error) => built.dropped.push((Arc::clone(id), spec.name, error.to_string())),
                None => own.push(Candidate {
                    origin: source.provider.origin().clone(),
                    style: source.provider.style(),
                    spec,
                    settings,
                }),
            }
        }
        let fault = reserved_namespace(source).or_else(|| clash(&own, &bare));
        if let Some(error) = fault {
            built.left_out.insert(Arc::clone(id), error.to_string());
            continue;
        }
        let names = own.iter().filter(|candidate| candidate.style == Style::Bare);
        bare.extend(names.map(|candidate| (candidate.spec.name.clone(), Arc::clone(id))));
        candidates.extend(own);
    }
    let providers: HashMap<&str, _> =
        sources.iter().map(|source| (&**source.id(), &source.provider)).collect();
    let objection =
        |candidate: &Candidate| providers.get(&*candidate.origin.provider)?.objection(&candidate.spec.name);
    built.pool = Arc::new(Pool::build_with(candidates, objection));
    built
}

/// What is wrong with the set-up, as far as it can be known before any server is connected.
pub(super) fn check(sources: &[Source], queues: &Queues) -> Result<(), Error> {
    let mut bare: HashMap<String, Arc<str>> = HashMap::new();
    let mut ids: HashMap<&str, ()> = HashMap::new();
    let rules = Rules::new(sources, queues);
    for source in sources {
        let id = source.id();
        if ids.insert(id, ()).is_some() {
            return Err(Error::Pool(format!("two providers are called {id}; give one of them another name")));
        }
        if let Some(error) = reserved_namespace(source) {
            return Err(error);
        }
        let options = &source.options;
        let queue_of_tool =
            options.tools_queue.iter().filter_map(|(tool, queue)| Some((tool, queue.as_ref()?)));
        let everything = "*".to_owned();
        let named = options.queue.iter().map(|queue| (&everything, queue)).chain(queue_of_tool);
        if let Some((tool, queue)) = named.into_iter().find(|(_, queue)| queues.get(queue).is_none()) {
            return Err(Error::UnknownQueue { tool: format!("{id}__{tool}"), queue: queue.to_string() });
        }
        let mut own = Vec::new();
        for (spec, settings) in admitted(source) {
            if let Some(error) = rules.fault(source, &spec, &settings) {
                return Err(error);
            }
            let (origin, style) = (source.provider.origin().clone(), source.provider.style());
            own.push(Candidate { origin, style, spec, settings });
        }
        if let Some(error) = clash(&own, &bare) {
            return Err(error);
        }
        let names = own.into_iter().filter(|candidate| candidate.style == Style::Bare);
        bare.extend(names.map(|candidate| (candidate.spec.name, Arc::clone(id))));
    }
    Ok(())
}

/// The tools that a provider's filter lets through, with how they are run.
fn admitted(source: &Source) -> impl Iterator<Item = (ToolSpec, Settings)> {
    let mut tools = source.provider.tools();
    if tools.len() > TOOLS_PER_PROVIDER {
        tracing::warn!("{} has {} tools; the first {TOOLS_PER_PROVIDER} are taken", source.id(), tools.len());
        tools.truncate(TOOLS_PER_PROVIDER);
    }
    let options = Arc::clone(&source.options);
    tools.into_iter().filter_map(move |spec| {
        options.admits(&spec.name).then(|| {
            let settings = options.settings(&spec);
            (spec, settings)
        })
    })
}

/// What single tools are judged by.
struct Rules<'a> {
    queues: &'a Queues,
    /// The namespaces of all providers, as names show them.
    namespaces: HashMap<String, &'a Arc<str>>,
}

impl<'a> Rules<'a> {
    fn new(sources: &'a [Source], queues: &'a Queues) -> Self {
        let namespace = |source: &'a Source| (sanitised(&source.provider.origin().namespace), source.id());
        Self { queues, namespaces: sources.iter().map(namespace).collect() }
    }

    /// Why a tool cannot be in the pool.
    fn fault(&self, source: &Source, spec: &ToolSpec, settings: &Settings) -> Option<Error> {
        if let Some(queue) = settings.queue.as_ref().filter(|queue| self.queues.get(queue).is_none()) {
            return Some(Error::UnknownQueue { tool: spec.name.clone(), queue: queue.to_string() });
        }
        if source.provider.style() != Style::Bare {
            return None;
        }
        let (name, id) = (&spec.name, source.id());
        // Some names are Gantry's own, whoever offers a tool under them.
        if is_reserved(name) {
            let message = format!("the tool name {name} is reserved; set prefix: true on {id}");
            return Some(Error::Pool(message));
        }
        let (namespace, _) = name.split_once(SEPARATOR)?;
        self.namespaces.get(namespace).filter(|other| *other != &id).map(|other| {
            let message =
                format!("the tool name {name} would pass for one of {other}; set prefix: true on {id}");
            Error::Pool(message)
        })
    }
}

/// Whether a name that is shown unchanged would pass for one of Gantry's own.
fn is_reserved(name: &str) -> bool {
    let namespace = name.split_once(SEPARATOR).map(|(namespace, _)| namespace);
    RESERVED_TOOLS.contains(&name) || namespace.is_some_and(|it| RESERVED_NAMESPACES.contains(&it))
}

fn reserved_namespace(source: &Source) -> Option<Error> {
    let origin = source.provider.origin();
    let namespace = sanitised(&origin.namespace);
    (origin.kind == ToolKind::Mcp && RESERVED_NAMESPACES.contains(&namespace.as_str())).then(|| {
        Error::Pool(format!(
            "the name {namespace} is reserved; give provider {} another one",
            origin.provider
        ))
    })
}

/// A name that is shown unchanged cannot be changed to tell two tools apart, so one of them cannot be there.
fn clash(own: &[Candidate], taken: &HashMap<String, Arc<str>>) -> Option<Error> {
    own.iter().filter(|candidate| candidate.style == Style::Bare).find_map(|candidate| {
        let other = taken.get(&candidate.spec.name)?;
        Some(Error::Pool(format!(
            "both {other} and {} have a tool {} without a prefix; set prefix: true on one of them",
            candidate.origin.provider, candidate.spec.name
        )))
    })
}

#[cfg(test)]
mod tests;

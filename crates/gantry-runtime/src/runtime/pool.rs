//! Building the pool: all tools of all providers, filtered, named and compiled.
//!
//! What is wrong with Gantry's own set-up is an error at the start. What an MCP server brings along while the program
//! runs can only cost that server its tools.

mod apart;
mod bare;

pub(super) use apart::Apart;

use super::Error;
use super::sources::Source;
use crate::queue::Queues;
use gantry_core::digest::Digest;
use gantry_core::limits::TOOLS_PER_PROVIDER;
use gantry_core::names::{Beginnings, Style, is_coordination_name, is_reserved_name};
use gantry_core::tool::{Settings, ToolKind, ToolSpec};
use gantry_core::toolset::{Candidate, Pool};
use gantry_provider::server::Server;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A pool, and what did not get into it.
#[derive(Debug, Clone, Default)]
pub(super) struct Built {
    /// The tools.
    pub(super) pool: Arc<Pool>,
    /// Providers that are left out, and why.
    pub(super) left_out: BTreeMap<Arc<str>, String>,
    /// Single tools that are left out: provider, tool, and why.
    pub(super) dropped: Vec<(Arc<str>, String, String)>,
    /// The [`Server::tools_digest`] of each server before its tools were taken, so that those are in the pool.
    pub(super) heard: HashMap<Arc<str>, Digest>,
}

impl Built {
    /// Whether the tools that a server has now are in the pool. What else it has makes no difference.
    pub(super) fn has_heard(&self, server: &dyn Server) -> bool {
        let heard = self.heard.get(&server.origin().provider);
        heard.is_some_and(|heard| server.tools_digest().as_ref() == Some(heard))
    }
}

/// The pool before, which the next one is made from.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// The tools.
    pub(super) pool: Arc<Pool>,
    /// Whether a client may have seen them. A provider that has a name then keeps it; until then it goes by the order of the
    /// providers, whichever of them started first.
    pub(super) seen: bool,
}

impl Before {
    /// Who has this name and keeps it.
    fn holder(&self, name: &str) -> Option<&Arc<str>> {
        self.pool.named(name).filter(|_| self.seen).map(|tool| &tool.key.provider)
    }
}

/// Unites the tools of the providers. Compiling schemas is work, so this is not for an async worker.
pub(super) fn build(sources: &[Source], queues: &Queues) -> Built {
    rebuild(sources, queues, &Before::default())
}

/// The same after a change: what has not changed is taken over.
pub(super) fn rebuild(sources: &[Source], queues: &Queues, before: &Before) -> Built {
    let mut candidates = Vec::new();
    let rules = Rules::new(sources, queues);
    // Order: asked before their tools are, so that nothing is in that has come up in between.
    let heard = |source: &Source| Some((Arc::clone(source.id()), source.server.as_ref()?.tools_digest()?));
    let heard = sources.iter().filter_map(heard).collect();
    let mut built = Built { left_out: Apart::of(sources).1, heard, ..Built::default() };
    for source in sources.iter().filter(|source| !built.left_out.contains_key(source.id())) {
        let id = source.id();
        for (spec, settings) in admitted(source) {
            match rules.fault(source, &spec, &settings) {
                Some(error) => built.dropped.push((Arc::clone(id), spec.name, error.to_string())),
                None => candidates.push(candidate(source, spec, settings)),
            }
        }
    }
    let clashes = bare::clashes(&candidates, |name| before.holder(name));
    let mut clashes = clashes.into_iter();
    candidates.retain(|candidate| {
        let Some(Some(error)) = clashes.next() else { return true };
        let provider = Arc::clone(&candidate.origin.provider);
        built.dropped.push((provider, candidate.spec.name.clone(), error.to_string()));
        false
    });
    let providers: HashMap<&str, _> =
        sources.iter().map(|source| (&**source.id(), &source.provider)).collect();
    let objection =
        |candidate: &Candidate| providers.get(&*candidate.origin.provider)?.objection(&candidate.spec.name);
    built.pool = Pool::rebuild(&before.pool, candidates, objection);
    built
}

/// What is wrong with the set-up, as far as it can be known before any server is connected.
pub(super) fn check(sources: &[Source], queues: &Queues) -> Result<(), Error> {
    let mut candidates = Vec::new();
    let (mut ids, mut apart) = (HashSet::new(), Apart::default());
    let rules = Rules::new(sources, queues);
    for source in sources {
        let id = source.id();
        if !ids.insert(id) {
            return Err(Error::Pool(format!("two providers are called {id}; give one of them another name")));
        }
        apart.add(source)?;
        let options = &source.options;
        let queue_of_tool =
            options.tools_queue.iter().filter_map(|(tool, queue)| Some((tool, queue.as_ref()?)));
        let everything = "*".to_owned();
        let named = options.queue.iter().map(|queue| (&everything, queue)).chain(queue_of_tool);
        if let Some((tool, queue)) = named.into_iter().find(|(_, queue)| queues.get(queue).is_none()) {
            return Err(Error::UnknownQueue { tool: format!("{id}__{tool}"), queue: queue.to_string() });
        }
        for (spec, settings) in admitted(source) {
            if let Some(error) = rules.fault(source, &spec, &settings) {
                return Err(error);
            }
            candidates.push(candidate(source, spec, settings));
        }
    }
    bare::clashes(&candidates, |_| None).into_iter().flatten().next().map_or(Ok(()), Err)
}

fn candidate(source: &Source, spec: ToolSpec, settings: Settings) -> Candidate {
    Candidate { origin: source.provider.origin().clone(), style: source.provider.style(), spec, settings }
}

/// The tools that a provider's filter lets through, with how they are run.
fn admitted(source: &Source) -> impl Iterator<Item = (ToolSpec, Settings)> {
    let mut tools = source.provider.tools();
    if tools.len() > TOOLS_PER_PROVIDER {
        tracing::warn!("{} has {} tools; the first {TOOLS_PER_PROVIDER} are taken", source.id(), tools.len());
        tools.truncate(TOOLS_PER_PROVIDER);
    }
    let (options, origin) = (Arc::clone(&source.options), source.provider.origin());
    tools.into_iter().filter_map(move |spec| {
        options.admits(origin, &spec.name).then(|| {
            let settings = options.settings(&spec);
            (spec, settings)
        })
    })
}

/// What single tools are judged by.
struct Rules<'a> {
    queues: &'a Queues,
    beginnings: Beginnings<'a>,
}

impl<'a> Rules<'a> {
    fn new(sources: &'a [Source], queues: &'a Queues) -> Self {
        Self { queues, beginnings: beginnings(sources) }
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
        // Some names are reserved for Gantry's own tools.
        let is_foreign = source.provider.origin().kind != ToolKind::Builtin;
        if is_reserved_name(name) || (is_foreign && is_coordination_name(name)) {
            let message = format!("the tool name {name} is reserved; set prefix: true on {id}");
            return Some(Error::Pool(message));
        }
        self.beginnings.imitated(name, id).map(|other| bare::imitation(name, other, id))
    }
}

/// How the names of each provider begin.
pub(super) fn beginnings(sources: &[Source]) -> Beginnings<'_> {
    Beginnings::of(sources.iter().map(|source| {
        let origin = source.provider.origin();
        (&*origin.provider, &*origin.namespace)
    }))
}

#[cfg(test)]
mod tests;

//! Building the pool: all tools of all providers, filtered, named and compiled.
//!
//! What is wrong with Gantry's own configuration is an error at the start. What an MCP server brings along while the
//! program runs can only cost that server its tools.

mod prefix_conflicts;
mod unprefixed;

pub(super) use prefix_conflicts::PrefixIndex;

use super::Error;
use super::providers::ProviderEntry;
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
#[derive(Debug, Default)]
pub(super) struct PoolBuild {
    /// The tools.
    pub(super) pool: Arc<Pool>,
    /// What did not get into it.
    pub(super) excluded: Excluded,
    /// The [`Server::tools_digest`] of each server before its tools were taken, so that those are in the pool.
    listings: HashMap<Arc<str>, Digest>,
}

/// What did not get into a pool.
#[derive(Debug, Default)]
pub(super) struct Excluded {
    /// Whole providers, and why.
    pub(super) providers: BTreeMap<Arc<str>, String>,
    /// Single tools: provider, tool, and why.
    pub(super) tools: Vec<(Arc<str>, String, String)>,
}

impl PoolBuild {
    /// Whether the tools that a server has now are in the pool. What else it has makes no difference.
    pub(super) fn is_current(&self, server: &dyn Server) -> bool {
        let listed = self.listings.get(&server.origin().provider);
        listed.is_some_and(|listed| server.tools_digest().as_ref() == Some(listed))
    }
}

/// Unites the tools of the providers; what has not changed is taken over from the former pool. With `keep_owners`, a
/// name without a prefix stays with the provider that had it; else it goes by the order of the providers, whichever of them
/// started first. Compiling schemas is work, so this is not for an async worker.
pub(super) fn build(
    providers: &[ProviderEntry],
    queues: &Queues,
    former: &Arc<Pool>,
    keep_owners: bool,
) -> PoolBuild {
    // Order: asked before their tools are, so that nothing is in that has come up in between.
    let listing =
        |entry: &ProviderEntry| Some((Arc::clone(entry.id()), entry.server.as_ref()?.tools_digest()?));
    let listings = providers.iter().filter_map(listing).collect();
    let owner = |name: &str| former.named(name).filter(|_| keep_owners).map(|tool| &tool.key.provider);
    let (candidates, excluded) = select(providers, queues, owner);
    let by_id: HashMap<&str, _> = providers.iter().map(|entry| (&**entry.id(), &entry.provider)).collect();
    let objection = |candidate: &Candidate| {
        by_id.get(&*candidate.origin.provider)?.quarantine_reason(&candidate.spec.name)
    };
    PoolBuild { pool: Pool::rebuild(former, candidates, objection), excluded, listings }
}

/// The tools that get into the pool, and what does not. `owner` is the provider that keeps a name without a prefix.
fn select<'f>(
    providers: &[ProviderEntry],
    queues: &Queues,
    owner: impl Fn(&str) -> Option<&'f Arc<str>>,
) -> (Vec<Candidate>, Excluded) {
    let mut excluded = Excluded { providers: PrefixIndex::of(providers).1, tools: Vec::new() };
    let (beginnings, mut candidates) = (beginnings(providers), Vec::new());
    for entry in providers.iter().filter(|entry| !excluded.providers.contains_key(entry.id())) {
        for (spec, settings) in admitted(entry) {
            match fault(entry, &spec, &settings, (queues, &beginnings)) {
                Some(error) => excluded.tools.push((Arc::clone(entry.id()), spec.name, error.to_string())),
                None => {
                    let (origin, style) = (entry.provider.origin().clone(), entry.provider.naming());
                    candidates.push(Candidate { origin, style, spec, settings });
                }
            }
        }
    }
    let mut conflicts = unprefixed::conflicts(&candidates, owner).into_iter();
    candidates.retain(|candidate| {
        let Some(Some(error)) = conflicts.next() else { return true };
        let provider = Arc::clone(&candidate.origin.provider);
        excluded.tools.push((provider, candidate.spec.name.clone(), error.to_string()));
        false
    });
    (candidates, excluded)
}

/// What is wrong with the configuration, as far as it can be known before any server is connected.
pub(super) fn check(providers: &[ProviderEntry], queues: &Queues) -> Result<(), Error> {
    let mut ids = HashSet::new();
    for entry in providers {
        let id = entry.id();
        if !ids.insert(id) {
            return Err(Error::Pool(format!("two providers are called {id}; give one of them another name")));
        }
        let options = &entry.options;
        let of_tools =
            options.tools_queue.iter().filter_map(|(tool, queue)| Some((&**tool, queue.as_ref()?)));
        let mut named = options.queue.iter().map(|queue| ("*", queue)).chain(of_tools);
        if let Some((tool, queue)) = named.find(|(_, queue)| queues.get(queue).is_none()) {
            return Err(Error::UnknownQueue { tool: format!("{id}__{tool}"), queue: queue.to_string() });
        }
    }
    let (_, Excluded { providers, tools }) = select(providers, queues, |_| None);
    let fault = providers.into_values().chain(tools.into_iter().map(|(_, _, why)| why)).next();
    fault.map_or(Ok(()), |why| Err(Error::Pool(why)))
}

/// The tools that a provider's filter lets through, with how they are run.
fn admitted(entry: &ProviderEntry) -> impl Iterator<Item = (ToolSpec, Settings)> {
    let mut tools = entry.provider.tools();
    if tools.len() > TOOLS_PER_PROVIDER {
        tracing::warn!("{} has {} tools; the first {TOOLS_PER_PROVIDER} are taken", entry.id(), tools.len());
        tools.truncate(TOOLS_PER_PROVIDER);
    }
    tools.into_iter().filter(|spec| entry.options.admits(entry.provider.origin(), &spec.name)).map(|spec| {
        let settings = entry.options.settings(&spec);
        (spec, settings)
    })
}

/// Why a single tool cannot be in the pool.
fn fault(
    entry: &ProviderEntry,
    spec: &ToolSpec,
    settings: &Settings,
    (queues, beginnings): (&Queues, &Beginnings<'_>),
) -> Option<Error> {
    if let Some(queue) = settings.queue.as_ref().filter(|queue| queues.get(queue).is_none()) {
        return Some(Error::UnknownQueue { tool: spec.name.clone(), queue: queue.to_string() });
    }
    if entry.provider.naming() != Style::Bare {
        return None;
    }
    let (name, id) = (&spec.name, entry.id());
    // Some names are reserved for Gantry's own tools.
    let is_foreign = entry.provider.origin().kind != ToolKind::Builtin;
    if is_reserved_name(name) || (is_foreign && is_coordination_name(name)) {
        let message = format!("the tool name {name} is reserved; set prefix: true on {id}");
        return Some(Error::Pool(message));
    }
    beginnings.imitated(name, id).map(|other| unprefixed::spoofed_name(name, other, id))
}

/// How the names of each provider begin.
pub(super) fn beginnings(providers: &[ProviderEntry]) -> Beginnings<'_> {
    Beginnings::of(providers.iter().map(|entry| {
        let origin = entry.provider.origin();
        (&*origin.provider, &*origin.namespace)
    }))
}

#[cfg(test)]
mod tests;

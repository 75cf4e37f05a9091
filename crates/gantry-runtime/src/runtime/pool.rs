//! Building the pool: all tools of all providers, filtered, named and compiled.
//!
//! What is wrong with Gantry's own configuration is an error at the start. What an MCP server brings along while the
//! program runs can only cost that server its tools.

mod prefix_conflicts;
mod unprefixed;

pub(super) use prefix_conflicts::check_names;

use super::providers::ProviderEntry;
use crate::queue::Queues;
use gantry_core::digest::Digest;
use gantry_core::limits::TOOLS_PER_PROVIDER;
use gantry_core::names::{NamePrefixes, Style, imitated, is_coordination_name, is_reserved_name};
use gantry_core::tool::{ToolKind, ToolSpec};
use gantry_core::toolset::{Candidate, Pool};
use gantry_provider::server::Server;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct PoolBuild {
    pub(super) pool: Arc<Pool>,
    pub(super) excluded: Vec<Excluded>,
    /// The [`Server::tools_digest`] of each server before its tools were taken, so that those are in the pool.
    listings: HashMap<Arc<str>, Digest>,
}

/// A tool that did not get into a pool: its provider, its name, and why.
pub(super) type Excluded = (Arc<str>, String, String);

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
pub(super) fn build(providers: &[ProviderEntry], former: &Arc<Pool>, keep_owners: bool) -> PoolBuild {
    // Order: asked before their tools are, so that nothing is in that has come up in between.
    let listing =
        |entry: &ProviderEntry| Some((Arc::clone(entry.id()), entry.server.as_ref()?.tools_digest()?));
    let listings = providers.iter().filter_map(listing).collect();
    let owner = |name: &str| former.named(name).filter(|_| keep_owners).map(|tool| &tool.key.provider);
    let (candidates, excluded) = select(providers, owner);
    let by_id: HashMap<&str, _> = providers.iter().map(|entry| (&**entry.id(), &entry.provider)).collect();
    let objection = |candidate: &Candidate| {
        by_id.get(&*candidate.origin.provider)?.quarantine_reason(&candidate.spec.name)
    };
    PoolBuild { pool: Pool::rebuild(former, candidates, objection), excluded, listings }
}

/// The tools that get into the pool, and what does not. `owner` is the provider that keeps a name without a prefix.
fn select<'f>(
    providers: &[ProviderEntry],
    owner: impl Fn(&str) -> Option<&'f Arc<str>>,
) -> (Vec<Candidate>, Vec<Excluded>) {
    let (prefixes, mut candidates, mut excluded) = (name_prefixes(providers), Vec::new(), Vec::new());
    for entry in providers {
        for spec in admitted(entry) {
            if let Some(why) = fault(entry, &spec.name, &prefixes) {
                excluded.push((Arc::clone(entry.id()), spec.name, why));
                continue;
            }
            let (origin, style) = (entry.provider.origin().clone(), entry.provider.naming());
            candidates.push(Candidate { origin, style, settings: entry.options.settings(&spec), spec });
        }
    }
    let mut conflicts = unprefixed::conflicts(&candidates, owner).into_iter();
    candidates.retain(|candidate| {
        let Some(Some(why)) = conflicts.next() else { return true };
        excluded.push((Arc::clone(&candidate.origin.provider), candidate.spec.name.clone(), why));
        false
    });
    (candidates, excluded)
}

/// What is wrong with the tools and queues of these providers, as far as it can be known before any server is connected.
pub(super) fn check(providers: &[ProviderEntry], queues: &Queues) -> Result<(), String> {
    for entry in providers {
        let (id, options) = (entry.id(), &entry.options);
        let of_tools =
            options.tools_queue.iter().filter_map(|(tool, queue)| Some((&**tool, queue.0.as_ref()?)));
        let mut named = options.queue.iter().map(|queue| ("*", queue)).chain(of_tools);
        if let Some((tool, queue)) = named.find(|(_, queue)| queues.get(queue).is_none()) {
            return Err(format!(
                "tool {id}__{tool} names queue {queue}, which is not configured; add it under queues"
            ));
        }
    }
    let (_, excluded) = select(providers, |_| None);
    excluded.into_iter().next().map_or(Ok(()), |(_, _, why)| Err(why))
}

/// The tools that a provider's filter lets through.
fn admitted(entry: &ProviderEntry) -> impl Iterator<Item = ToolSpec> {
    let mut tools = entry.provider.tools();
    if tools.len() > TOOLS_PER_PROVIDER {
        tracing::warn!("{} has {} tools; the first {TOOLS_PER_PROVIDER} are taken", entry.id(), tools.len());
        tools.truncate(TOOLS_PER_PROVIDER);
    }
    tools.into_iter().filter(|spec| entry.options.admits(entry.provider.origin(), &spec.name))
}

/// Why a single tool cannot be in the pool under its name.
fn fault(entry: &ProviderEntry, name: &str, prefixes: &[NamePrefixes<'_>]) -> Option<String> {
    if entry.provider.naming() != Style::Bare {
        return None;
    }
    let id = entry.id();
    // Some names are reserved for Gantry's own tools.
    let is_foreign = entry.provider.origin().kind != ToolKind::Builtin;
    if is_reserved_name(name) || (is_foreign && is_coordination_name(name)) {
        return Some(format!("the tool name {name} is reserved; set prefix: true on {id}"));
    }
    imitated(name, id, prefixes).map(|other| unprefixed::spoofed_name(name, other, id))
}

pub(super) fn name_prefixes(providers: &[ProviderEntry]) -> Vec<NamePrefixes<'_>> {
    let origins = providers.iter().map(|entry| entry.provider.origin());
    origins.map(|origin| NamePrefixes::new(&origin.provider, &origin.namespace)).collect()
}

#[cfg(test)]
mod tests;

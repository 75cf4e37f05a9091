//! Building the pool: all tools of all providers, filtered, named and compiled.

use super::Error;
use crate::options::ProviderOptions;
use crate::provider::Provider;
use crate::queue::Queues;
use gantry_core::limits::TOOLS_PER_PROVIDER;
use gantry_core::names::{RESERVED_NAMESPACES, RESERVED_TOOLS, Style, sanitised};
use gantry_core::tool::ToolKind;
use gantry_core::toolset::{Candidate, Pool};
use std::collections::HashMap;
use std::sync::Arc;

/// Unites the tools of the providers. Compiling schemas is work, so this is not for an async worker.
pub(super) fn build(
    providers: &[Arc<dyn Provider>],
    options: &HashMap<Arc<str>, ProviderOptions>,
    queues: &Queues,
) -> Result<Pool, Error> {
    let none = ProviderOptions::default();
    let mut candidates = Vec::new();
    for provider in providers {
        let origin = provider.origin();
        let options = options.get(&origin.provider).unwrap_or(&none);
        let mut tools = provider.tools();
        if tools.len() > TOOLS_PER_PROVIDER {
            tracing::warn!(
                "{} has {} tools; the first {TOOLS_PER_PROVIDER} are taken",
                origin.provider,
                tools.len()
            );
            tools.truncate(TOOLS_PER_PROVIDER);
        }
        for spec in tools.into_iter().filter(|spec| options.admits(&spec.name)) {
            let settings = options.settings(&spec);
            if let Some(queue) = settings.queue.as_ref().filter(|queue| queues.get(queue).is_none()) {
                return Err(Error::UnknownQueue { tool: spec.name, queue: queue.to_string() });
            }
            candidates.push(Candidate { origin: origin.clone(), style: provider.style(), spec, settings });
        }
    }
    names_are_not_reserved(&candidates)?;
    bare_names_are_unique(&candidates)?;
    Ok(Pool::build(candidates))
}

/// Some names are Gantry's own, whoever offers a tool under them.
fn names_are_not_reserved(candidates: &[Candidate]) -> Result<(), Error> {
    for Candidate { origin, style, spec, .. } in candidates {
        let namespace = sanitised(&origin.namespace);
        if origin.kind == ToolKind::Mcp && RESERVED_NAMESPACES.contains(&namespace.as_str()) {
            let message =
                format!("the name {namespace} is reserved; give provider {} another one", origin.provider);
            return Err(Error::Pool(message));
        }
        if *style == Style::Bare && RESERVED_TOOLS.contains(&spec.name.as_str()) {
            let message =
                format!("the tool name {} is reserved; set prefix: true on {}", spec.name, origin.provider);
            return Err(Error::Pool(message));
        }
    }
    Ok(())
}

/// A name that is shown unchanged cannot be changed to tell two tools apart, so a clash is a mistake in the set-up.
fn bare_names_are_unique(candidates: &[Candidate]) -> Result<(), Error> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for candidate in candidates.iter().filter(|candidate| candidate.style == Style::Bare) {
        if let Some(other) = seen.insert(&candidate.spec.name, &candidate.origin.provider) {
            return Err(Error::Pool(format!(
                "both {other} and {} have a tool {} without a prefix; set prefix: true on one of them",
                candidate.origin.provider, candidate.spec.name
            )));
        }
    }
    Ok(())
}

//! Providers whose names begin alike, so that a pattern for one could also mean another.

use super::Error;
use crate::runtime::providers::ProviderEntry;
use gantry_core::names::{Roots, is_reserved_namespace, sanitised};
use gantry_core::tool::ToolKind;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Providers that a pattern can distinguish by how the names of their tools begin.
#[derive(Debug, Default)]
pub(in crate::runtime) struct PrefixIndex<'a> {
    roots: Roots<'a>,
    /// Those of them that share their namespace with others.
    sharing: HashSet<&'a str>,
}

impl<'a> PrefixIndex<'a> {
    /// The index of these providers, and why some of them cannot be in it. The provider that came first stays.
    pub(in crate::runtime) fn of(providers: &'a [ProviderEntry]) -> (Self, BTreeMap<Arc<str>, String>) {
        let mut oldest_first: Vec<&ProviderEntry> = providers.iter().collect();
        oldest_first.sort_by_key(|entry| entry.instance_id);
        let mut index = Self::default();
        let fault = |entry: &'a ProviderEntry| {
            let error = index.add(entry).err()?;
            Some((Arc::clone(entry.id()), error.to_string()))
        };
        let excluded = oldest_first.into_iter().filter_map(fault).collect();
        (index, excluded)
    }

    /// Adds one more.
    ///
    /// # Errors
    /// Its name is reserved, or it could be taken for one that is there.
    pub(in crate::runtime) fn add(&mut self, entry: &'a ProviderEntry) -> Result<(), Error> {
        let origin = entry.provider.origin();
        let (id, namespace) = (&origin.provider, &origin.namespace);
        let is_reserved = is_reserved_namespace(id) || is_reserved_namespace(namespace);
        if origin.kind == ToolKind::Mcp && is_reserved {
            return Err(Error::Pool(format!(
                "the name {namespace} is reserved; give provider {id} another one"
            )));
        }
        // A shared namespace counts as one provider; the names of no other provider begin like it.
        let shares = entry.provider.shares_namespace();
        if shares {
            self.sharing.extend([&**id, &**namespace]);
        }
        // Tools of ids that are one when they are sanitised get distinct names; a glob in that spelling means both.
        let is_one =
            |other: &str| sanitised(other) == sanitised(id) && self.sharing.contains(other) == shares;
        let added = if shares {
            let all = self.roots.add(namespace, namespace);
            all.and_then(|()| if id == namespace { Ok(()) } else { self.roots.add(id, id) })
        } else {
            self.roots.add(id, namespace)
        };
        added.or_else(|other| if is_one(other) { Ok(()) } else { Err(other) }).map_err(|other| {
            Error::Pool(format!(
                "the names of {id} and {other} begin alike, so that a pattern for one would mean tools of both; give \
                 one of them another name"
            ))
        })
    }
}

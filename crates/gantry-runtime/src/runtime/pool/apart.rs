//! Providers side by side: whether a pattern for one could also mean another.

use super::Error;
use crate::runtime::sources::Source;
use gantry_core::names::{Roots, is_reserved_namespace, sanitised};
use gantry_core::tool::ToolKind;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Providers that can be told apart by how the names of their tools begin.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Apart<'a> {
    roots: Roots<'a>,
    /// Those of them that share their namespace with others.
    sharing: HashSet<&'a str>,
}

impl<'a> Apart<'a> {
    /// Those of these that can stand side by side, and why the others cannot. The provider that came first stays.
    pub(in crate::runtime) fn of(sources: &'a [Source]) -> (Self, BTreeMap<Arc<str>, String>) {
        let mut in_time: Vec<&Source> = sources.iter().collect();
        in_time.sort_by_key(|source| source.number);
        let mut apart = Self::default();
        let fault = |source: &'a Source| {
            let error = apart.add(source).err()?;
            Some((Arc::clone(source.id()), error.to_string()))
        };
        let left_out = in_time.into_iter().filter_map(fault).collect();
        (apart, left_out)
    }

    /// Adds one more.
    ///
    /// # Errors
    /// Its name is reserved, or it could be taken for one that is there.
    pub(in crate::runtime) fn add(&mut self, source: &'a Source) -> Result<(), Error> {
        let origin = source.provider.origin();
        let (id, namespace) = (&origin.provider, &origin.namespace);
        let is_reserved = is_reserved_namespace(id) || is_reserved_namespace(namespace);
        if origin.kind == ToolKind::Mcp && is_reserved {
            return Err(Error::Pool(format!(
                "the name {namespace} is reserved; give provider {id} another one"
            )));
        }
        // A shared namespace counts as one provider; the names of no other provider begin like it.
        let shares = source.provider.shares_namespace();
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

//! Providers that cannot stand side by side: a name is reserved, or names begin alike, so that a pattern for one could also
//! mean another.

use crate::output_tool;
use crate::runtime::providers::ProviderEntry;
use gantry_core::names::{NamePrefixes, is_reserved_namespace, sanitised};
use gantry_core::tool::ToolKind;
use std::collections::HashSet;

/// Checks that patterns can tell these providers apart.
pub(in crate::runtime) fn check_names(providers: &[ProviderEntry]) -> Result<(), String> {
    let (mut ids, mut known) = (HashSet::from([output_tool::PROVIDER]), Vec::<NamePrefixes<'_>>::new());
    // Those that have their namespace in common with others.
    let mut sharing = HashSet::new();
    for entry in providers {
        let origin = entry.provider.origin();
        let (id, namespace) = (&origin.provider, &origin.namespace);
        if !ids.insert(&**id) {
            return Err(format!("two providers are called {id}; give one of them another name"));
        }
        let is_reserved = is_reserved_namespace(id) || is_reserved_namespace(namespace);
        if origin.kind == ToolKind::Mcp && is_reserved {
            return Err(format!("the name {namespace} is reserved; give provider {id} another one"));
        }
        // A shared namespace counts as one provider; the names of no other provider begin like it.
        let shares = entry.provider.shares_namespace();
        let added = if shares {
            sharing.extend([&**id, &**namespace]);
            vec![NamePrefixes::new(namespace, namespace), NamePrefixes::new(id, id)]
        } else {
            vec![NamePrefixes::new(id, namespace)]
        };
        // Tools of ids that are one when they are sanitised get distinct names; a glob in that spelling means both.
        let is_one = |other: &str| sanitised(other) == sanitised(id) && sharing.contains(other) == shares;
        for new in added {
            let conflict = known.iter().find(|other| {
                other.provider != new.provider && other.overlaps(&new) && !is_one(other.provider)
            });
            if let Some(other) = conflict {
                let other = other.provider;
                return Err(format!(
                    "the names of {id} and {other} begin alike, so that a pattern for one would mean tools of both; give \
                     one of them another name"
                ));
            }
            if known.iter().all(|other| other.provider != new.provider) {
                known.push(new);
            }
        }
    }
    Ok(())
}

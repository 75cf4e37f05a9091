//! Names that are shown without a prefix: which provider owns one that several have. Such a name cannot be changed to tell
//! two tools apart, so one of the tools is excluded.

use gantry_core::names::{Style, assign, owners};
use gantry_core::tool::ToolKind;
use gantry_core::toolset::Candidate;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Why each of these tools, in their order, cannot be there beside the others; nothing for those that can. `owner` is the
/// provider that has had a name and keeps it.
pub(super) fn conflicts<'f>(
    candidates: &[Candidate],
    owner: impl Fn(&str) -> Option<&'f Arc<str>>,
) -> Vec<Option<String>> {
    let bare = || candidates.iter().filter(|candidate| candidate.style == Style::Bare);
    let own: HashSet<&str> = bare().filter(|it| !is_foreign(it)).map(|it| it.spec.name.as_str()).collect();
    // Gantry's own tools keep their names.
    let owner = |name: &str| owner(name).filter(|_| !own.contains(name));
    let owners = owners(bare().map(|it| (it.spec.name.as_str(), &it.origin.provider)), owner);
    let prefixed = prefixed(candidates);
    let fault = |candidate: &Candidate| {
        let (name, provider) = (candidate.spec.name.as_str(), &candidate.origin.provider);
        if candidate.style != Style::Bare {
            return None;
        }
        match (owners.get(name), prefixed.get(name)) {
            (Some(other), _) if *other != provider => Some(format!(
                "both {other} and {provider} have a tool {name} without a prefix; set prefix: true on one of them"
            )),
            (_, Some(other)) if is_foreign(candidate) => Some(spoofed_name(name, other, provider)),
            _ => None,
        }
    };
    candidates.iter().map(fault).collect()
}

/// The reason against a name that would pass for one of another provider.
pub(super) fn spoofed_name(name: &str, other: &str, provider: &str) -> String {
    format!("the tool name {name} would pass for one of {other}; set prefix: true on {provider}")
}

fn is_foreign(candidate: &Candidate) -> bool {
    candidate.origin.kind == ToolKind::Mcp
}

/// The names that tools with a prefix have among themselves, which may be cut and end in a hash, and whose they are.
fn prefixed(candidates: &[Candidate]) -> HashMap<String, &Arc<str>> {
    if !candidates.iter().any(|candidate| candidate.style == Style::Bare && is_foreign(candidate)) {
        return HashMap::new();
    }
    let prefixed = || candidates.iter().filter(|candidate| candidate.style == Style::Prefixed);
    let requests: Vec<_> = prefixed().map(Candidate::name_request).collect();
    assign(&requests).0.into_iter().zip(prefixed().map(|candidate| &candidate.origin.provider)).collect()
}

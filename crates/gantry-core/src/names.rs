//! What a tool is called: `{namespace}__{tool}`, safe for every model interface, never twice the same.
//!
//! A displayed name is for people and models. Policy, cache, queues and the ledger key on the provider's id and the
//! tool's original name (see [`crate::tool::ToolKey`]), so that renaming can never change what is allowed.

use crate::digest::Digest;
use crate::limits::TOOL_NAME_CHARS;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Between namespace and tool.
pub const SEPARATOR: &str = "__";

/// Namespaces that no configured provider may take.
pub const RESERVED_NAMESPACES: [&str; 3] = ["agent", "rest", "router"];

/// Names of the tools that every agent run brings itself.
pub const RESERVED_TOOLS: [&str; 4] = ["final_report", "task_status", "batch", "tool_output"];

/// Replaces every character outside `[A-Za-z0-9_]` by `_`; case is kept.
#[must_use]
pub fn sanitised(name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if clean.is_empty() { "_".to_owned() } else { clean }
}

/// Turns `@ns/tool` into `ns__tool`; anything else is returned as it is.
#[must_use]
pub fn unslashed(spelling: &str) -> std::borrow::Cow<'_, str> {
    match spelling.strip_prefix('@').and_then(|rest| rest.split_once('/')) {
        Some((namespace, tool)) => format!("{namespace}{SEPARATOR}{tool}").into(),
        None => spelling.into(),
    }
}

/// Which beginnings of names belong to which provider, so that a name which is shown unchanged cannot pass for a name of
/// another provider.
#[derive(Debug, Default)]
pub struct Beginnings<'a> {
    /// Sanitised, each with the `_` that it ends in.
    owners: HashMap<String, Vec<&'a str>>,
    longest: usize,
}

impl<'a> Beginnings<'a> {
    /// Those of these providers, each given by its id and its namespace.
    #[must_use]
    pub fn of(providers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        for (id, namespace) in providers {
            for spelling in [id, namespace].into_iter().flat_map(beginnings) {
                all.longest = all.longest.max(spelling.len());
                let owners = all.owners.entry(spelling).or_default();
                if !owners.contains(&id) {
                    owners.push(id);
                }
            }
        }
        all
    }

    /// The provider, other than `own`, that this name would seem to come from.
    #[must_use]
    pub fn imitated(&self, name: &str, own: &str) -> Option<&'a str> {
        let name = sanitised(name);
        let ends = name.bytes().take(self.longest).enumerate().filter(|(_, byte)| *byte == b'_');
        let known = ends.filter_map(|(end, _)| self.owners.get(name.get(..=end)?));
        known.flatten().copied().find(|owner| *owner != own)
    }
}

/// How the names begin by which people and patterns mean tools of a provider, sanitised. An id may have a `/` or an `@` of its
/// own, and is then taken apart like `@ns/tool`.
fn beginnings(id: &str) -> [String; 3] {
    let spelled = format!("{id}{SEPARATOR}");
    [sanitised(&spelled), sanitised(&unslashed(&spelled)), sanitised(&unslashed(&format!("@{id}/")))]
}

/// How a provider's tools are displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `{namespace}__{tool}`, sanitised.
    Prefixed,
    /// The tool's own name, unchanged: Gantry's own tools, and servers with `prefix: false`.
    Bare,
}

/// A tool that needs a displayed name.
#[derive(Debug, Clone, Copy)]
pub struct Unnamed<'a> {
    /// The provider's namespace as configured.
    pub namespace: &'a str,
    /// The tool's name as its provider spells it.
    pub tool: &'a str,
    /// How it is to be displayed.
    pub style: Style,
}

/// Two or more tools that would have been displayed under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// The name that they all would have had.
    pub name: String,
    /// The names that they have instead, in the order of the input.
    pub given: Vec<String>,
}

/// Gives every tool its displayed name.
///
/// The result depends on the set of tools, not on their order: of several tools that would share a name, the one that
/// is spelled exactly like it keeps it and the others end in a hash of their origin.
#[must_use]
pub fn assign(tools: &[Unnamed<'_>]) -> (Vec<String>, Vec<Collision>) {
    let plain: Vec<String> = tools.iter().map(plain_name).collect();
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (n, name) in plain.iter().enumerate() {
        groups.entry(name).or_default().push(n);
    }
    let mut names = plain.clone();
    let mut taken: HashSet<String> =
        groups.iter().filter(|(_, group)| group.len() == 1).map(|(name, _)| (*name).to_owned()).collect();
    let mut collisions = Vec::new();
    for (name, group) in groups.iter().filter(|(_, group)| group.len() > 1) {
        let exact = group.iter().copied().filter(|n| tools.get(*n).is_some_and(|t| spelled(t) == *name));
        // A name keeps one owner only: with two exact spellings, none of them is more right than the other.
        let keeper = exact.clone().next().filter(|_| exact.count() == 1);
        if keeper.is_some() {
            taken.insert((*name).to_owned());
        }
        for n in group.iter().copied().filter(|n| Some(*n) != keeper) {
            if let (Some(tool), Some(slot)) = (tools.get(n), names.get_mut(n)) {
                *slot = distinct(tool, name, &taken);
                taken.insert(slot.clone());
            }
        }
        let given = group.iter().filter_map(|n| names.get(*n).cloned()).collect();
        collisions.push(Collision { name: (*name).to_owned(), given });
    }
    (names, collisions)
}

/// The name a tool has when no other tool wants it.
fn plain_name(tool: &Unnamed<'_>) -> String {
    match tool.style {
        Style::Bare => tool.tool.to_owned(),
        Style::Prefixed => {
            let full = format!("{}{SEPARATOR}{}", sanitised(tool.namespace), sanitised(tool.tool));
            if full.len() <= TOOL_NAME_CHARS { full } else { suffixed(tool, &full, 8) }
        }
    }
}

/// How the provider and the tool spell themselves, without sanitising.
fn spelled(tool: &Unnamed<'_>) -> String {
    match tool.style {
        Style::Bare => tool.tool.to_owned(),
        Style::Prefixed => format!("{}{SEPARATOR}{}", tool.namespace, tool.tool),
    }
}

/// A name that nobody has: the hash of the origin grows until it is free.
fn distinct(tool: &Unnamed<'_>, name: &str, taken: &HashSet<String>) -> String {
    (6..=32).map(|digits| suffixed(tool, name, digits)).find(|name| !taken.contains(name)).unwrap_or_else(
        || {
            // Two tools with equal namespace and name: only a broken provider does that, and its tools get numbers.
            (2..)
                .map(|n| format!("{}_{n}", suffixed(tool, name, 6)))
                .find(|name| !taken.contains(name))
                .unwrap_or_default()
        },
    )
}

fn suffixed(tool: &Unnamed<'_>, name: &str, digits: usize) -> String {
    let hash = Digest::of_parts(&[tool.namespace.as_bytes(), tool.tool.as_bytes()]).short(digits);
    let keep = crate::shape::truncated(name, TOOL_NAME_CHARS - digits - 1);
    format!("{}_{hash}", keep.trim_end_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixed<'a>(namespace: &'a str, tool: &'a str) -> Unnamed<'a> {
        Unnamed { namespace, tool, style: Style::Prefixed }
    }

    #[test]
    fn characters_outside_the_safe_set_become_underscores_and_case_stays() {
        assert_eq!(assign(&[prefixed("git-hub", "Search.Code é")]).0, ["git_hub__Search_Code__"]);
        assert_eq!(sanitised("my-tool"), "my_tool");
    }

    #[test]
    fn a_long_name_is_cut_and_ends_in_a_stable_hash() {
        let long = "x".repeat(100);
        let (names, collisions) = assign(&[prefixed("server", &long)]);
        assert_eq!(names[0].len(), 64);
        assert_eq!(names, assign(&[prefixed("server", &long)]).0);
        assert!(collisions.is_empty());
        assert_ne!(names, assign(&[prefixed("server", &"x".repeat(101))]).0);
    }

    #[test]
    fn the_exact_spelling_keeps_the_name_and_the_other_gets_a_hash() {
        let (names, collisions) = assign(&[prefixed("s", "my-tool"), prefixed("s", "my_tool")]);
        assert_eq!(names[1], "s__my_tool");
        assert!(names[0].starts_with("s__my_tool_"), "{}", names[0]);
        assert_eq!(collisions, [Collision { name: "s__my_tool".into(), given: names }]);
    }

    #[test]
    fn a_separator_inside_a_name_cannot_impersonate_another_provider() {
        let (names, _) = assign(&[prefixed("a", "b__c"), prefixed("a__b", "c")]);
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn nam_3_a_name_passes_for_one_of_every_provider_that_a_spelling_of_it_could_mean() {
        let ids = ["git-hub", "a__b", "org/srv", "@scope/srv", "my server", "sly", "x-y", "x.y"];
        let beginnings = Beginnings::of(ids.map(|id| (id, id)));
        for (name, imitated) in [
            ("git-hub__push", Some("git-hub")),
            ("git_hub__push", Some("git-hub")),
            ("git.hub__", Some("git-hub")),
            ("git-hub", None),
            ("git-hub_push", None),
            ("xgit-hub__push", None),
            ("a__b__c", Some("a__b")),
            ("a__c", None),
            // What `@org/srv/*`, `@scope/srv__*` and `@@scope/srv/*` come to.
            ("org__srv/push", Some("org/srv")),
            ("scope__srv__push", Some("@scope/srv")),
            ("@scope__srv/push", Some("@scope/srv")),
            ("my server__x", Some("my server")),
            ("sly__own", None),
            ("x_y__z", Some("x-y")),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(beginnings.imitated(name, "sly"), imitated, "{name}");
        }
        assert_eq!(beginnings.imitated("x_y__z", "x-y"), Some("x.y"), "whoever else has the same beginning");
        for spelling in ["@git-hub/x", "@a__b/x", "@org/srv/x", "@scope/srv__x", "@@scope/srv/x"] {
            assert!(beginnings.imitated(&unslashed(spelling), "sly").is_some(), "{spelling}");
        }
    }

    #[test]
    fn slashes_mean_the_separator() {
        assert_eq!(unslashed("@files/read_file"), "files__read_file");
        assert_eq!(unslashed("read_file"), "read_file");
        assert_eq!(unslashed("@odd"), "@odd");
    }

    proptest! {
        #[test]
        fn names_are_distinct_short_and_do_not_depend_on_order(
            tools in prop::collection::hash_set(("[ab]{1,2}", "[ab_.-]{1,3}|[ab]{70}"), 1..20)
        ) {
            let mut tools: Vec<_> = tools.iter().map(|(ns, tool)| prefixed(ns, tool)).collect();
            let (names, _) = assign(&tools);
            let set: HashSet<_> = names.iter().collect();
            prop_assert_eq!(set.len(), tools.len());
            prop_assert!(names.iter().all(|n| n.len() <= TOOL_NAME_CHARS));
            tools.reverse();
            let mut reversed = assign(&tools).0;
            reversed.reverse();
            prop_assert_eq!(names, reversed);
        }
    }
}

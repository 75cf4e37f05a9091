//! The displayed names of tools: `{namespace}__{tool}`, safe for every model interface, and distinct.
//!
//! A displayed name is for people and models. Policy, cache, queues and the ledger key on the provider's id and the
//! tool's original name (see [`crate::tool::ToolKey`]), so that renaming can never change what is allowed.

mod own;
mod reserved;
mod spelling;

pub use own::OwnNames;
pub(crate) use reserved::{COORDINATION_TOOLS, is_reserved_tool};
pub use reserved::{is_coordination_name, is_reserved_name, is_reserved_namespace};
pub use spelling::{NamePrefixes, imitated};
pub(crate) use spelling::{cut_prefixes, expand_at_syntax, spellings};

use crate::digest::Digest;
use crate::limits::TOOL_NAME_CHARS;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Between namespace and tool.
pub const SEPARATOR: &str = "__";

/// Replaces every character outside `[A-Za-z0-9_]` by `_`; case is kept.
pub fn sanitised(name: &str) -> String {
    let clean: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if clean.is_empty() { "_".to_owned() } else { clean }
}

/// The most digits of a hash that a name ends in.
const HASH_DIGITS: usize = 32;

/// The digits of the hash of a name that another tool has, unless the name with the hash is taken too.
const FIRST_DIGITS: usize = 6;

/// How a provider's tools are displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `{namespace}__{tool}`, sanitised.
    Prefixed,
    /// The tool's own name, unchanged: Gantry's own tools, and servers with `prefix: false`.
    Bare,
}

#[derive(Debug, Clone, Copy)]
pub struct NameRequest<'a> {
    /// The provider's namespace as configured.
    pub namespace: &'a str,
    /// The tool's name as its provider spells it.
    pub tool: &'a str,
    pub style: Style,
}

/// Two or more tools that would have been displayed under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    pub name: String,
    /// The names that they have instead, in the order of the input.
    pub given: Vec<String>,
}

/// Gives every tool its displayed name.
///
/// The result depends on the set of tools, not on their order: of several tools that would share a name, the one that
/// is spelled exactly like it keeps it and the others end in a hash of their origin.
pub fn assign(tools: &[NameRequest<'_>]) -> (Vec<String>, Vec<Collision>) {
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
        let mut exact = group.iter().copied().filter(|n| tools.get(*n).is_some_and(|t| spelled(t) == *name));
        // With two exact spellings neither tool keeps the name.
        let owner = exact.next().filter(|_| exact.next().is_none());
        if owner.is_some() {
            taken.insert((*name).to_owned());
        }
        for n in group.iter().copied().filter(|n| Some(*n) != owner) {
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

fn plain_name(tool: &NameRequest<'_>) -> String {
    match tool.style {
        Style::Bare => tool.tool.to_owned(),
        Style::Prefixed => {
            let full = format!("{}{SEPARATOR}{}", sanitised(tool.namespace), sanitised(tool.tool));
            if full.len() <= TOOL_NAME_CHARS { full } else { with_hash(tool, &full, 8) }
        }
    }
}

fn spelled(tool: &NameRequest<'_>) -> String {
    match tool.style {
        Style::Bare => tool.tool.to_owned(),
        Style::Prefixed => format!("{}{SEPARATOR}{}", tool.namespace, tool.tool),
    }
}

/// A name that no tool has: the hash of the origin grows until it is free.
fn distinct(tool: &NameRequest<'_>, name: &str, taken: &HashSet<String>) -> String {
    let hashed = (FIRST_DIGITS..=HASH_DIGITS).map(|digits| with_hash(tool, name, digits));
    // Two tools with equal namespace and name: only a broken provider does that, and its tools get numbers.
    let numbered = (2..).map(|n: u64| with_end(tool, name, &format!("{}_{n}", hash(tool, FIRST_DIGITS))));
    hashed.chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
}

fn with_hash(tool: &NameRequest<'_>, name: &str, digits: usize) -> String {
    with_end(tool, name, &hash(tool, digits))
}

fn hash(tool: &NameRequest<'_>, digits: usize) -> String {
    Digest::of_each([tool.namespace, tool.tool]).short(digits)
}

/// As much of a name as fits before this end. The prefix is not trimmed, because patterns for the provider rely on it.
fn with_end(tool: &NameRequest<'_>, name: &str, end: &str) -> String {
    let prefix = match tool.style {
        Style::Bare => 0,
        Style::Prefixed => sanitised(tool.namespace).len() + SEPARATOR.len(),
    };
    let fits = crate::truncate::truncate(name, TOOL_NAME_CHARS.saturating_sub(end.len() + 1));
    let kept = fits.trim_end_matches('_').len().max(prefix.min(fits.len()));
    format!("{}_{end}", crate::truncate::truncate(fits, kept))
}

/// The owner of each of these names, which come with the providers that want them: the provider that had the name before,
/// else the first one.
pub fn owners<'a, 'b>(
    wanted: impl IntoIterator<Item = (&'a str, &'a Arc<str>)>,
    before: impl Fn(&str) -> Option<&'b Arc<str>>,
) -> HashMap<&'a str, &'a Arc<str>> {
    let mut owners = HashMap::new();
    for (name, provider) in wanted {
        let owner = owners.entry(name).or_insert(provider);
        if before(name) == Some(provider) {
            *owner = provider;
        }
    }
    owners
}

/// Whether every model interface takes this as the name of a function.
pub(crate) fn is_legal(name: &str) -> bool {
    (1..=TOOL_NAME_CHARS).contains(&name.len()) && name.chars().all(is_legal_char)
}

fn is_legal_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The names that models are shown for the tools whose displayed name model interfaces refuse; none for the others.
///
/// The result depends on the set of tools, not on their order, and is no name or spelling of another tool.
pub(crate) fn model_names(tools: &[NameRequest<'_>], names: &[String]) -> Vec<Option<String>> {
    let plain = |(tool, name): (&NameRequest<'_>, &String)| (!is_legal(name)).then(|| cleaned(tool, name));
    let mut legal: Vec<Option<String>> = tools.iter().zip(names).map(plain).collect();
    if legal.iter().all(Option::is_none) {
        return legal;
    }
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for name in legal.iter().flatten() {
        *wanted.entry(name.clone()).or_default() += 1;
    }
    let spelled = |tool: &NameRequest<'_>| {
        let sanitised = format!("{}{SEPARATOR}{}", sanitised(tool.namespace), sanitised(tool.tool));
        [sanitised, format!("{}{SEPARATOR}{}", tool.namespace, tool.tool)]
    };
    let mut taken: HashSet<String> = names.iter().cloned().chain(tools.iter().flat_map(spelled)).collect();
    let mut slots: Vec<_> = legal.iter_mut().zip(tools).zip(names).collect();
    slots.sort_by_key(|(_, name)| *name);
    for ((slot, tool), _) in slots {
        let Some(name) = slot.as_mut() else { continue };
        // No tool gets a name that several want, so that a tool that is added later takes no name away from another.
        if wanted.get(name).is_some_and(|count| *count > 1) || taken.contains(name) {
            *name = distinct(tool, name, &taken);
        }
        taken.insert(name.clone());
    }
    legal
}

fn cleaned(tool: &NameRequest<'_>, name: &str) -> String {
    let clean: String = name.chars().map(|c| if is_legal_char(c) { c } else { '_' }).collect();
    match clean.len() {
        0 => "_".to_owned(),
        1..=TOOL_NAME_CHARS => clean,
        _ => with_hash(tool, &clean, 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixed<'a>(namespace: &'a str, tool: &'a str) -> NameRequest<'a> {
        NameRequest { namespace, tool, style: Style::Prefixed }
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

    fn bare(tool: &str) -> NameRequest<'_> {
        NameRequest { namespace: "s", tool, style: Style::Bare }
    }

    fn legal(tools: &[&str]) -> Vec<Option<String>> {
        let tools: Vec<_> = tools.iter().map(|tool| bare(tool)).collect();
        model_names(&tools, &assign(&tools).0)
    }

    #[test]
    fn srv_4_names_that_models_do_not_take_get_one_that_they_take_and_that_no_other_has() {
        assert_eq!(legal(&["read_file", "my-tool"]), [None, None]);
        assert_eq!(legal(&["files.read", ""]), [Some("files_read".into()), Some("_".into())]);
        let long = legal(&[&"ä".repeat(80)]).remove(0).unwrap();
        assert!(is_legal(&long), "{long}");
        for clashing in [["a.b", "a_b"], ["a.b", "a/b"], ["s.x", "x"]] {
            let given = legal(&clashing);
            for name in given.iter().flatten() {
                assert!(is_legal(name) && !clashing.contains(&name.as_str()), "{given:?}");
            }
            assert_ne!(given[0], given[1]);
            assert_ne!(given[0].as_deref(), Some("a_b"));
        }
        assert_ne!(legal(&["s__x.y", "x-y"])[0].as_deref(), Some("s__x_y"), "a spelling of the other");
    }

    proptest! {
        #[test]
        fn every_name_with_a_prefix_begins_like_its_provider(
            tools in prop::collection::vec(("[a_.]{1,3}|[ab]{70}", "[a_.-]{1,3}|[ab]{70}"), 1..20)
        ) {
            let tools: Vec<_> = tools.iter().map(|(ns, tool)| prefixed(ns, tool)).collect();
            for (tool, name) in tools.iter().zip(assign(&tools).0) {
                let prefix = &cut_prefixes("id", tool.namespace)[0];
                prop_assert!(name.starts_with(prefix) && is_legal(&name), "{name} of {tool:?}");
            }
        }

        #[test]
        fn legal_names_are_distinct_and_do_not_depend_on_order(
            tools in prop::collection::hash_set("[ab_.é/-]{0,3}|[aé]{70}", 1..20)
        ) {
            let mut tools: Vec<_> = tools.iter().map(|tool| bare(tool)).collect();
            let shown = |tools: &[NameRequest<'_>]| -> Vec<String> {
                let names = assign(tools).0;
                model_names(tools, &names).into_iter().zip(names).map(|(legal, name)| legal.unwrap_or(name)).collect()
            };
            let names = shown(&tools);
            prop_assert!(names.iter().all(|name| is_legal(name)), "{names:?}");
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), tools.len());
            tools.reverse();
            let mut reversed = shown(&tools);
            reversed.reverse();
            prop_assert_eq!(names, reversed);
        }

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

//! Resolves which tools an agent has, which of them it may call, and by which aliases. Listing, searching, calling and
//! explaining all use this one resolution.
//!
//! Each step removes tools from those that the previous step left: the included tools, the allow-list, the limit of the
//! parent agent, the depth. Each entry of a list is resolved as a tool name, then as an alias, then as a provider id, against
//! the tools that the previous step left.

use super::pool::Pool;
use super::selection::{Selection, SpawnContext, ToolSelector, Warning};
use crate::limits::ALIASES_PER_AGENT;
use crate::names::{COORDINATION_TOOLS, expand_at_syntax, is_reserved_tool};
use crate::pattern::Pattern;
use crate::tool::{Tool, ToolKind};
use std::borrow::Cow;
use std::collections::HashMap;

/// Whether the agent has a tool of the pool, and the step that removed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    NotIncluded,
    /// The entry at this position of the included tools gives it.
    Visible {
        entry: usize,
    },
    NotAllowed {
        entry: usize,
    },
    OutsideParentLimit,
    /// It starts agents, and the agent is too deep for that, or does not name it.
    TooDeep {
        named: bool,
    },
}

impl Visibility {
    pub(super) fn is_visible(self) -> bool {
        matches!(self, Self::Visible { .. })
    }
}

/// An alias of a visible tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alias {
    pub(super) name: Box<str>,
    /// The position of the tool.
    pub(super) at: usize,
}

/// The tools and aliases of an agent.
#[derive(Debug)]
pub(super) struct Resolution {
    /// One for each tool of the pool.
    visibilities: Vec<Visibility>,
    /// The matches of the allow-list, unless it allows everything.
    pub(super) allowed: Option<PatternMatches>,
    /// In the order of the names.
    pub(super) aliases: Vec<Alias>,
    /// The positions of the tools whose own rule is approved automatically, ascending.
    pub(super) approved: Vec<usize>,
    pub(super) warnings: Vec<Warning>,
}

impl Resolution {
    pub(super) fn of(pool: &Pool, selection: &Selection, place: &SpawnContext) -> Self {
        let mut resolver = Resolver::new(pool, selection);
        let allowed = selection
            .restriction()
            .map(|list| (list, resolver.restrict(list, |entry| Visibility::NotAllowed { entry })));
        if let Some((list, matches)) = &allowed {
            resolver.warnings.extend(matches.unmatched(list).map(Warning::AllowedUnmatched));
        }
        let approved = resolver.matches(&selection.auto_approve);
        let unmatched = approved.unmatched(&selection.auto_approve);
        resolver.warnings.extend(unmatched.map(Warning::ApprovedUnmatched));
        if let Some(limit) = &place.parent_limit {
            // A parent may use one list for several agents, so an entry without effect is no mistake.
            resolver.restrict(limit, |_| Visibility::OutsideParentLimit);
        }
        resolver.apply_depth(place);
        let aliases = resolver.aliases();
        let approved = approved.positions().filter(|n| resolver.is_visible(*n)).collect();
        let allowed = allowed.map(|(_, matches)| matches);
        let Resolver { visibilities, warnings, .. } = resolver;
        Self { visibilities, allowed, aliases, approved, warnings }
    }

    pub(super) fn visibility(&self, n: usize) -> Visibility {
        self.visibilities.get(n).copied().unwrap_or(Visibility::NotIncluded)
    }

    /// The positions of the visible tools, ascending.
    pub(super) fn visible(&self) -> impl Iterator<Item = usize> {
        self.visibilities.iter().enumerate().filter(|(_, it)| it.is_visible()).map(|(n, _)| n)
    }
}

/// What an entry of a list of patterns matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matched {
    Nothing,
    Tools,
    /// It is the id of a provider, and stands for all its tools.
    Provider,
}

#[derive(Debug)]
pub(super) struct PatternMatches {
    /// For each tool of the pool the first entry that matches it.
    by: Vec<Option<usize>>,
    matched: Vec<Matched>,
}

impl PatternMatches {
    /// The first entry that matches the tool at a position.
    pub(super) fn entry(&self, n: usize) -> Option<usize> {
        self.by.get(n).copied().flatten()
    }

    pub(super) fn is_provider(&self, entry: usize) -> bool {
        self.matched.get(entry) == Some(&Matched::Provider)
    }

    /// The entries that match nothing.
    fn unmatched<'a>(&'a self, patterns: &'a [Pattern]) -> impl Iterator<Item = String> + 'a {
        let unmatched = patterns.iter().zip(&self.matched).filter(|(_, it)| **it == Matched::Nothing);
        unmatched.map(|(pattern, _)| pattern.as_str().to_owned())
    }

    /// The positions of the tools that match, ascending.
    fn positions(&self) -> impl Iterator<Item = usize> {
        self.by.iter().enumerate().filter(|(_, by)| by.is_some()).map(|(n, _)| n)
    }
}

struct Resolver<'a> {
    pool: &'a Pool,
    selection: &'a Selection,
    visibilities: Vec<Visibility>,
    entries: Vec<AliasEntry<'a>>,
    warnings: Vec<Warning>,
}

/// An alias as the selection has it.
struct AliasEntry<'a> {
    /// The alias and the spelling of its tool, word for word.
    alias: &'a str,
    target: &'a str,
    /// The alias with `@ns/tool` expanded, as calls are.
    text: Cow<'a, str>,
}

impl<'a> Resolver<'a> {
    /// With all included tools visible.
    fn new(pool: &'a Pool, selection: &'a Selection) -> Self {
        let mut visibilities = vec![Visibility::NotIncluded; pool.tools().len()];
        let mut warnings = Vec::new();
        for (entry, selector) in selection.include.iter().enumerate() {
            // `*` in an empty pool is no mistake.
            let mut matched = selector.as_str() == "*";
            let hit = |n: usize| {
                matched = true;
                if let Some(slot) = visibilities.get_mut(n).filter(|it| **it == Visibility::NotIncluded) {
                    *slot = Visibility::Visible { entry };
                }
            };
            match selector.resolve(pool) {
                ToolSelector::Tools(pattern) | ToolSelector::ProviderOrTools(pattern) => {
                    pool.matching(&pattern, |_| true, hit);
                }
                ToolSelector::Provider(id) => pool.provided(&id).iter().copied().for_each(hit),
            }
            if !matched {
                warnings.push(Warning::Unmatched(selector.as_str().to_owned()));
            }
        }
        let entries = alias_entries(selection, &mut warnings);
        Self { pool, selection, visibilities, entries, warnings }
    }

    fn is_visible(&self, n: usize) -> bool {
        self.visibilities.get(n).is_some_and(|it| it.is_visible())
    }

    fn find(&self, spelling: &str) -> Option<usize> {
        self.pool.find(spelling, |n| self.is_visible(n))
    }

    /// The visible tool that a call with an alias means before the alias.
    fn shadowing(&self, entry: &AliasEntry<'_>) -> Option<usize> {
        // The listed text may look like `@ns/tool` once more, and be expanded to the name of another tool.
        let expanded = || self.find(&entry.text).filter(|n| Some(*n) != self.find(entry.target));
        self.find(entry.alias).or_else(expanded)
    }

    /// Which of the visible tools these patterns match.
    fn matches(&self, patterns: &[Pattern]) -> PatternMatches {
        let mut by = vec![None; self.visibilities.len()];
        let mut all = Vec::with_capacity(patterns.len());
        for (n, pattern) in patterns.iter().enumerate() {
            let mut hits = Vec::new();
            self.pool.matching(pattern, |n| self.is_visible(n), |n| hits.push(n));
            let aliases: Vec<_> = self.entries.iter().filter(|entry| pattern.matches(&entry.text)).collect();
            let free = aliases.iter().filter(|entry| self.shadowing(entry).is_none());
            hits.extend(free.filter_map(|entry| self.find(entry.target)));
            let mut matched = Matched::Tools;
            // An alias without a visible tool is not resolved as a provider id.
            if let Some(id) = pattern.exact().filter(|_| hits.is_empty() && aliases.is_empty()) {
                hits.extend(self.pool.provided(id).iter().filter(|n| self.is_visible(**n)));
                matched = Matched::Provider;
            }
            if hits.is_empty() && !pattern.is_everything() {
                matched = Matched::Nothing;
            }
            all.push(matched);
            for hit in hits {
                if let Some(by) = by.get_mut(hit) {
                    by.get_or_insert(n);
                }
            }
        }
        PatternMatches { by, matched: all }
    }

    /// Removes the visible tools that no pattern matches. `removed` gets the entry that included the tool.
    fn restrict(&mut self, patterns: &[Pattern], removed: impl Fn(usize) -> Visibility) -> PatternMatches {
        let matches = self.matches(patterns);
        for (slot, _) in self.visibilities.iter_mut().zip(&matches.by).filter(|(_, by)| by.is_none()) {
            if let Visibility::Visible { entry } = *slot {
                *slot = removed(entry);
            }
        }
        matches
    }

    /// Removes the tools that start agents from agents that are too deep for them.
    fn apply_depth(&mut self, place: &SpawnContext) {
        if place.depth == 0 {
            return;
        }
        for name in COORDINATION_TOOLS {
            let at = self.pool.displayed(name).filter(|n| self.is_visible(*n));
            let Some((n, tool)) = at.and_then(|n| Some((n, self.pool.tools().get(n)?))) else { continue };
            let (named, too_deep) = (self.names(n), place.depth >= place.max_depth);
            if !is_own(tool) || (named && !too_deep) {
                continue;
            }
            if let Some(slot) = self.visibilities.get_mut(n) {
                *slot = Visibility::TooDeep { named };
            }
            if named {
                self.warnings.push(Warning::MaxDepth { tool: name.to_owned(), max_depth: place.max_depth });
            }
        }
    }

    /// Whether an included entry names this tool, and not only a pattern that matches it.
    fn names(&self, n: usize) -> bool {
        self.selection.include.iter().any(|entry| match entry.resolve(self.pool) {
            ToolSelector::Tools(pattern) | ToolSelector::ProviderOrTools(pattern) => {
                pattern.exact().is_some_and(|text| self.pool.find(text, |_| true) == Some(n))
            }
            ToolSelector::Provider(_) => false,
        })
    }

    /// The aliases of the tools that are visible in the end.
    fn aliases(&mut self) -> Vec<Alias> {
        let mut aliases: Vec<Alias> = Vec::new();
        let mut warnings = Vec::new();
        for entry in &self.entries {
            match (self.shadowing(entry), self.find(entry.target)) {
                // A name that the tool has anyway.
                (Some(tool), Some(at)) if tool == at => {}
                (Some(tool), _) => {
                    let name = self.pool.tools().get(tool).map_or("", |tool| &tool.name);
                    warnings.push(entry.shadowed_by(name));
                }
                (None, Some(at)) => aliases.push(Alias { name: (*entry.text).into(), at }),
                (None, None) => warnings.push(Warning::AliasUnmatched {
                    alias: entry.alias.to_owned(),
                    target: entry.target.to_owned(),
                }),
            }
        }
        self.warnings.append(&mut warnings);
        aliases.sort_by(|a, b| a.name.cmp(&b.name));
        aliases
    }
}

/// The aliases of a selection that are not reserved or written twice.
fn alias_entries<'a>(selection: &'a Selection, warnings: &mut Vec<Warning>) -> Vec<AliasEntry<'a>> {
    let mut entries: Vec<AliasEntry<'a>> = Vec::new();
    let mut targets: HashMap<Cow<'a, str>, &'a str> = HashMap::new();
    for (alias, target) in selection.aliases.iter().take(ALIASES_PER_AGENT) {
        let new = AliasEntry { alias, target, text: expand_at_syntax(alias) };
        if is_reserved_tool(&new.text) {
            warnings.push(new.shadowed_by(&new.text));
        } else if let Some(twin) = targets.get(&new.text) {
            // `@my/read` and `my__read` are one text.
            warnings.push(new.shadowed_by(twin));
        } else {
            targets.insert(new.text.clone(), target);
            entries.push(new);
        }
    }
    let dropped = selection.aliases.len().saturating_sub(ALIASES_PER_AGENT);
    if dropped > 0 {
        warnings.push(Warning::TooManyAliases { dropped });
    }
    entries
}

impl AliasEntry<'_> {
    fn shadowed_by(&self, tool: &str) -> Warning {
        Warning::AliasShadowed { alias: self.alias.to_owned(), tool: tool.to_owned() }
    }
}

/// Whether a tool is Gantry's own. A tool of a server with the same name starts no agents.
fn is_own(tool: &Tool) -> bool {
    match tool.kind {
        ToolKind::Builtin | ToolKind::Agent => true,
        ToolKind::Mcp | ToolKind::Rest => false,
    }
}

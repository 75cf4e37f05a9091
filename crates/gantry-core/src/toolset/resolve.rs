//! The one judgement of what an agent has, may call and calls it; listing, searching, calling and explaining all
//! come from it.
//!
//! Each step takes tools away from what the step before left: what is in use, what of it is allowed, what whoever spawned
//! the agent left it, what its depth permits. Within a step, a text means what a call with that text would mean
//! there: a tool that is still there before an alias. What would mean neither may be the id of a provider.

use super::pool::Pool;
use super::selection::{Selection, SpawnContext, Use, Warning};
use crate::limits::ALIASES_PER_AGENT;
use crate::names::{COORDINATION_TOOLS, is_reserved_tool, unslashed};
use crate::pattern::Pattern;
use crate::tool::{Tool, ToolKind};
use std::borrow::Cow;
use std::collections::HashMap;

/// What became of a tool of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing in use matches it.
    Unused,
    /// The entry at this position of what is in use gives it, and nothing takes it away.
    Visible { entry: usize },
    /// That entry gives it, but it is not allowed.
    NotAllowed { entry: usize },
    /// Whoever spawned the agent did not leave it.
    Narrowed,
    /// It starts agents, and the agent is too deep for that, or does not name it.
    TooDeep { named: bool },
}

impl Fate {
    fn is_visible(self) -> bool {
        matches!(self, Self::Visible { .. })
    }
}

/// An alias that means a visible tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alias {
    pub(super) name: Box<str>,
    /// The position of the tool.
    pub(super) at: usize,
}

/// What became of every tool, and what it is called besides.
#[derive(Debug)]
pub(super) struct Judgement {
    /// One for each tool of the pool.
    fates: Vec<Fate>,
    /// What the allow-list means, if it does not allow everything.
    pub(super) allowed: Option<Meant>,
    /// In the order of the names.
    pub(super) aliases: Vec<Alias>,
    /// The positions of the tools whose own rule need not ask, ascending.
    pub(super) approved: Vec<usize>,
    pub(super) warnings: Vec<Warning>,
}

impl Judgement {
    /// Judges every tool of a pool.
    pub(super) fn of(pool: &Pool, selection: &Selection, place: &SpawnContext) -> Self {
        let mut judge = Judge::new(pool, selection);
        let allowed =
            selection.restriction().map(|allowed| judge.cut(allowed, |entry| Fate::NotAllowed { entry }));
        let idle = allowed.iter().flat_map(Meant::idle);
        judge
            .warnings
            .extend(idle.map(|n| Warning::AllowedUnmatched(text_of(selection.allowed.as_deref(), n))));
        let approved = judge.meant(&selection.auto_approve);
        let idle = approved.idle().map(|n| text_of(Some(&selection.auto_approve), n));
        judge.warnings.extend(idle.map(Warning::ApprovedUnmatched));
        if let Some(narrowed) = &place.narrowed {
            // Whoever narrows may do so with one list for several agents: what matches nothing here is no mistake.
            judge.cut(narrowed, |_| Fate::Narrowed);
        }
        judge.keep_depth(place);
        let aliases = judge.aliases();
        let approved = approved.positions().filter(|n| judge.is_visible(*n)).collect();
        Self { aliases, approved, allowed, warnings: judge.warnings, fates: judge.fates }
    }

    /// What became of the tool at a position.
    pub(super) fn fate(&self, n: usize) -> Fate {
        self.fates.get(n).copied().unwrap_or(Fate::Unused)
    }

    /// The positions of the tools that are there, ascending.
    pub(super) fn visible(&self) -> impl Iterator<Item = usize> {
        self.fates.iter().enumerate().filter(|(_, fate)| fate.is_visible()).map(|(n, _)| n)
    }
}

fn text_of(patterns: Option<&[Pattern]>, n: usize) -> String {
    patterns.and_then(|patterns| patterns.get(n)).map_or(String::new(), |pattern| pattern.as_str().to_owned())
}

/// What an entry of a list of patterns came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Nothing,
    Tools,
    /// It is the id of a provider, and stands for all tools of it.
    Provider,
}

/// What a list of patterns means.
#[derive(Debug)]
pub(super) struct Meant {
    /// For each tool of the pool the first entry that means it.
    by: Vec<Option<usize>>,
    /// For each entry.
    outcomes: Vec<Outcome>,
}

impl Meant {
    /// The first entry that means the tool at a position.
    pub(super) fn entry(&self, n: usize) -> Option<usize> {
        self.by.get(n).copied().flatten()
    }

    /// Whether an entry is the id of a provider.
    pub(super) fn is_provider(&self, entry: usize) -> bool {
        self.outcomes.get(entry) == Some(&Outcome::Provider)
    }

    /// The entries that mean nothing.
    fn idle(&self) -> impl Iterator<Item = usize> {
        self.outcomes.iter().enumerate().filter(|(_, it)| **it == Outcome::Nothing).map(|(entry, _)| entry)
    }

    /// The positions of the tools that are meant, ascending.
    fn positions(&self) -> impl Iterator<Item = usize> {
        self.by.iter().enumerate().filter(|(_, by)| by.is_some()).map(|(n, _)| n)
    }
}

struct Judge<'a> {
    pool: &'a Pool,
    selection: &'a Selection,
    fates: Vec<Fate>,
    written: Vec<Written<'a>>,
    warnings: Vec<Warning>,
}

/// An alias as the selection has it.
struct Written<'a> {
    /// The alias and what it stands for, word for word.
    alias: &'a str,
    target: &'a str,
    /// What a call with the alias looks for.
    text: Cow<'a, str>,
}

impl<'a> Judge<'a> {
    /// Before anything is taken away.
    fn new(pool: &'a Pool, selection: &'a Selection) -> Self {
        let mut fates = vec![Fate::Unused; pool.tools().len()];
        let mut warnings = Vec::new();
        for (entry, used) in selection.uses.iter().enumerate() {
            // An empty pool has nothing to match, which is no mistake of the entry's.
            let mut matched = matches!(used, Use::Tools(it) | Use::ProviderOrTools(it) if it.is_everything());
            let hit = |n: usize| {
                matched = true;
                if let Some(fate) = fates.get_mut(n).filter(|fate| **fate == Fate::Unused) {
                    *fate = Fate::Visible { entry };
                }
            };
            match used.settled(pool) {
                Use::Tools(pattern) | Use::ProviderOrTools(pattern) => pool.matching(&pattern, |_| true, hit),
                Use::Provider(id) => pool.provided(&id).iter().copied().for_each(hit),
            }
            if !matched {
                warnings.push(Warning::Unmatched(used.as_str().to_owned()));
            }
        }
        let written = written(selection, &mut warnings);
        Self { pool, selection, fates, written, warnings }
    }

    fn is_visible(&self, n: usize) -> bool {
        self.fates.get(n).is_some_and(|fate| fate.is_visible())
    }

    /// The tool that is still there and that a call with an alias means before the alias.
    fn owner(&self, alias: &Written<'_>) -> Option<usize> {
        let find = |text: &str| self.pool.find(text, |n| self.is_visible(n));
        // The text that is listed may look like `@ns/tool` once more, and be read as the name of another tool.
        find(alias.alias).or_else(|| find(&alias.text).filter(|n| Some(*n) != self.target(alias)))
    }

    /// The tool that is still there and that an alias stands for.
    fn target(&self, alias: &Written<'_>) -> Option<usize> {
        self.pool.find(alias.target, |n| self.is_visible(n))
    }

    /// Which of the tools that are still there these patterns mean.
    fn meant(&self, patterns: &[Pattern]) -> Meant {
        let mut by = vec![None; self.fates.len()];
        let mut outcomes = Vec::with_capacity(patterns.len());
        for (entry, pattern) in patterns.iter().enumerate() {
            let mut hits = Vec::new();
            self.pool.matching(pattern, |n| self.is_visible(n), |n| hits.push(n));
            let aliases: Vec<_> = self.written.iter().filter(|alias| pattern.matches(&alias.text)).collect();
            let free = aliases.iter().filter(|alias| self.owner(alias).is_none());
            hits.extend(free.filter_map(|alias| self.target(alias)));
            let mut outcome = if hits.is_empty() { Outcome::Nothing } else { Outcome::Tools };
            // An alias never comes to mean more because its tool is not there.
            if let Some(id) = pattern.exact().filter(|_| hits.is_empty() && aliases.is_empty()) {
                hits.extend(self.pool.provided(id).iter().filter(|n| self.is_visible(**n)));
                outcome = if hits.is_empty() { Outcome::Nothing } else { Outcome::Provider };
            }
            if pattern.is_everything() {
                outcome = Outcome::Tools;
            }
            outcomes.push(outcome);
            for n in hits {
                if let Some(by) = by.get_mut(n) {
                    by.get_or_insert(entry);
                }
            }
        }
        Meant { by, outcomes }
    }

    /// Takes away what is still there and not meant: each gets a fate, which the entry that gave it decides.
    fn cut(&mut self, patterns: &[Pattern], fate: impl Fn(usize) -> Fate) -> Meant {
        let meant = self.meant(patterns);
        for (slot, _) in self.fates.iter_mut().zip(&meant.by).filter(|(_, by)| by.is_none()) {
            if let Fate::Visible { entry } = *slot {
                *slot = fate(entry);
            }
        }
        meant
    }

    /// Takes away the tools that start agents where they are not for this one.
    fn keep_depth(&mut self, place: &SpawnContext) {
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
            if let Some(fate) = self.fates.get_mut(n) {
                *fate = Fate::TooDeep { named };
            }
            if named {
                self.warnings.push(Warning::MaxDepth { tool: name.to_owned(), max_depth: place.max_depth });
            }
        }
    }

    /// Whether an entry of what is in use names this tool, and not just a pattern that it happens to match.
    fn names(&self, n: usize) -> bool {
        self.selection.uses.iter().any(|entry| match entry.settled(self.pool) {
            Use::Tools(pattern) | Use::ProviderOrTools(pattern) => {
                pattern.exact().is_some_and(|text| self.pool.find(text, |_| true) == Some(n))
            }
            Use::Provider(_) => false,
        })
    }

    /// The aliases of what is there in the end.
    fn aliases(&mut self) -> Vec<Alias> {
        let mut aliases: Vec<Alias> = Vec::new();
        let mut warnings = Vec::new();
        for alias in &self.written {
            match (self.owner(alias), self.target(alias)) {
                // A name that the tool has anyway.
                (Some(owner), Some(at)) if owner == at => {}
                (Some(owner), _) => warnings.push(alias.shadowed(name_of(self.pool, owner))),
                (None, Some(at)) => aliases.push(Alias { name: (*alias.text).into(), at }),
                (None, None) => warnings.push(Warning::AliasUnmatched {
                    alias: alias.alias.to_owned(),
                    target: alias.target.to_owned(),
                }),
            }
        }
        self.warnings.append(&mut warnings);
        aliases.sort_by(|a, b| a.name.cmp(&b.name));
        aliases
    }
}

/// The aliases of a selection, without those that something else is called by whatever else is there.
fn written<'a>(selection: &'a Selection, warnings: &mut Vec<Warning>) -> Vec<Written<'a>> {
    let mut kept: Vec<Written<'a>> = Vec::new();
    let mut targets: HashMap<Cow<'a, str>, &'a str> = HashMap::new();
    for (alias, target) in selection.aliases.iter().take(ALIASES_PER_AGENT) {
        let new = Written { alias, target, text: unslashed(alias) };
        if is_reserved_tool(&new.text) {
            // What every run brings itself is called before any alias.
            warnings.push(new.shadowed(&new.text));
        } else if let Some(twin) = targets.get(&new.text) {
            // `@my/read` and `my__read` are one text.
            warnings.push(new.shadowed(twin));
        } else {
            targets.insert(new.text.clone(), target);
            kept.push(new);
        }
    }
    let dropped = selection.aliases.len().saturating_sub(ALIASES_PER_AGENT);
    if dropped > 0 {
        warnings.push(Warning::TooManyAliases { dropped });
    }
    kept
}

impl Written<'_> {
    fn shadowed(&self, tool: &str) -> Warning {
        Warning::AliasShadowed { alias: self.alias.to_owned(), tool: tool.to_owned() }
    }
}

fn name_of(pool: &Pool, n: usize) -> &str {
    pool.tools().get(n).map_or("", |tool| &tool.name)
}

/// Whether a tool is Gantry's own. A server may have a tool of the same name, which starts nothing here.
fn is_own(tool: &Tool) -> bool {
    match tool.kind {
        ToolKind::Builtin | ToolKind::Agent => true,
        ToolKind::Mcp | ToolKind::Rest => false,
    }
}

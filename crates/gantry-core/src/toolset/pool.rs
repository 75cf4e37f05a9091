//! The pool: all tools of a project, named, compiled, and found by whatever spelling means one of them.

use crate::names::{Collision, Style, Unnamed, assign, legalised, prefixes, unslashed};
use crate::pattern::Pattern;
use crate::tool::{Origin, Settings, Status, Tool, ToolKey, ToolSpec};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A tool that is about to enter a pool.
#[derive(Debug)]
pub struct Candidate {
    /// Where it comes from.
    pub origin: Origin,
    /// How it is displayed.
    pub style: Style,
    /// Its definition.
    pub spec: ToolSpec,
    /// How its calls are run.
    pub settings: Settings,
}

impl Candidate {
    /// What it is named by.
    #[must_use]
    pub fn unnamed(&self) -> Unnamed<'_> {
        Unnamed { namespace: &self.origin.namespace, tool: &self.spec.name, style: self.style }
    }

    /// Whether this tool was made from the same. Definitions count by their text, not only by what they mean: clients are
    /// shown it.
    fn makes(&self, tool: &Tool) -> bool {
        let Self { origin, style: _, spec, settings } = self;
        tool.key.provider == origin.provider
            && tool.namespace == origin.namespace
            && tool.kind == origin.kind
            && tool.spec == *spec
            && tool.settings == *settings
    }
}

/// All tools of a project.
#[derive(Debug, Default)]
pub struct Pool {
    /// In the order of the displayed names.
    tools: Vec<Arc<Tool>>,
    /// Every spelling of every tool, and who has it.
    index: HashMap<Box<str>, Owners>,
    /// The same tools by the ids of their providers.
    providers: BTreeMap<Arc<str>, Provided>,
    collisions: Vec<Collision>,
}

/// The positions of the tools that have one spelling.
#[derive(Debug)]
enum Owners {
    One(usize),
    Several(Vec<usize>),
}

impl Owners {
    fn add(&mut self, n: usize) {
        match self {
            Self::One(known) if *known == n => {}
            Self::One(known) => *self = Self::Several(vec![*known, n]),
            Self::Several(known) if known.last() == Some(&n) => {}
            Self::Several(known) => known.push(n),
        }
    }

    fn all(&self) -> &[usize] {
        match self {
            Self::One(n) => std::slice::from_ref(n),
            Self::Several(all) => all,
        }
    }
}

/// What a text means.
enum Meaning {
    Nothing,
    Tool(usize),
    /// Several tools, and none of them more than another.
    Unclear,
}

/// What one provider has in a pool.
#[derive(Debug)]
struct Provided {
    /// Positions, in the order of the provider's own names.
    tools: Vec<usize>,
    /// How all their spellings begin; nothing if they begin in any way.
    prefixes: Vec<String>,
}

impl Pool {
    /// Names and compiles the tools. The order of the result is that of the displayed names.
    #[must_use]
    pub fn build(candidates: Vec<Candidate>) -> Self {
        Self::made(&Self::default(), candidates, |_| None)
    }

    /// The same after a change, with a say about each tool: one that somebody objects to is quarantined for that reason.
    ///
    /// What is as it was is taken over: tools are compiled only where something about them is new, and a pool in which
    /// nothing is new is the one before, so that whoever has resolved a view of it has one of this pool.
    #[must_use]
    pub fn rebuild(
        before: &Arc<Self>,
        candidates: Vec<Candidate>,
        objection: impl Fn(&Candidate) -> Option<String>,
    ) -> Arc<Self> {
        let now = Self::made(before, candidates, objection);
        if now.is_like(before) { Arc::clone(before) } else { Arc::new(now) }
    }

    fn made(
        before: &Self,
        candidates: Vec<Candidate>,
        objection: impl Fn(&Candidate) -> Option<String>,
    ) -> Self {
        let unnamed: Vec<Unnamed<'_>> = candidates.iter().map(Candidate::unnamed).collect();
        let (names, collisions) = assign(&unnamed);
        let legal = legalised(&unnamed, &names);
        let named = names.into_iter().zip(legal).zip(candidates).map(|(names, candidate)| {
            let objection = objection(&candidate);
            before.tool(names, (candidate, objection))
        });
        let mut tools: Vec<_> = named.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { index: index(&tools), providers: providers(&tools), tools, collisions }
    }

    /// The tool of this pool that a candidate makes once more, or else a new one. The names are the displayed one and the
    /// one for models, where that is another.
    fn tool(
        &self,
        (name, legal): (String, Option<String>),
        (candidate, objection): (Candidate, Option<String>),
    ) -> Arc<Tool> {
        let same = |tool: &&Arc<Tool>| {
            candidate.makes(tool) && tool.legal_name() == legal.as_deref().unwrap_or(&name)
        };
        let known = self.named(&name).filter(same);
        if let Some(known) = known.filter(|tool| tool.quarantined() == objection.as_deref()) {
            return Arc::clone(known);
        }
        let Candidate { origin, style: _, spec, settings } = candidate;
        let mut tool = Tool::new(&origin, name, spec, settings).with_legal_name(legal);
        if let Some(reason) = objection {
            tool.status = Status::Quarantined(reason);
        }
        // A schema that cannot be used is found out by compiling it again.
        match known.filter(|known| known.quarantined() == tool.quarantined()) {
            Some(known) => Arc::clone(known),
            None => Arc::new(tool),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        self.tools.len() == other.tools.len()
            && self.tools.iter().zip(&other.tools).all(|(own, other)| Arc::ptr_eq(own, other))
            && self.collisions == other.collisions
    }

    /// The tool that is displayed under this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(self.displayed(name)?)
    }

    /// Every tool, in the order of the names.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Names that had to be made distinct.
    #[must_use]
    pub fn collisions(&self) -> &[Collision] {
        &self.collisions
    }

    /// The position of the tool that is displayed under this name.
    pub(super) fn displayed(&self, name: &str) -> Option<usize> {
        self.tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok()
    }

    /// The position of the tool that a call with this spelling means, out of those that are there for the caller.
    pub(super) fn find(&self, spelling: &str, is_there: impl Fn(usize) -> bool) -> Option<usize> {
        // A name that is shown as it is may itself look like `@ns/tool`: what is shown is what can be called.
        match self.meaning(spelling, &is_there) {
            Meaning::Tool(n) => Some(n),
            Meaning::Unclear => None,
            Meaning::Nothing => match self.meaning(&unslashed(spelling), &is_there) {
                Meaning::Tool(n) => Some(n),
                Meaning::Unclear | Meaning::Nothing => None,
            },
        }
    }

    /// What just this text means out of what is there; what is not there makes no difference.
    ///
    /// Of several tools, the one that is shown under the text is meant, or else the one that models are shown under it. If
    /// there is neither, none is: a guess would be a call of something that nobody asked for.
    fn meaning(&self, text: &str, is_there: impl Fn(usize) -> bool) -> Meaning {
        let owners = self.index.get(text).map_or(&[][..], Owners::all);
        let mut there = owners.iter().copied().filter(|n| is_there(*n));
        let Some(first) = there.next() else { return Meaning::Nothing };
        if there.next().is_none() {
            return Meaning::Tool(first);
        }
        let shown = |name: fn(&Tool) -> &str| {
            let mut owners = owners.iter().copied().filter(|n| is_there(*n));
            owners.find(|n| self.tools.get(*n).is_some_and(|tool| name(tool) == text))
        };
        shown(|tool| &tool.name).or_else(|| shown(Tool::legal_name)).map_or(Meaning::Unclear, Meaning::Tool)
    }

    /// The positions of a provider's tools.
    pub(super) fn provided(&self, id: &str) -> &[usize] {
        self.providers.get(id).map_or(&[], |provided| &provided.tools)
    }

    /// The positions of the tools with this identity: one, unless a provider has two tools of one name.
    pub(super) fn positions(&self, key: &ToolKey) -> &[usize] {
        let all = self.provided(&key.provider);
        let tool = |n: &usize| self.tools.get(*n).map(|tool| &*tool.key.tool);
        let from = all.partition_point(|n| tool(n) < Some(&*key.tool));
        let to = all.partition_point(|n| tool(n) <= Some(&*key.tool));
        all.get(from..to).unwrap_or_default()
    }

    /// Gives `hit` the position of every tool, out of those that are there, that a pattern means by one of its spellings. A
    /// pattern without wildcards means what a call would.
    pub(super) fn matching(
        &self,
        pattern: &Pattern,
        is_there: impl Fn(usize) -> bool,
        hit: impl FnMut(usize),
    ) {
        if pattern.is_everything() {
            return (0..self.tools.len()).filter(|n| is_there(*n)).for_each(hit);
        }
        if let Some(text) = pattern.exact() {
            return self.find(text, is_there).into_iter().for_each(hit);
        }
        let means = |n: &usize| {
            let tool = self.tools.get(*n).filter(|_| is_there(*n));
            tool.is_some_and(|tool| tool.spellings().any(|spelling| pattern.matches(spelling)))
        };
        let provided = self.providers.values().filter(|provided| provided.can_match(pattern));
        provided.flat_map(|provided| provided.tools.iter().copied().filter(means)).for_each(hit);
    }
}

impl Provided {
    fn can_match(&self, pattern: &Pattern) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| pattern.can_begin(prefix))
    }
}

fn index(tools: &[Arc<Tool>]) -> HashMap<Box<str>, Owners> {
    let mut index: HashMap<Box<str>, Owners> = HashMap::new();
    for (n, tool) in tools.iter().enumerate() {
        for spelling in tool.spellings() {
            index.entry(spelling.into()).and_modify(|owners| owners.add(n)).or_insert(Owners::One(n));
        }
    }
    index
}

fn providers(tools: &[Arc<Tool>]) -> BTreeMap<Arc<str>, Provided> {
    let mut all: BTreeMap<Arc<str>, Provided> = BTreeMap::new();
    for (n, tool) in tools.iter().enumerate() {
        let provided = all.entry(Arc::clone(&tool.key.provider)).or_insert_with(|| Provided {
            tools: Vec::new(),
            prefixes: prefixes(&tool.key.provider, &tool.namespace),
        });
        provided.tools.push(n);
        let begins = |spelling: &str| provided.prefixes.iter().any(|prefix| spelling.starts_with(&**prefix));
        if !tool.spellings().all(begins) {
            provided.prefixes.clear();
        }
    }
    for provided in all.values_mut() {
        provided.tools.sort_by_key(|n| tools.get(*n).map(|tool| &tool.key.tool));
    }
    all
}

//! The pool: all tools of a project, named, compiled, and found by any of their spellings.

use crate::names::{Collision, NameRequest, Style, assign, expand_at_syntax, model_names};
use crate::pattern::{Pattern, literal_prefix};
use crate::tool::{Origin, Settings, Status, Tool, ToolKey, ToolSpec};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// Limit: patterns of new schemas of one provider. Large ones take milliseconds each while the pool is built, so without
/// it one server could keep the tools of all others waiting. Patterns beyond it are not enforced.
const PROVIDER_PATTERNS: usize = 4_000;

/// A tool that is about to enter a pool.
#[derive(Debug)]
pub struct Candidate {
    pub origin: Origin,
    pub style: Style,
    pub spec: ToolSpec,
    pub settings: Settings,
}

impl Candidate {
    pub fn name_request(&self) -> NameRequest<'_> {
        NameRequest { namespace: &self.origin.namespace, tool: &self.spec.name, style: self.style }
    }

    /// Whether this tool was made from an equal candidate. Definitions are compared by their text, which clients are shown.
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
    /// The positions of the tools that have a spelling, sorted so that a glob looks at spellings with its prefix only.
    index: BTreeMap<Box<str>, Vec<usize>>,
    /// The positions of the tools of a provider, in the order of its own names.
    providers: HashMap<Arc<str>, Vec<usize>>,
    collisions: Vec<Collision>,
}

impl Pool {
    /// Names and compiles the tools.
    pub fn build(candidates: Vec<Candidate>) -> Self {
        Self::made(&Self::default(), candidates, |_| None)
    }

    /// The same after a change; a tool with an objection is quarantined for that reason.
    ///
    /// Unchanged tools are taken over without compiling them again. If no tool has changed, the pool before is returned, so
    /// that toolsets of it stay current.
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
        let requests: Vec<NameRequest<'_>> = candidates.iter().map(Candidate::name_request).collect();
        let (names, collisions) = assign(&requests);
        let for_models = model_names(&requests, &names);
        let mut patterns: HashMap<Arc<str>, usize> = HashMap::new();
        let named = names.into_iter().zip(for_models).zip(candidates).map(|(names, candidate)| {
            let objection = objection(&candidate);
            let provider = Arc::clone(&candidate.origin.provider);
            let patterns = patterns.entry(provider).or_insert(PROVIDER_PATTERNS);
            before.tool(names, (candidate, objection), patterns)
        });
        let mut tools: Vec<_> = named.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self { index: index(&tools), providers: providers(&tools), tools, collisions }
    }

    /// The tool of this pool that an equal candidate made, or else a new one. The names are the displayed one and the one for
    /// models, where that is another.
    fn tool(
        &self,
        (name, model_name): (String, Option<String>),
        (candidate, objection): (Candidate, Option<String>),
        patterns: &mut usize,
    ) -> Arc<Tool> {
        let same = |tool: &&Arc<Tool>| {
            candidate.makes(tool) && tool.model_name() == model_name.as_deref().unwrap_or(&name)
        };
        let known = self.named(&name).filter(same);
        if let Some(known) = known.filter(|tool| tool.quarantined() == objection.as_deref()) {
            return Arc::clone(known);
        }
        let Candidate { origin, style: _, spec, settings } = candidate;
        let mut tool = Tool::within(patterns, &origin, name, spec, settings).with_model_name(model_name);
        if let Some(reason) = objection {
            tool.status = Status::Quarantined(reason);
        }
        // A tool whose schema cannot be used is compiled again to compare the reason.
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
    pub fn named(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(self.displayed(name)?)
    }

    /// Every tool, in the order of the names.
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Names that had to be made distinct.
    pub fn collisions(&self) -> &[Collision] {
        &self.collisions
    }

    /// The position of the tool that is displayed under this name.
    pub(super) fn displayed(&self, name: &str) -> Option<usize> {
        self.tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok()
    }

    /// The position of the tool that a call with this spelling means, out of those that the caller has. Tools that the caller
    /// does not have make no difference.
    ///
    /// Of several tools with one spelling it is the one that is displayed so, or else the one that models are shown so. If
    /// there is neither, none: a guess could call a tool that the caller did not mean.
    pub(super) fn find(&self, spelling: &str, is_there: impl Fn(usize) -> bool) -> Option<usize> {
        // A displayed name may itself look like `@ns/tool`, and means the tool that is displayed so.
        for text in [spelling, &*expand_at_syntax(spelling)] {
            let having = || self.index.get(text).into_iter().flatten().copied().filter(|n| is_there(*n));
            let mut tools = having();
            let Some(first) = tools.next() else { continue };
            if tools.next().is_none() {
                return Some(first);
            }
            let called = |name: fn(&Tool) -> &str| {
                having().find(|n| self.tools.get(*n).is_some_and(|tool| name(tool) == text))
            };
            return called(|tool| &tool.name).or_else(|| called(Tool::model_name));
        }
        None
    }

    /// The positions of a provider's tools.
    pub(super) fn provided(&self, id: &str) -> &[usize] {
        self.providers.get(id).map_or(&[], Vec::as_slice)
    }

    /// The positions of the tools with this identity: one, unless a provider has two tools of one name.
    pub(super) fn positions(&self, key: &ToolKey) -> &[usize] {
        let all = self.provided(&key.provider);
        let tool = |n: &usize| self.tools.get(*n).map(|tool| &*tool.key.tool);
        let from = all.partition_point(|n| tool(n) < Some(&*key.tool));
        let to = all.partition_point(|n| tool(n) <= Some(&*key.tool));
        all.get(from..to).unwrap_or_default()
    }

    /// Calls `hit` with the position of every tool, out of those that are there, that a pattern means. A pattern without
    /// wildcards means the tool that a call would mean.
    pub(super) fn matching(
        &self,
        pattern: &Pattern,
        is_there: impl Fn(usize) -> bool,
        mut hit: impl FnMut(usize),
    ) {
        if pattern.is_everything() {
            return (0..self.tools.len()).filter(|n| is_there(*n)).for_each(hit);
        }
        if let Some(text) = pattern.exact() {
            return self.find(text, is_there).into_iter().for_each(hit);
        }
        for prefix in pattern.texts().map(literal_prefix) {
            let from = self.index.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
            let spellings = from.take_while(|(spelling, _)| spelling.starts_with(prefix));
            let matching = spellings.filter(|(spelling, _)| pattern.matches(spelling));
            matching.flat_map(|(_, tools)| tools).copied().filter(|n| is_there(*n)).for_each(&mut hit);
        }
    }
}

fn index(tools: &[Arc<Tool>]) -> BTreeMap<Box<str>, Vec<usize>> {
    let mut index: BTreeMap<Box<str>, Vec<usize>> = BTreeMap::new();
    for (n, tool) in tools.iter().enumerate() {
        for spelling in tool.spellings() {
            index.entry(spelling.into()).or_default().push(n);
        }
    }
    index
}

fn providers(tools: &[Arc<Tool>]) -> HashMap<Arc<str>, Vec<usize>> {
    let mut all: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (n, tool) in tools.iter().enumerate() {
        all.entry(Arc::clone(&tool.key.provider)).or_default().push(n);
    }
    for positions in all.values_mut() {
        positions.sort_by_key(|n| tools.get(*n).map(|tool| &tool.key.tool));
    }
    all
}

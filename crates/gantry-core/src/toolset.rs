//! Pools and toolsets: all tools of a project, and the fixed view of them that one execution has.
//!
//! Listing, searching, calling and explaining all go through [`Toolset`], so a tool that an agent may not see is not
//! merely forbidden to it: for that agent it does not exist, and asking for it is answered like asking for nothing.

use crate::error::{ErrorCode, Refusal, ToolError};
use crate::limits::SUGGESTIONS;
use crate::names::{Collision, Style, Unnamed, assign, unslashed};
use crate::pattern::Pattern;
use crate::tool::{Origin, Settings, Status, Tool, ToolSpec};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

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
    tools: Vec<Arc<Tool>>,
    /// Every accepted spelling of every tool.
    index: HashMap<Box<str>, usize>,
    collisions: Vec<Collision>,
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
        let named = names.into_iter().zip(candidates).map(|(name, candidate)| {
            let objection = objection(&candidate);
            before.tool(name, candidate, objection)
        });
        let mut tools: Vec<_> = named.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let mut index: HashMap<Box<str>, usize> =
            tools.iter().enumerate().map(|(n, t)| ((&*t.name).into(), n)).collect();
        for (spelling, n) in spellings(&tools) {
            // Displayed names come first: another tool's original spelling never takes one over.
            index.entry(spelling.into()).or_insert(n);
        }
        Self { tools, index, collisions }
    }

    /// The tool of this pool that a candidate makes once more, or else a new one.
    fn tool(&self, name: String, candidate: Candidate, objection: Option<String>) -> Arc<Tool> {
        let known = self.named(&name).filter(|tool| candidate.makes(tool));
        if let Some(known) = known.filter(|tool| tool.quarantined() == objection.as_deref()) {
            return Arc::clone(known);
        }
        let Candidate { origin, style: _, spec, settings } = candidate;
        let mut tool = Tool::new(&origin, name, spec, settings);
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
        let at = self.tools.binary_search_by(|tool| (*tool.name).cmp(name)).ok()?;
        self.tools.get(at)
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

    /// The position of the tool that a spelling means.
    fn find(&self, spelling: &str) -> Option<usize> {
        self.index.get(&*unslashed(spelling)).copied()
    }
}

/// What an agent asks to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Exact names, globs, `*`. None means no tools.
    pub patterns: Vec<Pattern>,
}

impl Selection {
    /// All tools.
    #[must_use]
    pub fn everything() -> Self {
        Self { patterns: Pattern::parse("*").into_iter().collect() }
    }
}

/// The immutable view of a pool for one agent and one execution.
#[derive(Debug, Clone)]
pub struct Toolset {
    pool: Arc<Pool>,
    /// Positions in the pool, ascending.
    visible: Arc<[usize]>,
    /// The definitions of the tools that can be called, as one JSON array, written when first asked for.
    definitions: OnceLock<Arc<str>>,
    /// The same for clients that take only objects as structured results.
    plain_definitions: OnceLock<Arc<str>>,
}

impl Toolset {
    /// Resolves a selection. Patterns that match nothing are returned for a warning; they fail nothing.
    #[must_use]
    pub fn resolve(pool: &Arc<Pool>, selection: &Selection) -> (Self, Vec<String>) {
        let mut seen = vec![false; pool.tools.len()];
        let mut unmatched = Vec::new();
        for pattern in &selection.patterns {
            let mut matched = false;
            let mut mark = |n: usize| {
                if let Some(slot) = seen.get_mut(n) {
                    *slot = true;
                    matched = true;
                }
            };
            if pattern.is_everything() {
                (0..pool.tools.len()).for_each(&mut mark);
            } else if let Some(name) = pattern.exact() {
                pool.find(name).into_iter().for_each(&mut mark);
            } else {
                let hits = pool
                    .tools
                    .iter()
                    .enumerate()
                    .filter(|(_, tool)| tool.spellings().any(|s| pattern.matches(s)));
                hits.for_each(|(n, _)| mark(n));
            }
            // An empty pool has nothing to match, which is no mistake of the pattern's.
            if !matched && !pattern.is_everything() {
                unmatched.push(pattern.as_str().to_owned());
            }
        }
        let visible = seen.iter().enumerate().filter(|(_, seen)| **seen).map(|(n, _)| n).collect();
        let (definitions, plain_definitions) = (OnceLock::new(), OnceLock::new());
        (Self { pool: Arc::clone(pool), visible, definitions, plain_definitions }, unmatched)
    }

    /// Whether this is a view of that pool.
    #[must_use]
    pub fn is_of(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }

    /// The tools, in the order of the names.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.visible.iter().filter_map(|n| self.pool.tools.get(*n))
    }

    /// The definitions of the tools that can be called, as MCP clients read them: one JSON array.
    pub fn definitions(&self) -> &Arc<str> {
        self.definitions.get_or_init(|| {
            let ready = self.tools().filter(|tool| tool.quarantined().is_none());
            array(ready.map(|tool| tool.definition())).into()
        })
    }

    /// The same for clients that take only objects as structured results.
    pub fn plain_definitions(&self) -> &Arc<str> {
        self.plain_definitions.get_or_init(|| {
            let ready = self.tools().filter(|tool| tool.quarantined().is_none());
            array(ready.map(|tool| tool.plain_definition())).into()
        })
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.visible.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.visible.is_empty()
    }

    /// The tool that a spelling means.
    ///
    /// # Errors
    /// There is none in this toolset; the closest names that are in it are offered. Whether the pool has such a tool
    /// makes no difference to the answer.
    pub fn find(&self, spelling: &str) -> Result<&Arc<Tool>, Refusal> {
        let visible = self.pool.find(spelling).filter(|n| self.visible.binary_search(n).is_ok());
        match visible.and_then(|n| self.pool.tools.get(n)) {
            Some(tool) => Ok(tool),
            None => Err(self.not_found(spelling)),
        }
    }

    fn not_found(&self, spelling: &str) -> Refusal {
        let wanted = unslashed(spelling);
        let shown: String = spelling.chars().take(128).collect();
        let closest = self.closest(&wanted);
        let message = match closest.as_slice() {
            [] => format!("tool not found: {shown}"),
            [one] => format!("tool not found: {shown}. Did you mean {one}?"),
            several => format!("tool not found: {shown}. The closest are {}.", several.join(", ")),
        };
        let error = ToolError::new(ErrorCode::ToolNotFound, message);
        Refusal::from(error.with_details(serde_json::json!({ "tool": shown, "closest": closest })))
    }

    fn closest(&self, wanted: &str) -> Vec<&str> {
        // Long nonsense is not worth comparing with every name.
        if wanted.len() > 128 {
            return Vec::new();
        }
        let wanted = wanted.to_ascii_lowercase();
        let score = |name: &str| strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase());
        let mut scored: Vec<(f64, &str)> =
            self.tools().map(|tool| (score(&tool.name), &*tool.name)).collect();
        scored.retain(|(score, _)| *score > 0.75);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
    }
}

/// The spellings that mean one tool only. One that several tools have means none of them: a guess would be a call of
/// something that nobody asked for.
fn spellings(tools: &[Arc<Tool>]) -> impl Iterator<Item = (&str, usize)> {
    let mut owners: HashMap<&str, Option<usize>> = HashMap::new();
    for (n, tool) in tools.iter().enumerate() {
        for spelling in tool.spellings() {
            owners.entry(spelling).and_modify(|owner| *owner = None).or_insert(Some(n));
        }
    }
    owners.into_iter().filter_map(|(spelling, owner)| Some((spelling, owner?)))
}

/// Texts of JSON values as one JSON array.
#[must_use]
pub fn array<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let mut list = String::from("[");
    for value in values {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(value);
    }
    list.push(']');
    list
}

#[cfg(test)]
mod tests;

//! Pools and toolsets: all tools of a project, and the fixed view of them that one execution has.
//!
//! Listing, searching, calling and explaining all go through [`Toolset`], so a tool that an agent may not see is not
//! merely forbidden to it: for that agent it does not exist, and a call of it is answered like a call of no tool.

mod access;
mod entry;
mod pool;
mod resolve;
mod selection;

pub use access::explain_access;
pub use entry::Entry;
pub use pool::{Candidate, Pool};
pub use selection::{AgentTools, Selection, SpawnContext, ToolSelector, Warning};

use crate::error::{ErrorCode, Refusal, ToolError};
use crate::limits::SUGGESTIONS;
use crate::names::expand_at_syntax;
use crate::tool::Tool;
use resolve::{Alias, Resolution};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The immutable view of a pool for one agent and one execution.
#[derive(Debug, Clone)]
pub struct Toolset {
    pool: Arc<Pool>,
    /// Positions in the pool, ascending.
    visible: Arc<[usize]>,
    /// In the order of the names.
    aliases: Arc<[Alias]>,
    /// The positions of the tools whose own rule is approved automatically, ascending.
    approved: Arc<[usize]>,
    /// Made when first asked for.
    definitions: OnceLock<Arc<str>>,
    legacy_definitions: OnceLock<Arc<str>>,
}

impl Toolset {
    /// Resolves a selection. A warning tells that an entry has no effect; it fails nothing.
    pub fn resolve(pool: &Arc<Pool>, selection: &Selection, place: &SpawnContext) -> (Self, Vec<Warning>) {
        let resolution = Resolution::of(pool, selection, place);
        let toolset = Self {
            pool: Arc::clone(pool),
            visible: resolution.visible().collect(),
            aliases: resolution.aliases.into(),
            approved: resolution.approved.into(),
            definitions: OnceLock::new(),
            legacy_definitions: OnceLock::new(),
        };
        (toolset, resolution.warnings)
    }

    /// Whether the tool's own rule is approved automatically.
    pub fn auto_approves(&self, tool: &Tool) -> bool {
        self.pool.positions(&tool.key).iter().any(|n| self.approved.binary_search(n).is_ok())
    }

    /// The tool of this toolset with the identity of the given one. Its definition may be another one.
    pub fn same(&self, tool: &Tool) -> Option<&Arc<Tool>> {
        let visible = self.pool.positions(&tool.key).iter().find(|n| self.sees(**n))?;
        self.pool.tools().get(*visible)
    }

    pub fn is_of(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }

    /// The tools, in the order of the names.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.visible.iter().filter_map(|n| self.pool.tools().get(*n))
    }

    /// Every name that is listed, tools and aliases, in the order of the names.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut tools = self.tools().map(|tool| Entry { name: &tool.name, tool, alias: false }).peekable();
        let aliases = self.aliases.iter().filter_map(|alias| {
            let tool = self.pool.tools().get(alias.at)?;
            Some(Entry { name: &alias.name, tool, alias: true })
        });
        let mut aliases = aliases.peekable();
        std::iter::from_fn(move || match (tools.peek(), aliases.peek()) {
            (Some(tool), Some(alias)) if alias.name < tool.name => aliases.next(),
            (Some(_), _) => tools.next(),
            (None, _) => aliases.next(),
        })
    }

    pub fn aliases_of(&self, tool: &Tool) -> impl Iterator<Item = &str> {
        let positions = self.pool.positions(&tool.key);
        self.aliases.iter().filter(|alias| positions.contains(&alias.at)).map(|alias| &*alias.name)
    }

    /// The definitions of the tools that can be called, as MCP clients read them: one JSON array.
    pub fn definitions(&self) -> &Arc<str> {
        self.definitions.get_or_init(|| self.array(|entry| entry.definition()))
    }

    /// The same for clients that take only objects as structured results.
    pub fn legacy_definitions(&self) -> &Arc<str> {
        self.legacy_definitions.get_or_init(|| self.array(|entry| entry.legacy_definition()))
    }

    fn array<'a>(&'a self, definition: impl Fn(&Entry<'a>) -> Cow<'a, str>) -> Arc<str> {
        let ready = self.entries().filter(Entry::is_ready);
        array(ready.map(|entry| definition(&entry))).into()
    }

    pub fn len(&self) -> usize {
        self.visible.len()
    }

    pub fn is_empty(&self) -> bool {
        self.visible.is_empty()
    }

    /// The tool that a spelling or an alias means.
    ///
    /// # Errors
    /// There is none in this toolset; the closest names that are in it are offered. Whether the pool has such a tool
    /// makes no difference to the answer.
    pub fn find(&self, spelling: &str) -> Result<&Arc<Tool>, Refusal> {
        let own = self.pool.find(spelling, |n| self.sees(n));
        let at = own.or_else(|| self.aliased(spelling)).or_else(|| self.aliased(&expand_at_syntax(spelling)));
        at.and_then(|n| self.pool.tools().get(n)).ok_or_else(|| self.not_found(spelling))
    }

    fn sees(&self, n: usize) -> bool {
        self.visible.binary_search(&n).is_ok()
    }

    /// The position of the tool that an alias means.
    fn aliased(&self, text: &str) -> Option<usize> {
        let at = self.aliases.binary_search_by(|alias| (*alias.name).cmp(text)).ok()?;
        self.aliases.get(at).map(|alias| alias.at)
    }

    fn not_found(&self, spelling: &str) -> Refusal {
        let shown: String = spelling.chars().take(128).collect();
        let closest = self.closest(&expand_at_syntax(spelling));
        let message = match closest.as_slice() {
            [] => format!("tool not found: {shown}"),
            [one] => format!("tool not found: {shown}. Did you mean {one}?"),
            several => format!("tool not found: {shown}. The closest are {}.", several.join(", ")),
        };
        let error = ToolError::new(ErrorCode::ToolNotFound, message);
        Refusal::from(error.with_details(serde_json::json!({ "tool": shown, "closest": closest })))
    }

    fn closest(&self, wanted: &str) -> Vec<&str> {
        // Limit: longer texts are not compared with every name.
        if wanted.len() > 128 {
            return Vec::new();
        }
        let wanted = wanted.to_ascii_lowercase();
        let score = |name: &str| strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase());
        let mut scored: Vec<(f64, &str)> =
            self.entries().map(|entry| (score(entry.name), entry.name)).collect();
        scored.retain(|(score, _)| *score > 0.75);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
    }
}

/// Texts of JSON values as one JSON array.
pub fn array(values: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut list = String::from("[");
    for value in values {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(value.as_ref());
    }
    list.push(']');
    list
}

#[cfg(test)]
mod tests;

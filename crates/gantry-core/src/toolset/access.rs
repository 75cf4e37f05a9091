//! Why an agent may use a tool, or not, in words for people who may know the whole configuration.

use super::pool::Pool;
use super::resolve::{Resolution, Visibility};
use super::selection::{Selection, SpawnContext, ToolSelector};
use crate::limits::ENTRIES_SHOWN;
use crate::tool::Tool;
use std::sync::Arc;

/// Whether an agent has a tool, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAccess {
    pub is_visible: bool,
    /// One sentence for each fact, to be read after the agent's name: "agent a" + " may use it: …".
    pub sentences: Vec<String>,
}

/// Explains what [`super::Toolset::resolve`] does with one tool.
pub fn explain_access(
    pool: &Arc<Pool>,
    selection: &Selection,
    place: &SpawnContext,
    tool: &Tool,
) -> ToolAccess {
    let resolution = Resolution::of(pool, selection, place);
    let positions = pool.positions(&tool.key);
    let visible = positions.iter().copied().find(|n| resolution.visibility(*n).is_visible());
    let included = |entry: usize| {
        selection.include.get(entry).map_or(String::new(), |selector| selector.resolve(pool).to_string())
    };
    let listed = selection.allowed.as_deref().unwrap_or_default();
    let allowed = |entry: usize| {
        let is_provider = resolution.allowed.as_ref().is_some_and(|allowed| allowed.is_provider(entry));
        listed.get(entry).map(|pattern| match is_provider {
            true => ToolSelector::Provider(pattern.as_str().into()).to_string(),
            false => ToolSelector::Tools(pattern.clone()).to_string(),
        })
    };
    let at = visible.or(positions.first().copied());
    let mut sentences = vec![match at.map_or(Visibility::NotIncluded, |n| resolution.visibility(n)) {
        Visibility::NotIncluded => "does not have it: nothing in its tools matches".to_owned(),
        Visibility::Visible { entry } => format!("may use it: {} in its tools matches", included(entry)),
        Visibility::NotAllowed { entry } => {
            let shown = (0..ENTRIES_SHOWN).map_while(allowed).collect::<Vec<_>>().join(", ");
            let more = match listed.len().saturating_sub(ENTRIES_SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let by = included(entry);
            format!("may not use it: {by} in its tools matches, but it is allowed only {shown}{more}")
        }
        Visibility::OutsideParentLimit => {
            "may not use it: the agent that spawned it narrowed its tools to others".to_owned()
        }
        Visibility::TooDeep { named } => too_deep(place, named),
    }];
    let allowed_by = visible.and_then(|n| allowed(resolution.allowed.as_ref()?.entry(n)?));
    sentences.extend(allowed_by.map(|by| format!("is allowed it by {by}")));
    let aliases = resolution.aliases.iter().filter(|alias| positions.contains(&alias.at));
    let aliases: Vec<String> = aliases.map(|alias| format!("{:?}", alias.name)).collect();
    if !aliases.is_empty() {
        sentences.push(format!("also calls it {}", aliases.join(", ")));
    }
    if positions.iter().any(|n| resolution.approved.binary_search(n).is_ok()) {
        sentences.push("need not ask a person for what the tool's own rule would ask".to_owned());
    }
    ToolAccess { is_visible: visible.is_some(), sentences }
}

fn too_deep(place: &SpawnContext, named: bool) -> String {
    let SpawnContext { depth, max_depth, parent_limit: _ } = place;
    if depth < max_depth {
        return format!(
            "may not use it: it is at depth {depth}, where its tools must name this one literally; a pattern is not \
             enough"
        );
    }
    let although = if named { ", although its tools name it" } else { "" };
    format!(
        "may not use it: it is at depth {depth}, and maxDepth {max_depth} lets no agent start others there{although}"
    )
}

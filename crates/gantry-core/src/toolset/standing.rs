//! Why an agent may use a tool, or not, in words. For people with the right to know.

use super::pool::Pool;
use super::resolve::{Fate, Judgement};
use super::selection::{Selection, SpawnContext, Use};
use crate::limits::ENTRIES_SHOWN;
use crate::pattern::Pattern;
use crate::tool::Tool;
use std::fmt;
use std::sync::Arc;

/// How a tool stands to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Whether the agent has it, and what decides that.
    pub reason: Reason,
    /// The entry of the allow-list that allows it, if the agent has it and not everything is allowed.
    pub allowed_by: Option<Use>,
    /// Other names that the agent has for it.
    pub aliases: Vec<Box<str>>,
    /// Whether the tool's own rule need not ask a person for this agent.
    pub auto_approved: bool,
}

/// What decides whether an agent has a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It has it, by this entry of what it uses.
    Visible {
        /// The first entry that matches.
        by: Use,
    },
    /// Nothing that it uses matches.
    Unused,
    /// It has it by this entry, but is allowed only others.
    NotAllowed {
        /// The first entry that matches.
        by: Use,
        /// The first entries of the allow-list.
        allowed: Vec<Use>,
        /// How many more there are.
        more: usize,
    },
    /// Whoever spawned it did not leave it the tool.
    Narrowed,
    /// The tool starts agents, and the agent was itself started by one.
    TooDeep {
        /// How deep the agent is.
        depth: u32,
        /// How deep agents may call agents.
        max_depth: u32,
        /// Whether the agent's tools name it, and not only a pattern that it matches.
        named: bool,
    },
}

/// How a tool stands to an agent: what [`super::Toolset::resolve`] makes of the same, for this one tool.
#[must_use]
pub fn explain(pool: &Arc<Pool>, selection: &Selection, place: &SpawnContext, tool: &Tool) -> Standing {
    let judgement = Judgement::of(pool, selection, place);
    let is_visible = |n: &&usize| matches!(judgement.fate(**n), Fate::Visible { .. });
    let positions = pool.positions(&tool.key);
    let at = positions.iter().find(is_visible).or(positions.first()).copied();
    let entry = |n: usize| selection.uses.get(n).map(|used| used.settled(pool));
    let all = selection.allowed.as_deref().unwrap_or_default();
    let permission = |n: usize| all.get(n).map(|pattern| permission(&judgement, n, pattern));
    let reason = match at.map_or(Fate::Unused, |n| judgement.fate(n)) {
        Fate::Unused => None,
        Fate::Visible { entry: n } => entry(n).map(|by| Reason::Visible { by }),
        Fate::NotAllowed { entry: n } => entry(n).map(|by| {
            let allowed = (0..ENTRIES_SHOWN).map_while(permission).collect();
            Reason::NotAllowed { by, allowed, more: all.len().saturating_sub(ENTRIES_SHOWN) }
        }),
        Fate::Narrowed => Some(Reason::Narrowed),
        Fate::TooDeep { named } => {
            Some(Reason::TooDeep { depth: place.depth, max_depth: place.max_depth, named })
        }
    };
    let visible = at.filter(|n| matches!(judgement.fate(*n), Fate::Visible { .. }));
    let allowed_by = visible.and_then(|n| permission(judgement.allowed.as_ref()?.entry(n)?));
    let aliases = judgement.aliases.iter().filter(|alias| positions.contains(&alias.at));
    Standing {
        reason: reason.unwrap_or(Reason::Unused),
        allowed_by,
        aliases: aliases.map(|alias| alias.name.clone()).collect(),
        auto_approved: positions.iter().any(|n| judgement.approved.binary_search(n).is_ok()),
    }
}

/// What an entry of the allow-list means.
fn permission(judgement: &Judgement, entry: usize, pattern: &Pattern) -> Use {
    if judgement.allowed.as_ref().is_some_and(|allowed| allowed.is_provider(entry)) {
        Use::Provider(pattern.as_str().into())
    } else {
        Use::Tools(pattern.clone())
    }
}

impl Standing {
    /// Whether the agent has the tool.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        match self.reason {
            Reason::Visible { .. } => true,
            Reason::Unused | Reason::NotAllowed { .. } | Reason::Narrowed | Reason::TooDeep { .. } => false,
        }
    }

    /// One sentence for each fact, to be read after whoever it is about: "agent a" + " may use it: …".
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![self.reason.to_string()];
        sentences.extend(self.allowed_by.iter().map(|by| format!("is allowed it by {}", Entry(by))));
        if !self.aliases.is_empty() {
            sentences.push(format!("also calls it {}", quoted(&self.aliases)));
        }
        if self.auto_approved {
            sentences.push("need not ask a person for what the tool's own rule would ask".to_owned());
        }
        sentences
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentences().join("; "))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Visible { by } => write!(f, "may use it: {} in its tools matches", Entry(by)),
            Self::Unused => f.write_str("does not have it: nothing in its tools matches"),
            Self::NotAllowed { by, allowed, more } => {
                let allowed: Vec<String> = allowed.iter().map(|entry| Entry(entry).to_string()).collect();
                let (by, allowed) = (Entry(by), allowed.join(", "));
                write!(f, "may not use it: {by} in its tools matches, but it is allowed only {allowed}")?;
                if *more > 0 {
                    write!(f, " and {more} more")?;
                }
                Ok(())
            }
            Self::Narrowed => f.write_str("may not use it: whoever spawned it narrowed its tools to others"),
            Self::TooDeep { depth, max_depth, named } if depth >= max_depth => {
                write!(
                    f,
                    "may not use it: it is at depth {depth}, and maxDepth {max_depth} lets no agent start others there"
                )?;
                f.write_str(if *named { ", although its tools name it" } else { "" })
            }
            Self::TooDeep { depth, .. } => write!(
                f,
                "may not use it: it is at depth {depth}, where its tools must name this one literally; a pattern is \
                 not enough"
            ),
        }
    }
}

struct Entry<'a>(&'a Use);

impl fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Use::Tools(pattern) | Use::ProviderOrTools(pattern) => write!(f, "{:?}", pattern.as_str()),
            Use::Provider(id) => write!(f, "provider {id:?}"),
        }
    }
}

fn quoted(texts: &[impl AsRef<str>]) -> String {
    texts.iter().map(|text| format!("{:?}", text.as_ref())).collect::<Vec<_>>().join(", ")
}

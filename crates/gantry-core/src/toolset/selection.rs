//! What an agent asks to see, where it stands, and what is odd about that.

use super::pool::Pool;
use crate::limits::ALIASES_PER_AGENT;
use crate::names::{prefixes, unslashed};
use crate::pattern::Pattern;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an agent asks to see, and under which names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The tools that it has. None means no tools.
    pub uses: Vec<Use>,
    /// Which of these it may call, by names, globs, aliases and ids of providers; nothing written means all of them.
    pub allowed: Option<Vec<Pattern>>,
    /// Other names for single tools: the alias, and a spelling of the tool.
    pub aliases: BTreeMap<Box<str>, Box<str>>,
    /// Tools whose own rule need not ask a person for this agent, by names, globs, aliases and ids of providers.
    pub auto_approve: Vec<Pattern>,
}

/// One entry of what an agent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// Tools by name or glob.
    Tools(Pattern),
    /// Everything of the provider with this id.
    Provider(Arc<str>),
    /// Everything of the provider that has this for its id, if there is one in the pool; otherwise tools by name or glob.
    ProviderOrTools(Pattern),
}

impl Use {
    /// The entry as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tools(pattern) | Self::ProviderOrTools(pattern) => pattern.as_str(),
            Self::Provider(id) => id,
        }
    }

    /// What it means in a pool: the provider, or the tools.
    pub(super) fn settled(&self, pool: &Pool) -> Self {
        match self {
            Self::ProviderOrTools(pattern) if pool.provided(pattern.as_str()).is_empty() => {
                Self::Tools(pattern.clone())
            }
            Self::ProviderOrTools(pattern) => Self::Provider(pattern.as_str().into()),
            Self::Tools(_) | Self::Provider(_) => self.clone(),
        }
    }
}

impl Selection {
    /// All tools.
    #[must_use]
    pub fn everything() -> Self {
        Self::of(Pattern::parse("*"))
    }

    /// The tools that match one of these.
    #[must_use]
    pub fn of(patterns: impl IntoIterator<Item = Pattern>) -> Self {
        Self { uses: patterns.into_iter().map(Use::Tools).collect(), ..Self::default() }
    }

    /// The allow-list, unless it allows everything.
    pub(super) fn restriction(&self) -> Option<&[Pattern]> {
        let allowed = self.allowed.as_deref()?;
        let all = allowed.is_empty() || allowed.iter().any(Pattern::is_everything);
        (!all).then_some(allowed)
    }

    /// Whether a tool of this provider could be selected, whatever tools it turns out to have. `prefixed` says whether
    /// their names begin with the namespace. In doubt the answer is yes.
    #[must_use]
    pub fn may_need(&self, provider: &str, namespace: &str, prefixed: bool) -> bool {
        let prefixes = prefixes(provider, namespace);
        let can = |pattern: &Pattern| !prefixed || prefixes.iter().any(|prefix| pattern.can_begin(prefix));
        let is_id = |pattern: &Pattern| pattern.exact() == Some(provider);
        let used = self.uses.iter().any(|entry| match entry {
            Use::Tools(pattern) => can(pattern),
            Use::Provider(id) => **id == *provider,
            Use::ProviderOrTools(pattern) => is_id(pattern) || can(pattern),
        });
        // An alias in an allow-list stands for its tool.
        let is_of = |target: &str| {
            let read = unslashed(target);
            let begins = |prefix: &String| target.starts_with(&**prefix) || read.starts_with(&**prefix);
            !prefixed || prefixes.iter().any(begins)
        };
        let aliased = |pattern: &Pattern| {
            self.aliases.iter().any(|(alias, target)| pattern.matches(&unslashed(alias)) && is_of(target))
        };
        let permits = |pattern: &Pattern| can(pattern) || is_id(pattern) || aliased(pattern);
        used && self.restriction().is_none_or(|allowed| allowed.iter().any(permits))
    }
}

/// Where an execution stands: how far below the first agent, and what its parent left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnContext {
    /// 0 for the first agent, 1 for one that it spawned.
    pub depth: u32,
    /// How deep agents may call agents.
    pub max_depth: u32,
    /// What whoever spawned it cut its tools down to.
    pub narrowed: Option<Arc<[Pattern]>>,
}

impl SpawnContext {
    /// Not below anybody.
    #[must_use]
    pub fn top(max_depth: u32) -> Self {
        Self { depth: 0, max_depth, narrowed: None }
    }
}

/// Something odd about a selection that fails nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// An entry that matches no tool.
    #[error("{0:?} matches no tool")]
    Unmatched(String),
    /// An entry of the allow-list that matches none of the tools that the agent has.
    #[error("{0:?} is allowed, but matches none of the tools it uses")]
    AllowedUnmatched(String),
    /// An entry for automatic approval that matches none of the tools that the agent may call.
    #[error("{0:?} is approved automatically, but matches none of the tools it may call")]
    ApprovedUnmatched(String),
    /// An alias of a tool that the agent may not call, or of nothing.
    #[error("the alias {alias:?} is left out: {target:?} is none of the tools it may call")]
    AliasUnmatched {
        /// The alias.
        alias: String,
        /// What it stands for.
        target: String,
    },
    /// An alias that something else is already called by.
    #[error("the alias {alias:?} is left out: {tool} is called that; give the alias another name")]
    AliasShadowed {
        /// The alias.
        alias: String,
        /// The displayed name of the tool that it means instead.
        tool: String,
    },
    /// More aliases than an agent may have.
    #[error("{dropped} aliases are left out, the last by name: an agent has at most {ALIASES_PER_AGENT}")]
    TooManyAliases {
        /// How many are left out.
        dropped: usize,
    },
    /// A tool that the agent names, but that starts agents where none may be started any more.
    #[error("{tool} is left out: agents are called at most {max_depth} deep; raise maxDepth to go deeper")]
    MaxDepth {
        /// The tool.
        tool: String,
        /// How deep agents may call agents.
        max_depth: u32,
    },
}

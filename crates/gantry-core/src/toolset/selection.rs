//! The selection of an agent, the context in which it is resolved, and the warnings about it.

use super::pool::Pool;
use crate::limits::ALIASES_PER_AGENT;
use crate::names::{cut_prefixes, expand_at_syntax};
use crate::options::{Name, ServerId, ToolName, is_tool, read_text};
use crate::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The tools that an agent asks for, and its names for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selection {
    /// The tools that it has: names, globs, or the id of an MCP server or of an entry of the catalogue for all tools of that
    /// one. `[]` is none.
    // Programs that share this form block what is not in use, so its absence must not mean all.
    #[serde(rename = "use", alias = "mcpServers")]
    pub include: Vec<ToolSelector>,
    /// The agent may call only these of the tools in `use`: names, globs and aliases. Without it, and with `[]` or
    /// `["*"]`, it may call all of them.
    #[serde(alias = "available")]
    pub allowed: Option<Vec<Pattern>>,
    /// Other names for single tools. Both names work, and either one in `allowed` or `autoApprove` means both.
    #[serde(default, deserialize_with = "aliases")]
    #[schemars(with = "BTreeMap<String, ToolName>")]
    pub aliases: BTreeMap<Box<str>, Box<str>>,
    /// Tools whose own rule asks no approver for this agent: names, globs and aliases. Rules in `approvals` and
    /// `policies` still ask.
    #[serde(default)]
    pub auto_approve: Vec<Pattern>,
}

fn aliases<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<Box<str>, Box<str>>, D::Error> {
    let aliases = BTreeMap::<Name, ToolName>::deserialize(input)?;
    Ok(aliases.into_iter().map(|(alias, tool)| (alias.into(), tool.into())).collect())
}

/// The tools of an agent as the configuration has them: a list of names and globs, or a group that says more.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "$shape", rename_all = "lowercase")]
#[serde(expecting = "a list of tool names and globs, or a group with use, allowed, aliases, autoApprove")]
#[schemars(inline, untagged)]
pub enum AgentTools {
    List(Vec<Pattern>),
    Group(Selection),
}

impl From<AgentTools> for Selection {
    fn from(tools: AgentTools) -> Self {
        match tools {
            AgentTools::List(patterns) => Self::of(patterns),
            AgentTools::Group(mut selection) => {
                if selection.restriction().is_none() {
                    selection.allowed = None;
                }
                selection
            }
        }
    }
}

/// One entry of the tools that an agent has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolSelector {
    /// By name or glob.
    Tools(Pattern),
    /// All tools of the provider with this id.
    Provider(Arc<str>),
    /// All tools of the provider with this id, if the pool has one; otherwise tools by name or glob.
    ProviderOrTools(Pattern),
}

const SELECTOR: &str = "the name of a tool, a glob, or the id of a provider";

impl<'de> Deserialize<'de> for ToolSelector {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let is_selector = |text: &str| is_tool(text) || text.parse::<ServerId>().is_ok();
        let text = read_text(input, SELECTOR, false, is_selector)?;
        Pattern::parse(&text).map(Self::ProviderOrTools).map_err(serde::de::Error::custom)
    }
}

inline_schema!(ToolSelector, |_| schemars::json_schema!({ "type": "string", "title": SELECTOR }));

impl ToolSelector {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Tools(pattern) | Self::ProviderOrTools(pattern) => pattern.as_str(),
            Self::Provider(id) => id,
        }
    }

    /// What it means in a pool: the provider, or the tools.
    pub(super) fn resolve(&self, pool: &Pool) -> Self {
        match self {
            Self::ProviderOrTools(pattern) if pool.provided(pattern.as_str()).is_empty() => {
                Self::Tools(pattern.clone())
            }
            Self::ProviderOrTools(pattern) => Self::Provider(pattern.as_str().into()),
            Self::Tools(_) | Self::Provider(_) => self.clone(),
        }
    }
}

impl fmt::Display for ToolSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools(pattern) | Self::ProviderOrTools(pattern) => write!(f, "{:?}", pattern.as_str()),
            Self::Provider(id) => write!(f, "provider {id:?}"),
        }
    }
}

impl Selection {
    pub fn everything() -> Self {
        Self::of([Pattern::everything()])
    }

    /// The tools that match one of these.
    pub fn of(patterns: impl IntoIterator<Item = Pattern>) -> Self {
        Self { include: patterns.into_iter().map(ToolSelector::Tools).collect(), ..Self::default() }
    }

    /// The allow-list, unless it allows everything.
    pub(super) fn restriction(&self) -> Option<&[Pattern]> {
        let allowed = self.allowed.as_deref()?;
        let all = allowed.is_empty() || allowed.iter().any(Pattern::is_everything);
        (!all).then_some(allowed)
    }

    /// Whether a tool of this provider could be selected, before its tools are known. `prefixed` says whether their names
    /// have the namespace as prefix. In doubt the answer is yes.
    pub fn may_need(&self, provider: &str, namespace: &str, prefixed: bool) -> bool {
        let prefixes = cut_prefixes(provider, namespace);
        let can =
            |pattern: &Pattern| !prefixed || prefixes.iter().any(|prefix| pattern.can_begin_with(prefix));
        let is_id = |pattern: &Pattern| pattern.exact() == Some(provider);
        let included = self.include.iter().any(|entry| match entry {
            ToolSelector::Tools(pattern) => can(pattern),
            ToolSelector::Provider(id) => **id == *provider,
            ToolSelector::ProviderOrTools(pattern) => is_id(pattern) || can(pattern),
        });
        // An alias in an allow-list stands for its tool.
        let is_of = |target: &str| Pattern::parse(target).as_ref().map_or(true, can);
        let aliased = |pattern: &Pattern| {
            self.aliases
                .iter()
                .any(|(alias, target)| pattern.matches(&expand_at_syntax(alias)) && is_of(target))
        };
        let permits = |pattern: &Pattern| can(pattern) || is_id(pattern) || aliased(pattern);
        included && self.restriction().is_none_or(|allowed| allowed.iter().any(permits))
    }
}

/// Where an execution is in the tree of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnContext {
    /// 0 for the first agent, 1 for one that it spawned.
    pub depth: u32,
    /// How deep agents may call agents.
    pub max_depth: u32,
    /// The tools that the parent limited the agent to.
    pub parent_limit: Option<Arc<[Pattern]>>,
}

impl SpawnContext {
    /// The context of an agent without a parent.
    pub fn top(max_depth: u32) -> Self {
        Self { depth: 0, max_depth, parent_limit: None }
    }
}

/// An entry of a selection that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error("{0:?} matches no tool")]
    Unmatched(String),
    #[error("{0:?} is allowed, but matches none of the tools it uses")]
    AllowedUnmatched(String),
    #[error("{0:?} is approved automatically, but matches none of the tools it may call")]
    ApprovedUnmatched(String),
    #[error("the alias {alias:?} is left out: {target:?} is none of the tools it may call")]
    AliasUnmatched { alias: String, target: String },
    /// `tool` is the displayed name of the tool that the alias means instead.
    #[error("the alias {alias:?} is left out: {tool} is called that; give the alias another name")]
    AliasShadowed { alias: String, tool: String },
    #[error("{dropped} aliases are left out, the last by name: an agent has at most {ALIASES_PER_AGENT}")]
    TooManyAliases { dropped: usize },
    /// A tool that starts agents, named where no agent may be started any more.
    #[error("{tool} is left out: agents are called at most {max_depth} deep; raise maxDepth to go deeper")]
    MaxDepth { tool: String, max_depth: u32 },
}

//! Who calls: the identity, what role it has, and by which door it came.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// What a caller may do beyond calling the tools of its toolset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// May list and call tools, and see its own calls.
    Agent,
    /// May also decide approvals.
    Approver,
    /// May also see everything and change the configuration.
    Admin,
}

/// The way by which a call entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryPoint {
    /// `gantry call` and its siblings.
    Cli,
    /// The HTTP API.
    Http,
    /// MCP, over any transport.
    Mcp,
}

impl EntryPoint {
    /// The word used in the ledger and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Http => "http",
            Self::Mcp => "mcp",
        }
    }
}

/// Who makes a call, on whose behalf, in which project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The identity that was authenticated: `person`, `local`, or the id of a key.
    pub principal: Arc<str>,
    /// The role of that identity.
    pub role: Role,
    /// The agent as which it acts, if it acts as one.
    pub agent: Option<Arc<str>>,
    /// The agents that called this one, the topmost first.
    pub parent_agents: Arc<[Arc<str>]>,
    /// The project it works in.
    pub project: Arc<str>,
}

impl Caller {
    /// The agent's name, or nothing.
    #[must_use]
    pub fn agent_name(&self) -> &str {
        self.agent.as_deref().unwrap_or_default()
    }

    /// The agents from the topmost one down to this one.
    pub fn path(&self) -> impl Iterator<Item = &Arc<str>> {
        self.parent_agents.iter().chain(&self.agent)
    }

    /// The same in one text. Names of agents have no spaces, so no two paths are written alike.
    #[must_use]
    pub fn path_text(&self) -> Cow<'_, str> {
        if self.parent_agents.is_empty() {
            return self.agent_name().into();
        }
        self.path().map(|name| &**name).collect::<Vec<_>>().join(" > ").into()
    }
}

//! The caller: its identity, its role, and the entry point of its call.

use std::borrow::Cow;
use std::sync::Arc;

words! {
    /// What a caller may do beyond calling the tools of its toolset.
    #[derive(PartialOrd, Ord)]
    pub enum Role {
        /// May list and call tools, and see its own calls.
        Agent = "agent",
        /// May also decide approvals.
        Approver = "approver",
        /// May also see everything and change the configuration.
        Admin = "admin",
    }
}

words! {
    pub enum EntryPoint {
        Cli = "cli",
        Http = "http",
        /// MCP, over any transport.
        Mcp = "mcp",
    }
}

/// Who makes a call, on whose behalf, in which project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The name of the key, or `person`, `local`; `mcp` for a model of the data folder's owner.
    pub principal: Arc<str>,
    pub role: Role,
    pub agent: Option<Arc<str>>,
    /// The agents that called this one, the topmost first.
    pub parent_agents: Arc<[Arc<str>]>,
    pub project: Arc<str>,
}

impl Caller {
    /// The agent's name, or an empty text.
    pub fn agent_name(&self) -> &str {
        self.agent.as_deref().unwrap_or_default()
    }

    /// The agents from the topmost one down to this one.
    pub fn path(&self) -> impl Iterator<Item = &Arc<str>> {
        self.parent_agents.iter().chain(&self.agent)
    }

    /// The same in one text. Names of agents have no spaces, so no two paths are written alike.
    pub fn path_text(&self) -> Cow<'_, str> {
        if self.parent_agents.is_empty() {
            return self.agent_name().into();
        }
        self.path().map(|name| &**name).collect::<Vec<_>>().join(" > ").into()
    }
}

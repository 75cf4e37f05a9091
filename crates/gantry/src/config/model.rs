//! A configuration as the rest of the program reads it: the option structs of the crates, checked, paths absolute.

use super::schema::RestToolOptions;
use super::watch::FileSnapshot;
use gantry_core::policy::{ApprovalRules, RuleSpec};
use gantry_rest::{ApiOptions, Inline};
use gantry_runtime::options::{AgentOptions, ApprovalOptions, Limits, ProviderOptions};
use gantry_runtime::queue;
use gantry_tools::options::{BuiltinPolicy, CodeOptions, GitOptions, SearchOptions, WebOptions};
use gantry_upstream::options::{DisabledReason, ServerOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The name of the project that is the file itself.
pub const MAIN_PROJECT: &str = "default";

/// A validated configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub server: gantry_server::Options,
    /// For all projects. Every queue that anything refers to is here.
    pub queues: Vec<queue::Options>,
    /// The SQLite file.
    pub store: PathBuf,
    /// By name, the file itself as [`MAIN_PROJECT`].
    pub(super) projects: BTreeMap<String, Project>,
}

impl Config {
    /// Every project with its name, the file itself first.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Project)> {
        let main = self.projects.get_key_value(MAIN_PROJECT);
        let others = self.projects.iter().filter(|(name, _)| *name != MAIN_PROJECT);
        main.into_iter().chain(others).map(|(name, project)| (name.as_str(), project))
    }

    /// The same, to be changed, in any order.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = (&str, &mut Project)> {
        self.projects.iter_mut().map(|(name, project)| (name.as_str(), project))
    }

    /// The project of this name.
    pub fn project(&self, name: &str) -> Option<&Project> {
        self.projects.get(name)
    }
}

/// Where a project stands, all absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub name: String,
    /// The folder that the workspace tools work in.
    pub workspace: PathBuf,
    /// The folder below which its agent and tool files are. It need not exist.
    pub folder: PathBuf,
    /// The same folder as messages name it.
    pub shown: PathBuf,
    /// Where its data is. It need not exist yet.
    pub data: PathBuf,
    /// The file that pins the definitions of its tools. It need not exist.
    pub lock: PathBuf,
}

/// The unit of isolation. Nothing in it is another project's, but for limits that it does not set itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    pub places: Places,
    pub limits: Limits,
    /// How Gantry's own workspace tools are offered and run.
    pub workspace_tools: ProviderOptions,
    /// Gantry's tools on parts of the workspace, by id.
    pub builtin: BTreeMap<String, Builtin>,
    /// By id, those of the catalogue included.
    pub mcp_servers: BTreeMap<String, McpServer>,
    pub rest_tools: BTreeMap<String, RestTool>,
    pub apis: BTreeMap<String, Api>,
    /// By name, those in files of their own included.
    pub agents: BTreeMap<String, AgentOptions>,
    pub approval_rules: ApprovalRules,
    pub approvals: ApprovalOptions,
    /// In file order; names are unique.
    pub policies: Vec<RuleSpec>,
    pub code: CodeOptions,
    pub web: WebOptions,
    pub git: GitOptions,
    pub search: SearchOptions,
}

impl Project {
    /// Removes MCP servers and switches REST services off, for commands that need neither. Agents name the services, so
    /// they stay.
    pub(crate) fn disable_external_providers(&mut self) {
        self.mcp_servers.clear();
        self.rest_tools.values_mut().for_each(|tool| tool.off = Some(DisabledReason::Disabled));
        self.apis.values_mut().for_each(|api| api.off = Some(DisabledReason::Disabled));
    }
}

/// Gantry's tools on a part of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Builtin {
    pub options: ProviderOptions,
    /// What they do; its paths are absolute.
    pub policy: BuiltinPolicy,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    pub options: ServerOptions,
    pub tools: ProviderOptions,
    /// Why it is not started, if it is not.
    pub off: Option<DisabledReason>,
}

/// A tool that is one request.
#[derive(Debug, Clone, PartialEq)]
pub struct RestTool {
    /// None when a variable that it cannot do without is not set.
    pub tool: Option<Inline>,
    pub run: RestToolOptions,
    /// Why it is not offered, if it is not.
    pub off: Option<DisabledReason>,
}

/// An API that a document describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Api {
    /// None when a variable that it cannot do without is not set.
    pub options: Option<ApiOptions>,
    pub tools: ProviderOptions,
    /// The files that the document is made of, as they are now: another content is another configuration.
    pub documents: FileSnapshot,
    /// Why it is not offered, if it is not.
    pub off: Option<DisabledReason>,
}

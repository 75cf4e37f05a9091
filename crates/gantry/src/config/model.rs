//! The configuration as the rest of the program reads it: checked, with defaults filled in, paths absolute.

mod rest;

pub use rest::{Api, Rest, RestTool};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use gantry_core::tool::Effect;
use gantry_runtime::options::ApprovalOptions;
use gantry_tools::options::ResourceLimits;
use gantry_upstream::options::{DisabledReason, ServerOptions};

use super::error::Location;

/// The name of the project that is the file itself.
pub const MAIN_PROJECT: &str = "default";

/// A validated configuration. What can only be judged elsewhere (patterns, conditions) keeps its [`Location`].
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub server: Server,
    /// By name, for all projects. Every queue that anything refers to is here.
    pub queues: BTreeMap<String, Queue>,
    pub store: Store,
    /// The file itself: the project [`MAIN_PROJECT`].
    pub main: Project,
    /// The projects besides, by name.
    pub projects: BTreeMap<String, Project>,
}

impl Config {
    /// Every project with its name, the file itself first.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Project)> {
        let others = self.projects.iter().map(|(name, project)| (name.as_str(), project));
        std::iter::once((MAIN_PROJECT, &self.main)).chain(others)
    }

    /// The project of this name.
    pub fn project(&self, name: &str) -> Option<&Project> {
        if name == MAIN_PROJECT { Some(&self.main) } else { self.projects.get(name) }
    }
}

/// The unit of isolation. Nothing in it is another project's, but for limits that it does not set itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The folder that the workspace tools work in.
    pub workspace: PathBuf,
    /// Where `workspace` is set; none when it is the default.
    pub workspace_at: Option<Location>,
    /// What the project leaves out is as in the file's own.
    pub defaults: Defaults,
    pub tools: Tools,
    /// What Gantry's own tools may do.
    pub own: Own,
    /// By id, those of the catalogue included.
    pub mcp_servers: BTreeMap<String, McpServer>,
    pub rest: Rest,
    /// By name, those in files of their own included.
    pub agents: BTreeMap<String, Agent>,
    pub approvals: Approvals,
    /// In file order; names are unique.
    pub policies: Vec<Policy>,
    /// The file that pins the definitions of its tools. It need not exist.
    pub lock: PathBuf,
    /// Where its data is. It need not exist yet.
    pub data: PathBuf,
    /// The folder below which its agent and tool files are. It need not exist.
    pub folder: PathBuf,
}

impl Project {
    /// Takes out what is started or read elsewhere, for work that needs none of it.
    pub(crate) fn stay_home(&mut self) {
        self.mcp_servers.clear();
        // Agents name them, so they stay.
        self.rest.switch_off();
    }
}

/// A value and the line it stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    pub value: T,
    pub at: Location,
}

/// Where Gantry listens and whom it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub bind: SocketAddr,
    /// Host names in lower case, without port.
    pub allowed_hosts: Vec<String>,
    /// Origins in lower case.
    pub allowed_origins: Vec<String>,
}

/// Limits for every call that nothing more specific decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Defaults {
    pub tool_timeout: Duration,
    pub tool_response_max_bytes: usize,
    pub max_depth: usize,
    /// Tokens of tool results that one session may receive; none is no budget.
    pub context_budget_tokens: Option<u64>,
    pub output_retention: Duration,
    pub max_concurrent_calls: usize,
    pub mcp_init_concurrency: usize,
    pub trace_mcp: bool,
}

/// How many calls run and wait at once. Its scope is this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    pub concurrent: usize,
    pub max_waiting: usize,
    pub at: Location,
}

/// What Gantry's own tools besides those on files may do.
#[derive(Debug, Clone, PartialEq)]
pub struct Own {
    pub code: Code,
    pub web: Web,
    pub git: Git,
    pub embeddings: Option<Embeddings>,
}

/// What programs that tools start may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    pub network: bool,
    pub code: ResourceLimits,
    pub builds: ResourceLimits,
    /// Absolute.
    pub toolchains: Vec<PathBuf>,
    /// Addresses of package registries, by ecosystem.
    pub registries: BTreeMap<String, String>,
}

/// What the web tools may reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Web {
    pub allow: Vec<String>,
    /// As `address/bits`.
    pub private: Vec<String>,
    pub search: Option<WebSearch>,
}

/// The service behind `web_search`.
#[derive(Clone, PartialEq)]
pub struct WebSearch {
    pub api: WebSearchApi,
    pub url: Option<String>,
    pub key: Option<String>,
    pub at: Location,
}

impl std::fmt::Debug for WebSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSearch").field("api", &self.api).field("url", &self.url).finish_non_exhaustive()
    }
}

/// How a service is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSearchApi {
    Searxng,
    Brave,
    Tavily,
}

/// A model that `search_code` ranks with.
#[derive(Clone, PartialEq)]
pub struct Embeddings {
    pub url: String,
    pub model: String,
    pub key: Option<String>,
}

impl std::fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embeddings")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// How the git tools commit and push. What they show to servers is secret, so it shows nothing of itself.
#[derive(Clone, PartialEq)]
pub struct Git {
    /// Origins, and what is shown to them.
    pub credentials: Vec<(String, String)>,
    /// A name and an address.
    pub author: Option<(String, String)>,
}

impl std::fmt::Debug for Git {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Git").field("author", &self.author).finish_non_exhaustive()
    }
}

/// The catalogue of tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Tools {
    /// Gantry's own workspace tools.
    pub workspace: ToolSource,
    /// Gantry's tools on parts of the workspace, by id.
    pub builtin: BTreeMap<String, Builtin>,
}

/// Tools of Gantry's on a part of the workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Builtin {
    /// How they are offered and run.
    pub source: ToolSource,
    pub policy: BuiltinPolicy,
    pub at: Location,
}

/// What such tools do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuiltinPolicy {
    /// Reads at these paths only: absolute, in the workspace, at least one.
    FsRead(Vec<PathBuf>),
    /// Writes at these paths only.
    FsWrite(Vec<PathBuf>),
    /// Runs these commands only: names, or absolute paths; at least one.
    ShellExec { commands: Vec<String> },
}

/// How the tools of one provider are offered and run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSource {
    pub enabled: bool,
    /// The only tools to offer; `None` offers all, an empty list none.
    pub allowed: Option<Vec<Located<String>>>,
    /// Tools to leave out; wins over `allowed`.
    pub denied: Vec<Located<String>>,
    /// The queue of all its tools, if any.
    pub queue: Option<String>,
    /// How long a success is cached; `None` is not at all.
    pub cache: Option<Duration>,
    /// `None` is [`Defaults::tool_timeout`].
    pub request_timeout: Option<Duration>,
    /// `cache` for single tools; `None` is not at all.
    pub tools_cache: BTreeMap<String, Located<Option<Duration>>>,
    /// `queue` for single tools; `None` is no queue.
    pub tools_queue: BTreeMap<String, Located<Option<String>>>,
    /// `request_timeout` for single tools.
    pub tools_timeout: BTreeMap<String, Located<Duration>>,
}

/// An MCP server. Its environment and its headers are secrets, so it shows little of itself.
#[derive(Clone, PartialEq)]
pub struct McpServer {
    /// How its tools are offered and run.
    pub source: ToolSource,
    /// How it is reached and watched. No `trace` is [`Defaults::trace_mcp`].
    pub options: Box<ServerOptions>,
    /// Why it is not started, if it is not.
    pub off: Option<DisabledReason>,
    pub at: Location,
}

impl std::fmt::Debug for McpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.options.transport().as_str();
        f.debug_struct("McpServer").field("kind", &kind).field("off", &self.off).finish_non_exhaustive()
    }
}

/// An agent and the tools it may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// What people are shown instead of its name.
    pub display_name: Option<String>,
    pub description: Option<String>,
    /// Names, globs, `*`, `@namespace/tool`; `["*"]` when the file has no list, nothing when its list is empty.
    pub uses: Vec<Located<String>>,
    /// What an entry of `uses` can be.
    pub entries: Entries,
    /// The only ones of `uses` that it may call: names, globs, aliases. `None` is all of them.
    pub allowed: Option<Vec<Located<String>>>,
    /// The spelling of a tool, by alias.
    pub aliases: BTreeMap<String, Located<String>>,
    /// Tools whose own rule need not ask a person: names, globs, aliases.
    pub auto_approve: Vec<Located<String>>,
    pub model: Option<String>,
    pub prompt: Option<String>,
    pub at: Location,
}

/// What an entry of an agent's list of tools can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// A pattern.
    Tools,
    /// The id of a provider, for all its tools; what is no id is a pattern.
    ProvidersAndTools,
}

/// Which calls wait for a person or for their time, who may decide, and how a person hears of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Approvals {
    pub requires: Gated,
    /// Tools of servers that say they have such an effect wait for a person.
    pub effects: Vec<Effect>,
    /// From which estimated cost on calls wait for a person; none is never.
    pub from_cost: Option<u64>,
    /// `always`, `never`, or a condition in CEL, not compiled yet.
    pub tool_rules: PerPattern<Located<String>>,
    /// Who may decide about which tools, at least one name each.
    pub approvers: PerPattern<Vec<String>>,
    pub default_delay: Duration,
    pub tool_delays: PerPattern<Duration>,
    pub effect_delays: Vec<(Effect, Duration)>,
    pub costs: PerPattern<u64>,
    /// From which estimated cost on calls wait how long.
    pub cost_delays: Vec<(u64, Duration)>,
    /// How calls that wait are put to a person; where that person decides on a page is not known here.
    pub options: ApprovalOptions,
}

/// Values by name or glob, in file order.
pub type PerPattern<T> = Vec<(Located<String>, T)>;

/// The tools whose calls wait for a person.
#[derive(Debug, Clone, PartialEq)]
pub enum Gated {
    All,
    None,
    /// Names and globs.
    Tools(Vec<Located<String>>),
}

/// A rule that refuses calls or asks a person about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub name: String,
    /// At least one.
    pub tools: Vec<Located<String>>,
    /// A condition in CEL, not compiled yet; none is always.
    pub when: Option<Located<String>>,
    pub decide: Decide,
    pub reason: Option<String>,
    /// Who may decide where it asks; nobody named is as the tool's.
    pub approvers: Vec<Located<String>>,
    pub examples: Examples,
    pub at: Location,
}

/// What a policy says to a call that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decide {
    Deny,
    Ask,
}

/// Arguments and what the rule must say to them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Examples {
    pub deny: Vec<Located<Arguments>>,
    pub ask: Vec<Located<Arguments>>,
    pub pass: Vec<Located<Arguments>>,
}

/// The arguments of a call.
pub type Arguments = serde_json::Map<String, serde_json::Value>;

/// Where Gantry keeps its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The SQLite file.
    pub path: PathBuf,
}

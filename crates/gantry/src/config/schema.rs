//! The sections of a configuration file, as the rest of the program reads them: which option structs of which crate each
//! of them is made of. What no type says is checked in `resolve`, which also makes paths absolute.

mod catalogue;

pub use catalogue::Builtin;
pub(super) use catalogue::{CatalogueEntry, CatalogueServer};

use super::compose::{Ignored, Refused, unless_missing};
use super::watch::FileSnapshot;
use catalogue::Tools;
use gantry_core::option_texts;
use gantry_core::options::{DAY, Millis, Name, PathText, ServerId, is_word, read_as, read_map};
use gantry_core::policy::{ApprovalRules, RuleSpec};
use gantry_rest::{ApiOptions, Inline};
use gantry_runtime::options::{AgentOptions, ApprovalOptions, Limits, ProviderOptions};
use gantry_runtime::queue;
use gantry_tools::options::{CodeOptions, GitOptions, SearchOptions, WebOptions};
use gantry_upstream::launch::Launch;
use gantry_upstream::options::{DisabledReason, ServerOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the project that is the file itself.
pub const MAIN_PROJECT: &str = "default";

option_texts! {
    /// The name of a tool that is one HTTP request, so short that it fits into a tool's name behind its namespace.
    plain RestToolName = "a name of 1 to 56 letters, digits and _ - .", |text| is_word(text, 56, b"_-.");
    /// The id of an API, which the names of its tools begin with.
    plain ApiId = "a name of 1 to 32 letters, digits, _ and -", |text| is_word(text, 32, b"_-");
}

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

    pub fn project(&self, name: &str) -> Option<&Project> {
        self.projects.get(name)
    }

    /// Removes the MCP servers of these projects and switches their REST services off, for commands that need neither.
    /// Agents name the services, so they stay.
    pub(crate) fn disable_external_providers(&mut self, of: impl Fn(&str) -> bool) {
        for (_, project) in self.projects.iter_mut().filter(|(name, _)| of(name)) {
            project.mcp_servers.clear();
            project.rest_tools.values_mut().for_each(|tool| tool.run.enabled = false);
            project.apis.values_mut().for_each(|api| api.tools.enabled = false);
        }
    }
}

/// A file: what holds for the process, and the project `default`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConfigFile {
    /// The schema that editors check the file with.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// Where Gantry listens and which requests it answers.
    pub(super) server: gantry_server::Options,
    /// Named queues that bound how many calls run at once.
    pub(super) queues: BTreeMap<Name, queue::Options>,
    /// Where Gantry keeps its records.
    pub(super) store: StoreOptions,
    /// More projects, each with its own workspace, servers, agents, rules and data. The file itself is the project
    /// `default`.
    #[serde(deserialize_with = "read_map::<Name, OtherProject, _, _, _, _>")]
    #[schemars(with = "BTreeMap<Name, OtherProject>")]
    pub(super) projects: BTreeMap<String, Project>,
    /// Gantry does not ask for them; write ${VAR} where ${input:…} stands and set VAR
    inputs: Option<Ignored>,
    models: Option<Refused>,
    auth: Option<Refused>,
    #[serde(rename = "..main")]
    #[schemars(flatten)]
    pub(super) main: Project,
}

/// A project. The data of a project besides the file itself is in `projects/<name>` in the data folder, its tools are
/// pinned in `gantry.<name>.lock`, and its agent and tool files are below `projects/<name>/`, both beside the
/// configuration. Approvals and policies at the top of the file are not inherited; limits under `defaults` are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "they are refused, or read with the other keys")]
struct OtherProject {
    /// The folder that its workspace tools work in. A relative path starts at the folder of the configuration file.
    workspace: PathText,
    /// is set once, at the top of the file; move it there
    server: Option<Refused>,
    /// is set once, at the top of the file, and shared by all projects; move it there
    queues: Option<Refused>,
    /// is set once, at the top of the file; move it there
    store: Option<Refused>,
    /// is set once, at the top of the file; move it there
    projects: Option<Refused>,
    models: Option<Refused>,
    auth: Option<Refused>,
    #[serde(rename = "..project")]
    #[schemars(flatten)]
    project: Project,
}

impl From<OtherProject> for Project {
    fn from(other: OtherProject) -> Self {
        other.project
    }
}

/// The unit of isolation. Nothing in it is another project's, but for limits that it does not set itself.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Project {
    /// Where it stands.
    #[serde(skip)]
    pub places: Places,
    /// The folder that the workspace tools work in. A relative path starts at the folder of the configuration file.
    #[serde(default = "here", deserialize_with = "read_as::<PathText, _, _>")]
    #[schemars(with = "PathText")]
    pub workspace: PathBuf,
    /// Limits for every call, unless something more specific sets them. In a project, a limit that is left out or 0
    /// is that of the top of the file.
    #[serde(rename = "defaults")]
    pub limits: Limits,
    /// The catalogue of tools, by id: Gantry's own workspace tools under `workspace`, MCP servers, and tools on some
    /// folders of the workspace. Each may also be a file, `tools/<id>/tool.json`.
    pub tools: Tools,
    /// Gantry's tools on parts of the workspace, by id; from the catalogue.
    #[serde(skip)]
    pub builtin: BTreeMap<ServerId, Builtin>,
    /// MCP servers, by id, in the shape that editors use. The id is the namespace of their tools:
    /// `github__search_code`.
    #[serde(alias = "servers")]
    pub mcp_servers: BTreeMap<ServerId, McpServer>,
    /// Tools that are one HTTP request each, by name. They are in the namespace `rest`: `rest__weather`.
    pub rest_tools: BTreeMap<RestToolName, RestTool>,
    /// APIs that an OpenAPI document (2.0, 3.0, 3.1; JSON or YAML) describes, by id. Each operation becomes a tool:
    /// `rest__petstore_list_pets`. `gantry openapi inspect` shows what would become of a document.
    #[serde(rename = "openapiSpecs")]
    pub apis: BTreeMap<ApiId, Api>,
    /// Agents and the tools each may use. Each may also be a file, `agents/<name>/agent.json` or `agents/<name>.md`.
    #[serde(deserialize_with = "read_map::<Name, Agent, _, _, _, _>")]
    #[schemars(with = "BTreeMap<Name, Agent>")]
    pub agents: BTreeMap<String, AgentOptions>,
    /// Which calls wait for an approver or for their time, who may decide, and how approvers hear of them.
    pub approvals: Approvals,
    /// Rules that refuse calls or ask an approver about them.
    pub policies: Vec<RuleSpec>,
    /// Limits of the programs that tools start: `run_code`, `shell_exec`, git, tests, formatters, package managers.
    /// They run in a sandbox on the workspace.
    pub code: CodeOptions,
    /// What `web_fetch` and `web_search` may reach, and how.
    pub web: WebOptions,
    /// How the git tools commit and push.
    pub git: GitOptions,
    /// How `search_code` ranks what it finds.
    pub search: SearchOptions,
}

fn here() -> PathBuf {
    ".".into()
}

/// Where a project stands, all absolute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    pub name: String,
    /// The folder below which its agent and tool files are. It need not exist.
    pub folder: PathBuf,
    /// The same folder as messages name it.
    pub shown: PathBuf,
    /// Where its data is. It need not exist yet.
    pub data: PathBuf,
    /// The file that pins the definitions of its tools. It need not exist.
    pub lock: PathBuf,
}

// Which calls wait, and how.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approvals {
    #[serde(rename = "..rules")]
    #[schemars(flatten)]
    pub rules: ApprovalRules,
    #[serde(rename = "..options")]
    #[schemars(flatten)]
    pub options: ApprovalOptions,
}

impl Default for Approvals {
    fn default() -> Self {
        Self { rules: ApprovalRules::unconfigured(), options: ApprovalOptions::default() }
    }
}

// One MCP server, described in the reference by its first part, as are the structs below.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    #[serde(rename = "..server")]
    #[schemars(flatten)]
    pub options: ServerOptions,
    #[serde(rename = "..tools")]
    #[schemars(flatten)]
    pub tools: ProviderOptions,
    #[serde(rename = "..editor")]
    #[schemars(flatten)]
    editor: EditorServerKeys,
    /// What it is started from.
    #[serde(skip)]
    #[schemars(skip)]
    pub launch: Launch,
    #[serde(rename = "..missing")]
    #[schemars(skip)]
    pub(super) missing: String,
}

/// Keys that editors write into the entries of their MCP servers and that mean nothing here. Keys of theirs that mean the
/// same as one of Gantry's are aliases of its field.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct EditorServerKeys {
    /// "approvals" and "policies" decide which calls wait
    always_allow: Ignored,
    /// "approvals" and "policies" decide which calls wait
    auto_approve: Ignored,
    /// "approvals" and "policies" decide which calls wait
    trust: Ignored,
    /// its unit differs between editors; write "requestTimeoutMs"
    timeout: Ignored,
    /// write the variables into "env", as ${VAR}, and their values into .env beside the configuration
    env_file: Ignored,
    /// write the token into "headers", as ${VAR}
    oauth: Ignored,
    /// it is for editors
    dev: Ignored,
    /// it is for editors
    gallery: Ignored,
    /// the id is its name
    name: Ignored,
    /// it is for editors
    version: Ignored,
}

impl McpServer {
    /// A server that is set up otherwise than under `mcpServers`.
    pub(super) fn new(options: ServerOptions, tools: ProviderOptions, missing: String) -> Self {
        Self { options, tools, editor: EditorServerKeys::default(), launch: Launch::default(), missing }
    }

    pub fn off(&self) -> Option<DisabledReason> {
        let refusal = || self.launch.refusal.clone().map(DisabledReason::Unusable);
        disabled(self.tools.enabled && !self.options.disabled, &self.missing).or_else(refusal)
    }
}

// A tool that is one HTTP request.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestTool {
    /// None when a variable that it cannot do without is not set.
    #[serde(rename = "..tool", deserialize_with = "unless_missing")]
    #[schemars(flatten, with = "Inline")]
    pub tool: Option<Inline>,
    #[serde(rename = "..run")]
    #[schemars(flatten)]
    pub run: RestToolOptions,
    #[serde(rename = "..missing")]
    #[schemars(skip)]
    pub(super) missing: String,
}

impl RestTool {
    pub fn off(&self) -> Option<DisabledReason> {
        disabled(self.run.enabled, &self.missing)
    }
}

// An API that a document describes.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Api {
    /// None when a variable that it cannot do without is not set.
    #[serde(rename = "..api", deserialize_with = "unless_missing")]
    #[schemars(flatten, with = "ApiOptions")]
    pub options: Option<ApiOptions>,
    #[serde(rename = "..tools")]
    #[schemars(flatten)]
    pub tools: ProviderOptions,
    /// The files that the document is made of, as they are now: another content is another configuration.
    #[serde(skip)]
    pub documents: FileSnapshot,
    #[serde(rename = "..missing")]
    #[schemars(skip)]
    pub(super) missing: String,
}

impl Api {
    pub fn off(&self) -> Option<DisabledReason> {
        disabled(self.tools.enabled, &self.missing)
    }
}

/// Why something is not started or offered, if it is not.
fn disabled(is_enabled: bool, missing: &str) -> Option<DisabledReason> {
    if !is_enabled {
        return Some(DisabledReason::Disabled);
    }
    (!missing.is_empty()).then(|| DisabledReason::Unusable(missing.to_owned()))
}

/// Where Gantry keeps its records.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreOptions {
    /// The database. `.gantry/` at the start of the path stands for the data folder, wherever that is; another relative
    /// path starts at the folder that holds the data folder.
    #[serde(deserialize_with = "sqlite_path")]
    #[schemars(with = "String", title = STORE_URL, extend("default" = "sqlite://.gantry/gantry.db"))]
    pub(super) url: PathBuf,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { url: ".gantry/gantry.db".into() }
    }
}

const STORE_URL: &str = "a URL such as sqlite://.gantry/gantry.db";

/// The path in a `sqlite://` URL.
fn sqlite_path<'de, D: Deserializer<'de>>(input: D) -> Result<PathBuf, D::Error> {
    // It may hold a password, so it is not quoted.
    let url = gantry_core::options::read_text(input, STORE_URL, true, |_| true)?;
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let message = format!("PostgreSQL is not available in this version of Gantry; use {STORE_URL}");
        return Err(D::Error::custom(message));
    }
    // Parameters are not read, so a URL with some is refused.
    let path =
        url.strip_prefix("sqlite://").filter(|path| !path.is_empty() && !path.contains(['?', '#', '\0']));
    path.map(Into::into).ok_or_else(|| D::Error::custom(format_args!("must be {STORE_URL}")))
}

/// How calls of a REST tool are run.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RestToolOptions {
    /// Whether it is offered at all.
    pub enabled: bool,
    /// The queue that its calls go through; none unless given.
    pub queue: Option<Arc<str>>,
    /// How long, in milliseconds, the successful result of a call also answers equal calls. It applies to every
    /// method. 0 is off.
    pub cache: Millis<0, { 30 * DAY }>,
    /// How long a call may take; `defaults.toolTimeout` unless given.
    #[serde(rename = "requestTimeoutMs")]
    pub timeout: Millis<0, DAY>,
    /// every parameter is written into the query as its type demands
    has_complex_query_params: Ignored,
    /// every parameter is written into the query as its type demands
    query_param_names: Ignored,
}

impl Default for RestToolOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            queue: None,
            cache: Millis::default(),
            timeout: Millis::default(),
            has_complex_query_params: Ignored::default(),
            query_param_names: Ignored::default(),
        }
    }
}

// An agent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Agent {
    guardrails: Ignored,
    memory: Ignored,
    limits: Ignored,
    router: Ignored,
    surface: Ignored,
    #[serde(rename = "..options")]
    #[schemars(flatten)]
    pub(super) options: AgentOptions,
}

impl From<Agent> for AgentOptions {
    fn from(agent: Agent) -> Self {
        agent.options
    }
}

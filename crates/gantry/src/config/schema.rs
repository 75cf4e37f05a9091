//! The sections of a configuration file: which option structs of which crate each of them is read into.

use super::compose::{Both, Entry, Ignored, Refused};
use super::editor_compat::EditorServerKeys;
use gantry_core::option_texts;
use gantry_core::options::{DAY, HOUR, Millis, Name, OneOrMore, PathText, ServerId, is_word, read_as};
use gantry_core::policy::{ApprovalRules, RuleSpec};
use gantry_rest::{ApiOptions, Inline};
use gantry_runtime::options::{AgentOptions, ApprovalOptions, Limits, ProviderOptions};
use gantry_runtime::queue;
use gantry_tools::options::{BuiltinPolicy, CodeOptions, GitOptions, SearchOptions, WebOptions};
use gantry_upstream::options::ServerOptions;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A file: what holds for the process, and the project `default`.
pub(super) type ConfigFile = Both<ProcessOptions, ProjectOptions>;
/// An MCP server.
pub(super) type McpServer = Entry<Both<ServerOptions, Both<ProviderOptions, EditorServerKeys>>, true>;
/// A tool that is one HTTP request.
pub(super) type RestTool = Entry<Both<Entry<Inline>, RestToolOptions>>;
/// An API that a document describes.
pub(super) type Api = Entry<Both<Entry<ApiOptions>, ProviderOptions>>;
/// An agent.
pub(super) type Agent = Both<AgentOptions, UnusedAgentKeys>;

option_texts! {
    /// The name of a tool that is one HTTP request, so short that it fits into a tool's name behind its namespace.
    plain RestToolName = "a name of 1 to 56 letters, digits and _ - .", |text| is_word(text, 56, b"_-.");
    /// The id of an API, which the names of its tools begin with.
    plain ApiId = "a name of 1 to 32 letters, digits, _ and -", |text| is_word(text, 32, b"_-");
}

/// What holds for the process.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "editors write some keys, and some are refused")]
pub(super) struct ProcessOptions {
    /// The schema that editors check the file with.
    #[serde(rename = "$schema")]
    pub(super) schema: Option<String>,
    /// Where Gantry listens and which requests it answers.
    #[serde(default)]
    pub(super) server: gantry_server::Options,
    /// Named queues that bound how many calls run at once.
    #[serde(default)]
    pub(super) queues: BTreeMap<Name, queue::Options>,
    /// Where Gantry keeps its records.
    #[serde(default)]
    pub(super) store: StoreOptions,
    /// More projects, each with its own workspace, servers, agents, rules and data. The file itself is the project
    /// `default`.
    #[serde(default)]
    pub(super) projects: BTreeMap<Name, OtherProject>,
    /// Gantry does not ask for them; write ${VAR} where ${input:…} stands and set VAR
    pub(super) inputs: Option<Ignored>,
    /// is not available in this version of Gantry; remove it
    models: Option<Refused>,
    /// is not available in this version of Gantry; remove it
    auth: Option<Refused>,
}

/// A project besides the file itself.
pub(super) type OtherProject = Both<ProjectKeys, ProjectOptions>;

/// What a project has that the file itself does not have.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "they are refused, or read with the other keys")]
pub(super) struct ProjectKeys {
    /// The folder that its workspace tools work in. A relative path starts at the folder of the configuration file.
    #[serde(deserialize_with = "read_as::<PathText, _, _>")]
    #[schemars(with = "PathText")]
    workspace: PathBuf,
    /// is set once, at the top of the file; move it there
    server: Option<Refused>,
    /// is set once, at the top of the file, and shared by all projects; move it there
    queues: Option<Refused>,
    /// is set once, at the top of the file; move it there
    store: Option<Refused>,
    /// is set once, at the top of the file; move it there
    projects: Option<Refused>,
    /// is not available in this version of Gantry; remove it
    models: Option<Refused>,
    /// is not available in this version of Gantry; remove it
    auth: Option<Refused>,
}

/// A project. The data of a project besides the file itself is in `projects/<name>` in the data folder, its tools are
/// pinned in `gantry.<name>.lock`, and its agent and tool files are below `projects/<name>/`, both beside the
/// configuration. Approvals and policies at the top of the file are not inherited; limits under `defaults` are.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProjectOptions {
    /// The folder that the workspace tools work in. A relative path starts at the folder of the configuration file.
    #[serde(default = "here", deserialize_with = "read_as::<PathText, _, _>")]
    #[schemars(with = "PathText")]
    pub(super) workspace: PathBuf,
    /// Limits for every call, unless something more specific sets them. In a project, a limit that is left out or 0
    /// is that of the top of the file.
    #[serde(default)]
    pub(super) defaults: Limits,
    /// The catalogue of tools, by id: Gantry's own workspace tools under `workspace`, MCP servers, and tools on some
    /// folders of the workspace. Each may also be a file, `tools/<id>/tool.json`.
    #[serde(default)]
    pub(super) tools: Tools,
    /// MCP servers, by id, in the shape that editors use. The id is the namespace of their tools:
    /// `github__search_code`.
    #[serde(default, alias = "servers")]
    pub(super) mcp_servers: BTreeMap<ServerId, McpServer>,
    /// Tools that are one HTTP request each, by name. They are in the namespace `rest`: `rest__weather`.
    #[serde(default)]
    pub(super) rest_tools: BTreeMap<RestToolName, RestTool>,
    /// APIs that an OpenAPI document (2.0, 3.0, 3.1; JSON or YAML) describes, by id. Each operation becomes a tool:
    /// `rest__petstore_list_pets`. `gantry openapi inspect` shows what would become of a document.
    #[serde(default)]
    pub(super) openapi_specs: BTreeMap<ApiId, Api>,
    /// Agents and the tools each may use. Each may also be a file, `agents/<name>/agent.json` or `agents/<name>.md`.
    #[serde(default)]
    pub(super) agents: BTreeMap<Name, Agent>,
    /// Which calls wait for an approver or for their time, who may decide, and how approvers hear of them.
    #[serde(default = "unconfigured")]
    pub(super) approvals: Both<ApprovalRules, ApprovalOptions>,
    /// Rules that refuse calls or ask an approver about them.
    #[serde(default)]
    pub(super) policies: Vec<RuleSpec>,
    /// Limits of the programs that tools start: `run_code`, `shell_exec`, git, tests, formatters, package managers.
    /// They run in a sandbox on the workspace.
    #[serde(default)]
    pub(super) code: CodeOptions,
    /// What `web_fetch` and `web_search` may reach, and how.
    #[serde(default)]
    pub(super) web: WebOptions,
    /// How the git tools commit and push.
    #[serde(default)]
    pub(super) git: GitOptions,
    /// How `search_code` ranks what it finds.
    #[serde(default)]
    pub(super) search: SearchOptions,
}

fn here() -> PathBuf {
    ".".into()
}

fn unconfigured() -> Both<ApprovalRules, ApprovalOptions> {
    Both(ApprovalRules::unconfigured(), ApprovalOptions::default())
}

/// Where Gantry keeps its records.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "StoreOptions")]
pub(super) struct StoreOptions {
    /// The database. `.gantry/` at the start of the path stands for the data folder, wherever that is; another relative
    /// path starts at the folder that holds the data folder.
    pub(super) url: StoreUrl,
}

/// The path in a `sqlite://` URL.
#[derive(Debug, Clone)]
pub(super) struct StoreUrl(pub(super) PathBuf);

impl Default for StoreUrl {
    fn default() -> Self {
        Self(".gantry/gantry.db".into())
    }
}

const STORE_URL: &str = "a URL such as sqlite://.gantry/gantry.db";

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        // It may hold a password, so it is not quoted.
        let url = gantry_core::options::read_text(input, STORE_URL, true, |_| true)?;
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let message = format!("PostgreSQL is not available in this version of Gantry; use {STORE_URL}");
            return Err(D::Error::custom(message));
        }
        // Parameters are not read, so a URL with some is refused.
        let path =
            url.strip_prefix("sqlite://").filter(|path| !path.is_empty() && !path.contains(['?', '#', '\0']));
        path.map(|path| Self(path.into()))
            .ok_or_else(|| D::Error::custom(format_args!("must be {STORE_URL}")))
    }
}

impl JsonSchema for StoreUrl {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "StoreUrl".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": STORE_URL, "default": "sqlite://.gantry/gantry.db" })
    }
}

/// How calls of a REST tool are run.
#[derive(Debug, Clone, PartialEq, serde::Deserialize, JsonSchema)]
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
            has_complex_query_params: Ignored,
            query_param_names: Ignored,
        }
    }
}

/// Keys of agents that mean nothing in this version.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UnusedAgentKeys {
    /// this version of Gantry does not read it
    guardrails: Ignored,
    /// this version of Gantry does not read it
    memory: Ignored,
    /// this version of Gantry does not read it
    limits: Ignored,
    /// this version of Gantry does not read it
    router: Ignored,
    /// this version of Gantry does not read it
    surface: Ignored,
}

/// The catalogue of tools.
#[derive(Debug, Clone, Default)]
pub(super) struct Tools {
    /// Gantry's own workspace tools.
    pub(super) workspace: WorkspaceTools,
    pub(super) entries: BTreeMap<ServerId, CatalogueEntry>,
}

/// Gantry's own workspace tools.
pub(super) type WorkspaceTools = Both<ProviderOptions, WorkspaceKeys>;

/// What the entry of the own tools may have besides.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WorkspaceKeys {
    /// What provides the tools.
    kind: Option<Builtin>,
    /// is for other ids; the own tools have the whole workspace
    builtin_policy: Option<Refused>,
}

#[derive(Debug, Clone, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Builtin {
    Builtin,
}

/// An entry of the catalogue of tools: an MCP server (`kind: mcp`), or Gantry's tools on a part of the workspace
/// (`kind: builtin`).
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(rename = "$tag:kind", rename_all = "lowercase")]
#[schemars(rename = "CatalogueEntry", tag = "kind")]
pub(super) enum CatalogueEntry {
    Mcp(Entry<Both<ServerOptions, Both<ProviderOptions, CatalogueServerKeys>>, true>),
    Builtin(Both<ProviderOptions, CatalogueBuiltinKeys>),
}

/// What an MCP server of the catalogue may have besides.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CatalogueServerKeys {
    /// The id of the entry. It must be the same as its key or its folder.
    pub(super) id: Option<String>,
    /// A note for people.
    display_name: Option<String>,
    /// Time limits, in the form that other programs use.
    pub(super) timeouts: Timeouts,
    /// nothing is restricted by it; a server can do what the user can who runs Gantry
    permissions: Ignored,
}

/// Gantry's tools on a part of the workspace.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "some are for people, or named in warnings")]
pub(super) struct CatalogueBuiltinKeys {
    /// The id of the entry. It must be the same as its key or its folder.
    pub(super) id: Option<String>,
    /// A note for people.
    display_name: Option<String>,
    /// A note for people.
    description: Option<String>,
    /// What the tools do, and where.
    pub(super) builtin_policy: BuiltinPolicy,
    /// Time limits, in the form that other programs use.
    #[serde(default)]
    pub(super) timeouts: Timeouts,
    /// Limits of the tools, in the form that other programs use.
    #[serde(default)]
    pub(super) permissions: Permissions,
    /// these tools are always there
    #[serde(default)]
    health_check: Ignored,
}

/// Other spellings of two timeouts.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Timeouts {
    /// Another spelling of `startupTimeoutMs`.
    pub(super) startup_ms: Millis<0, HOUR>,
    /// Another spelling of `requestTimeoutMs`.
    pub(super) request_ms: Millis<0, DAY>,
}

/// Limits of the tools, in the form that other programs use.
#[derive(Debug, Clone, Default, serde::Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Permissions {
    /// The only folders and files that the tools touch. A relative path starts at the workspace, and no path leaves
    /// it.
    #[serde(deserialize_with = "read_as::<OneOrMore<PathText>, _, _>")]
    #[schemars(with = "OneOrMore<PathText>")]
    pub(super) allowed_paths: Vec<PathBuf>,
    /// Only `true`, which restricts nothing.
    pub(super) filesystem: Option<Value>,
    /// tools on files use no network
    network: Ignored,
}

/// The id of the own tools in the catalogue.
const WORKSPACE: &str = "workspace";

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(Catalogue)
    }
}

struct Catalogue;

impl<'de> Visitor<'de> for Catalogue {
    type Value = Tools;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group of keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tools, A::Error> {
        let mut tools = Tools::default();
        while let Some(id) = map.next_key::<ServerId>()? {
            if &*id == WORKSPACE {
                tools.workspace = map.next_value()?;
            } else {
                tools.entries.insert(id, map.next_value()?);
            }
        }
        Ok(tools)
    }
}

impl JsonSchema for Tools {
    fn schema_name() -> Cow<'static, str> {
        "Tools".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let workspace = generator.subschema_for::<WorkspaceTools>();
        let entry = generator.subschema_for::<CatalogueEntry>();
        json_schema!({ "type": "object", "properties": { WORKSPACE: workspace }, "additionalProperties": entry })
    }
}

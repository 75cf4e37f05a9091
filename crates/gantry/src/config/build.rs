//! Turns a checked tree into a [`Config`], with defaults from the key table.
//!
//! What comes of a tree with problems is thrown away, so a value of the wrong type counts nowhere; where the types allow
//! one, the strictest reading is taken.

pub(super) mod agents;
mod approvals;
pub(super) mod catalogue;
mod own;
mod rest;
mod servers;
mod view;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::beside::Beside;
use super::check::Unusable;
use super::model::{
    Agent, Config, Decide, Defaults, Examples, Located, MAIN_PROJECT, McpServer, Policy, Project, Queue,
    Server, Store, ToolSource, Tools,
};
use super::projects::Place;
use super::table::{ROOT, TOOLS};
use super::text;
use super::transport::Spelling;
use super::tree::Node;
use view::{View, millis, owned};

/// Where a configuration stands, all absolute.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// Where relative paths start: the folder of the file, or the working folder.
    pub(super) folder: PathBuf,
    pub(super) data: PathBuf,
}

/// A checked tree and what stands around it.
pub(super) struct Checked<'a> {
    pub(super) root: &'a Node,
    pub(super) file: &'a Arc<Path>,
    pub(super) base: &'a Base,
    pub(super) unusable: &'a Unusable,
}

/// The configuration, with the projects at these places, which have these files beside them.
pub(super) fn build(checked: &Checked<'_>, main: (Place, Beside), others: Vec<(Place, Beside)>) -> Config {
    let root = checked.view();
    let above = defaults(&root.section("defaults"), None);
    let projects: BTreeMap<&str, View<'_>> = root.named("projects").collect();
    let other = |(place, beside): (Place, Beside)| {
        let view = projects.get(place.name.as_str()).copied().unwrap_or(View { node: None, ..root });
        let defaults = defaults(&view.section("defaults"), Some(&above));
        (place.name.clone(), project(checked, &view, place, beside, defaults))
    };
    let projects = others.into_iter().map(other).collect();
    let (place, beside) = main;
    Config {
        server: server(&root.section("server")),
        queues: root.named("queues").map(|(name, view)| (name.to_owned(), queue(&view))).collect(),
        store: store(&root.section("store"), checked.base),
        main: project(checked, &root, place, beside, above),
        projects,
    }
}

fn project(
    checked: &Checked<'_>,
    view: &View<'_>,
    place: Place,
    beside: Beside,
    defaults: Defaults,
) -> Project {
    let mut mcp_servers = checked.mcp_servers(view, &place.name);
    let rest = rest::rest(checked, view, &place.name);
    let tools = view.section("tools");
    let catalogue = catalogue::Catalogue::of(checked, &tools, &place);
    mcp_servers.extend(catalogue.mcp_servers);
    mcp_servers.extend(beside.mcp_servers);
    let mut builtin = catalogue.builtin;
    builtin.extend(beside.builtin);
    let mut agents: BTreeMap<String, Agent> =
        view.named("agents").map(|(name, view)| (name.to_owned(), agents::agent(&view))).collect();
    agents.extend(beside.agents);
    let own = View { node: tools.get("workspace"), keys: TOOLS.own, file: view.file };
    Project {
        workspace: place.workspace,
        workspace_at: view.get("workspace").map(|node| view.at(node.line)),
        defaults,
        tools: Tools { workspace: source(&own), builtin },
        own: own::own(view, checked.base),
        mcp_servers,
        rest,
        agents,
        approvals: approvals::approvals(&view.section("approvals")),
        policies: view.items("policies").map(|view| policy(&view)).collect(),
        lock: place.lock,
        data: place.data,
        folder: place.folder,
    }
}

impl<'a> Checked<'a> {
    fn view(&self) -> View<'a> {
        View { node: Some(self.root), keys: ROOT, file: self.file }
    }

    /// The MCP servers of a project of this tree that are not in a catalogue.
    fn mcp_servers(&self, view: &View<'_>, project: &str) -> BTreeMap<String, McpServer> {
        view.named("mcpServers")
            .map(|(id, view)| {
                let unusable = self.unusable.get(&(project.to_owned(), id.to_owned()));
                (id.to_owned(), servers::server(&view, self.base, unusable, &Spelling::SERVER))
            })
            .collect()
    }

    /// The MCP server of this id, in a tree that has nothing else.
    pub(super) fn server(&self, id: &str) -> Option<McpServer> {
        self.mcp_servers(&self.view(), MAIN_PROJECT).remove(id)
    }
}

/// A path without `.` in it, from an absolute folder.
pub(super) fn absolute(folder: &Path, path: impl AsRef<Path>) -> PathBuf {
    folder.join(path).components().collect()
}

fn server(view: &View<'_>) -> Server {
    let bind = view.text("bind").and_then(|bind| bind.parse().ok());
    let lower = |name| view.texts(name).into_iter().flatten().map(|host| host.value.to_lowercase()).collect();
    Server {
        bind: bind.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        allowed_hosts: lower("allowedHosts"),
        allowed_origins: lower("allowedOrigins"),
    }
}

/// The limits of a group; what it leaves to the default is as above it, where there is something above.
fn defaults(view: &View<'_>, above: Option<&Defaults>) -> Defaults {
    fn of<T>(decided: bool, own: T, above: Option<T>) -> T {
        if decided { own } else { above.unwrap_or(own) }
    }
    let millis = |name, above| of(view.decides(name), view.duration(name).unwrap_or_default(), above);
    let size = |name, above| of(view.decides(name), view.size(name), above);
    Defaults {
        tool_timeout: millis("toolTimeout", above.map(|above| above.tool_timeout)),
        tool_response_max_bytes: size(
            "toolResponseMaxBytes",
            above.map(|above| above.tool_response_max_bytes),
        ),
        max_depth: size("maxDepth", above.map(|above| above.max_depth)),
        context_budget_tokens: view
            .number("contextBudgetTokens")
            .or_else(|| above.and_then(|above| above.context_budget_tokens)),
        output_retention: millis("outputRetentionMs", above.map(|above| above.output_retention)),
        max_concurrent_calls: size("maxConcurrentCalls", above.map(|above| above.max_concurrent_calls)),
        mcp_init_concurrency: size("mcpInitConcurrency", above.map(|above| above.mcp_init_concurrency)),
        trace_mcp: of(view.decides("traceMCP"), view.flag("traceMCP"), above.map(|above| above.trace_mcp)),
    }
}

fn queue(view: &View<'_>) -> Queue {
    Queue { concurrent: view.size("concurrent"), max_waiting: view.size("maxWaiting"), at: view.here() }
}

fn source(view: &View<'_>) -> ToolSource {
    ToolSource {
        enabled: view.flag("enabled"),
        allowed: view.texts("toolsAllowed"),
        denied: view.texts("toolsDenied").unwrap_or_default(),
        queue: view.text("queue"),
        cache: view.duration("cache"),
        request_timeout: view.duration("requestTimeoutMs"),
        tools_cache: view.per_tool("toolsCache", |value| Some(millis(value))),
        tools_queue: view.per_tool("toolsQueue", |value| Some(owned(value))),
        tools_timeout: view.per_tool("toolsTimeout", millis),
    }
}

fn policy(view: &View<'_>) -> Policy {
    let examples = view.section("examples");
    let when = view
        .get("when")
        .and_then(|node| Some(Located { value: owned(&node.value)?, at: view.at(node.line) }));
    Policy {
        name: view.text("name").unwrap_or_default(),
        tools: view.texts("tools").unwrap_or_default(),
        when,
        decide: if view.text("decide").is_some_and(|word| word == "ask") {
            Decide::Ask
        } else {
            Decide::Deny
        },
        reason: view.text("reason"),
        approvers: view.texts("approvers").unwrap_or_default(),
        examples: Examples {
            deny: examples.arguments("deny"),
            ask: examples.arguments("ask"),
            pass: examples.arguments("pass"),
        },
        at: view.here(),
    }
}

fn store(view: &View<'_>, base: &Base) -> Store {
    let url = view.text("url").unwrap_or_default();
    let path = Path::new(text::sqlite_path(&url).unwrap_or_default());
    // The default names the data folder by its usual name; so written, it follows the folder when that is moved.
    Store {
        path: match path.strip_prefix(".gantry") {
            Ok(inside) => absolute(&base.data, inside),
            Err(_) => absolute(base.data.parent().unwrap_or(&base.data), path),
        },
    }
}

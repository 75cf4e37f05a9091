//! Turns a checked tree into a [`Config`], with defaults from the key table.
//!
//! It runs only on a tree without problems, so a value of the wrong type cannot occur; where the types still allow
//! one, the strictest reading is taken.

mod servers;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Number;

use super::error::Location;
use super::model::{
    Agent, Approvals, Arguments, Config, Decide, Defaults, Examples, Gated, Located, Policy, Queue, Server,
    Store, ToolSource, Tools,
};
use super::table::{Fallback, Key, Kind, ROOT, Zero};
use super::text;
use super::tree::{Entry, Node, Value};

/// Where a configuration stands, all absolute.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// Where relative paths start: the folder of the file, or the working folder.
    pub(super) folder: PathBuf,
    pub(super) data: PathBuf,
}

pub(super) fn build(
    root: &Node,
    file: &Arc<Path>,
    base: &Base,
    unusable: &BTreeMap<String, String>,
) -> Config {
    let root = View { node: Some(root), keys: ROOT, file };
    Config {
        workspace: absolute(&base.folder, root.text("workspace").unwrap_or_default()),
        workspace_at: root.get("workspace").map(|node| root.at(node.line)),
        server: server(&root.section("server")),
        defaults: defaults(&root.section("defaults")),
        queues: root.named("queues").map(|(name, view)| (name, queue(&view))).collect(),
        tools: Tools { workspace: source(&root.section("tools").section("workspace")) },
        mcp_servers: root
            .named("mcpServers")
            .map(|(id, view)| {
                let server = servers::server(&view, base, unusable.get(&id));
                (id, server)
            })
            .collect(),
        agents: root.named("agents").map(|(name, view)| (name, agent(&view))).collect(),
        approvals: approvals(&root.section("approvals")),
        policies: root.items("policies").map(|view| policy(&view)).collect(),
        store: store(&root.section("store"), base),
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

fn defaults(view: &View<'_>) -> Defaults {
    Defaults {
        tool_timeout: view.duration("toolTimeout").unwrap_or_default(),
        tool_response_max_bytes: view.size("toolResponseMaxBytes"),
        max_depth: view.size("maxDepth"),
        context_budget_tokens: view.number("contextBudgetTokens"),
        output_retention: view.duration("outputRetentionMs").unwrap_or_default(),
        max_concurrent_calls: view.size("maxConcurrentCalls"),
        mcp_init_concurrency: view.size("mcpInitConcurrency"),
        trace_mcp: view.flag("traceMCP"),
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

fn agent(view: &View<'_>) -> Agent {
    let all = || vec![Located { value: "*".to_owned(), at: view.here() }];
    Agent {
        description: view.text("description"),
        tools: view.texts("tools").unwrap_or_else(all),
        at: view.here(),
    }
}

fn approvals(view: &View<'_>) -> Approvals {
    let requires = match view.texts("requiresApprovalTools") {
        Some(patterns) => Gated::Tools(patterns),
        None if view.text("requiresApprovalTools").is_some_and(|word| word == "none") => Gated::None,
        None => Gated::All,
    };
    Approvals { requires }
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

/// A group of keys, which may be absent, and the keys it can have.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    node: Option<&'a Node>,
    keys: &'static [Key],
    file: &'a Arc<Path>,
}

impl<'a> View<'a> {
    fn get(&self, name: &str) -> Option<&'a Node> {
        entries(self.node).iter().find(|entry| entry.key == name).map(|entry| &entry.node)
    }

    fn key(&self, name: &str) -> Option<&'static Key> {
        let key = self.keys.iter().find(|key| key.name == name);
        debug_assert!(key.is_some(), "{name} is not in the key table");
        key
    }

    fn at(&self, line: usize) -> Location {
        Location { file: self.file.clone(), line }
    }

    fn here(&self) -> Location {
        self.at(self.node.map_or(1, |node| node.line))
    }

    fn under(&self, node: Option<&'a Node>, name: &str) -> Self {
        let keys = match self.key(name).map(|key| &key.kind) {
            Some(
                Kind::Section(keys)
                | Kind::Named(keys)
                | Kind::Servers(keys)
                | Kind::Catalogue(keys)
                | Kind::Items(keys),
            ) => keys,
            _ => &[][..],
        };
        Self { node, keys, file: self.file }
    }

    fn section(&self, name: &str) -> Self {
        self.under(self.get(name), name)
    }

    fn named(&self, name: &str) -> impl Iterator<Item = (String, Self)> {
        entries(self.get(name))
            .iter()
            .map(move |entry| (entry.key.clone(), self.under(Some(&entry.node), name)))
    }

    fn items(&self, name: &str) -> impl Iterator<Item = Self> {
        items(self.get(name)).iter().map(move |item| self.under(Some(item), name))
    }

    fn flag(&self, name: &str) -> bool {
        match (self.get(name).map(|node| &node.value), self.key(name).map(|key| key.default)) {
            (Some(Value::Flag(flag)), _) => *flag,
            (None, Some(Fallback::Flag(flag))) => flag,
            _ => false,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match (self.get(name), self.key(name)?.default) {
            (Some(node), _) => owned(&node.value),
            (None, Fallback::Text(text)) => Some(text.to_owned()),
            (None, _) => None,
        }
    }

    /// A number, its default in place of a 0 that means it.
    fn number(&self, name: &str) -> Option<u64> {
        let key = self.key(name)?;
        let default = match key.default {
            Fallback::Number(number) => Some(number),
            Fallback::Required | Fallback::Flag(_) | Fallback::Text(_) | Fallback::Absent(_) => None,
        };
        match (self.get(name).and_then(|node| node.value.as_number()?.as_u64()), &key.kind) {
            (None, _) => default,
            (Some(0), Kind::Number(bounds)) if bounds.zero == Zero::Default => default,
            (Some(number), _) => Some(number),
        }
    }

    fn size(&self, name: &str) -> usize {
        self.number(name).and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    }

    /// A number of milliseconds; `None` when there is none, or when 0 switches it off.
    fn duration(&self, name: &str) -> Option<Duration> {
        self.number(name).filter(|millis| *millis > 0).map(Duration::from_millis)
    }

    fn texts(&self, name: &str) -> Option<Vec<Located<String>>> {
        let node = self.get(name).filter(|node| matches!(node.value, Value::List(_)))?;
        let text = |item: &Node| Some(Located { value: owned(&item.value)?, at: self.at(item.line) });
        Some(node.value.items().iter().filter_map(text).collect())
    }

    fn arguments(&self, name: &str) -> Vec<Located<Arguments>> {
        let list = items(self.get(name)).iter();
        list.map(|item| Located { value: item.value.to_object(), at: self.at(item.line) }).collect()
    }

    /// The tools of a map for which `read` finds a value.
    fn per_tool<T>(&self, name: &str, read: impl Fn(&Value) -> Option<T>) -> BTreeMap<String, Located<T>> {
        let one = |entry: &Entry| {
            let value = read(&entry.node.value)?;
            Some((entry.key.clone(), Located { value, at: self.at(entry.line) }))
        };
        entries(self.get(name)).iter().filter_map(one).collect()
    }
}

fn entries(node: Option<&Node>) -> &[Entry] {
    node.map_or(&[], |node| node.value.entries())
}

fn items(node: Option<&Node>) -> &[Node] {
    node.map_or(&[], |node| node.value.items())
}

fn owned(value: &Value) -> Option<String> {
    value.as_text().map(|text| text.text.clone())
}

fn millis(value: &Value) -> Option<Duration> {
    value.as_number().and_then(Number::as_u64).filter(|millis| *millis > 0).map(Duration::from_millis)
}

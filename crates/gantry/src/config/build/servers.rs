//! The MCP servers of a configuration.

use super::view::{View, entries, items, owned};
use super::{Base, absolute, source};
use crate::config::model::McpServer;
use crate::config::transport::{Spelling, Transport, host_and_port};
use crate::config::tree::Value;
use gantry_provider::options::Secret;
use gantry_upstream::options::{DisabledReason, HealthCheck, Protocol, ServerOptions, TransportType};

/// One server; `unusable` is what the environment lacks for it.
pub(super) fn server(
    view: &View<'_>,
    base: &Base,
    unusable: Option<&String>,
    spelling: &Spelling,
) -> McpServer {
    let health = view.section("healthCheck");
    let enabled = view.flag("enabled") && !view.flag("disabled");
    let options = Box::new(ServerOptions {
        protocol: match view.text("protocol").as_deref() {
            Some("legacy") => Protocol::Legacy,
            Some("modern") => Protocol::Modern,
            _ => Protocol::Auto,
        },
        prefix: view.flag("prefix"),
        elicitation: view.flag("elicitation"),
        sampling: view.flag("sampling"),
        roots: view.flag("roots"),
        startup_timeout: view.duration("startupTimeoutMs").unwrap_or_default(),
        health_check: HealthCheck {
            interval: health.duration("intervalMs").unwrap_or_default(),
            timeout: health.duration("timeoutMs").unwrap_or_default(),
        },
        trace: match view.get("traceMCP").map(|node| &node.value) {
            Some(Value::Flag(trace)) => Some(*trace),
            _ => None,
        },
        ..reach(view, base, spelling)
    });
    McpServer { source: source(view), options, off: off(view, enabled, unusable), at: view.here() }
}

/// Why it is not used, if it is not.
pub(super) fn off(view: &View<'_>, enabled: bool, unusable: Option<&String>) -> Option<DisabledReason> {
    match unusable {
        // Whoever switched it off need not set its variables.
        _ if !enabled && !is_missing(view, "enabled") => Some(DisabledReason::Disabled),
        Some(reason) => Some(DisabledReason::Unusable(reason.clone())),
        None => None,
    }
}

/// Whether a key is there whose variable is not set.
fn is_missing(view: &View<'_>, name: &str) -> bool {
    view.get(name).is_some_and(|node| matches!(node.value, Value::Null))
}

/// How it is reached; keys that mean nothing to its transport are left out.
fn reach(view: &View<'_>, base: &Base, spelling: &Spelling) -> ServerOptions {
    // A server whose type hangs on a variable that is not set is not started, so any will do.
    let transport = view.node.and_then(|node| Transport::of(node, spelling).ok()).unwrap_or(Transport::Stdio);
    let secrets = |name| pairs(view, name).map(|(key, value)| (key, value.into())).collect();
    let remote = |transport| ServerOptions {
        transport: Some(transport),
        urls: addresses(view, spelling).into_iter().map(Secret::from).collect(),
        headers: secrets("headers"),
        ..ServerOptions::default()
    };
    match transport {
        Transport::Stdio => ServerOptions {
            transport: Some(TransportType::Stdio),
            command: Some(view.text("command").unwrap_or_default()),
            args: items(view.get("args"))
                .iter()
                .filter_map(|item| Some(owned(&item.value)?.into()))
                .collect(),
            env: secrets("env"),
            cwd: Some(absolute(&base.folder, view.text("cwd").unwrap_or_default())),
            replicas: view.size("replicas"),
            ..ServerOptions::default()
        },
        Transport::Http => remote(TransportType::Http),
        Transport::Sse => remote(TransportType::Sse),
        Transport::WebSocket => remote(TransportType::WebSocket),
        Transport::Tcp => {
            let bare = |address: String| host_and_port(&address).map(Secret::from);
            let urls = addresses(view, spelling).into_iter().filter_map(bare).collect();
            ServerOptions { transport: Some(TransportType::Tcp), urls, ..ServerOptions::default() }
        }
    }
}

fn addresses(view: &View<'_>, spelling: &Spelling) -> Vec<String> {
    let nodes = spelling.addresses.iter().filter_map(|key| view.get(key));
    nodes
        .flat_map(|node| std::iter::once(node).chain(node.value.items()))
        .filter_map(|node| owned(&node.value))
        .collect()
}

pub(super) fn pairs<'a>(view: &View<'a>, name: &str) -> impl Iterator<Item = (String, String)> + use<'a> {
    entries(view.get(name)).iter().filter_map(|entry| Some((entry.key.clone(), owned(&entry.node.value)?)))
}

//! The entries of the catalogue of tools: more MCP servers, and Gantry's tools on parts of the workspace.

use super::view::{View, entries};
use super::{Base, Checked, absolute, servers, source};
use crate::config::check::{ProviderKind, Unusable, kind_of};
use crate::config::model::{Builtin, BuiltinPolicy, McpServer};
use crate::config::projects::{Place, within};
use crate::config::table::TOOLS;
use crate::config::transport::Spelling;
use crate::config::tree::Node;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What the entries of a catalogue are.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    pub(super) mcp_servers: BTreeMap<String, McpServer>,
    pub(super) builtin: BTreeMap<String, Builtin>,
}

/// One entry.
pub(in crate::config) enum Provider {
    Mcp(McpServer),
    Builtin(Builtin),
}

impl Catalogue {
    pub(super) fn of(checked: &Checked<'_>, tools: &View<'_>, place: &Place) -> Self {
        let mut catalogue = Self::default();
        for entry in entries(tools.node) {
            let id = &entry.key;
            // Gantry's own tools have no kind, or one that says so.
            if id == "workspace" {
                continue;
            }
            match provider(id, (&entry.node, tools.file), checked.base, place, checked.unusable) {
                Some(Provider::Mcp(server)) => drop(catalogue.mcp_servers.insert(id.clone(), server)),
                Some(Provider::Builtin(builtin)) => drop(catalogue.builtin.insert(id.clone(), builtin)),
                None => {}
            }
        }
        catalogue
    }
}

/// The entry of this id, in the configuration or in a file of its own.
pub(in crate::config) fn provider(
    id: &str,
    (node, file): (&Node, &Arc<Path>),
    base: &Base,
    place: &Place,
    unusable: &Unusable,
) -> Option<Provider> {
    match kind_of(node)? {
        ProviderKind::Mcp => {
            let view = View { node: Some(node), keys: TOOLS.mcp, file };
            let unusable = unusable.get(&(place.name.clone(), id.to_owned()));
            Some(Provider::Mcp(server(&view, base, unusable)))
        }
        ProviderKind::Builtin => {
            let view = View { node: Some(node), keys: TOOLS.builtin, file };
            Some(Provider::Builtin(builtin(&view, &place.workspace)))
        }
    }
}

fn server(view: &View<'_>, base: &Base, unusable: Option<&String>) -> McpServer {
    let mut server = servers::server(view, base, unusable, &Spelling::CATALOGUE);
    let timeouts = view.section("timeouts");
    server.options.startup_timeout = timeouts.duration("startupMs").unwrap_or(server.options.startup_timeout);
    server.source.request_timeout = timeouts.duration("requestMs").or(server.source.request_timeout);
    server.source.allowed = view.texts("exposedTools").or(server.source.allowed);
    for arg in server.options.args.iter_mut().filter(|arg| arg.expose().starts_with("./")) {
        if let Some(path) = absolute(&base.folder, arg.expose()).to_str() {
            *arg = path.into();
        }
    }
    server
}

fn builtin(view: &View<'_>, workspace: &Path) -> Builtin {
    let (policy, timeouts) = (view.section("builtinPolicy"), view.section("timeouts"));
    let mut source = source(view);
    let timeout = timeouts.duration("requestMs").or_else(|| policy.duration("timeout"));
    source.request_timeout = timeout.or(source.request_timeout);
    source.allowed = view.texts("exposedTools").or(source.allowed);
    let paths = policy.texts("allowedPaths").or_else(|| view.section("permissions").texts("allowedPaths"));
    let paths = match paths {
        Some(paths) => paths.iter().filter_map(|path| within(workspace, &path.value)).collect(),
        None => vec![workspace.to_owned()],
    };
    let commands = policy.texts("allowedCommands").unwrap_or_default();
    Builtin {
        source,
        policy: match policy.text("name").as_deref() {
            Some("fs_write") => BuiltinPolicy::FsWrite(paths),
            Some("shell_exec") => BuiltinPolicy::ShellExec {
                commands: commands.into_iter().map(|command| command.value).collect(),
            },
            _ => BuiltinPolicy::FsRead(paths),
        },
        at: view.here(),
    }
}

//! Resolves the entries of the catalogue of tools: more MCP servers, and Gantry's tools on parts of the workspace.

use super::entries::absolute_arguments;
use super::{Resolver, within};
use crate::config::compose::{Both, Entry};
use crate::config::document::quoted;
use crate::config::model::{Builtin, McpServer, Places};
use crate::config::schema::{CatalogueBuiltinKeys, CatalogueEntry};
use gantry_runtime::options::ProviderOptions;
use gantry_tools::options::BuiltinPolicy;
use gantry_upstream::options::HealthKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const FILESYSTEM: &str = "takes nothing away from these tools unless it is true; write what they may touch into \
                          \"allowedPaths\", \"fs_read\" into \"builtinPolicy.name\" if they shall only read, or switch them \
                          off with \"enabled\"";

impl Resolver<'_> {
    pub(super) fn catalogue_entry(
        &mut self,
        places: &Places,
        id: &str,
        entry: CatalogueEntry,
        servers: &mut BTreeMap<String, McpServer>,
        builtin: &mut BTreeMap<String, Builtin>,
    ) {
        let (project, keys) = (places.name.as_str(), ["tools", id]);
        match entry {
            CatalogueEntry::Mcp(entry) => {
                let Entry { value, missing, is_whole } = entry;
                let Some(Both(mut options, Both(mut tools, more))) = value else { return };
                self.check_own_id(project, id, more.id.as_deref());
                let request = [
                    ("timeouts.requestMs", more.timeouts.request_ms.some()),
                    ("requestTimeoutMs", tools.timeout.some()),
                ];
                if let Some(timeout) = self.one_timeout(project, &keys, request) {
                    tools.timeout = timeout.into();
                }
                let written = self.documents.has(project, &["tools", id, "startupTimeoutMs"]);
                let startup = [
                    ("timeouts.startupMs", more.timeouts.startup_ms.some()),
                    ("startupTimeoutMs", Some(options.startup_timeout.get()).filter(|_| written)),
                ];
                if let Some(timeout) = self.one_timeout(project, &keys, startup) {
                    options.startup_timeout = timeout.into();
                }
                if options.health_check.kind != HealthKind::Jsonrpc {
                    let message = "has no effect; it is asked over the connection (jsonrpc)";
                    self.warn(project, &["tools", id, "healthCheck", "kind"], message);
                }
                absolute_arguments(&mut options, &self.base.folder);
                let server = self.server(project, keys, (options, tools), (missing, is_whole));
                servers.insert(id.to_owned(), server);
            }
            CatalogueEntry::Builtin(Both(options, more)) => {
                self.check_queues(project, &keys, &options);
                builtin.insert(id.to_owned(), self.builtin(places, id, options, more));
            }
        }
    }

    fn builtin(
        &mut self,
        places: &Places,
        id: &str,
        mut options: ProviderOptions,
        more: CatalogueBuiltinKeys,
    ) -> Builtin {
        let (project, keys) = (places.name.as_str(), ["tools", id]);
        self.check_own_id(project, id, more.id.as_deref());
        let CatalogueBuiltinKeys { mut builtin_policy, timeouts, permissions, .. } = more;
        let own_timeout = match &builtin_policy {
            BuiltinPolicy::FsRead(policy) | BuiltinPolicy::FsWrite(policy) => policy.timeout.some(),
            BuiltinPolicy::ShellExec(policy) => policy.timeout.some(),
        };
        let given = [
            ("timeouts.requestMs", timeouts.request_ms.some()),
            ("builtinPolicy.timeout", own_timeout),
            ("requestTimeoutMs", options.timeout.some()),
        ];
        if let Some(timeout) = self.one_timeout(project, &keys, given) {
            options.timeout = timeout.into();
        }
        if permissions.filesystem.as_ref().is_some_and(|it| !matches!(it, Value::Null | Value::Bool(true))) {
            self.problem(project, &["tools", id, "permissions", "filesystem"], FILESYSTEM);
        }
        match &mut builtin_policy {
            BuiltinPolicy::ShellExec(policy) => policy.timeout = options.timeout.get().into(),
            BuiltinPolicy::FsRead(policy) | BuiltinPolicy::FsWrite(policy) => {
                let (own, other) = (&policy.allowed_paths, &permissions.allowed_paths);
                if !own.is_empty() && !other.is_empty() && sorted(own) != sorted(other) {
                    let message = "has \"builtinPolicy.allowedPaths\" and another \"permissions.allowedPaths\"; keep one";
                    self.problem(project, &keys, message);
                }
                let (group, paths) =
                    if own.is_empty() { ("permissions", other) } else { ("builtinPolicy", own) };
                policy.allowed_paths = self.confined(places, id, group, paths);
            }
        }
        Builtin { options, policy: builtin_policy }
    }

    /// Paths in the workspace; those that leave it are reported.
    fn confined(&mut self, places: &Places, id: &str, group: &str, paths: &[PathBuf]) -> Vec<PathBuf> {
        let mut confined = Vec::new();
        for (n, path) in paths.iter().enumerate() {
            match within(&places.workspace, path) {
                Some(path) => confined.push(path),
                None => {
                    let keys = ["tools", id, group, "allowedPaths", &n.to_string()];
                    // As it is written: what a variable holds is not shown.
                    let written = self.documents.written(&places.name, &keys);
                    let workspace = places.workspace.display();
                    let message = format!(
                        ": {written} is outside of the workspace {workspace}; name a path in it, without \"..\""
                    );
                    self.problem(&places.name, &keys, &message);
                }
            }
        }
        if paths.is_empty() {
            confined.push(places.workspace.clone());
        }
        confined
    }

    /// One of several spellings of a timeout.
    fn one_timeout<const N: usize>(
        &mut self,
        project: &str,
        keys: &[&str],
        given: [(&str, Option<Duration>); N],
    ) -> Option<Duration> {
        let given: Vec<_> = given.into_iter().filter_map(|(key, time)| Some((key, time?))).collect();
        if let [(one, _), (two, _), ..] = given.as_slice() {
            self.problem(project, keys, &format!("has {one:?} and {two:?}; keep one"));
        }
        given.first().map(|(_, time)| *time)
    }

    fn check_own_id(&mut self, project: &str, id: &str, written: Option<&str>) {
        if let Some(written) = written.filter(|written| *written != id) {
            let message = format!("must be {id:?}, found {}", quoted(written));
            self.problem(project, &["tools", id, "id"], &message);
        }
    }
}

fn sorted(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let mut paths: Vec<_> = paths.iter().collect();
    paths.sort();
    paths
}

//! Resolves the entries of the catalogue of tools: more MCP servers, and Gantry's tools on parts of the workspace.

use super::entries::absolute_arguments;
use super::{Resolver, within};
use crate::config::schema::{Builtin, CatalogueEntry, CatalogueServer, McpServer, Project};
use gantry_core::options::ServerId;
use gantry_tools::options::BuiltinPolicy;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILESYSTEM: &str = "takes nothing away from these tools unless it is true; write what they may touch into \
                          \"allowedPaths\", \"fs_read\" into \"builtinPolicy.name\" if they shall only read, or switch them \
                          off with \"enabled\"";

impl Resolver<'_> {
    pub(super) fn catalogue_entry(&mut self, project: &mut Project, id: &ServerId, entry: CatalogueEntry) {
        match entry {
            CatalogueEntry::Mcp(entry) => {
                let server = self.catalogue_server(&project.places.name, id, *entry);
                project.mcp_servers.insert(id.clone(), server);
            }
            CatalogueEntry::Builtin(mut entry) => {
                self.builtin(project, id, &mut entry);
                project.builtin.insert(id.clone(), *entry);
            }
        }
    }

    fn catalogue_server(&mut self, project: &str, id: &str, entry: CatalogueServer) -> McpServer {
        let keys = ["tools", id];
        let CatalogueServer { mut options, mut tools, timeouts, missing, .. } = entry;
        self.check_own_id(project, id, entry.id.as_deref());
        let request =
            [("timeouts.requestMs", timeouts.request_ms.some()), ("requestTimeoutMs", tools.timeout.some())];
        if let Some(timeout) = self.one_timeout(project, &keys, request) {
            tools.timeout = timeout.into();
        }
        let written = self.documents.has(project, &["tools", id, "startupTimeoutMs"]);
        let startup = [
            ("timeouts.startupMs", timeouts.startup_ms.some()),
            ("startupTimeoutMs", Some(options.startup_timeout.get()).filter(|_| written)),
        ];
        if let Some(timeout) = self.one_timeout(project, &keys, startup) {
            options.startup_timeout = timeout.into();
        }
        absolute_arguments(&mut options, &self.base.folder);
        let mut server = McpServer::new(options, tools, missing);
        self.server(project, keys, &mut server);
        server
    }

    fn builtin(&mut self, project: &Project, id: &str, builtin: &mut Builtin) {
        let (name, keys) = (project.places.name.as_str(), ["tools", id]);
        let Builtin { options, policy, timeouts, permissions, .. } = builtin;
        self.check_queues(name, &keys, options);
        self.check_own_id(name, id, builtin.id.as_deref());
        let own_timeout = match policy {
            BuiltinPolicy::FsRead(policy) | BuiltinPolicy::FsWrite(policy) => policy.timeout.some(),
            BuiltinPolicy::ShellExec(policy) => policy.timeout.some(),
        };
        let given = [
            ("timeouts.requestMs", timeouts.request_ms.some()),
            ("builtinPolicy.timeout", own_timeout),
            ("requestTimeoutMs", options.timeout.some()),
        ];
        if let Some(timeout) = self.one_timeout(name, &keys, given) {
            options.timeout = timeout.into();
        }
        if self.documents.has(name, &["tools", id, "timeouts", "startupMs"]) {
            let message = "has no effect; these tools are always there";
            self.warn(name, &["tools", id, "timeouts", "startupMs"], message);
        }
        if permissions.filesystem.as_ref().is_some_and(|it| !matches!(it, Value::Null | Value::Bool(true))) {
            self.problem(name, &["tools", id, "permissions", "filesystem"], FILESYSTEM);
        }
        match policy {
            BuiltinPolicy::ShellExec(policy) => policy.timeout = options.timeout.get().into(),
            BuiltinPolicy::FsRead(policy) | BuiltinPolicy::FsWrite(policy) => {
                let (own, other) = (&policy.allowed_paths, &permissions.allowed_paths);
                if !own.is_empty() && !other.is_empty() && sorted(own) != sorted(other) {
                    let message = "has \"builtinPolicy.allowedPaths\" and another \"permissions.allowedPaths\"; keep one";
                    self.problem(name, &keys, message);
                }
                let (group, paths) =
                    if own.is_empty() { ("permissions", other) } else { ("builtinPolicy", own) };
                policy.allowed_paths = self.confined(name, &project.workspace, [id, group], paths);
            }
        }
    }

    /// Paths in the workspace; those that leave it are reported.
    fn confined(
        &mut self,
        project: &str,
        workspace: &Path,
        [id, group]: [&str; 2],
        paths: &[PathBuf],
    ) -> Vec<PathBuf> {
        let mut confined = Vec::new();
        for (n, path) in paths.iter().enumerate() {
            match within(workspace, path) {
                Some(path) => confined.push(path),
                None => {
                    let keys = ["tools", id, group, "allowedPaths", &n.to_string()];
                    // As it is written: what a variable holds is not shown.
                    let written = self.documents.written(project, &keys);
                    let workspace = workspace.display();
                    let message = format!(
                        ": {written} is outside of the workspace {workspace}; name a path in it, without \"..\""
                    );
                    self.problem(project, &keys, &message);
                }
            }
        }
        if paths.is_empty() {
            confined.push(workspace.to_owned());
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
        if written.is_some_and(|written| written != id) {
            let keys = ["tools", id, "id"];
            // As it is written: what a variable holds is not shown.
            let message = format!("must be {id:?}, found {}", self.documents.written(project, &keys));
            self.problem(project, &keys, &message);
        }
    }
}

fn sorted(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let mut paths: Vec<_> = paths.iter().collect();
    paths.sort();
    paths
}

//! What no type says of a configuration: one transport for each server, queues that exist, ids that are unique over all
//! files, paths inside the workspace, and limits that a project inherits. Makes the sections of the files projects.

mod catalogue;
mod entries;
mod names;

pub(super) use names::{NameKind, NameRegistry};

use super::compose::Both;
use super::definition_files::DefinitionFiles;
use super::document::{Document, Entry, Node, Value, find};
use super::documents::Documents;
use super::error::{Location, Problem, Problems};
use super::find::absolute;
use super::model::{Config, MAIN_PROJECT, Places, Project};
use super::schema::{ConfigFile, ProcessOptions, ProjectOptions};
use gantry_core::names::{is_reserved_namespace, sanitised};
use gantry_runtime::options::ProviderOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Providers of Gantry's own, whose ids are taken.
const OWN_PROVIDERS: [&str; 2] = ["workspace", "outputs"];

/// Where a configuration stands, all absolute.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// Where relative paths start: the folder of the file, or the working folder.
    pub(super) folder: PathBuf,
    pub(super) data: PathBuf,
}

/// Makes projects of files, and collects what is wrong.
pub(super) struct Resolver<'a> {
    pub(super) base: &'a Base,
    /// Whether a definition file that cannot be used is left out.
    pub(super) is_lenient: bool,
    pub(super) queues: BTreeSet<String>,
    pub(super) names: NameRegistry,
    pub(super) documents: Documents,
    pub(super) problems: Problems,
    pub(super) warnings: Vec<Problem>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(base: &'a Base, main: Document) -> Self {
        let queues = find(&main.root, "queues").into_iter().flat_map(|entry| entry.node.value.entries());
        Self {
            base,
            is_lenient: false,
            queues: queues.map(|queue| queue.key.clone()).collect(),
            names: NameRegistry::default(),
            documents: Documents::new(main),
            problems: Problems::default(),
            warnings: Vec::new(),
        }
    }

    /// The projects of a file with their definition files.
    pub(super) fn config(
        mut self,
        file: ConfigFile,
        mut files: BTreeMap<String, DefinitionFiles>,
        places: Vec<Places>,
    ) -> (Config, Self) {
        let Both(process, main) = file;
        let ProcessOptions { server, queues, store, projects: others, .. } = process;
        let mut options: BTreeMap<String, ProjectOptions> =
            others.into_iter().map(|(name, Both(_, project))| (name.into(), project)).collect();
        options.insert(MAIN_PROJECT.to_owned(), main);
        let mut projects = BTreeMap::new();
        for places in places {
            let Some(options) = options.remove(&places.name) else { continue };
            let files = files.remove(&places.name).unwrap_or_default();
            let name = places.name.clone();
            projects.insert(name, self.project(places, options, files));
        }
        let queues = queues.into_iter().map(|(name, queue)| {
            let name: Arc<str> = name.into();
            gantry_runtime::queue::Options { name, ..queue }
        });
        let (queues, store) = (queues.collect(), self.store(&store.url.0));
        (Config { server, queues, store, projects }, self)
    }

    /// The default names the data folder by its usual name; so written, it follows the folder when that is moved.
    fn store(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(".gantry") {
            Ok(inside) => absolute(&self.base.data, inside),
            Err(_) => absolute(self.base.data.parent().unwrap_or(&self.base.data), path),
        }
    }

    fn project(&mut self, places: Places, options: ProjectOptions, files: DefinitionFiles) -> Project {
        let ProjectOptions { defaults, tools, approvals, policies, mut code, web, git, search, .. } = options;
        let name = places.name.clone();
        let mut servers = self.servers(&name, options.mcp_servers);
        let Both(workspace_tools, _) = tools.workspace;
        self.check_queues(&name, &["tools", "workspace"], &workspace_tools);
        let mut builtin = BTreeMap::new();
        for (id, entry) in tools.entries {
            self.catalogue_entry(&places, &id, entry, &mut servers, &mut builtin);
        }
        for (id, entry) in files.tools {
            let before = std::mem::take(&mut self.problems);
            self.catalogue_entry(&places, &id, entry, &mut servers, &mut builtin);
            let found = std::mem::replace(&mut self.problems, before);
            if !self.is_lenient {
                self.problems.extend(found);
            } else if let Some(error) = found.into_error() {
                self.warnings.extend(error.left_out());
                servers.remove(&id);
                builtin.remove(&id);
            }
        }
        let rest_tools = self.rest_tools(&name, options.rest_tools);
        let apis = self.apis(&name, options.openapi_specs);
        let mut agents: BTreeMap<String, _> =
            options.agents.into_iter().map(|(name, Both(agent, _))| (name.into(), agent)).collect();
        agents.extend(files.agents);
        if let Some(missing) = web.search.as_ref().and_then(gantry_tools::options::WebSearchOptions::missing)
        {
            self.problem(&name, &["web", "search"], missing);
        }
        for path in &mut code.toolchains {
            *path = absolute(&self.base.folder, &*path);
        }
        let Both(approval_rules, approvals) = approvals;
        let mut project = Project {
            places,
            limits: defaults,
            workspace_tools,
            builtin,
            mcp_servers: servers,
            rest_tools,
            apis,
            agents,
            approval_rules,
            approvals,
            policies,
            code,
            web,
            git,
            search,
        };
        self.unique_policies(&project);
        self.select_providers(&mut project);
        project
    }

    fn unique_policies(&mut self, project: &Project) {
        let mut seen = BTreeMap::new();
        for (n, policy) in project.policies.iter().enumerate() {
            let keys = ["policies", &n.to_string(), "name"];
            let line = self.documents.locate(&project.places.name, &keys).0.line;
            if let Some(first) = seen.insert(policy.name.as_str(), line) {
                let message =
                    format!(": {:?} is already used on line {first}; names are unique", policy.name);
                self.problem(&project.places.name, &keys, &message);
            }
        }
    }

    /// Reports a queue that does not exist.
    fn check_queue(&mut self, project: &str, keys: &[&str], queue: &str) {
        if self.queues.contains(queue) {
            return;
        }
        let names = self.queues.iter().map(String::as_str);
        let advice = match super::suggest::nearest(queue, names.clone()) {
            Some(near) => format!("did you mean {near:?}?"),
            None if self.queues.is_empty() => "no queue is configured; add it under \"queues\"".to_owned(),
            None => format!("queues are {}", super::suggest::list(names)),
        };
        // As it is written: what a variable holds is not shown.
        let shown = self.documents.written(project, keys);
        self.problem(project, keys, &format!(": unknown queue {shown}; {advice}"));
    }

    fn check_queues(&mut self, project: &str, entry: &[&str], options: &ProviderOptions) {
        if let Some(queue) = &options.queue {
            self.check_queue(project, &[entry, &["queue"]].concat(), queue);
        }
        for (tool, queue) in &options.tools_queue {
            if let Some(queue) = &queue.0 {
                self.check_queue(project, &[entry, &["toolsQueue", tool]].concat(), queue);
            }
        }
    }

    /// Takes the names of agents and providers in the file itself.
    pub(super) fn claim_names(&mut self, project: &str, options: &ProjectOptions) {
        for agent in options.agents.keys() {
            let at = self.documents.locate(project, &["agents", agent]).0;
            self.claim(NameKind::Agent, project, "agents", agent, &at);
        }
        let servers = options.mcp_servers.keys().map(|id| ("mcpServers", id));
        for (section, id) in servers.chain(options.tools.entries.keys().map(|id| ("tools", id))) {
            let at = self.documents.key_location(project, &[section, id]);
            if is_own_name(id) {
                let (id, section) =
                    (super::document::quoted(id), super::documents::section_path(project, section));
                let message = format!("{id} in {section} is a name of Gantry's own; choose another");
                self.problems.push(Problem::at(&at, message));
            }
            self.claim(NameKind::Provider, project, section, id, &at);
        }
    }

    /// Takes a name, or reports what has it.
    fn claim(&mut self, kind: NameKind, project: &str, section: &str, name: &str, at: &Location) {
        if let Err(message) = self.names.claim(kind, project, section, name, at) {
            self.problems.push(Problem::at(at, message));
        }
    }

    /// Reports what is wrong at these keys. The message follows the path; it begins with a colon or a verb.
    pub(super) fn problem(&mut self, project: &str, keys: &[&str], message: &str) {
        let (at, path) = self.documents.locate(project, keys);
        let space = if message.starts_with(':') { "" } else { " " };
        self.problems.push(Problem::at(&at, format!("{path}{space}{message}")));
    }

    fn warn(&mut self, project: &str, keys: &[&str], message: &str) {
        let (at, path) = self.documents.locate(project, keys);
        self.warnings.push(Problem::at(&at, format!("{path} {message}")));
    }

    /// Warns of projects without policies or approvals of their own where the file denies something or makes calls wait,
    /// which its author may take to hold everywhere.
    pub(super) fn warn_not_inherited(&mut self) {
        let root = &self.documents.main().root;
        let denies = |policy: &Node| {
            find(policy, "decide").is_some_and(|entry| entry.node.value.as_text() == Some("deny"))
        };
        let policies = find(root, "policies").map_or(&[][..], |entry| entry.node.value.items());
        let approvals = find(root, "approvals").is_some_and(|entry| !entry.node.value.entries().is_empty());
        let projects = find(root, "projects").map_or(&[][..], |entry| entry.node.value.entries());
        let mut found = Vec::new();
        for (key, none, concerns) in [
            ("policies", "policies: []", policies.iter().any(denies)),
            ("approvals", "approvals: {}", approvals),
        ] {
            let without = |project: &&Entry| concerns && find(&project.node, key).is_none();
            found.extend(projects.iter().filter(without).map(|project| {
                let name = &project.key;
                let text = format!(
                    "projects.{name} has no {key}, and those of the file are not inherited; write its own, or {none} if it \
                     needs none"
                );
                (project.line, text)
            }));
        }
        let file = self.documents.main().file.clone();
        let at = |line| Location { file: file.clone(), line };
        self.warnings.extend(found.into_iter().map(|(line, text)| Problem::at(&at(line), text)));
    }
}

/// Whether an id is for Gantry's own tools.
pub(super) fn is_own_name(id: &str) -> bool {
    is_reserved_namespace(id) || OWN_PROVIDERS.contains(&sanitised(id).as_str())
}

/// Limits that count for the whole process, which a project does not set.
const WHOLE_PROCESS: [&str; 2] = ["maxConcurrentCalls", "mcpInitConcurrency"];

/// Gives projects the limits of the file that they leave out or set to 0. Returns the keys that are not theirs to set:
/// the line and what is wrong.
pub(super) fn inherit_limits(root: &mut Node) -> Vec<(usize, String)> {
    let above = find(root, "defaults").cloned();
    let mut problems = Vec::new();
    let Value::Map(entries) = &mut root.value else { return problems };
    let projects = entries.iter_mut().filter(|entry| entry.key == "projects");
    for project in projects.flat_map(|entry| entry.node.value.entries_mut()) {
        let name = project.key.clone();
        let Value::Map(sections) = &mut project.node.value else { continue };
        let defaults = sections.iter().position(|entry| entry.key == "defaults");
        for key in defaults.and_then(|n| sections.get(n)).into_iter().flat_map(|it| it.node.value.entries()) {
            if WHOLE_PROCESS.contains(&key.key.as_str()) {
                let advice = "counts for the whole process; set it under \"defaults\" at the top of the file";
                problems.push((key.line, format!("projects.{name}.defaults.{} {advice}", key.key)));
            }
        }
        let Some(above) = &above else { continue };
        let Some(own) = defaults.and_then(|n| sections.get_mut(n)) else {
            sections.push(above.clone());
            continue;
        };
        let (Value::Map(own), inherited) = (&mut own.node.value, above.node.value.entries()) else {
            continue;
        };
        own.retain(|limit| !is_zero(&limit.node.value));
        let missing = inherited.iter().filter(|limit| !own.iter().any(|own| own.key == limit.key));
        let missing: Vec<Entry> = missing.cloned().collect();
        own.extend(missing);
    }
    problems
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.as_u64() == Some(0))
}

/// A path of a user in the workspace, absolute; none if it leaves it. A relative one starts at the workspace.
pub(super) fn within(workspace: &Path, path: &Path) -> Option<PathBuf> {
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    if path.is_relative() {
        return Some(absolute(workspace, path));
    }
    let rest = path.strip_prefix(plain(workspace)).or_else(|_| path.strip_prefix(workspace)).ok()?;
    Some(absolute(workspace, rest))
}

/// A path without `..`, as its text says; links are not asked.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

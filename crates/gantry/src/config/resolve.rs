//! What no type says of a configuration: one transport for each server, queues that exist, ids that are unique over all
//! files, paths inside the workspace, and limits that a project inherits. Makes the sections of the files projects.

mod catalogue;
mod entries;

use super::accepted::Accepted;
use super::de::Findings;
use super::definition_files::AGENTS;
use super::document::{Document, Entry, Node, Value, find, number, quoted};
use super::documents::Documents;
use super::dotenv::Variables;
use super::error::{Location, Problem};
use super::expand::{VariableSyntax, expand};
use super::find::absolute;
use super::schema::{Config, ConfigFile, MAIN_PROJECT, Project};
use gantry_core::names::{is_reserved_namespace, sanitised};
use gantry_core::policy::Decide;
use gantry_runtime::options::ProviderOptions;
use gantry_tools::options::WebSearchOptions;
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
    /// The files that count where tools can write; none if all do.
    pub(super) accepted: Option<Accepted>,
}

impl Base {
    /// Whether a file is left out, because a tool may have made it.
    pub(super) fn leaves_out(&self, file: &Path) -> bool {
        self.accepted.as_ref().is_some_and(|accepted| accepted.suspects(file))
    }
}

/// Makes projects of files, and collects what is wrong.
pub(super) struct Resolver<'a> {
    pub(super) base: &'a Base,
    /// Whether a definition file that cannot be used is left out.
    pub(super) is_lenient: bool,
    pub(super) queues: BTreeSet<String>,
    /// The names that are taken: whether by an agent, in which project, the name; and the place and section of each.
    names: BTreeMap<(bool, String, String), (Location, String)>,
    pub(super) documents: Documents,
    pub(super) findings: Findings,
}

impl<'a> Resolver<'a> {
    /// `findings` are those about the file itself.
    pub(super) fn new(base: &'a Base, main: Document, findings: Findings) -> Self {
        let queues = find(&main.root, "queues").into_iter().flat_map(|entry| entry.node.value.entries());
        Self {
            base,
            is_lenient: false,
            queues: queues.map(|queue| queue.key.clone()).collect(),
            names: BTreeMap::new(),
            documents: Documents::new(main),
            findings,
        }
    }

    /// What a file says, once what is in files of its own has been added to its projects.
    pub(super) fn config(&mut self, file: ConfigFile) -> Config {
        let ConfigFile { server, queues, store, mut projects, main, .. } = file;
        self.warn_not_inherited(&main, &projects);
        projects.insert(MAIN_PROJECT.to_owned(), main);
        projects.values_mut().for_each(|project| self.project(project));
        let queues = queues.into_iter().map(|(name, queue)| {
            let name: Arc<str> = name.into();
            gantry_runtime::queue::Options { name, ..queue }
        });
        Config { server, queues: queues.collect(), store: self.store(&store.url), projects }
    }

    /// The default names the data folder by its usual name; so written, it follows the folder when that is moved.
    fn store(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(".gantry") {
            Ok(inside) => absolute(&self.base.data, inside),
            Err(_) => absolute(self.base.data.parent().unwrap_or(&self.base.data), path),
        }
    }

    fn project(&mut self, project: &mut Project) {
        let name = project.places.name.clone();
        for (id, server) in &mut project.mcp_servers {
            self.server(&name, ["mcpServers", id], server);
        }
        self.check_queues(&name, &["tools", "workspace"], &project.tools.workspace.options);
        for (id, entry) in std::mem::take(&mut project.tools.entries) {
            let before = std::mem::take(&mut self.findings);
            self.catalogue_entry(project, &id, entry);
            let found = std::mem::replace(&mut self.findings, before);
            if !self.accept(found) {
                project.mcp_servers.remove(&id);
                project.builtin.remove(&id);
            }
        }
        self.rest_tools(&name, &mut project.rest_tools);
        self.apis(&name, &mut project.apis);
        let missing = project.web.search.as_ref().and_then(WebSearchOptions::missing);
        missing.into_iter().for_each(|missing| self.problem(&name, &["web", "search"], missing));
        for path in &mut project.code.toolchains {
            *path = absolute(&self.base.folder, &*path);
        }
        self.unique_policies(project);
        self.select_providers(project);
    }

    /// Takes over what was found about a part that can be left out, and says whether it can be used.
    pub(super) fn accept(&mut self, found: Findings) -> bool {
        let Findings { problems, warnings } = found;
        self.findings.warnings.extend(warnings);
        let Err(error) = problems.into_result() else { return true };
        if self.is_lenient {
            self.findings.warnings.extend(error.left_out());
        } else {
            self.findings.problems.extend(error);
        }
        false
    }

    fn unique_policies(&mut self, project: &Project) {
        let mut seen = BTreeMap::new();
        for (n, policy) in project.policies.iter().enumerate() {
            let keys = ["policies", &n.to_string(), "name"];
            let line = self.documents.locate(&project.places.name, &keys).0.line;
            if let Some(first) = seen.insert(policy.name.as_str(), line) {
                // As it is written: what a variable holds is not shown.
                let shown = self.documents.written(&project.places.name, &keys);
                let message = format!(": {shown} is already used on line {first}; names are unique");
                self.problem(&project.places.name, &keys, &message);
            }
        }
    }

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
    pub(super) fn claim_names(&mut self, options: &Project) {
        let project = options.places.name.as_str();
        for agent in options.agents.keys() {
            let at = self.documents.locate(project, &["agents", agent]).0;
            self.claim(project, AGENTS.folder, agent, &at);
        }
        let servers = options.mcp_servers.keys().map(|id| ("mcpServers", id));
        for (section, id) in servers.chain(options.tools.entries.keys().map(|id| ("tools", id))) {
            let at = self.documents.key_location(project, &[section, id]);
            if is_own_name(id) {
                let (id, section) = (quoted(id), super::documents::section_path(project, section));
                let message = format!("{id} in {section} is a name of Gantry's own; choose another");
                self.findings.problems.push(Problem::at(&at, message));
            }
            self.claim(project, section, id, &at);
        }
    }

    /// Takes a name and says whether it was free; reports what has it. Agents and providers are defined once in a project,
    /// in any of its files; two in one group are reported as a duplicate key.
    pub(super) fn claim(&mut self, project: &str, section: &str, name: &str, at: &Location) -> bool {
        let is_agent = section == AGENTS.folder;
        let key = (is_agent, project.to_owned(), name.to_owned());
        let Some((first, taken_in)) = self.names.get(&key) else {
            self.names.insert(key, (at.clone(), section.to_owned()));
            return true;
        };
        if first.file == at.file && taken_in == section {
            return true;
        }
        let name = quoted(name);
        let message = match is_agent {
            true => format!("the agent {name} is already at {first}; keep one"),
            false => format!("the id {name} is already taken at {first}, in {taken_in}; choose another"),
        };
        self.accept(Findings { problems: Problem::at(at, message).into(), warnings: Vec::new() })
    }

    /// Whether the project has a provider under this id, or under one that becomes this namespace.
    pub(super) fn has_provider(&self, project: &str, id: &str) -> bool {
        let mut names = self.names.keys().filter(|(is_agent, of, _)| !is_agent && of == project);
        names.any(|(_, _, known)| known == id || sanitised(known) == id)
    }

    /// Reports what is wrong at these keys. The message follows the path; it begins with a colon or a verb.
    pub(super) fn problem(&mut self, project: &str, keys: &[&str], message: &str) {
        let (at, path) = self.documents.locate(project, keys);
        let space = if message.starts_with(':') { "" } else { " " };
        self.findings.problems.push(Problem::at(&at, format!("{path}{space}{message}")));
    }

    fn warn(&mut self, project: &str, keys: &[&str], message: &str) {
        let (at, path) = self.documents.locate(project, keys);
        self.findings.warnings.push(Problem::at(&at, format!("{path} {message}")));
    }

    /// Warns of projects without policies or approvals of their own where the file denies something or makes calls wait,
    /// which its author may take to hold everywhere.
    fn warn_not_inherited(&mut self, main: &Project, others: &BTreeMap<String, Project>) {
        let denies = main.policies.iter().any(|rule| rule.decide == Decide::Deny);
        let approvals = find(&self.documents.main().root, "approvals");
        let approves = approvals.is_some_and(|entry| !entry.node.value.entries().is_empty());
        for (key, none, concerns) in
            [("policies", "policies: []", denies), ("approvals", "approvals: {}", approves)]
        {
            for name in others.keys().filter(|name| concerns && !self.documents.has(name, &[key])) {
                let at = self.documents.key_location(MAIN_PROJECT, &["projects", name]);
                let text = format!(
                    "projects.{name} has no {key}, and those of the file are not inherited; write its own, or {none} if it \
                     needs none"
                );
                self.findings.warnings.push(Problem::at(&at, text));
            }
        }
    }
}

/// Whether an id is for Gantry's own tools.
pub(super) fn is_own_name(id: &str) -> bool {
    is_reserved_namespace(id) || OWN_PROVIDERS.contains(&sanitised(id).as_str())
}

/// Limits that count for the whole process, which a project does not set.
const WHOLE_PROCESS: [&str; 2] = ["maxConcurrentCalls", "mcpInitConcurrency"];

/// What is wrong with projects beside their values: a name that is taken, and keys that are not theirs to set.
pub(super) fn project_problems(root: &Node) -> impl Iterator<Item = (usize, String)> {
    let projects = find(root, "projects").map_or(&[][..], |projects| projects.node.value.entries());
    projects.iter().flat_map(|Entry { key, place, node, .. }| {
        let is_taken = key == MAIN_PROJECT;
        let taken = format!("{key:?} in projects is the file itself; choose another name");
        let limits = find(node, "defaults").map_or(&[][..], |limits| limits.node.value.entries());
        let not_theirs = limits.iter().filter(|limit| WHOLE_PROCESS.contains(&limit.key.as_str()));
        let not_theirs = not_theirs.map(move |limit| {
            let advice = "counts for the whole process; set it under \"defaults\" at the top of the file";
            (limit.place.line, format!("projects.{key}.defaults.{} {advice}", limit.key))
        });
        is_taken.then_some((place.line, taken)).into_iter().chain(not_theirs)
    })
}

/// Gives projects the limits of the file that they leave out or set to 0. Nothing is wrong with the limits.
pub(super) fn inherit_limits(root: &mut Node, variables: &Variables<'_>) {
    let Some(above) = find(root, "defaults").cloned() else { return };
    let projects = root.value.entries_mut().iter_mut().filter(|entry| entry.key == "projects");
    for project in projects.flat_map(|entry| entry.node.value.entries_mut()) {
        let Value::Map(sections) = &mut project.node.value else { continue };
        let own = sections.iter_mut().find(|section| section.key == "defaults");
        let Some(Value::Map(own)) = own.map(|own| &mut own.node.value) else {
            sections.retain(|section| section.key != "defaults");
            sections.push(above.clone());
            continue;
        };
        own.retain(|limit| !is_zero(&limit.node.value, variables));
        let inherited = above.node.value.entries().iter();
        let missing: Vec<Entry> =
            inherited.filter(|limit| !own.iter().any(|own| own.key == limit.key)).cloned().collect();
        own.extend(missing);
    }
}

fn is_zero(value: &Value, variables: &Variables<'_>) -> bool {
    let read = match value {
        Value::Text(text) => {
            let expanded = expand(text, variables, VariableSyntax::Gantry).ok().flatten();
            expanded.and_then(|text| number(&text)?.as_u64())
        }
        Value::Number(number) => number.as_u64(),
        Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => None,
    };
    read == Some(0)
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

//! Loads a configuration: finds the file, reads it and the files beside it, and makes projects of them.

use super::accepted::{Accepted, objection};
use super::de::{self, Context, Findings};
use super::definition_files::{self, TOOLS};
use super::document::{Document, Entry, Format, Node, Value};
use super::documents::Documents;
use super::dotenv::{self, Env, Variables};
use super::error::{Error, Location, Problem, lines};
use super::find::{self, DOTENV, Found, Source, absolute};
use super::key_path::KeyPath;
use super::launch::{self, Launcher};
use super::ledger;
use super::resolve::{Base, Resolver, inherit_limits, project_problems};
use super::schema::{Config, ConfigFile, MAIN_PROJECT, McpServer, Places, Project};
use gantry_tools::workspace::ProtectedPaths;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Variables that are read before a `.env` can be, so one in there has no effect.
const PROCESS_ONLY: [&str; 2] = ["GANTRY_CONFIG", "GANTRY_DATA"];
/// The folder for projects, beside the configuration and in the data folder.
const PROJECTS: &str = "projects";

#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    /// The file, absolute; none when Gantry runs on defaults.
    pub file: Option<PathBuf>,
    /// Where relative paths start: the folder of the file, or the working folder. Absolute.
    pub folder: PathBuf,
    /// The data folder, absolute. It need not exist yet.
    pub data: PathBuf,
    /// Every file that configures Gantry, or would at the next start if it came to be. A process that can write these can
    /// give itself any right.
    pub config_files: Vec<PathBuf>,
    /// Folders below which any `agents/*.md`, `agents/*/agent.json` and `tools/*/tool.json` configures Gantry likewise.
    /// They need not exist.
    pub definition_roots: Vec<PathBuf>,
    /// The files that were read to make this.
    pub sources: Sources,
    /// Other files in workspaces that MCP servers are given. A server may make them itself.
    pub launch_data: Vec<PathBuf>,
    /// What the user should know although it stops nothing.
    pub warnings: Vec<String>,
    /// The files themselves, to say where a key stands.
    pub(super) documents: Documents,
}

/// The files that a configuration was read from, absolute, as they are spelled: each exists, or did when it was read. A link
/// counts with what it leads to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Those that may hold secrets: the configuration, its `.env`, the lock files, and the definitions of tools.
    pub secret: Vec<PathBuf>,
    /// The definitions of agents, and OpenAPI documents.
    pub open: Vec<PathBuf>,
    /// Files and folders in workspaces that decide what MCP servers run, whether or not their project is used.
    pub launch: Vec<PathBuf>,
}

impl Sources {
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.secret.iter().chain(&self.open).chain(&self.launch)
    }
}

impl Loaded {
    pub(crate) fn locate(&self, project: &str, keys: &[&str]) -> Location {
        self.documents.locate(project, keys).0
    }

    /// Whether a file has something at this key.
    pub(crate) fn has(&self, project: &str, keys: &[&str]) -> bool {
        self.documents.has(project, keys)
    }

    /// What no tool and no job touches in a workspace, of what exists: hidden is what Gantry keeps and what it reads secrets
    /// from, read-only is what else it has read. `ledger` is the one that is open: a change of `store` names another one,
    /// which is used from the next start on.
    pub fn protected_paths(&self, ledger: &Path) -> ProtectedPaths {
        let ledgers = [ledger, &self.config.store].into_iter().flat_map(ledger::files);
        let mut hidden = vec![self.data.clone()];
        hidden.extend(ledgers.filter(|file| !file.starts_with(&self.data)));
        hidden.extend(self.sources.secret.iter().cloned());
        let mut read_only = self.sources.open.clone();
        read_only.extend(self.sources.launch.iter().chain(&self.launch_data).cloned());
        for list in [&mut hidden, &mut read_only] {
            list.sort();
            list.dedup();
        }
        ProtectedPaths { hidden, read_only }
    }
}

impl Config {
    /// Finds and reads the configuration. Without a file, everything is at its default.
    pub fn load(source: &Source, env: &Env) -> Result<Loaded, Error> {
        let (loaded, problems) = Self::examine(source, env)?;
        problems.into_result().map(|()| loaded)
    }

    /// The same to run with it: of the files that tools may have made, those of definitions are left out, and the
    /// configuration itself is refused.
    pub fn load_accepted(source: &Source, env: &Env) -> Result<Loaded, Error> {
        let (loaded, problems) = find_and_read(source, env, true)?;
        problems.into_result().map(|()| loaded)
    }

    /// The same as [`Self::load`], with what could be read beside its problems. An error means that nothing could be read.
    pub fn examine(source: &Source, env: &Env) -> Result<(Loaded, Error), Error> {
        find_and_read(source, env, false)
    }

    /// Where the data of a configuration is that cannot be used.
    pub fn data(source: &Source, env: &Env) -> Option<PathBuf> {
        let folder = std::path::absolute(&source.folder).ok()?;
        let found = find::file(source, &folder, env).ok()?;
        let beside = found.as_ref().and_then(|found| found.path.parent()).unwrap_or(&folder);
        Some(find::data(source, &folder, beside, env))
    }

    /// What applies without any file, with the data in this folder.
    pub fn defaults(source: &Source, data: PathBuf, env: &Env) -> Result<Loaded, Error> {
        let source = Source { data: Some(data), ..source.clone() };
        let (loaded, problems) = read(&source, &source.folder, None, env, true)?;
        problems.into_result().map(|()| loaded)
    }
}

fn find_and_read(source: &Source, env: &Env, is_to_run: bool) -> Result<(Loaded, Error), Error> {
    let folder = std::path::absolute(&source.folder).map_err(|error| {
        Problem::in_file(&source.folder, format!("the working folder has no absolute path: {error}"))
    })?;
    let found = find::file(source, &folder, env)?;
    read(source, &folder, found.as_ref(), env, is_to_run)
}

fn read(
    source: &Source,
    folder: &Path,
    found: Option<&Found>,
    env: &Env,
    is_to_run: bool,
) -> Result<(Loaded, Error), Error> {
    let file = found.map(|found| found.path.clone());
    let beside = file.as_deref().and_then(Path::parent).unwrap_or(folder).to_owned();
    let data = find::data(source, folder, &beside, env);
    let accepted = if is_to_run { Accepted::read(&data)? } else { None };
    let base = Base { data, folder: beside, accepted };
    let mut warnings: Vec<String> = found.into_iter().flat_map(Found::warnings).collect();
    let parsed = match found {
        Some(found) => {
            for (path, name) in [
                (&found.path, &found.name),
                (&found.path.with_file_name(DOTENV), &found.name.with_file_name(DOTENV)),
            ] {
                if path.is_file() && base.leaves_out(path) {
                    return Err(Problem::in_file(name, objection("not used")).into());
                }
            }
            let dotenv = dotenv(&found.path, &found.name, &mut warnings)?;
            let text = find::read(&found.path, &found.name)?;
            let variables = Variables::new(env).with_file(dotenv);
            parse_all(&text, found.format, &found.name, &base, &variables)?
        }
        None => parse_all("", Format::Yaml, Path::new(""), &base, &Variables::new(env))?,
    };
    warnings.extend(parsed.warnings);
    let Parsed { mut config, definitions, documents, mut problems, .. } = parsed;
    let workspaces = config.all().filter_map(|(name, project)| workspace_problem(name, project, &documents));
    workspaces.for_each(|problem| problems.push(problem));
    ledger::problem(&config, &base.data, &documents).into_iter().for_each(|problem| problems.push(problem));
    let mut config_files = find::config_files(file.as_deref(), folder);
    // A process that can write them can accept a tool that has changed.
    config_files.extend(config.all().map(|(_, project)| project.places.lock.clone()));
    config_files.extend(definitions.iter().filter(|file| file.is_symlink()).cloned());
    // A process that can write them can have credentials sent elsewhere.
    let apis = config.all().flat_map(|(_, project)| project.apis.values());
    config_files.extend(apis.flat_map(|api| api.documents.paths().cloned()));
    // The working folder counts for the next start, as the files in it do that are found by name.
    let mut definition_roots = vec![folder.to_owned()];
    definition_roots.extend(config.all().map(|(_, project)| project.places.folder.clone()));
    definition_roots.sort();
    definition_roots.dedup();
    let mut sources = sources(&config, file.as_deref(), definitions);
    let left_out: Vec<PathBuf> = sources.all().filter(|file| base.leaves_out(file)).cloned().collect();
    let locks = left_out.iter().filter(|file| config.all().any(|(_, project)| project.places.lock == **file));
    warnings.extend(locks.map(|lock| format!("{}: {}", lock.display(), objection("left out"))));
    for list in [&mut sources.secret, &mut sources.open] {
        list.retain(|file| !left_out.contains(file));
    }
    let launch_data;
    [sources.launch, launch_data] = launch::resolve_all(&mut config, &base, env);
    let Base { folder, data, .. } = base;
    let loaded = Loaded {
        config,
        file,
        folder,
        data,
        config_files,
        definition_roots,
        sources,
        launch_data,
        warnings,
        documents,
    };
    Ok((loaded, problems))
}

fn sources(config: &Config, file: Option<&Path>, definitions: Vec<PathBuf>) -> Sources {
    let dotenv = file.map(|file| file.with_file_name(DOTENV));
    let locks = config.all().map(|(_, project)| project.places.lock.clone());
    let secret = file.map(Path::to_owned).into_iter().chain(dotenv).chain(locks);
    let apis = config.all().flat_map(|(_, project)| project.apis.values());
    let open = apis.flat_map(|api| api.documents.paths().cloned());
    let (mut secret, mut open): (Vec<_>, Vec<_>) =
        (secret.filter(|path| path.is_file()).collect(), open.filter(|path| path.is_file()).collect());
    let (tools, agents) = definitions.into_iter().partition::<Vec<_>, _>(|path| path.ends_with(TOOLS.file));
    secret.extend(tools);
    open.extend(agents);
    for list in [&mut secret, &mut open] {
        list.sort();
        list.dedup();
    }
    Sources { secret, open, launch: Vec::new() }
}

fn workspace_problem(name: &str, project: &Project, documents: &Documents) -> Option<Problem> {
    let workspace = &project.workspace;
    if workspace.is_dir() {
        return None;
    }
    let message = format!("workspace: {} is not a folder; create it", workspace.display());
    Some(match documents.has(name, &["workspace"]) {
        true => Problem::at(&documents.locate(name, &["workspace"]).0, message),
        false => Problem::in_file(&documents.main().file, message),
    })
}

/// What a configuration says, and what in it has no effect.
pub(super) struct Parsed {
    pub(super) config: Config,
    pub(super) warnings: Vec<String>,
    /// The files beside it that define agents and tools.
    definitions: Vec<PathBuf>,
    documents: Documents,
    problems: Error,
}

/// A text and the files beside it, read and resolved.
#[cfg(test)]
pub(super) fn parse(
    text: &str,
    format: Format,
    name: &Path,
    base: &Base,
    variables: &Variables<'_>,
) -> Result<Parsed, Error> {
    let mut parsed = parse_all(text, format, name, base, variables)?;
    std::mem::take(&mut parsed.problems).into_result().map(|()| parsed)
}

/// A text and the files beside it, read and resolved as far as they can be.
fn parse_all(
    text: &str,
    format: Format,
    name: &Path,
    base: &Base,
    variables: &Variables<'_>,
) -> Result<Parsed, Error> {
    let file: Arc<Path> = Arc::from(name);
    let root = format.parse(text).map_err(|syntax| Problem::syntax(&file, syntax))?;
    // A file that was cut short must not drop every rule.
    let is_nothing = match &root.value {
        Value::Null => true,
        Value::Map(entries) => entries.is_empty() && matches!(format, Format::Toml),
        Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => false,
    };
    if is_nothing && !name.as_os_str().is_empty() {
        let message = "there is nothing in this file; write what it is to set, or {} if it is to set nothing";
        return Err(Problem::in_file(&file, message).into());
    }
    let (mut config, mut resolver) = read_file(Document::new(file, root), base, variables)?;
    let mut projects: Vec<&mut Project> = vec![&mut config.main];
    projects.extend(config.projects.values_mut());
    projects.iter().for_each(|project| resolver.claim_names(project));
    text.clone_into(&mut resolver.documents.text);
    // Without a configuration, nothing says that the files in these folders are Gantry's.
    resolver.is_lenient = name.as_os_str().is_empty();
    let read = |project: &mut Project| definition_files::read_all(project, &mut resolver, variables);
    let definitions = projects.into_iter().flat_map(read).collect();
    let config = resolver.config(config);
    let Findings { problems, warnings } = resolver.findings;
    Ok(Parsed { config, warnings: lines(&warnings), definitions, documents: resolver.documents, problems })
}

/// Reads the file itself. Fails when nothing can be made of it; other problems are in the resolver.
fn read_file<'a>(
    mut document: Document,
    base: &'a Base,
    variables: &Variables<'_>,
) -> Result<(ConfigFile, Resolver<'a>), Error> {
    let mut context = Context::new(document.file.clone(), Some(variables));
    context.report_duplicates(&mut document);
    project_problems(&document.root).for_each(|(line, message)| context.report(line, message));
    let mut read = de::read::<ConfigFile>(&document.root, KeyPath::CONFIGURATION, &context);
    // What is inherited neither hides a mistake nor repeats one.
    if !context.has_problems() && document.get(&["projects"]).is_some() {
        inherit_limits(&mut document.root, variables);
        context = Context::new(document.file.clone(), Some(variables));
        read = de::read(&document.root, KeyPath::CONFIGURATION, &context);
    }
    let findings = context.into_findings();
    let Some(mut config) = read else {
        findings.problems.into_result()?;
        return Err(Problem::in_file(&document.file, "cannot be read").into());
    };
    // The folder of the configuration as messages name it.
    let shown = document.file.parent().unwrap_or(&document.file);
    config.main.stand(MAIN_PROJECT, base, shown);
    config.projects.iter_mut().for_each(|(name, project)| project.stand(name, base, shown));
    Ok((config, Resolver::new(base, document, findings)))
}

impl Project {
    fn stand(&mut self, name: &str, base: &Base, shown: &Path) {
        let is_main = name == MAIN_PROJECT;
        let below =
            |folder: &Path| if is_main { folder.to_owned() } else { folder.join(PROJECTS).join(name) };
        let lock = if is_main { "gantry.lock".to_owned() } else { format!("gantry.{name}.lock") };
        self.workspace = absolute(&base.folder, &self.workspace);
        self.places = Places {
            name: name.to_owned(),
            folder: below(&base.folder),
            shown: below(shown),
            data: below(&base.data),
            lock: base.folder.join(lock),
        };
    }
}

/// The variables of the `.env` beside a configuration, if there is one.
fn dotenv(file: &Path, name: &Path, warnings: &mut Vec<String>) -> Result<HashMap<String, String>, Problem> {
    let (path, name) = (file.with_file_name(DOTENV), name.with_file_name(DOTENV));
    // A folder of this name is a Python environment, not ours.
    if !path.is_file() {
        return Ok(HashMap::new());
    }
    let text = find::read(&path, &name)?;
    let variables = dotenv::parse_dotenv(&text)
        .map_err(|(line, why)| Problem::at(&Location { file: name.as_path().into(), line }, why))?;
    for variable in PROCESS_ONLY {
        if variables.contains_key(variable) {
            let file = name.display();
            warnings.push(format!("{file}: {variable} has no effect here; set it in the environment"));
        }
    }
    Ok(variables)
}

impl Loaded {
    /// Reads the entry of one MCP server that is added to a project while Gantry runs, the text of a JSON object: the same
    /// keys, checks and messages as in the file. Returns the server and what in its entry has no effect. The `.env` beside
    /// the configuration is read anew, so that a variable can be set for a server that is added.
    pub fn read_server(
        &self,
        project: &Project,
        id: &str,
        entry: &str,
        env: &Env,
    ) -> Result<(McpServer, Vec<String>), Error> {
        // It stands in no file, so no message names one.
        let name: Arc<Path> = Arc::from(Path::new(""));
        let file = match &self.file {
            Some(file) => dotenv(file, file, &mut Vec::new())?,
            None => HashMap::new(),
        };
        let node = Format::Json.parse(entry).map_err(|syntax| Problem::syntax(&name, syntax))?;
        if project.builtin.contains_key(id) {
            return Err(
                Problem::general(format!("{id:?} is in the catalogue of tools; choose another id")).into()
            );
        }
        let document = Document::new(name, under("mcpServers", under(id, node)));
        let variables = Variables::new(env).with_file(file);
        let base = Base { folder: self.folder.clone(), data: self.data.clone(), accepted: None };
        let (mut config, mut resolver) = read_file(document, &base, &variables)?;
        resolver.queues.extend(self.config.queues.iter().map(|queue| queue.name.to_string()));
        resolver.claim_names(&config.main);
        let server = config.main.mcp_servers.remove(id).map(|mut server| {
            resolver.server(MAIN_PROJECT, ["mcpServers", id], &mut server);
            server
        });
        let Findings { problems, warnings } = resolver.findings;
        problems.into_result()?;
        let mut server = server.ok_or_else(|| Problem::general("there is no server in this"))?;
        Launcher::new(&self.config, &base, env).server(&project.places.name, id, &mut server);
        // Tools are kept from what the configuration names, and only from that.
        let is_sealed = |path: &&PathBuf| self.sources.launch.iter().any(|sealed| path.starts_with(sealed));
        if let Some(open) = server.launch.code.iter().find(|path| !is_sealed(path)) {
            return Err(Problem::general(format!(
                "it is started from {}, where agents write; write it into the configuration, which Gantry then protects, or \
                 move it out of the workspaces",
                open.display()
            ))
            .into());
        }
        Ok((server, warnings.iter().map(|warning| warning.message().to_owned()).collect()))
    }
}

fn under(key: &str, node: Node) -> Node {
    let place = node.place;
    Node { place, value: Value::Map(vec![Entry { key: key.to_owned(), is_merge: false, place, node }]) }
}

//! The configuration: finding it, reading it, refusing it with every problem at its line.
//!
//! A file is parsed into a tree that knows its lines (`tree`, one reader per format), judged by one table of keys
//! (`table`, `check`), and turned into plain data (`build`, `model`). Nothing is ignored: an unknown key, a key of a
//! later version, an unset variable are errors, because what was ignored may have been a rule. Agents and tools may have
//! files of their own beside it (`beside`), judged by the same table.

mod added;
mod beside;
mod build;
mod check;
mod editors;
mod env;
mod error;
mod expand;
mod fence;
mod find;
mod front_matter;
mod json;
mod model;
mod projects;
mod reference;
mod stamp;
mod suggest;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod toml;
mod trail;
mod transport;
mod tree;
mod yaml;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use added::ServerReader;
pub use env::{Env, FixedEnv, ProcessEnv};
pub use error::{Error, Location, Problem};
pub use find::Source;
pub use model::{
    Agent, Api, Approvals, Arguments, Builtin, BuiltinPolicy, Code, Config, Decide, Defaults, Embeddings,
    Entries, Examples, Gated, Git, Located, MAIN_PROJECT, McpServer, Own, PerPattern, Policy, Project, Queue,
    Rest, RestTool, Server, Store, ToolSource, Tools, Web, WebSearch, WebSearchApi,
};
pub use reference::{EXAMPLE, reference};
pub use stamp::Stamp;

use beside::Beside;
use build::{Base, Checked};
use check::Judge;
use env::Variables;
use projects::Place;
use tree::Format;

/// Variables that are read before a `.env` can be, so one in there has no effect.
const PROCESS_ONLY: [&str; 2] = ["GANTRY_CONFIG", "GANTRY_DATA"];

/// A configuration and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// The file, absolute; none when Gantry runs on defaults.
    pub file: Option<PathBuf>,
    /// Where relative paths start: the folder of the file, or the working folder. Absolute.
    pub folder: PathBuf,
    /// The data folder, absolute. It need not exist yet.
    pub data: PathBuf,
    /// Every file that configures Gantry, or would at the next start if it came to be. Who can write these can give
    /// itself any right.
    pub governing: Vec<PathBuf>,
    /// Folders below which any `agents/*.md`, `agents/*/agent.json` and `tools/*/tool.json` configures Gantry likewise.
    /// They need not exist.
    pub catalogues: Vec<PathBuf>,
    /// What a person should know although it stops nothing.
    pub warnings: Vec<String>,
}

impl Config {
    /// Finds and reads the configuration. Without a file, everything is at its default.
    pub fn load(source: &Source, env: &dyn Env) -> Result<Loaded, Error> {
        let folder = std::path::absolute(&source.folder).map_err(|error| {
            Problem::in_file(&source.folder, format!("the working folder has no absolute path: {error}"))
        })?;
        let found = find::file(source, &folder, env)?;
        Self::read(source, &folder, found.as_ref(), env)
    }

    /// Where the data of a configuration is that cannot be used.
    pub fn data(source: &Source, env: &dyn Env) -> Option<PathBuf> {
        let folder = std::path::absolute(&source.folder).ok()?;
        let found = find::file(source, &folder, env).ok()?;
        let beside = found.as_ref().and_then(|found| found.path.parent()).unwrap_or(&folder);
        Some(find::data(source, &folder, beside, env))
    }

    /// What holds without any file, with the data in this folder.
    pub fn defaults(source: &Source, data: PathBuf, env: &dyn Env) -> Result<Loaded, Error> {
        let source = Source { data: Some(data), ..source.clone() };
        Self::read(&source, &source.folder, None, env)
    }

    fn read(
        source: &Source,
        folder: &Path,
        found: Option<&find::Found>,
        env: &dyn Env,
    ) -> Result<Loaded, Error> {
        let folder = folder.to_owned();
        let file = found.map(|found| found.path.clone());
        let beside = file.as_deref().and_then(Path::parent).unwrap_or(&folder).to_owned();
        let base = Base { data: find::data(source, &folder, &beside, env), folder: beside };
        let mut warnings = Vec::new();
        let parsed = match found {
            Some(found) => {
                let dotenv = dotenv(&found.path, &found.name, &mut warnings)?;
                let text = find::read(&found.path, &found.name)?;
                let variables = Variables::new(env).with_file(dotenv);
                parse(&text, found.format, &found.name, &base, &variables)?
            }
            None => parse("", Format::Yaml, Path::new(""), &base, &Variables::new(env))?,
        };
        warnings.extend(parsed.warnings);
        let name = found.map_or(Path::new(""), |found| &found.name);
        let unusable = parsed.config.all().filter_map(|(_, project)| workspace_problem(project, name));
        if let Some(error) = Error::all(unusable) {
            return Err(error);
        }
        let config = parsed.config;
        let mut governing = find::governing(file.as_deref(), &folder);
        // Who can write them can accept a tool that has changed.
        governing.extend(config.all().map(|(_, project)| project.lock.clone()));
        governing.extend(parsed.links);
        // Who can write them can have credentials sent elsewhere.
        let apis = config.all().flat_map(|(_, project)| project.rest.apis.values());
        governing.extend(apis.flat_map(|api| api.documents.paths().cloned()));
        // The working folder counts for the next start, as the files in it do that are found by name.
        let mut catalogues = vec![folder];
        catalogues.extend(config.all().map(|(_, project)| project.folder.clone()));
        catalogues.sort();
        catalogues.dedup();
        let Base { folder, data } = base;
        Ok(Loaded { config, file, folder, data, governing, catalogues, warnings })
    }
}

fn workspace_problem(project: &Project, name: &Path) -> Option<Problem> {
    if project.workspace.is_dir() {
        return None;
    }
    let message = format!("workspace: {} is not a folder; create it", project.workspace.display());
    Some(match &project.workspace_at {
        Some(at) => Problem::at(at, message),
        None => Problem::in_file(name, message),
    })
}

/// Whether an API may have this id.
#[must_use]
pub fn is_api_id(text: &str) -> bool {
    text::Rule::Api.judge(text) == text::Judgement::Good
}

/// What a configuration says, and what in it has no effect.
struct Parsed {
    config: Config,
    warnings: Vec<String>,
    /// The files beside it that are links.
    links: Vec<PathBuf>,
}

/// A text and the files beside it, judged and built.
fn parse(
    text: &str,
    format: Format,
    name: &Path,
    base: &Base,
    variables: &Variables<'_>,
) -> Result<Parsed, Error> {
    let file: Arc<Path> = Arc::from(name);
    let mut root = format.parse(text).map_err(|syntax| {
        let location = Location { file: file.clone(), line: syntax.line };
        Problem::at(&location, syntax.message).with_column(syntax.column)
    })?;
    let mut judge = Judge::new(variables, &base.folder, check::queue_names(&root));
    // Without a configuration nobody has said that the files in these folders are Gantry's.
    judge.is_lenient = name.as_os_str().is_empty();
    // Editors keep their servers in JSON.
    let adopted = if format == Format::Json { editors::adopt_file(&mut root) } else { Vec::new() };
    let adopted =
        adopted.into_iter().map(|(line, text)| Problem::at(&Location { file: file.clone(), line }, text));
    judge.warnings.extend(adopted);
    judge.configuration(&mut root, &file);
    let (main, others) = Place::all(&root, base, name.parent().unwrap_or(name));
    let mut links = Vec::new();
    let mut with_files = |place: Place| {
        let mut beside = Beside::read(&place, base, &mut judge);
        links.append(&mut beside.links);
        (place, beside)
    };
    let main = with_files(main);
    let others = others.into_iter().map(with_files).collect();
    let Judge { problems, unusable, warnings, .. } = judge;
    if let Some(error) = problems.into_error() {
        return Err(error);
    }
    let checked = Checked { root: &root, file: &file, base, unusable: &unusable };
    let config = build::build(&checked, main, others);
    Ok(Parsed { config, warnings: error::lines(&warnings), links })
}

/// The variables of the `.env` beside a configuration, if there is one.
fn dotenv(file: &Path, name: &Path, warnings: &mut Vec<String>) -> Result<HashMap<String, String>, Problem> {
    let (path, name) = (file.with_file_name(find::DOTENV), name.with_file_name(find::DOTENV));
    // A folder of this name is a Python environment, not ours.
    if !path.is_file() {
        return Ok(HashMap::new());
    }
    let text = find::read(&path, &name)?;
    let variables = env::parse_dotenv(&text)
        .map_err(|bad| Problem::at(&Location { file: name.as_path().into(), line: bad.line }, bad.message))?;
    for variable in PROCESS_ONLY {
        if variables.contains_key(variable) {
            let file = name.display();
            warnings.push(format!("{file}: {variable} has no effect here; set it in the environment"));
        }
    }
    Ok(variables)
}

//! The configuration: finding it, reading it, refusing it with every problem at its line.
//!
//! A file is parsed into a tree that knows its lines (`tree`, one reader per format), judged by one table of keys
//! (`table`, `check`), and turned into plain data (`build`, `model`). Nothing is ignored: an unknown key, a key of a
//! later version, an unset variable are errors, because what was ignored may have been a rule.

mod added;
mod build;
mod check;
mod editors;
mod env;
mod error;
mod expand;
mod find;
mod json;
mod model;
mod reference;
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

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use added::ServerReader;
pub use env::{Env, FixedEnv, ProcessEnv};
pub use error::{Error, Location, Problem};
pub use find::Source;
pub use model::{
    Agent, Approvals, Arguments, Config, Decide, Defaults, Examples, Gated, Located, McpServer, Policy,
    Queue, Server, Store, ToolSource, Tools,
};
pub use reference::{EXAMPLE, reference};

use build::Base;
use env::Variables;
use error::Problems;
use tree::{Format, Node, Value};

/// Variables that are read before a `.env` can be, so one in there has no effect.
const PROCESS_ONLY: [&str; 2] = ["GANTRY_CONFIG", "GANTRY_DATA"];

/// The file that pins the definitions of tools, beside the configuration.
const LOCK_FILE: &str = "gantry.lock";

/// A configuration and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// The file, absolute; none when Gantry runs on defaults.
    pub file: Option<PathBuf>,
    /// Where relative paths start: the folder of the file, or the working folder. Absolute.
    pub folder: PathBuf,
    /// The file that pins the definitions of tools. It need not exist.
    pub lock: PathBuf,
    /// The data folder, absolute. It need not exist yet.
    pub data: PathBuf,
    /// Every file that configures Gantry, or would at the next start if it came to be. Who can write these can give
    /// itself any right.
    pub governing: Vec<PathBuf>,
    /// What a person should know although it stops nothing.
    pub warnings: Vec<String>,
}

impl Config {
    /// Finds and reads the configuration. Without a file, everything is at its default.
    pub fn load(source: &Source, env: &dyn Env) -> Result<Loaded, Error> {
        let folder = std::path::absolute(&source.folder).map_err(|error| {
            Problem::in_file(&source.folder, format!("the working folder has no absolute path: {error}"))
        })?;
        let Some(found) = find::file(source, &folder, env)? else {
            let governing = find::governing(None, &folder);
            let base = Base { data: find::data(source, &folder, &folder, env), folder };
            let (root, file) = (Node { value: Value::Null, line: 1 }, Arc::from(Path::new("")));
            let config = build::build(&root, &file, &base, &BTreeMap::new());
            return Ok(Loaded::new(config, None, base, governing, Vec::new()));
        };
        let beside = found.path.parent().unwrap_or(&folder).to_owned();
        let base = Base { data: find::data(source, &folder, &beside, env), folder: beside };
        let mut warnings = Vec::new();
        let dotenv = dotenv(&found.path, &found.name, &mut warnings)?;
        let variables = Variables::new(env).with_file(dotenv);
        let text = find::read(&found.path, &found.name)?;
        let parsed = parse(&text, found.format, &found.name, &base, &variables)?;
        warnings.extend(parsed.warnings);
        let config = parsed.config;
        if !config.workspace.is_dir() {
            let message = format!("workspace: {} is not a folder; create it", config.workspace.display());
            let problem = match &config.workspace_at {
                Some(at) => Problem::at(at, message),
                None => Problem::in_file(&found.name, message),
            };
            return Err(problem.into());
        }
        let governing = find::governing(Some(&found.path), &folder);
        Ok(Loaded::new(config, Some(found.path), base, governing, warnings))
    }
}

impl Loaded {
    fn new(
        config: Config,
        file: Option<PathBuf>,
        base: Base,
        mut governing: Vec<PathBuf>,
        warnings: Vec<String>,
    ) -> Self {
        let lock = base.folder.join(LOCK_FILE);
        // Who can write it can accept a tool that has changed.
        governing.push(lock.clone());
        Self { config, file, folder: base.folder, lock, data: base.data, governing, warnings }
    }
}

/// What a text says, and what in it has no effect.
struct Parsed {
    config: Config,
    warnings: Vec<String>,
}

/// The pure part of loading: a text and what it may refer to, judged and built.
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
    // Editors keep their servers in JSON.
    let adopted = if format == Format::Json { editors::adopt_file(&mut root) } else { Vec::new() };
    let queues = check::queue_names(&root);
    let mut problems = Problems::default();
    let findings = check::check(&mut root, &file, variables, queues, &mut problems);
    if let Some(error) = problems.into_error() {
        return Err(error);
    }
    let found = adopted.into_iter().chain(findings.warnings);
    let warnings =
        found.map(|(line, text)| format!("{}: {text}", Location { file: file.clone(), line })).collect();
    Ok(Parsed { config: build::build(&root, &file, base, &findings.unusable), warnings })
}

/// The variables of the `.env` beside a configuration, if there is one.
fn dotenv(file: &Path, name: &Path, warnings: &mut Vec<String>) -> Result<HashMap<String, String>, Problem> {
    let (path, name) = (file.with_file_name(".env"), name.with_file_name(".env"));
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

//! The configuration: finding it, reading it, refusing it with every problem at its line.
//!
//! A file is parsed into a tree that knows its lines (`tree`, one reader per format), judged by one table of keys
//! (`table`, `check`), and turned into plain data (`build`, `model`). Nothing is ignored: an unknown key, a key of a
//! later version, an unset variable are errors, because what was ignored may have been a rule.

mod build;
mod check;
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
mod tree;
mod yaml;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use env::{Env, FixedEnv, ProcessEnv};
pub use error::{Error, Location, Problem};
pub use find::Source;
pub use model::{
    Agent, Approvals, Arguments, Config, Decide, Defaults, Examples, Gated, Located, Policy, Queue, Server,
    Store, ToolSource, Tools,
};
pub use reference::{EXAMPLE, reference};

use build::Base;
use env::Variables;
use error::Problems;
use find::Found;
use tree::{Format, Node, Value};

/// Variables that are read before a `.env` can be, so one in there has no effect.
const PROCESS_ONLY: [&str; 2] = ["GANTRY_CONFIG", "GANTRY_DATA"];

/// A configuration and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// The file, absolute; none when Gantry runs on defaults.
    pub file: Option<PathBuf>,
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
            let config =
                build::build(&Node { value: Value::Null, line: 1 }, &Arc::from(Path::new("")), &base);
            return Ok(Loaded { config, file: None, data: base.data, governing, warnings: Vec::new() });
        };
        let beside = found.path.parent().unwrap_or(&folder).to_owned();
        let base = Base { data: find::data(source, &folder, &beside, env), folder: beside };
        let mut warnings = Vec::new();
        let variables = Variables::new(env).with_file(dotenv(&found, &mut warnings)?);
        let text = find::read(&found.path, &found.name)?;
        let config = parse(&text, found.format, &found.name, &base, &variables)?;
        if !config.workspace.is_dir() {
            let message = format!("workspace: {} is not a folder; create it", config.workspace.display());
            let problem = match &config.workspace_at {
                Some(at) => Problem::at(at, message),
                None => Problem::in_file(&found.name, message),
            };
            return Err(problem.into());
        }
        let governing = find::governing(Some(&found.path), &folder);
        Ok(Loaded { config, file: Some(found.path), data: base.data, governing, warnings })
    }
}

/// The pure part of loading: a text and what it may refer to, judged and built.
fn parse(
    text: &str,
    format: Format,
    name: &Path,
    base: &Base,
    variables: &Variables<'_>,
) -> Result<Config, Error> {
    let file: Arc<Path> = Arc::from(name);
    let mut root = format.parse(text).map_err(|syntax| {
        let location = Location { file: file.clone(), line: syntax.line };
        Problem::at(&location, syntax.message).with_column(syntax.column)
    })?;
    let mut problems = Problems::default();
    check::check(&mut root, &file, variables, &mut problems);
    match problems.into_error() {
        Some(error) => Err(error),
        None => Ok(build::build(&root, &file, base)),
    }
}

/// The variables of the `.env` beside a configuration, if there is one.
fn dotenv(found: &Found, warnings: &mut Vec<String>) -> Result<HashMap<String, String>, Problem> {
    let (path, name) = (found.path.with_file_name(".env"), found.name.with_file_name(".env"));
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

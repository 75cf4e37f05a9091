//! Servers that are added while Gantry runs: the same keys, checks and messages as in the file.

use super::build::{Base, Checked};
use super::check::Judge;
use super::env::{Env, Variables};
use super::model::{McpServer, Project};
use super::tree::{Entry, Format, Node, Value};
use super::{Loaded, Location, Problem, dotenv};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads the entry of one MCP server against a loaded configuration.
#[derive(Debug, Clone)]
pub struct ServerReader {
    file: Option<PathBuf>,
    base: Base,
    queues: BTreeSet<String>,
    /// Ids of tools that are no MCP servers.
    taken: BTreeSet<String>,
}

impl ServerReader {
    /// For the servers of a project of this configuration.
    pub fn new(loaded: &Loaded, project: &Project) -> Self {
        Self {
            file: loaded.file.clone(),
            base: Base { folder: loaded.folder.clone(), data: loaded.data.clone() },
            queues: loaded.config.queues.keys().cloned().collect(),
            taken: project.tools.builtin.keys().cloned().collect(),
        }
    }

    /// The server that the text of a JSON object describes, and what in it has no effect. The `.env` beside the configuration is read anew, so that
    /// a variable can be set for a server that is added.
    pub fn read(
        &self,
        id: &str,
        entry: &str,
        env: &dyn Env,
    ) -> Result<(McpServer, Vec<String>), super::Error> {
        // It stands in no file, so no message names one.
        let name: Arc<Path> = Arc::from(Path::new(""));
        let file = match &self.file {
            Some(file) => dotenv(file, file, &mut Vec::new())?,
            None => HashMap::new(),
        };
        let entry = Format::Json.parse(entry).map_err(|syntax| {
            Problem::at(&Location { file: name.clone(), line: syntax.line }, syntax.message)
        })?;
        if self.taken.contains(id) {
            return Err(
                Problem::general(format!("{id:?} is in the catalogue of tools; choose another id")).into()
            );
        }
        let mut root = under("mcpServers", under(id, entry));
        let variables = Variables::new(env).with_file(file);
        let mut judge = Judge::new(&variables, &self.base.folder, self.queues.clone());
        judge.configuration(&mut root, &name);
        let Judge { problems, unusable, warnings, .. } = judge;
        if let Some(error) = problems.into_error() {
            return Err(error);
        }
        let checked = Checked { root: &root, file: &name, base: &self.base, unusable: &unusable };
        let nothing = || Problem::general("there is no server in this");
        let server = checked.server(id).ok_or_else(nothing)?;
        Ok((server, warnings.iter().map(|warning| warning.message().to_owned()).collect()))
    }
}

fn under(key: &str, node: Node) -> Node {
    Node { line: node.line, value: Value::Map(vec![Entry { key: key.to_owned(), line: node.line, node }]) }
}

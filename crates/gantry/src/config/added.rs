//! Servers that are added while Gantry runs: the same keys, checks and messages as in the file.

use super::build::{self, Base};
use super::check;
use super::env::{Env, Variables};
use super::error::Problems;
use super::model::McpServer;
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
}

impl ServerReader {
    /// For the servers of this configuration.
    pub fn new(loaded: &Loaded) -> Self {
        Self {
            file: loaded.file.clone(),
            base: Base { folder: loaded.folder.clone(), data: loaded.data.clone() },
            queues: loaded.config.queues.keys().cloned().collect(),
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
        let name: Arc<Path> = Arc::from(Path::new("server"));
        let file = match &self.file {
            Some(file) => dotenv(file, file, &mut Vec::new())?,
            None => HashMap::new(),
        };
        let entry = Format::Json.parse(entry).map_err(|syntax| {
            Problem::at(&Location { file: name.clone(), line: syntax.line }, syntax.message)
        })?;
        let mut root = under("mcpServers", under(id, entry));
        let mut problems = Problems::default();
        let variables = Variables::new(env).with_file(file);
        let findings = check::check(&mut root, &name, &variables, self.queues.clone(), &mut problems);
        if let Some(error) = problems.into_error() {
            return Err(error);
        }
        let mut config = build::build(&root, &name, &self.base, &findings.unusable);
        let nothing = || Problem::general("there is no server in this");
        let server = config.mcp_servers.remove(id).ok_or_else(nothing)?;
        Ok((server, findings.warnings.into_iter().map(|(_, text)| text).collect()))
    }
}

fn under(key: &str, node: Node) -> Node {
    Node { line: node.line, value: Value::Map(vec![Entry { key: key.to_owned(), line: node.line, node }]) }
}

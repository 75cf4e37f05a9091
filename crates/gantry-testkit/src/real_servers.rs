//! MCP servers that others wrote: how each is started, what it needs before, and a call whose answer is known.
//!
//! `cargo xtask test --only servers` installs them from `servers/`. A test prepares one in a folder and writes
//! [`Ready::entry`] into its configuration:
//!
//! ```ignore
//! let ready = real_servers::find("git").prepare(home.path());
//! let config = json!({ "mcpServers": { ready.id: ready.entry() } });
//! ```

mod everything;

pub use everything::Everything;

use crate::TestServer;
use crate::test_dir::installed;
use axum::Router;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// A server as it is installed. In its texts `{servers}`, `{folder}` and `{page}` stand for where the servers are,
/// for the folder it was prepared in, and for the URL of a page.
#[derive(Debug, Deserialize)]
pub struct RealServer {
    pub id: &'static str,
    pub eras: Eras,
    /// How many tools it lists to a client without capabilities.
    pub n_tools: usize,
    command: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    needs: Needs,
    /// A tool, its arguments, and what its answer contains.
    call: (String, Value, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Eras {
    /// Up to 2025-11-25, with a handshake.
    Legacy,
    /// Also 2026-07-28, without.
    Both,
}

/// What has to be there before a server starts.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Needs {
    #[default]
    Nothing,
    /// A file in the folder: its name and what is in it.
    File(String, String),
    /// A repository in the folder with a file that is not in it.
    Repository,
    Page,
}

/// A server that can be started; what it needs lasts as long as this.
#[derive(Debug)]
pub struct Ready {
    pub id: &'static str,
    pub command: String,
    pub args: Vec<String>,
    /// Variables that it needs beyond `PATH` and the like.
    pub env: BTreeMap<&'static str, String>,
    /// A tool that only reads.
    pub tool: &'static str,
    pub arguments: Value,
    /// What the text of its answer contains.
    pub answer: &'static str,
    _page: Option<TestServer>,
}

/// What the page says that `fetch` reads.
const PAGE_TEXT: &str = "the page of the test";

pub static ALL: LazyLock<Vec<RealServer>> =
    LazyLock::new(|| serde_json::from_str(include_str!("real_servers/servers.json")).expect("servers"));

pub fn find(id: &str) -> &'static RealServer {
    ALL.iter().find(|server| server.id == id).unwrap_or_else(|| panic!("there is no server `{id}`"))
}

impl RealServer {
    /// Makes what the server needs, in this folder.
    pub fn prepare(&'static self, folder: &Path) -> Ready {
        let page = self.meet_needs(folder);
        let url = page.as_ref().map(|page| page.url("/page.txt")).unwrap_or_default();
        let filled = |text: &String| fill(text, folder, &url);
        let mut words: Vec<String> = self.command.iter().map(filled).collect();
        for path in words.iter().filter(|word| word.starts_with(&*installed("servers").to_string_lossy())) {
            let is_there = Path::new(path).exists();
            assert!(is_there, "{path} is not there; `cargo xtask test --only servers` installs it");
        }
        let (tool, arguments, answer) = &self.call;
        Ready {
            id: self.id,
            command: words.remove(0),
            args: words,
            env: self.env.iter().map(|(name, value)| (name.as_str(), filled(value))).collect(),
            tool,
            arguments: serde_json::from_str(&filled(&arguments.to_string())).expect("paths need no escapes"),
            answer,
            _page: page,
        }
    }

    fn meet_needs(&self, folder: &Path) -> Option<TestServer> {
        let write = |name: &str, content: &str| {
            std::fs::write(folder.join(name), content).expect("the file that the server needs");
        };
        match &self.needs {
            Needs::Nothing => {}
            Needs::File(name, content) => write(name, content),
            Needs::Repository => {
                let made = Command::new("git").args(["init", "--quiet"]).arg(folder).status();
                assert!(made.expect("git starts").success(), "git cannot make a repository");
                write("untracked.txt", "not added\n");
            }
            Needs::Page => {
                // Without a robots.txt everything may be read.
                return Some(TestServer::spawn(Router::new().route("/page.txt", get(async || PAGE_TEXT))));
            }
        }
        None
    }
}

fn fill(text: &str, folder: &Path, page: &str) -> String {
    text.replace("{servers}", &installed("servers").to_string_lossy())
        .replace("{folder}", &folder.to_string_lossy())
        .replace("{page}", page)
}

impl Ready {
    /// What stands under the server's name in `mcpServers`.
    pub fn entry(&self) -> Value {
        json!({ "command": self.command, "args": self.args, "env": self.env })
    }
}

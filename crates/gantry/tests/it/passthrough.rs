//! MCP through Gantry and out again: what servers offer, say and ask reaches clients unchanged, and the other way round.
//!
//! The servers behave here; what Gantry does about those that do not is in `upstream`, and how the eras are translated
//! into each other is in `eras`.

mod agents;
mod dialogue;
mod doors;
mod lists;
mod lossless;
mod names;
mod notifications;
mod prompts;
mod resources;
mod same_tools;
mod strangers;
mod talk;
mod transports;

pub(crate) use doors::Door;
pub(crate) use talk::{LEGACY, Talk, elements, in_order, members, names, parsed, raw, text, without};

use gantry_testkit::faulty::Faulty;
use gantry_testkit::{Server, TestDir, with};
use serde_json::{Value, json};

/// The file in the home that servers write down what really happened in.
const JOURNAL: &str = "journal.txt";

/// A Gantry with MCP servers, serving.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) home: TestDir,
}

impl Rig {
    /// One well-behaved server, `one`, with a journal.
    fn one() -> Self {
        Self::of(&json!({ "one": faulty(&[]) }))
    }

    /// Two servers with the same names and URIs, `one` and `two`.
    fn two() -> Self {
        Self::of(&json!({ "one": faulty(&[]), "two": faulty(&[]) }))
    }

    /// These servers.
    pub(crate) fn of(servers: &Value) -> Self {
        Self::with_config(&json!({ "mcpServers": servers }))
    }

    fn with_config(config: &Value) -> Self {
        let home = TestDir::new().config(&config.to_string());
        let server = home.serve();
        // However slow the machine is: no client waits for ever for the tools of a server that has not started.
        server.eventually("every server has started", || {
            let servers = server.get_as_admin("/api/v1/servers").json();
            servers["items"].as_array().expect("servers").iter().all(|server| server["status"] != "starting")
        });
        let rig = Self { server, home };
        // And a client that lists now waits until that can be seen, so that no test sees it as a change.
        Talk::legacy(rig.door()).tools();
        rig
    }

    /// The usual door.
    pub(crate) fn door(&self) -> Door<'_> {
        Door::Http(&self.server, "/mcp")
    }

    /// Every door that carries any message of either era, with its name.
    fn doors(&self) -> [(&'static str, Door<'_>); 3] {
        [
            ("/mcp", self.door()),
            ("/ws", Door::Ws(&self.server, "/ws")),
            ("gantry mcp", Door::Stdio(&self.home, &[])),
        ]
    }

    /// A client of the older era by the usual door.
    #[track_caller]
    fn legacy(&self) -> Talk {
        Talk::legacy(self.door())
    }

    /// A client of the newer era by the usual door.
    #[track_caller]
    fn modern(&self) -> Talk {
        Talk::modern(self.door())
    }

    /// The lines of the journal so far.
    fn journal(&self) -> Vec<String> {
        self.home.lines(JOURNAL)
    }
}

/// A well-behaved server on stdio with a journal, run like this.
fn faulty(args: &[&str]) -> Value {
    let journal = format!("./{JOURNAL}");
    let args = [&["--journal", &journal], args].concat();
    json!({ "command": Faulty::program(), "args": args })
}

//! A real browser for one test: Chromium, driven by playwright in Node.

use crate::mcp_sdks::installed;
use gantry_testkit::Server;
use serde_json::{Value, json};
use std::env;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// What drives it.
const SCRIPT: &str = include_str!("browser.mjs");

/// The browsers that will do, the same as in `cargo xtask test --only tools`.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with at most one page open. It ends when dropped, and everything it has written goes with it.
pub(crate) struct Browser {
    node: Child,
    /// Taken to end it.
    steps: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    origin: String,
    _folder: TempDir,
}

impl Browser {
    pub(crate) fn new(server: &Server) -> Self {
        let folder =
            tempfile::Builder::new().prefix("gantry-browser-").tempdir().expect("a temporary folder");
        let mut node = Command::new("node")
            .args(["--input-type=module", "-e", SCRIPT])
            .arg(program())
            // Where the script finds its packages.
            .current_dir(installed("node/node_modules").parent().expect("a folder"))
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let steps = node.stdin.take();
        let answers = BufReader::new(node.stdout.take().expect("a pipe"));
        Self { node, steps, answers, origin: format!("http://{}", server.address), _folder: folder }
    }

    /// Opens a page in a tab of its own and gives it this key.
    #[track_caller]
    pub(crate) fn enter(&mut self, path: &str, key: &str) {
        self.open(path, key, false);
    }

    /// The same, and the page hears of no change that it does not ask about.
    #[track_caller]
    pub(crate) fn enter_deaf(&mut self, path: &str, key: &str) {
        self.open(path, key, true);
    }

    #[track_caller]
    fn open(&mut self, path: &str, key: &str, deaf: bool) {
        self.perform(&json!({ "open": format!("{}{path}", self.origin), "deaf": deaf }));
        self.write("#key", key);
        self.click("#door button");
    }

    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        self.perform(&json!({ "click": selector }));
    }

    /// Types a text instead of what is there.
    #[track_caller]
    pub(crate) fn write(&mut self, selector: &str, text: &str) {
        self.perform(&json!({ "type": [selector, text] }));
    }

    /// Waits until an element shows a text; returns all that the page shows then.
    #[track_caller]
    pub(crate) fn see(&mut self, selector: &str, text: &str) -> Value {
        self.perform(&json!({ "see": [selector, text] }))
    }

    /// Opens a page of any origin, whose console may have faults, and runs a function there. Returns what that returns.
    #[track_caller]
    pub(crate) fn run(&mut self, url: &str, function: &str, argument: &Value) -> Value {
        self.perform(&json!({ "run": [url, format!("({function})({argument})")] }))
    }

    #[track_caller]
    fn perform(&mut self, step: &Value) -> Value {
        writeln!(self.steps.as_mut().expect("it runs"), "{step}").expect("the browser reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("UTF-8");
        let answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{step}: {error}: {line:?}"));
        assert_eq!(answer["failed"], Value::Null, "{step}");
        assert_eq!(answer["faults"], json!([]), "the console has none: {step}");
        answer["shown"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.steps.take());
        let ended = self.node.wait().expect("it ends");
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

/// The program of the browser: what `GANTRY_TEST_BROWSER` names, or the first that is there.
fn program() -> PathBuf {
    let names = env::var("GANTRY_TEST_BROWSER")
        .map_or_else(|_| PROGRAMS.map(str::to_owned).to_vec(), |name| vec![name]);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut found =
        names.iter().flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)));
    found.find(|file| file.is_file()).unwrap_or_else(|| {
        panic!("none of {names:?} is there; `cargo xtask test --only tools` says how to get one")
    })
}

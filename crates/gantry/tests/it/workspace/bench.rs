//! A workspace with something beside it that must never change, and a door to call the tools through.

use gantry_core::schema::Schema;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What no call may read.
pub(super) const SECRET: &str = "the canary sings outside";

/// A home whose workspace is the folder `ws`, beside the folder `outside`.
pub(super) struct Bench {
    pub(super) home: TestDir,
    server: Option<Server>,
    schemas: HashMap<String, Schema>,
    outside: BTreeMap<PathBuf, String>,
}

/// What came of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    Done(Value),
    Failed(Value),
}

impl Outcome {
    #[track_caller]
    pub(super) fn error(self) -> Value {
        match self {
            Self::Failed(error) => error,
            Self::Done(result) => panic!("it succeeded: {result}"),
        }
    }

    #[track_caller]
    pub(super) fn code(self) -> String {
        self.error()["code"].as_str().expect("a code").to_owned()
    }
}

impl Bench {
    /// Runs a scenario by the command line, and again in a fresh place over HTTP.
    pub(super) fn through_each_door(scenario: impl Fn(&Self)) {
        for bench in [Self::by_command_line(), Self::over_http()] {
            scenario(&bench);
            bench.assert_outside_untouched();
        }
    }

    pub(super) fn by_command_line() -> Self {
        let home = TestDir::new();
        home.write("ws/x", "");
        fs::remove_file(home.path().join("ws/x")).expect("the file");
        home.write("outside/secret", SECRET);
        home.write("outside/d/secret", SECRET);
        let home = home.config("workspace: ws\n");
        let listing = home.run(["tools", "--json"]).json();
        let schemas = listing.as_array().expect("tools").iter().map(|tool| {
            let schema = Schema::compile(&tool["outputSchema"]).expect("an output schema");
            (tool["name"].as_str().expect("a name").to_owned(), schema)
        });
        let schemas = schemas.collect();
        let outside = tree(&home.path().join("outside"));
        Self { home, server: None, schemas, outside }
    }

    pub(super) fn over_http() -> Self {
        let bench = Self::by_command_line();
        let server = bench.home.serve();
        Self { server: Some(server), ..bench }
    }

    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().expect("a bench over HTTP")
    }

    /// A path in the workspace.
    pub(super) fn inside(&self, path: &str) -> PathBuf {
        self.home.path().join("ws").join(path)
    }

    pub(super) fn put(&self, path: &str, content: &str) {
        self.home.write(&format!("ws/{path}"), content);
    }

    #[track_caller]
    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.inside(path)).expect("the file")
    }

    /// Everything in the workspace.
    pub(super) fn tree(&self) -> BTreeMap<PathBuf, String> {
        tree(&self.inside("."))
    }

    #[track_caller]
    pub(super) fn assert_outside_untouched(&self) {
        assert_eq!(tree(&self.home.path().join("outside")), self.outside, "something outside was changed");
        let mut beside: Vec<_> = fs::read_dir(self.home.path())
            .expect("the home")
            .map(|e| e.expect("an entry").file_name())
            .collect();
        beside.sort();
        assert_eq!(beside, [".gantry", "gantry.yaml", "outside", "ws"], "something appeared outside");
    }

    /// Makes a call, and checks a result against the tool's own schema.
    #[expect(clippy::needless_pass_by_value, reason = "arguments are written at the call")]
    #[track_caller]
    pub(super) fn reply(&self, tool: &str, arguments: Value) -> Outcome {
        let reply = match &self.server {
            Some(server) => server.call(tool, &arguments).json(),
            None => self.home.call(tool, &arguments),
        };
        self.judged(tool, &arguments, reply)
    }

    /// The same with the approval of the person who has the data folder.
    #[expect(clippy::needless_pass_by_value, reason = "arguments are written at the call")]
    #[track_caller]
    pub(super) fn approved(&self, tool: &str, arguments: Value) -> Outcome {
        let reply = match &self.server {
            Some(server) => {
                let body = json!({ "tool": tool, "arguments": arguments, "approve": true }).to_string();
                let headers = [("content-type", "application/json")];
                gantry_testkit::server::send(
                    &server.admin(),
                    http::Method::POST,
                    "/api/v1/calls",
                    &headers,
                    &body,
                )
                .json()
            }
            None => self.home.call_yes(tool, &arguments),
        };
        self.judged(tool, &arguments, reply)
    }

    #[track_caller]
    fn judged(&self, tool: &str, arguments: &Value, mut reply: Value) -> Outcome {
        assert!(!reply.to_string().contains(SECRET), "{tool} {arguments} told the secret: {reply}");
        if reply["ok"] == true {
            let result = reply["result"].take();
            if let Err(violations) = self.schemas[tool].check(&result) {
                panic!("{tool} {arguments} gave {result}, which does not fit its schema: {violations:?}");
            }
            return Outcome::Done(result);
        }
        assert!(reply.get("result").is_none_or(Value::is_null), "{reply}");
        Outcome::Failed(reply["error"].take())
    }

    #[track_caller]
    pub(super) fn done(&self, tool: &str, arguments: Value) -> Value {
        done(self.reply(tool, arguments))
    }

    #[track_caller]
    pub(super) fn done_approved(&self, tool: &str, arguments: Value) -> Value {
        done(self.approved(tool, arguments))
    }

    #[track_caller]
    pub(super) fn error(&self, tool: &str, arguments: Value) -> Value {
        self.reply(tool, arguments).error()
    }

    #[track_caller]
    pub(super) fn code(&self, tool: &str, arguments: Value) -> String {
        self.reply(tool, arguments).code()
    }
}

#[track_caller]
fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(result) => result,
        Outcome::Failed(error) => panic!("it failed: {error}"),
    }
}

/// Every path below a folder, with its content, mode and time of change.
pub(super) fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = path.symlink_metadata().expect("it is there");
        let content = if metadata.is_symlink() {
            format!("-> {}", fs::read_link(&path).expect("a link").display())
        } else if metadata.is_dir() {
            pending
                .extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            "/".to_owned()
        } else {
            format!("{:?}", fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        let (mode, seconds, nanos) = (metadata.mode(), metadata.mtime(), metadata.mtime_nsec());
        found.insert(path, format!("{mode:o} {seconds}.{nanos:09} {content}"));
    }
    found
}

//! A Gantry with a workspace to run code in, as the user who runs the tests and, where that is root, as an ordinary one too.

use gantry_testkit::server::Answer;
use gantry_testkit::{Server, TestDir, process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A user that no machine has.
const ORDINARY: u32 = 61_234;

/// How long a condition may take to hold.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What no program in a sandbox may read. It stands beside the workspace, in the environment, and in the home folder.
pub(super) const SECRET: &str = "the canary sings outside";

/// Results are passed on whole, so that tests see them.
const WHOLE: &str = "defaults: { toolResponseMaxBytes: 50000000 }\n";

/// A running Gantry whose workspace is the folder `ws` of its home.
pub(super) struct Site {
    pub(super) home: TestDir,
    server: Option<Server>,
    /// In the environment of everything that its calls run, and nowhere else on the machine.
    pub(super) mark: String,
    /// What the process held after the first call.
    before: Held,
}

/// What a process holds: files, pipes and sockets by what they are, and mounts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Held(BTreeMap<String, usize>);

impl Held {
    fn by(pid: u32) -> Self {
        let mut held = BTreeMap::new();
        let mounts = std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).expect("the process runs");
        held.insert("mounts".to_owned(), mounts.lines().count());
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs").flatten() {
            let Ok(target) = std::fs::read_link(entry.path()) else { continue };
            let what = target.display().to_string();
            let kind = what.split(":[").next().unwrap_or_default().to_owned();
            *held.entry(kind).or_default() += 1;
        }
        // The store keeps as many connections as its readers needed at once.
        held.retain(|what, _| !what.contains("/gantry.db"));
        Self(held)
    }

    /// What this has more of than that, but for one connection of the test's own that may still be open, and for what a
    /// helper of the sandbox is held by that waits for the next job.
    fn beyond(&self, before: &Self) -> Vec<String> {
        let more = |what: &str| match what {
            "socket" | "pipe" => 2,
            "anon_inode" => 1,
            _ => 0,
        };
        let known = |what: &str| before.0.get(what).copied().unwrap_or_default() + more(what);
        let grown = self.0.iter().filter(|(what, n)| **n > known(what));
        grown.map(|(what, n)| format!("{n} × {what} instead of {}", known(what))).collect()
    }
}

impl Site {
    /// Runs a scenario in a place of its own for each kind of user that there is, and checks what is left.
    pub(super) fn each(config: &str, scenario: impl Fn(&Self)) {
        for home in homes() {
            let site = Self::at(home, config);
            scenario(&site);
            site.settled();
        }
    }

    /// The same as one user only, for what does not depend on that.
    pub(super) fn one(config: &str) -> Self {
        Self::at(home(), config)
    }

    /// Starts Gantry in this home with this configuration.
    pub(super) fn at(home: TestDir, config: &str) -> Self {
        let mut site = Self::prepared(home, config);
        site.start();
        site
    }

    /// The same without a server.
    pub(super) fn prepared(home: TestDir, config: &str) -> Self {
        static SITES: AtomicUsize = AtomicUsize::new(0);
        let n = SITES.fetch_add(1, Ordering::Relaxed);
        let mark = format!("gantry-mark-{}-{n}-end", std::process::id());
        std::fs::create_dir_all(home.path().join("ws")).expect("the workspace");
        home.write("outside/secret", SECRET);
        home.write("person/.ssh/id_ed25519", SECRET);
        let person = home.path().join("person").display().to_string();
        let home = home
            .config(&format!("workspace: ws\n{WHOLE}{config}"))
            .env("HOME", &person)
            .env("CANARY_TOKEN", SECRET);
        Self { home, server: None, mark, before: Held::default() }
    }

    pub(super) fn start(&mut self) {
        let server = self.home.serve();
        // What is opened lazily is open before anything is counted.
        server.call("list_directory", &json!({ "path": "." }));
        self.server = Some(server);
        let warm = self.code("bash", ":");
        assert_eq!(warm["exitCode"], 0, "{warm}");
        self.before = Held::by(self.server().pid());
    }

    pub(super) fn server(&self) -> &Server {
        self.server.as_ref().expect("a server")
    }

    /// Kills the server with SIGKILL.
    pub(super) fn kill(&mut self) {
        self.server.take().expect("a server").kill();
    }

    /// Asks the server to stop and waits for that.
    pub(super) fn stopped(mut self) -> Self {
        let (code, said) = self.server.take().expect("a server").stop();
        assert_eq!(code, 0, "{said}");
        self
    }

    /// A path in the workspace.
    pub(super) fn inside(&self, path: &str) -> PathBuf {
        self.home.path().join("ws").join(path)
    }

    /// A file in the workspace.
    pub(super) fn put(&self, path: &str, content: &str) {
        self.home.write(&format!("ws/{path}"), content);
        self.own(path);
    }

    /// Gives what the test made in the workspace, with the folders above it, to the owner of the workspace.
    pub(super) fn own(&self, path: &str) {
        use std::os::unix::fs::{MetadataExt as _, lchown};
        let root = self.inside("");
        let owner = root.metadata().expect("the workspace");
        let path = self.inside(path);
        for path in path.ancestors().take_while(|path| path.starts_with(&root)) {
            lchown(path, Some(owner.uid()), Some(owner.gid())).expect("the tests may do that");
        }
    }

    /// Every path in the workspace.
    pub(super) fn files(&self) -> BTreeSet<String> {
        let root = self.inside("");
        let mut found = BTreeSet::new();
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            let entries = match std::fs::read_dir(&folder) {
                // Between two looks it may have been tidied away.
                Err(error) if error.kind() == ErrorKind::NotFound && folder != root => continue,
                entries => entries.expect("a folder"),
            };
            for entry in entries {
                let path = entry.expect("an entry").path();
                if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    open.push(path.clone());
                }
                found.insert(path.strip_prefix(&root).expect("below it").display().to_string());
            }
        }
        found
    }

    /// Holds the workspace to what it should have, and nothing else.
    #[track_caller]
    pub(super) fn has_files(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|path| (*path).to_owned()).collect();
        assert_eq!(self.files(), expected, "what is in the workspace");
    }

    /// The same for a call that was given up: its reply does not wait until everything is tidied up.
    #[track_caller]
    pub(super) fn comes_to_have(&self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|path| (*path).to_owned()).collect();
        eventually_or("the workspace is tidy", || {
            let files = self.files();
            if files == expected { Ok(()) } else { Err(format!("{files:?}")) }
        });
    }

    /// Makes a call and holds its reply against the ledger.
    #[track_caller]
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer: Answer = self.server().call(tool, arguments);
        let reply = answer.json();
        assert!(!answer.text.contains(SECRET), "{tool} told the secret: {reply}");
        self.on_record(&reply);
        reply
    }

    /// The row of a reply says the same as the reply.
    #[track_caller]
    pub(super) fn on_record(&self, reply: &Value) {
        let id = reply["id"].as_str().unwrap_or_else(|| panic!("no id: {reply}"));
        let record = || self.server().get_as_admin(&format!("/api/v1/calls/{id}")).json()["record"].take();
        eventually("the call is on record", || !record()["state"].is_null());
        let row = record();
        assert_eq!(row["state"], reply["state"], "{row}\n{reply}");
        let code = &reply["error"]["code"];
        assert_eq!(&row["error"]["code"], code, "{row}");
        if reply["ok"] == true {
            assert_eq!(
                (&row["state"], &row["effectState"]),
                (&json!("COMPLETED_SUCCESS"), &json!("done")),
                "{row}"
            );
        } else if ["PERMISSION_DENIED", "INVALID_ARGUMENTS"].iter().any(|refused| code == refused) {
            assert_eq!(row["effectState"], "none", "{row}");
        }
    }

    /// `run_code` with the mark, and its reply.
    #[track_caller]
    pub(super) fn reply(&self, language: &str, code: &str, more: &Value) -> Value {
        self.call("run_code", &self.arguments(language, code, more))
    }

    /// The arguments of `run_code` with the mark.
    pub(super) fn arguments(&self, language: &str, code: &str, more: &Value) -> Value {
        let mut arguments =
            json!({ "language": language, "code": code, "env": { "MARK": self.mark }, "timeout": 50 });
        for (name, value) in more.as_object().into_iter().flatten() {
            match (name.as_str(), value.as_object()) {
                ("env", Some(env)) => {
                    env.iter().for_each(|(key, value)| arguments["env"][key] = value.clone())
                }
                _ => arguments[name] = value.clone(),
            }
        }
        arguments
    }

    /// The result of code that runs to its end, with any output.
    #[track_caller]
    pub(super) fn code(&self, language: &str, code: &str) -> Value {
        self.code_with(language, code, &json!({}))
    }

    /// The same with more arguments.
    #[track_caller]
    pub(super) fn code_with(&self, language: &str, code: &str, more: &Value) -> Value {
        let mut reply = self.reply(language, code, more);
        assert_eq!(reply["ok"], true, "{reply}");
        reply["result"].take()
    }

    /// What Python code prints, as JSON; it has to end well.
    #[track_caller]
    pub(super) fn python(&self, code: &str, args: &[&str]) -> Value {
        let result = self.code_with("python", code, &json!({ "args": args }));
        assert_eq!(result["exitCode"], 0, "{result}");
        let text = result["stdout"].as_str().expect("a text");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON: {error}\n{result}"))
    }

    /// The error of code that does not run to its end.
    #[track_caller]
    pub(super) fn error(&self, language: &str, code: &str, more: &Value) -> Value {
        let mut reply = self.reply(language, code, more);
        assert_eq!(reply["ok"], false, "{reply}");
        reply["error"].take()
    }

    /// Nothing that carries the mark runs any more, nor anything that Gantry started; it holds what it held, and answers.
    #[track_caller]
    pub(super) fn settled(&self) {
        self.nothing_runs();
        let pid = self.server().pid();
        eventually("the helpers of the sandbox are gone", || {
            process::descendants(pid).is_empty() && process::zombies(pid) == 0
        });
        eventually_or("Gantry holds what it held", || {
            let grown = Held::by(pid).beyond(&self.before);
            if grown.is_empty() { Ok(()) } else { Err(grown.join(", ")) }
        });
        assert_eq!(self.server().get("/readyz").status, 200);
        let alive = self.code("bash", "echo alive");
        assert_eq!((&alive["stdout"], &alive["exitCode"]), (&json!("alive\n"), &json!(0)));
    }

    /// Nothing that carries the mark runs any more, on the whole machine.
    #[track_caller]
    pub(super) fn nothing_runs(&self) {
        eventually_or("everything that the call started is gone", || {
            let left = process::find_processes(&self.mark);
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
}

/// A home for each kind of user that there is here.
pub(super) fn homes() -> Vec<TestDir> {
    let mut homes = vec![home()];
    if is_root() {
        homes.push(home().run_by(ORDINARY));
    }
    homes
}

/// A home whose sandbox is the one that the tests are to be run with, if that is said, or else the best there is.
fn home() -> TestDir {
    match std::env::var("GANTRY_TEST_SANDBOX") {
        Ok(level) => TestDir::new().env("GANTRY_SANDBOX", &level),
        Err(_) => TestDir::new(),
    }
}

/// Whether the tests run as root.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Waits until a condition holds.
#[track_caller]
pub(super) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    eventually_or(what, || if holds() { Ok(()) } else { Err(String::new()) });
}

/// The same for a condition that says what is against it.
#[track_caller]
fn eventually_or(what: &str, mut holds: impl FnMut() -> Result<(), String>) {
    let end = Instant::now() + TIMEOUT;
    while let Err(why) = holds() {
        assert!(Instant::now() < end, "never: {what} {why}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The text of a message, in which all of these words are.
#[track_caller]
pub(super) fn says(error: &Value, words: &[&str]) {
    let message = error["message"].as_str().unwrap_or_else(|| panic!("no message: {error}"));
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

/// A path as an argument of a program.
pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}

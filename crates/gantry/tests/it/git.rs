//! The git tools through the built program, on real repositories: what they show, what they commit, what they push, and what
//! a hostile repository gets out of them.

#![cfg(test)]

mod bound;
mod commit;
mod hooks;
mod look;
mod push;
mod secrets;
mod traps;

use gantry_core::schema::Schema;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// A home whose workspace is a repository on the branch `main`.
struct Repo {
    home: TestDir,
}

/// Runs git as a person does, on this machine, with no settings of the machine's; what it printed.
#[track_caller]
fn git_in(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "safe.directory=*"])
        .args(["-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

impl Repo {
    /// A repository without a commit.
    fn empty() -> Self {
        Self::with("{}")
    }

    /// The same with this configuration of Gantry.
    fn with(yaml: &str) -> Self {
        let home = TestDir::new().config(yaml);
        let repo = Self { home };
        repo.git(&["init", "--quiet"]);
        // What belongs to Gantry is left out here.
        repo.home.write(".git/info/exclude", "gantry.yaml\n.gantry\n.env\n");
        repo
    }

    /// A repository with one commit: the file `a.txt`.
    fn new() -> Self {
        Self::empty().started()
    }

    fn started(self) -> Self {
        self.home.write("a.txt", "one\ntwo\n");
        self.git(&["add", "a.txt"]);
        self.git(&["commit", "--quiet", "--message=First"]);
        self
    }

    /// The same program with this variable in its environment.
    fn env(self, name: &str, value: &str) -> Self {
        Self { home: self.home.env(name, value) }
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        git_in(self.home.path(), args)
    }

    fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// What git on this machine says is not as committed.
    fn dirty(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }

    /// Makes a hook of the repository.
    fn hook(&self, name: &str, script: &str) {
        let path = format!(".git/hooks/{name}");
        self.home.write(&path, &format!("#!/bin/sh\n{script}\n"));
        let path = self.home.path().join(path);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("its mode");
    }

    /// The result of a call that needs no approval, or has it.
    #[track_caller]
    fn done(&self, tool: &str, arguments: &Value) -> Value {
        let reply = self.home.call_yes(tool, arguments);
        assert_eq!(reply["ok"], true, "{tool} {arguments}: {reply}");
        self.fits(tool, &reply["result"]);
        reply["result"].clone()
    }

    /// The code and the message of a call that fails although a person says yes.
    #[track_caller]
    fn fails(&self, tool: &str, arguments: &Value) -> (String, String) {
        let reply = self.home.call_yes(tool, arguments);
        assert_eq!(reply["ok"], false, "{tool} {arguments}: {reply}");
        let text = |key: &str| reply["error"][key].as_str().expect("a text").to_owned();
        (text("code"), text("message"))
    }

    /// Holds a result to the schema that the tool announces.
    #[track_caller]
    fn fits(&self, tool: &str, result: &Value) {
        static TOOLS: OnceLock<Value> = OnceLock::new();
        let tools = TOOLS.get_or_init(|| self.home.run(["tools", "--format", "json"]).json());
        let tool =
            tools.as_array().expect("a list").iter().find(|item| item["name"] == tool).expect("the tool");
        Schema::compile(&tool["outputSchema"]).expect("a schema").check(result).expect("a result that fits");
    }

    /// Every file in `.git`, with its content.
    fn inside(&self) -> BTreeMap<String, Vec<u8>> {
        fn add(folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    add(&path, all);
                } else {
                    all.insert(path.display().to_string(), std::fs::read(&path).expect("a file"));
                }
            }
        }
        let mut all = BTreeMap::new();
        add(&self.home.path().join(".git"), &mut all);
        all
    }
}

/// A call that waits for a person: its ids, and what the person is asked.
struct Held {
    call: String,
    approval: String,
    reason: String,
}

#[track_caller]
fn held(server: &Server, tool: &str, arguments: &Value) -> Held {
    let answer = server.call(tool, arguments);
    let reply = answer.json();
    assert_eq!((answer.status, &reply["state"]), (202, &json!("PENDING_APPROVAL")), "{answer:?}");
    let call = reply["id"].as_str().expect("an id");
    let held = Held::of(server, call).expect("the approval");
    assert_eq!(reply["approvalId"], *held.approval);
    held
}

impl Held {
    /// The question about a call that waits for an answer.
    fn of(server: &Server, call: &str) -> Option<Self> {
        let listed = server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL").json();
        let items = listed["items"].as_array().expect("a list");
        let item = items.iter().find(|item| item["callId"] == *call)?;
        let text = |key: &str| item[key].as_str().expect("a text").to_owned();
        Some(Self { call: call.to_owned(), approval: text("id"), reason: text("reason") })
    }

    /// Says yes, and waits for the reply.
    #[track_caller]
    fn approve(&self, server: &Server) -> Value {
        self.decide(server, true);
        self.reply(server)
    }

    /// Says no, and waits for the reply.
    #[track_caller]
    fn deny(&self, server: &Server) -> Value {
        self.decide(server, false);
        self.reply(server)
    }

    /// Says yes to what is not so any more; what is asked then.
    #[track_caller]
    fn approve_too_late(&self, server: &Server) -> Self {
        self.decide(server, true);
        let mut again = None;
        server.eventually("it is asked again", || {
            again = Self::of(server, &self.call).filter(|again| again.approval != self.approval);
            again.is_some()
        });
        again.expect("the question")
    }

    #[track_caller]
    fn decide(&self, server: &Server, approved: bool) {
        let path = format!("/api/v1/approvals/{}/decision", self.approval);
        let body = json!({ "approved": approved }).to_string();
        let headers = [("content-type", "application/json")];
        let answer =
            gantry_testkit::server::send(&server.admin(), http::Method::POST, &path, &headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    #[track_caller]
    fn reply(&self, server: &Server) -> Value {
        server.get_as_admin(&format!("/api/v1/calls/{}?wait=30", self.call)).json()
    }
}

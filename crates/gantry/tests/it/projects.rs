//! Projects: what is one's own is not the other's, and what changes in one is not felt in the other.
//!
//! Most tests have two, `default` and `other`, with a server `s` in each that is not the same server.

mod apart;
mod doors;
mod notifications;
mod pool;

use crate::passthrough::Talk;
use gantry_testkit::faulty::Faulty;
pub(crate) use gantry_testkit::faulty::entry as faulty;
use gantry_testkit::server::{Answer, send};
pub(crate) use gantry_testkit::with;
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A Gantry with projects, serving.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) home: TestDir,
}

/// The same, which knows who it is: its tool `env` tells.
pub(crate) fn named(who: &str) -> Value {
    json!({ "command": Faulty::program(), "env": { "WHO": who } })
}

/// A server that writes down, in a file of the home, every message that it is sent.
pub(crate) fn heard_in(file: &str, who: &str) -> Value {
    let env = json!({ "FAULTY": Faulty::program(), "WHO": who });
    json!({ "command": "sh", "args": ["-c", "tee -a \"$0\" | $FAULTY", format!("./{file}")], "env": env })
}

/// Two projects, each with a workspace and a server `s` of its own.
pub(crate) fn pair() -> Value {
    json!({
        "workspace": "one",
        "mcpServers": { "s": named("one") },
        "projects": { "other": { "workspace": "two", "mcpServers": { "s": named("two") } } },
    })
}

/// A home for this configuration, with the workspaces `one` and `two`.
pub(crate) fn furnished(home: TestDir, config: &Value) -> TestDir {
    home.write("one/mine.txt", "of one");
    home.write("two/yours.txt", "of two");
    home.config(&config.to_string())
}

impl Site {
    /// Serves with this configuration, and waits until every server has started or failed.
    #[track_caller]
    pub(crate) fn of(config: &Value) -> Self {
        Self::at(furnished(TestDir::new(), config))
    }

    /// The same with test tools, which are in every project.
    #[track_caller]
    pub(crate) fn with_test_tools(config: &Value) -> Self {
        Self::at(furnished(TestDir::with_test_tools(), config))
    }

    #[track_caller]
    pub(crate) fn at(home: TestDir) -> Self {
        let site = Self { server: home.serve(), home };
        site.settled();
        site
    }

    /// Waits until no server is starting, and all that they have can be seen.
    #[track_caller]
    pub(crate) fn settled(&self) {
        self.server.eventually("every server has started", || {
            let servers = self.server.get_as_admin("/api/v1/servers").json();
            servers["items"].as_array().expect("servers").iter().all(|server| server["status"] != "starting")
        });
        for server in self.server.get("/api/v1/servers").json()["items"].as_array().expect("servers") {
            if server["status"] == "ready" {
                let text = |key: &str| server[key].as_str().expect("a text").to_owned();
                self.ready(&text("project"), &text("id"));
            }
        }
    }

    /// Waits until the tools of a server can be called.
    #[track_caller]
    pub(crate) fn ready(&self, project: &str, id: &str) {
        let explain = format!("/api/v1/explain?project={project}&tool=@{id}/pid");
        self.server.eventually(&format!("{id} of {project} is ready"), || {
            self.status(project, id)["status"] == "ready"
                && self.server.get_as_admin(&explain).json()["visible"] == true
        });
    }

    /// A server as those who administer see it.
    #[track_caller]
    pub(crate) fn status(&self, project: &str, id: &str) -> Value {
        self.server.get_as_admin(&format!("/api/v1/servers/{id}?project={project}")).json()
    }

    /// A call in a project, without a key.
    #[track_caller]
    pub(crate) fn call(&self, project: &str, tool: &str, arguments: &Value) -> Answer {
        self.post(&json!({ "project": project, "tool": tool, "arguments": arguments }))
    }

    #[track_caller]
    pub(crate) fn post(&self, call: &Value) -> Answer {
        self.server.post("/api/v1/calls", &call.to_string())
    }

    /// What a call answers that has to work.
    #[track_caller]
    pub(crate) fn result(&self, project: &str, tool: &str, arguments: &Value) -> String {
        let reply = self.call(project, tool, arguments).json();
        assert_eq!(reply["ok"], true, "{tool} in {project}: {reply}");
        reply["result"].as_str().unwrap_or_else(|| panic!("no text: {reply}")).to_owned()
    }

    /// The error of a call that has to fail with this code.
    #[track_caller]
    pub(crate) fn error(&self, project: &str, tool: &str, arguments: &Value, code: &str) -> String {
        let reply = self.call(project, tool, arguments).json();
        assert_eq!((&reply["ok"], &reply["error"]["code"]), (&json!(false), &json!(code)), "{tool}: {reply}");
        reply["error"]["message"].as_str().expect("a message").to_owned()
    }

    /// The process of a server.
    #[track_caller]
    pub(crate) fn pid(&self, project: &str, id: &str) -> String {
        self.result(project, &format!("{id}__pid"), &json!({}))
    }

    /// What a server finds in this variable of its environment.
    #[track_caller]
    pub(crate) fn variable(&self, project: &str, id: &str, name: &str) -> Value {
        let env = self.result(project, &format!("{id}__env"), &json!({}));
        serde_json::from_str::<Value>(&env).expect("an object")[name].clone()
    }

    /// The names of the tools of a project.
    #[track_caller]
    pub(crate) fn tools(&self, project: &str) -> Vec<String> {
        let listed = self.server.get(&format!("/api/v1/tools?project={project}")).json();
        crate::passthrough::names(&listed["items"])
    }

    /// A request with the key.
    pub(crate) fn admin(&self, method: Method, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send(&self.server.admin(), method, path, &[], &body)
    }

    /// What happened, of this type, from this number on; without what is of no project if one is named.
    pub(crate) fn events(&self, kind: &str, from: u64) -> Vec<Value> {
        let outcome = self.server.get_as_admin("/api/v1/events?follow=false").text;
        let events = outcome.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = events.map(|text| serde_json::from_str::<Value>(text).expect("an event"));
        events.filter(|event| event["type"] == kind && event["seq"].as_u64() >= Some(from)).collect()
    }

    /// The number of the next event.
    pub(crate) fn now(&self) -> u64 {
        let outcome = self.server.get_as_admin("/api/v1/events?follow=false").text;
        let last = outcome.lines().filter_map(|line| line.strip_prefix("id: ")).next_back();
        last.map_or(0, |id| id.parse::<u64>().expect("a number") + 1)
    }

    /// Changes the file and waits until that holds, applied by an administrator where it is held; returns which projects are other than before.
    #[track_caller]
    pub(crate) fn edit(&self, config: &Value) -> Vec<String> {
        self.edit_file("gantry.yaml", &config.to_string())
    }

    /// The same with any file of the configuration.
    #[track_caller]
    pub(crate) fn edit_file(&self, name: &str, content: &str) -> Vec<String> {
        let from = self.now();
        self.home.write(name, content);
        self.applied(from)
    }

    /// Waits until a change holds that was made after this event; returns which projects are other than before.
    #[track_caller]
    pub(crate) fn applied(&self, from: u64) -> Vec<String> {
        self.server.eventually("the change holds", || {
            let refused = self.events("configuration_refused", from);
            assert!(refused.is_empty(), "{refused:?}");
            let is_applied = !self.events("configuration_applied", from).is_empty();
            if !is_applied && !self.events("configuration_held", from).is_empty() {
                // A file that has changed since is held anew.
                self.server.apply_configuration();
            }
            is_applied
        });
        let applied = self.events("configuration_applied", from);
        assert_eq!(applied.len(), 1, "{applied:?}");
        let projects = applied[0]["projects"].as_array().expect("projects");
        projects.iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
    }

    /// Writes a file whose change is held, waits for that, and returns why.
    #[track_caller]
    pub(crate) fn held(&self, name: &str, content: &str) -> Vec<String> {
        self.home.write(name, content);
        self.is_held()
    }

    /// Waits until a change is held, and returns why.
    #[track_caller]
    pub(crate) fn is_held(&self) -> Vec<String> {
        let held = || self.server.get_as_admin("/api/v1/config").json()["held"]["reasons"].take();
        self.server.eventually("a change is held", || !held().is_null());
        serde_json::from_value(held()).expect("reasons")
    }

    /// Waits until no change is held.
    #[track_caller]
    pub(crate) fn is_free(&self) {
        let held = || self.server.get_as_admin("/api/v1/config").json()["held"].take();
        self.server.eventually("no change is held", || held().is_null());
    }

    /// Writes a file that must not hold, waits until it is refused, and returns why.
    #[track_caller]
    pub(crate) fn refused(&self, name: &str, content: &str) -> String {
        let from = self.now();
        self.home.write(name, content);
        self.server.eventually("the file is refused", || {
            let applied = self.events("configuration_applied", from);
            assert!(applied.is_empty(), "{content}\n{applied:?}");
            !self.events("configuration_refused", from).is_empty()
        });
        let refused = self.events("configuration_refused", from);
        refused[0]["reason"].as_str().expect("a reason").to_owned()
    }

    /// Reads the file again at once.
    #[track_caller]
    pub(crate) fn reload(&self) -> Answer {
        self.admin(Method::POST, "/api/v1/config/reload", &Value::Null)
    }

    /// How many requests of this method a server has got that writes them down in this file.
    pub(crate) fn requests(&self, file: &str, method: &str) -> usize {
        let heard = std::fs::read_to_string(self.home.path().join(file)).unwrap_or_default();
        heard.matches(&format!("\"method\":\"{method}\"")).count()
    }

    /// A client of the older era in a project.
    #[track_caller]
    pub(crate) fn client(&self, project: &str) -> Talk {
        Talk::legacy(crate::passthrough::Door::Http(&self.server, &format!("/mcp/{project}")))
    }
}

/// Whether a process runs.
pub(crate) fn is_running(pid: &str) -> bool {
    gantry_testkit::process::is_running(pid.parse().expect("a process id"))
}

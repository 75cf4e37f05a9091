//! Approvals delivered to MCP clients that others wrote: by forms, addresses, tasks, and calls that are held open.

mod delivery;
mod edited;
mod effects;
mod first;
mod forms;
mod keys;
mod nested;
mod pending;
mod tasks;
mod urls;
mod withdrawn;

use super::api;
use crate::mcp_sdks::{Door, PYTHON, Sdk, TYPESCRIPT_1, TYPESCRIPT_2};
use gantry_testkit::server::Answer;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// The tool that waits for a person; what it does is a line in a file.
const COUNT: &str = "test__count";

/// The rule that makes it wait.
const RULE: &str = "requiresApprovalTools: [test__count]";

/// Clients with a handshake.
const LEGACY: [(Sdk, &str); 3] = [(PYTHON, "legacy"), (TYPESCRIPT_1, "legacy"), (TYPESCRIPT_2, "legacy")];

/// Clients of 2026-07-28.
const MODERN: [(Sdk, &str); 2] = [(PYTHON, "auto"), (TYPESCRIPT_2, "auto")];

/// Every client in every era that it speaks.
fn clients() -> impl Iterator<Item = (Sdk, &'static str)> {
    LEGACY.into_iter().chain(MODERN)
}

/// A Gantry in which calls wait for a person, serving.
struct Gate {
    server: Server,
    home: TestDir,
}

impl Gate {
    /// One with the usual rule, and more about approvals.
    fn new(more: &str) -> Self {
        Self::at(home(more))
    }

    fn at(home: TestDir) -> Self {
        Self { server: home.serve(), home }
    }

    fn door(&self) -> Door<'_> {
        Door::Http(&self.server)
    }

    /// The requests in this state, newest first.
    fn requests(&self, state: &str) -> Vec<Value> {
        let answer = self.server.get_as_admin(&format!("/api/v1/approvals?state={state}"));
        answer.json()["items"].as_array().unwrap_or_else(|| panic!("{answer:?}")).clone()
    }

    /// The one request that waits, when there is one.
    #[track_caller]
    fn pending(&self) -> String {
        let mut found = Vec::new();
        self.server.eventually("a call waits", || {
            found = self.requests("PENDING_APPROVAL");
            !found.is_empty()
        });
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]["id"].as_str().expect("an id").to_owned()
    }

    /// Decides as the person whose folder it is.
    #[track_caller]
    fn decide(&self, approval: &str, body: &Value) -> Answer {
        let decided = api::decide(&self.server.admin(), approval, body);
        assert_eq!(decided.status, 200, "{decided:?}");
        decided
    }

    /// Says yes to the one request that waits.
    #[track_caller]
    fn approve(&self) -> String {
        let approval = self.pending();
        self.decide(&approval, &json!({ "approved": true }));
        approval
    }

    /// Everything about a request.
    #[track_caller]
    fn item(&self, approval: &str) -> Value {
        let answer = self.server.get_as_admin(&format!("/api/v1/approvals/{approval}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Waits until a request is in this state.
    #[track_caller]
    fn becomes(&self, approval: &str, state: &str) {
        let is_it = || self.item(approval)["state"] == state;
        self.server.eventually(&format!("{approval} is {state}"), is_it);
    }

    fn counted(&self) -> Vec<String> {
        api::counted(&self.home)
    }
}

/// A home with the usual rule, and more about approvals.
fn home(more: &str) -> TestDir {
    TestDir::with_test_tools().config(&format!("approvals: {{ {RULE}, {more} }}\n"))
}

/// A step that adds a line to the file.
fn count(text: &str) -> Value {
    json!({ "call": { "name": COUNT, "arguments": api::count(text) } })
}

/// The same for a client that wants to hear of progress.
fn watched(text: &str) -> Value {
    let mut step = count(text);
    step["call"]["progress"] = json!(true);
    step
}

/// The only step that was played.
#[track_caller]
fn only(seen: &Value) -> &Value {
    assert_eq!(seen["steps"].as_array().map(Vec::len), Some(1), "{seen}");
    &seen["steps"][0]
}

/// The text of a result, which has to be one.
#[track_caller]
fn text(step: &Value) -> &str {
    assert_eq!(step["content"].as_array().map(Vec::len), Some(1), "{step}");
    step["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {step}"))
}

/// The step is the result of a call that ran.
#[track_caller]
fn ran(step: &Value, line: &str) {
    assert_eq!(step["isError"], false, "{step}");
    assert_eq!(text(step), json!({ "counted": line }).to_string(), "{step}");
}

/// The step failed with this code; what the model reads.
#[track_caller]
fn failed<'s>(step: &'s Value, code: &str) -> &'s str {
    assert_eq!(
        (&step["isError"], &step["_meta"]["gantry/error"]["code"]),
        (&json!(true), &json!(code)),
        "{step}"
    );
    text(step)
}

/// What the client was asked in this step: nothing, or one thing.
#[track_caller]
fn asked(step: &Value) -> Option<&Value> {
    let asked = step.get("asked")?.as_array().expect("questions");
    assert_eq!(asked.len(), 1, "{step}");
    assert_eq!(asked[0]["method"], "elicitation/create", "{step}");
    Some(&asked[0]["params"])
}

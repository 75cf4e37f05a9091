//! Calls that wait, people with keys, and what is on record of both: what the tests of the hard promises share.

use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// The approval.
    pub(super) id: String,
    /// The call.
    pub(super) call: String,
}

impl Held {
    /// What an answer says of a call that has to wait.
    #[track_caller]
    pub(super) fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 202, "{answer:?}");
        let reply = answer.json();
        assert_eq!(reply["error"]["code"], "APPROVAL_REQUIRED", "{reply}");
        Self { id: text(&reply["approvalId"]), call: text(&reply["id"]) }
    }

    /// The path of what is done to it.
    pub(super) fn path(&self, what: &str) -> String {
        format!("/api/v1/approvals/{}/{what}", self.id)
    }
}

/// A call, with this key or without one.
#[track_caller]
pub(super) fn call(server: &Server, key: Option<&str>, body: &Value) -> Answer {
    ask(server, key, Method::POST, "/api/v1/calls", body)
}

/// A call that has to wait.
#[track_caller]
pub(super) fn hold(server: &Server, key: Option<&str>, tool: &str, arguments: &Value) -> Held {
    Held::of(&call(server, key, &json!({ "tool": tool, "arguments": arguments })))
}

/// The arguments of a `test__count` whose effect is a line in `counted`.
pub(super) fn line(text: &str) -> Value {
    json!({ "file": "counted", "text": text })
}

/// The lines that were counted.
pub(super) fn lines(home: &TestDir) -> Vec<String> {
    home.lines("counted")
}

/// A request with a key, or without one.
#[track_caller]
pub(super) fn ask(server: &Server, key: Option<&str>, method: Method, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let key = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(key.as_deref().map(|key| ("authorization", key)));
    send(&server.client(), method, path, &headers, &body)
}

/// Makes a key.
#[track_caller]
pub(super) fn key(server: &Server, role: &str, name: &str, more: &Value) -> String {
    let mut body = json!({ "role": role, "name": name });
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    let made = ask(server, Some(&server.key), Method::POST, "/api/v1/keys", &body);
    assert_eq!(made.status, 201, "{made:?}");
    text(&made.json()["key"])
}

/// Decides, with this key.
#[track_caller]
pub(super) fn decide(server: &Server, key: &str, held: &Held, body: &Value) -> Answer {
    ask(server, Some(key), Method::POST, &held.path("decision"), body)
}

/// Says yes as the person of the data folder.
#[track_caller]
pub(super) fn approve(server: &Server, held: &Held) -> Value {
    let decided = decide(server, &server.key, held, &json!({ "approved": true }));
    assert_eq!(decided.status, 200, "{decided:?}");
    decided.json()
}

/// How an approval stands.
#[track_caller]
pub(super) fn item(server: &Server, id: &str) -> Value {
    let shown = server.get_as_admin(&format!("/api/v1/approvals/{id}"));
    assert_eq!(shown.status, 200, "{shown:?}");
    shown.json()
}

/// Waits until an approval is over, and says how it stands then.
#[track_caller]
pub(super) fn over(server: &Server, held: &Held) -> Value {
    server.eventually("it is over", || is_over(&item(server, &held.id)));
    item(server, &held.id)
}

/// Whether nothing more happens to it.
pub(super) fn is_over(item: &Value) -> bool {
    let goes_on = ["PENDING_APPROVAL", "SCHEDULED_FOR_EXECUTION", "APPROVED_READY", "EXECUTING"];
    !goes_on.iter().any(|state| item["state"] == **state)
}

/// The question that takes the place of one that was answered and is worth nothing any more.
#[track_caller]
pub(super) fn asked_again(server: &Server, before: &Held) -> Value {
    let path = format!("/api/v1/approvals?state=PENDING_APPROVAL&call={}", before.call);
    let asked = || server.get_as_admin(&path).json()["items"].clone();
    server.eventually("it is asked about again", || asked() != json!([]));
    let (again, old) = (asked()[0].clone(), item(server, &before.id));
    assert_eq!(again["supersedes"], *before.id, "{again}");
    assert!(text(&again["reason"]).contains("what was approved has changed"), "{again}");
    assert_eq!(old["state"], "CANCELLED_BY_SYSTEM", "{old}");
    assert!(text(&old["message"]).contains(again["id"].as_str().expect("an id")), "{old}");
    again
}

/// What the ledger has of a call.
#[track_caller]
pub(super) fn record(server: &Server, call: &str) -> Value {
    let shown = server.get_as_admin(&format!("/api/v1/calls/{call}"));
    assert_eq!(shown.status, 200, "{shown:?}");
    shown.json()["record"].clone()
}

/// Every item of a list, page by page, the newest first.
#[track_caller]
pub(super) fn all(server: &Server, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = server.get_as_admin(&format!("{path}{sign}limit=1000{cursor}"));
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        items.extend(page["items"].as_array().expect("items").iter().cloned());
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}

/// The ledger is whole.
#[track_caller]
pub(super) fn verified(server: &Server) {
    let verified = server.get_as_admin("/api/v1/audit/verify").json();
    assert_eq!(verified["ok"], true, "{verified}");
}

#[track_caller]
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

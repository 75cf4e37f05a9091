//! The webhook: what waits, what was decided and how it ended is sent until it is taken, signed, also after a crash.

mod receiver;

use gantry_testkit::{Server, TestDir};
use hyper::Method;
use receiver::{Message, Receiver};
use serde_json::{Value, json};

/// A secret as the scheme writes it, and one that is plain text.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PLAIN: &str = "a plain secret of some length";

/// What is configured of approvals: one tool waits for a person, and this webhook is called.
fn approvals(url: &str, secret: &str, allowed: &[&str]) -> Value {
    json!({
        "requiresApprovalTools": ["test__count"],
        "webhook": { "url": url, "secret": secret, "allowPrivate": allowed },
    })
}

fn home(receiver: &Receiver) -> TestDir {
    home_where(receiver, "test__count")
}

/// A home in which calls of this tool wait for a person.
fn home_where(receiver: &Receiver, tool: &str) -> TestDir {
    let mut approvals = approvals(&receiver.url, SECRET, &["127.0.0.1/32"]);
    approvals["requiresApprovalTools"] = json!([tool]);
    TestDir::with_test_tools().config(&json!({ "approvals": approvals }).to_string())
}

/// Makes a call that is held, and returns its approval and itself.
#[track_caller]
fn held(server: &Server, text: &str) -> (String, String) {
    held_call(server, "test__count", &json!({ "file": "counted", "text": text }))
}

#[track_caller]
fn held_call(server: &Server, tool: &str, arguments: &Value) -> (String, String) {
    let reply = server.call(tool, arguments).json();
    assert_eq!(reply["state"], "PENDING_APPROVAL", "{reply}");
    let field = |name: &str| reply[name].as_str().expect("an id").to_owned();
    (field("approvalId"), field("id"))
}

/// The key of an approver.
#[track_caller]
fn approver(home: &TestDir) -> String {
    let made = home.run(["keys", "create", "--role", "approver", "--name", "ann", "--json"]).json();
    made["key"].as_str().expect("a key").to_owned()
}

/// Decides as the holder of a key, by the address that a message carried.
#[track_caller]
fn decide(server: &Server, key: &str, message: &Message, decision: &Value) -> u16 {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let path = message.body["data"]["decisionUrl"].as_str().expect("an address");
    server.request(Method::POST, path, &headers, &decision.to_string()).status
}

/// What was sent about an approval, in order: the type and the state.
fn reported(receiver: &Receiver, id: &str) -> Vec<(String, String)> {
    let field = |value: &Value| value.as_str().expect("a text").to_owned();
    let messages = receiver.messages();
    let about = messages.iter().filter(|message| message.body["data"]["id"] == id && message.status == 200);
    about.map(|message| (field(&message.body["type"]), field(&message.body["data"]["state"]))).collect()
}

/// Waits until the server has noted that so many messages were taken.
#[track_caller]
fn noted(server: &Server, count: usize) {
    let line = format!("gantry_webhook_messages_total{{project=\"default\",outcome=\"taken\"}} {count}");
    server.eventually(&line, || server.get_as_admin("/metrics").text.lines().any(|at| at == line));
}

#[track_caller]
fn assert_reported(server: &Server, receiver: &Receiver, id: &str, expected: &[(&str, &str)]) {
    server.eventually(&format!("{expected:?}"), || reported(receiver, id).len() >= expected.len());
    let reported = reported(receiver, id);
    let reported: Vec<_> = reported.iter().map(|(kind, state)| (kind.as_str(), state.as_str())).collect();
    assert_eq!(reported, expected);
}

#[test]
fn apr_6_a_request_is_sent_signed_until_it_is_taken_and_a_person_decides_from_what_it_carries() {
    let receiver = Receiver::start();
    receiver.answer([500, 500]);
    let home = home(&receiver);
    let server = home.serve();
    let (id, call) = held(&server, "a");
    server.eventually("it is taken", || receiver.messages().len() >= 3);
    let messages = receiver.messages();
    assert_eq!(messages.iter().map(|message| message.status).collect::<Vec<_>>(), [500, 500, 200]);
    for message in &messages {
        assert_eq!(message.header("webhook-id"), messages[0].header("webhook-id"), "it is the same message");
        assert_eq!(message.header("content-type"), "application/json");
        assert_eq!(message.header("webhook-signature"), message.signature(SECRET));
        assert_ne!(message.header("webhook-signature"), message.signature(PLAIN));
        assert!(!message.raw.contains(SECRET), "{message:?}");
    }
    let message = messages.last().unwrap();
    let data = &message.body["data"];
    assert_eq!(
        (&message.body["type"], &message.body["timestamp"]),
        (&json!("approval.requested"), &data["createdAt"])
    );
    assert_eq!(data["arguments"], json!({ "file": "counted", "text": "a" }));
    assert_eq!(
        (&data["id"], &data["callId"], &data["tool"]),
        (&json!(id), &json!(call), &json!("test__count"))
    );
    assert_eq!(data["page"], format!("http://{}/approvals/{id}", server.address));
    // The same as the API says.
    let mut item = server.get_as_admin(&format!("/api/v1/approvals/{id}")).json();
    item["decisionUrl"] = format!("/api/v1/approvals/{id}/decision").into();
    item["page"] = data["page"].clone();
    assert_eq!(*data, item);

    let key = approver(&home);
    assert_eq!(decide(&server, &key, message, &json!({ "approved": true, "reason": "fine" })), 200);
    let expected = [
        ("approval.requested", "PENDING_APPROVAL"),
        ("approval.decided", "APPROVED_READY"),
        ("approval.completed", "COMPLETED_SUCCESS"),
    ];
    assert_reported(&server, &receiver, &id, &expected);
    assert_eq!(home.read("counted"), "a\n");
    let messages = receiver.messages();
    let decided = messages.iter().find(|message| message.body["type"] == "approval.decided").unwrap();
    assert_eq!(decided.body["data"]["decidedBy"], "ann");
    assert_eq!(decided.body["data"]["decision"]["reason"], "fine");
    assert_eq!(decided.header("webhook-signature"), decided.signature(SECRET));
    let said = server.stderr();
    assert!(said.contains("it answered 500") && said.contains("takes messages again"), "{said}");
    assert!(!said.contains(SECRET) && !said.contains("/hook"), "{said}");
    noted(&server, 3);
    let failed = "gantry_webhook_messages_total{project=\"default\",outcome=\"failed\"} 2";
    let metrics = server.get_as_admin("/metrics").text;
    assert!(metrics.lines().any(|line| line == failed), "{metrics}");
}

#[test]
fn apr_6_a_webhook_request_that_was_not_taken_is_sent_after_a_crash_and_once_taken_no_more() {
    let receiver = Receiver::start();
    receiver.answer([503; 100]);
    let home = home(&receiver);
    let server = home.serve();
    let (first, _) = held(&server, "a");
    server.eventually("it is tried", || !receiver.messages().is_empty());
    server.kill();
    let before = receiver.messages();
    receiver.answer([]);
    let server = home.serve();
    assert_reported(&server, &receiver, &first, &[("approval.requested", "PENDING_APPROVAL")]);
    let messages = receiver.messages();
    let taken = messages.iter().find(|message| message.status == 200).unwrap();
    assert_eq!(taken.header("webhook-id"), before[0].header("webhook-id"), "the same message as before");
    assert_eq!(taken.header("webhook-signature"), taken.signature(SECRET));
    assert_eq!(taken.body["data"]["page"], format!("http://{}/approvals/{first}", server.address));
    noted(&server, 1);
    server.kill();
    // What was taken is not sent again: requests go in order, and the next one is sent alone.
    let taken = receiver.messages().len();
    let server = home.serve();
    let (second, _) = held(&server, "b");
    assert_reported(&server, &receiver, &second, &[("approval.requested", "PENDING_APPROVAL")]);
    assert_eq!(receiver.messages().len(), taken + 1);
    let key = approver(&home);
    let messages = receiver.messages();
    for message in messages.iter().filter(|message| message.status == 200) {
        assert_eq!(decide(&server, &key, message, &json!({ "approved": true })), 200);
    }
    server.eventually("both have run", || {
        let text = std::fs::read_to_string(home.path().join("counted")).unwrap_or_default();
        text.lines().count() == 2
    });
}

#[test]
fn apr_6_a_decision_and_an_end_that_were_not_taken_are_sent_in_their_order_after_a_crash() {
    let receiver = Receiver::start();
    let home = home(&receiver);
    let server = home.serve();
    let (id, call) = held(&server, "a");
    let requested = ("approval.requested", "PENDING_APPROVAL");
    assert_reported(&server, &receiver, &id, &[requested]);
    noted(&server, 1);
    let request = receiver.messages().remove(0);
    receiver.answer([503; 100]);
    assert_eq!(decide(&server, &approver(&home), &request, &json!({ "approved": true })), 200);
    let over =
        || server.get_as_admin(&format!("/api/v1/calls/{call}")).json()["state"] == "COMPLETED_SUCCESS";
    server.eventually("it has run", over);
    server.eventually("the webhook is tried", || receiver.messages().len() >= 2);
    server.kill();
    receiver.answer([]);
    let server = home.serve();
    let decided = ("approval.decided", "APPROVED_READY");
    assert_reported(
        &server,
        &receiver,
        &id,
        &[requested, decided, ("approval.completed", "COMPLETED_SUCCESS")],
    );
    assert_eq!(home.read("counted"), "a\n");
}

#[test]
fn apr_6_a_private_address_is_not_contacted_before_it_is_opened() {
    for (host, allowed) in [("127.0.0.1", vec![]), ("localhost", vec!["10.0.0.0/8"])] {
        let receiver = Receiver::start();
        let url = receiver.url.replace("127.0.0.1", host);
        let config = |allowed: &[&str]| json!({ "approvals": approvals(&url, PLAIN, allowed) }).to_string();
        let home = TestDir::with_test_tools().config(&config(&allowed));
        let server = home.serve();
        let (id, _) = held(&server, "a");
        server.eventually("the log says why", || server.stderr().contains("approvals.webhook.allowPrivate"));
        let said = server.stderr();
        assert!(
            said.contains("not a public address, so it is not contacted") && said.contains(&id),
            "{said}"
        );
        assert!(!said.contains(PLAIN) && !said.contains("/hook"), "{said}");
        assert_eq!(receiver.connections(), 0);
        // It is sent once that is mended, without a restart.
        home.write("gantry.yaml", &config(&["127.0.0.1/32", "::1"]));
        assert_reported(&server, &receiver, &id, &[("approval.requested", "PENDING_APPROVAL")]);
    }
}

#[test]
fn apr_6_a_webhook_hears_what_was_denied_or_withdrawn() {
    let receiver = Receiver::start();
    let home = home(&receiver);
    let server = home.serve();
    let requested = ("approval.requested", "PENDING_APPROVAL");
    let (denied, _) = held(&server, "a");
    assert_reported(&server, &receiver, &denied, &[requested]);
    let key = approver(&home);
    assert_eq!(decide(&server, &key, &receiver.messages()[0], &json!({ "approved": false })), 200);
    assert_reported(&server, &receiver, &denied, &[requested, ("approval.decided", "REJECTED_BY_USER")]);
    // A late decision is answered so.
    assert_eq!(decide(&server, &key, &receiver.messages()[0], &json!({ "approved": true })), 409);

    let (withdrawn, call) = held(&server, "b");
    assert_reported(&server, &receiver, &withdrawn, &[requested]);
    let canceled = server.post(&format!("/api/v1/calls/{call}/cancel"), "{}");
    assert_eq!(canceled.status, 200, "{canceled:?}");
    assert_reported(
        &server,
        &receiver,
        &withdrawn,
        &[requested, ("approval.canceled", "CANCELLED_BY_SYSTEM")],
    );
    assert!(!home.path().join("counted").exists(), "nothing was run");
}

#[test]
fn apr_6_a_webhook_gets_what_expired_undecided() {
    let receiver = Receiver::start();
    let mut approvals = approvals(&receiver.url, PLAIN, &["127.0.0.1"]);
    approvals["approvalTimeoutMs"] = 3000.into();
    let home = TestDir::with_test_tools().config(&json!({ "approvals": approvals }).to_string());
    let server = home.serve();
    let (expired, _) = held(&server, "a");
    let expected = [("approval.requested", "PENDING_APPROVAL"), ("approval.expired", "REJECTED_BY_TIMEOUT")];
    assert_reported(&server, &receiver, &expired, &expected);
    let messages = receiver.messages();
    for message in &messages {
        assert_eq!(message.header("webhook-signature"), message.signature(PLAIN));
    }
    assert_eq!(decide(&server, &approver(&home), &messages[0], &json!({ "approved": true })), 410);
}

#[test]
fn apr_6_a_webhook_that_does_not_answer_delays_no_other() {
    let (silent, receiver) = (Receiver::silent(), Receiver::start());
    let config = json!({
        "approvals": approvals(&silent.url, PLAIN, &["127.0.0.1"]),
        "projects": { "other": { "workspace": ".", "approvals": approvals(&receiver.url, SECRET, &["127.0.0.1"]) } },
    });
    let home = TestDir::with_test_tools().config(&config.to_string());
    let server = home.serve();
    // More than are sent at once.
    for n in 0..20 {
        held(&server, &n.to_string());
    }
    server.eventually("it is contacted", || silent.connections() > 0);
    let body =
        json!({ "tool": "test__count", "project": "other", "arguments": { "file": "f", "text": "x" } });
    let reply = server.post("/api/v1/calls", &body.to_string()).json();
    let id = reply["approvalId"].as_str().unwrap_or_else(|| panic!("{reply}"));
    assert_reported(&server, &receiver, id, &[("approval.requested", "PENDING_APPROVAL")]);
    assert_eq!(receiver.messages()[0].body["data"]["caller"]["project"], "other");
    // Neither is the worker: what is approved runs.
    assert_eq!(decide(&server, &approver(&home), &receiver.messages()[0], &json!({ "approved": true })), 200);
    let expected = [
        ("approval.requested", "PENDING_APPROVAL"),
        ("approval.decided", "APPROVED_READY"),
        ("approval.completed", "COMPLETED_SUCCESS"),
    ];
    assert_reported(&server, &receiver, id, &expected);
}

#[test]
fn apr_6_a_webhook_that_was_replaced_hears_nothing_more() {
    let (former, receiver) = (Receiver::start(), Receiver::start());
    let home = home(&former);
    let server = home.serve();
    let (first, _) = held(&server, "first");
    assert_reported(&server, &former, &first, &[("approval.requested", "PENDING_APPROVAL")]);
    noted(&server, 1);
    let changed = json!({ "approvals": approvals(&receiver.url, SECRET, &["127.0.0.1/32"]) });
    home.write("gantry.yaml", &changed.to_string());
    server.eventually("the change applies", || {
        server.get_as_admin("/api/v1/events?follow=false").text.contains("configuration_applied")
    });
    let (second, _) = held(&server, "second");
    assert_reported(&server, &receiver, &second, &[("approval.requested", "PENDING_APPROVAL")]);
    assert_eq!(reported(&former, &second), [], "its address and secret are not the project's any more");
}

#[test]
fn apr_6_a_message_that_is_not_answered_delays_no_other_of_its_webhook() {
    let receiver = Receiver::start();
    receiver.answer([0]);
    let home = home(&receiver);
    let server = home.serve();
    held(&server, "hangs");
    server.eventually("it hangs", || receiver.messages().len() == 1);
    let (other, _) = held(&server, "other");
    assert_reported(&server, &receiver, &other, &[("approval.requested", "PENDING_APPROVAL")]);
    noted(&server, 1);
    // It has not failed yet, so the other one did not wait for it.
    let metrics = server.get_as_admin("/metrics").text;
    assert!(!metrics.contains("outcome=\"failed\""), "{metrics}");
}

#[test]
fn apr_6_a_webhook_hears_that_it_is_asked_again_about_what_has_changed() {
    let receiver = Receiver::start();
    let home = home_where(&receiver, "write_file");
    home.write("a.txt", "as it was");
    let server = home.serve();
    let (first, _) = held_call(&server, "write_file", &json!({ "path": "a.txt", "content": "mine" }));
    let requested = ("approval.requested", "PENDING_APPROVAL");
    assert_reported(&server, &receiver, &first, &[requested]);
    home.write("a.txt", "somebody was here");
    let request = receiver.messages().remove(0);
    assert_eq!(decide(&server, &approver(&home), &request, &json!({ "approved": true })), 200);
    let expected =
        [requested, ("approval.decided", "APPROVED_READY"), ("approval.canceled", "CANCELLED_BY_SYSTEM")];
    assert_reported(&server, &receiver, &first, &expected);
    let again = |message: &Message| message.body["data"]["supersedes"] == first;
    server.eventually("it is asked again", || receiver.messages().iter().any(again));
    let messages = receiver.messages();
    let second = messages.iter().find(|message| again(message)).unwrap();
    assert_eq!(second.body["type"], "approval.requested");
    assert_eq!(second.body["data"]["callId"], request.body["data"]["callId"]);
    assert_eq!(home.read("a.txt"), "somebody was here");
}

#[test]
fn apr_6_a_webhook_gets_that_the_outcome_of_an_approved_call_is_unknown() {
    let receiver = Receiver::start();
    let home = home_where(&receiver, "test__slow-write");
    let server = home.serve();
    let (id, _) = held_call(&server, "test__slow-write", &json!({ "file": "slow", "ms": 600_000 }));
    let requested = ("approval.requested", "PENDING_APPROVAL");
    assert_reported(&server, &receiver, &id, &[requested]);
    noted(&server, 1);
    let request = receiver.messages().remove(0);
    assert_eq!(decide(&server, &approver(&home), &request, &json!({ "approved": true })), 200);
    let decided = ("approval.decided", "APPROVED_READY");
    assert_reported(&server, &receiver, &id, &[requested, decided]);
    noted(&server, 2);
    server.eventually("it runs", || home.path().join("slow").exists());
    server.kill();
    let server = home.serve();
    let completed = ("approval.completed", "OUTCOME_UNKNOWN");
    assert_reported(&server, &receiver, &id, &[requested, decided, completed]);
}

//! Addresses: a client sends its person to the page of the request, where a person with a key decides.

use super::{COUNT, Gate, api, asked, clients, count, only, ran};
use crate::passthrough::{Door, Talk, parsed};
use serde_json::{Value, json};

#[test]
fn apr_6_a_client_that_can_open_an_address_is_sent_to_the_page_and_opening_it_decides_nothing() {
    for action in ["accept", "decline"] {
        for (sdk, era) in clients() {
            let gate = Gate::new("");
            let options = ["--era", era, "--elicit", action];
            let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([count("a")]));
            let approval = gate.approve();
            let seen = playing.end();
            let address = asked(only(&seen)).expect("an address");
            let url = format!("http://{}/approvals/{approval}", gate.server.address);
            assert_eq!((&address["mode"], &address["url"]), (&json!("url"), &json!(url)), "{era}: {address}");
            // Only the older era has ids for this.
            let id = if era == "legacy" { json!(approval) } else { Value::Null };
            assert_eq!(address["elicitationId"], id, "{era}: {address}");
            ran(only(&seen), "a");
            let page = gate.server.get(&format!("/approvals/{approval}"));
            assert_eq!(page.status, 200, "{page:?}");
            assert_eq!(gate.item(&approval)["decidedVia"], "http", "{era}");
        }
    }
}

#[test]
fn apr_6_a_client_that_was_sent_to_the_page_is_notified_when_it_is_done_there() {
    let gate = Gate::new("");
    let door = Door::Http(&gate.server, "/mcp");
    let mut client = Talk::legacy_with(door, &json!({ "elicitation": { "url": {} } }));
    let call = client.begin_call(COUNT, &api::count("a"));
    let question = client.hear("elicitation/create");
    client.answer(&question, &json!({ "action": "accept" }));
    let approval = gate.pending();
    assert!(client.heard("notifications/elicitation/complete").is_empty());
    gate.decide(&approval, &json!({ "approved": true }));
    let complete = client.hear("notifications/elicitation/complete");
    assert_eq!(complete["params"]["elicitationId"], json!(approval), "{complete}");
    assert_eq!(client.end_call(call), r#"{"counted":"a"}"#);
    // A client that has not opened it yet gets a cancellation.
    let call = client.begin_call(COUNT, &api::count("b"));
    let question = client.hear("elicitation/create");
    gate.approve();
    let cancelled = client.hear("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], question["id"], "{cancelled}");
    assert_eq!(client.end_call(call), r#"{"counted":"b"}"#);
}

/// A client of the newer era hears of no such ids, and of nothing else while it is away.
#[test]
fn apr_6_a_client_of_the_newer_era_is_sent_to_the_page_by_a_round_that_nothing_disturbs() {
    let gate = Gate::new("");
    let door = Door::Http(&gate.server, "/mcp");
    let mut client = Talk::modern_with(door, &json!({ "elicitation": { "url": {} } }));
    client.meta = r#""progressToken":7"#.to_owned();
    let mut params = json!({ "name": COUNT, "arguments": api::count("a") });
    let round = client.result("tools/call", &params);
    assert_eq!(round["resultType"], "input_required", "{round}");
    let approval = gate.approve();
    gate.becomes(&approval, "COMPLETED_SUCCESS");
    params["requestState"] = round["requestState"].clone();
    params["inputResponses"] = json!({ approval.as_str(): { "action": "accept" } });
    let id = client.begin("tools/call", &params.to_string());
    let answer = parsed(&client.end(id));
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"counted":"a"}"#, "{answer}");
    for method in ["notifications/elicitation/complete", "notifications/cancelled", "notifications/progress"]
    {
        assert!(client.heard(method).is_empty(), "{method}");
    }
    // Its outcome was given; the same call again is a new one.
    let again = client.result("tools/call", &json!({ "name": COUNT, "arguments": api::count("a") }));
    assert_eq!(again["resultType"], "input_required", "{again}");
    assert_ne!(gate.pending(), approval);
}

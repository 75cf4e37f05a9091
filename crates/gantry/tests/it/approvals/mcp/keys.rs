//! Clients with a key: who of them is asked by a form, and who decides about the calls of the others.

use super::{Gate, asked, clients, count, failed, only, ran};
use crate::approvals::{api, keys};
use gantry_egress::LocalServer;
use serde_json::json;

/// The option by which a client sends a key.
fn header(key: &str) -> String {
    format!("Authorization: Bearer {key}")
}

#[test]
fn apr_7_a_client_with_an_approvers_key_is_not_asked_by_a_form_and_another_approver_decides() {
    for (sdk, era) in clients() {
        let gate = Gate::new("delivery: form");
        let key = keys::text(&gate.server, &json!({ "name": "anna", "role": "approver" }));
        let other = keys::make(&gate.server, &json!({ "name": "olga", "role": "approver" }));
        let options = ["--era", era, "--elicit", "accept", "--header", &header(&key)];
        let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([count("a")]));
        let approval = gate.pending();
        // It is her own call by every door.
        let anna = LocalServer::new(gate.server.address, Some(key.clone()));
        let refused = api::decide(&anna, &approval, &json!({ "approved": true }));
        assert_eq!(api::code(&refused), (403, "PERMISSION_DENIED".to_owned()), "{era}");
        assert_eq!(api::decide(&other, &approval, &json!({ "approved": true })).status, 200, "{era}");
        let seen = playing.end();
        assert_eq!(asked(only(&seen)), None, "{era}: {seen}");
        ran(only(&seen), "a");
        let item = gate.item(&approval);
        let shown = [&item["caller"]["principal"], &item["decidedBy"], &item["decidedVia"]];
        assert_eq!(shown, ["anna", "olga", "http"], "{era}: {item}");

        let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([count("b")]));
        let approval = gate.pending();
        gate.decide(&approval, &json!({ "approved": false, "reason": "enough" }));
        let seen = playing.end();
        assert_eq!(asked(only(&seen)), None, "{era}: {seen}");
        let outcome = failed(only(&seen), "REJECTED_BY_USER");
        assert!(outcome.contains("denied by person: enough"), "{era}: {outcome}");
        assert_eq!(gate.counted(), ["a"], "{era}");
    }
}

#[test]
fn apr_6_a_client_with_the_key_of_the_data_folder_is_asked_by_a_form() {
    for (sdk, era) in clients() {
        let gate = Gate::new("delivery: form");
        let options = ["--era", era, "--elicit", "accept", "--header", &header(&gate.server.key)];
        let seen = sdk.play_with(&gate.home, gate.door(), &options, &json!([count("a")]));
        assert_eq!(asked(only(&seen)).expect("a form")["mode"], "form", "{era}: {seen}");
        ran(only(&seen), "a");
        let item = &gate.requests("COMPLETED_SUCCESS")[0];
        let shown = [&item["caller"]["principal"], &item["decidedBy"], &item["decidedVia"]];
        assert_eq!(shown, ["mcp", "person", "elicitation"], "{era}: {item}");
    }
}

#[test]
fn apr_7_no_key_of_the_store_makes_its_client_one_that_is_asked() {
    let admin = json!({ "name": "anna", "role": "admin" });
    let agent = json!({ "name": "anna", "role": "agent" });
    for (key, (sdk, era)) in [admin, agent].iter().flat_map(|key| clients().map(move |client| (key, client)))
    {
        let gate = Gate::new("delivery: form");
        let key = keys::text(&gate.server, key);
        let options = ["--era", era, "--elicit", "accept", "--header", &header(&key)];
        let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([count("a")]));
        gate.approve();
        let seen = playing.end();
        assert_eq!(asked(only(&seen)), None, "{era}: {seen}");
        ran(only(&seen), "a");
    }
}

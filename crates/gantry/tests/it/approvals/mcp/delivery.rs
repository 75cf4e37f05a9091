//! `approvals.delivery`: the way that the configuration prefers, where the client can go it.

use super::{Gate, asked, count, failed, only, ran};
use crate::mcp_sdks::{PYTHON, Sdk, TYPESCRIPT_1, TYPESCRIPT_2};
use serde_json::{Value, json};

/// A client that can do everything that its era knows: be asked by forms and addresses, hear of progress, take tasks.
const ABLE: [(Sdk, &[&str]); 4] = [
    (PYTHON, &["--era", "auto", "--elicit", "accept", "--tasks"]),
    (PYTHON, &["--era", "legacy", "--elicit", "accept"]),
    (TYPESCRIPT_1, &["--era", "legacy", "--elicit", "accept"]),
    (TYPESCRIPT_2, &["--era", "auto", "--elicit", "accept"]),
];

/// What such a client with the key of the data folder sees of a call that is approved by HTTP as soon as it waits; the
/// form, if it gets one, says yes as well.
fn seen(gate: &Gate, sdk: &Sdk, options: &[&str]) -> Value {
    let header = format!("Authorization: Bearer {}", gate.server.key);
    let options = [options, &["--header", &header]].concat();
    let playing = sdk.begin(&gate.home, gate.door(), &options, &json!([count("a")]));
    gate.server.eventually("it is decided", || {
        for request in gate.requests("PENDING_APPROVAL") {
            let id = request["id"].as_str().expect("an id");
            // The form may have been quicker.
            super::api::decide(&gate.server.admin(), id, &json!({ "approved": true }));
        }
        !gate.requests("COMPLETED_SUCCESS").is_empty()
    });
    only(&playing.end()).clone()
}

/// The way that the client was shown.
fn way(step: &Value) -> &str {
    match (step.get("tasks"), asked(step)) {
        (Some(_), None) => "tasks",
        (None, Some(question)) => question["mode"].as_str().expect("a mode"),
        (None, None) => "hold",
        (Some(_), Some(_)) => panic!("two ways at once: {step}"),
    }
}

#[test]
fn apr_6_the_configuration_chooses_the_way_where_the_client_can_go_it() {
    for (sdk, options) in ABLE {
        let takes_tasks = options.contains(&"--tasks");
        for (delivery, expected) in [
            ("auto", if takes_tasks { "tasks" } else { "url" }),
            ("tasks", if takes_tasks { "tasks" } else { "url" }),
            ("url", "url"),
            ("form", "form"),
            ("hold", "hold"),
        ] {
            let gate = Gate::new(&format!("delivery: {delivery}"));
            let step = seen(&gate, &sdk, options);
            assert_eq!(way(&step), expected, "{delivery} {options:?}: {step}");
            ran(&step, "a");
            assert_eq!(gate.counted(), ["a"], "{delivery} {options:?}");
        }
    }
}

#[test]
fn apr_6_a_client_can_always_learn_at_once_where_its_call_waits() {
    for (sdk, options) in ABLE {
        let gate = Gate::new("delivery: pending");
        let outcome = sdk.play_with(&gate.home, gate.door(), options, &json!([count("a")]));
        let (step, approval) = (only(&outcome), gate.pending());
        assert!(failed(step, "APPROVAL_REQUIRED").contains(&approval), "{options:?}: {step}");
        assert_eq!(way(step), "hold", "{options:?}: {step}");
    }
}

#[test]
fn apr_6_a_way_that_the_client_cannot_go_is_none_and_its_call_is_held() {
    for (delivery, (sdk, era)) in
        ["tasks", "url", "form"].iter().flat_map(|way| super::clients().map(move |client| (way, client)))
    {
        let gate = Gate::new(&format!("delivery: {delivery}"));
        let step = seen(&gate, &sdk, &["--era", era]);
        assert_eq!(way(&step), "hold", "{delivery} {era}: {step}");
        ran(&step, "a");
    }
}

//! The first decision stands, by any entry point; a form that is still open changes nothing.

use super::{COUNT, Gate, LEGACY, MODERN, api, asked, count, failed, home, only, ran};
use crate::mcp_sdks::Door;
use crate::passthrough::{Door as Path, Talk};
use serde_json::json;

const NO: &str = r#"{"decision":"deny","reason":"too late"}"#;

/// A client of the newer era comes back with its answer, and gets what the others have decided.
#[test]
fn apr_6_a_late_answer_to_a_form_of_the_newer_era_gets_what_was_decided_first() {
    for (sdk, era) in MODERN {
        for approved in [true, false] {
            let gate = Gate::new("delivery: form");
            let answer = if approved { NO } else { r#"{"decision":"approve"}"# };
            let options = ["--era", era, "--elicit", "accept", "--answer", answer, "--when", "now"];
            let playing = sdk.begin(&gate.home, Door::Stdio, &options, &json!([count("a")]));
            let approval = gate.pending();
            gate.decide(&approval, &json!({ "approved": approved, "reason": "I was first" }));
            gate.becomes(&approval, if approved { "COMPLETED_SUCCESS" } else { "REJECTED_BY_USER" });
            gate.home.write("now", "");
            let seen = playing.end();
            let step = only(&seen);
            assert_eq!(asked(step).expect("a form")["mode"], "form", "{step}");
            if approved {
                ran(step, "a");
            } else {
                assert!(failed(step, "REJECTED_BY_USER").contains("I was first"), "{step}");
            }
            let item = gate.item(&approval);
            let stands = (&item["decision"]["approved"], &item["decidedVia"]);
            assert_eq!(stands, (&json!(approved), &json!("http")), "{item}");
            assert_eq!(gate.counted().len(), usize::from(approved));
        }
    }
}

/// A client of the older era has its answer while its form is still open: it need not be closed first.
#[test]
fn apr_6_a_call_of_the_older_era_returns_while_its_form_is_open() {
    for (sdk, era) in LEGACY {
        let gate = Gate::at(home("delivery: form"));
        let options = ["--era", era, "--elicit", "accept", "--answer", NO, "--when", "never"];
        let playing = sdk.begin(&gate.home, Door::Stdio, &options, &json!([count("a")]));
        gate.approve();
        let seen = playing.end();
        assert_eq!(asked(only(&seen)).expect("a form")["mode"], "form", "{seen}");
        ran(only(&seen), "a");
        assert_eq!(gate.counted(), ["a"]);
    }
}

#[test]
fn apr_6_a_form_that_is_not_needed_any_more_is_taken_back_and_its_late_answer_changes_nothing() {
    let gate = Gate::new("delivery: form");
    let mut client = Talk::legacy(Path::Stdio(&gate.home, &[]));
    let call = client.begin_call(COUNT, &api::count("a"));
    let form = client.hear("elicitation/create");
    let approval = gate.approve();
    let taken_back = client.hear("notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], form["id"], "{taken_back}");
    assert_eq!(client.end_call(call), r#"{"counted":"a"}"#);
    let before = gate.item(&approval);
    client.answer(&form, &json!({ "action": "decline" }));
    // The connection goes on as if nothing had been said.
    assert_eq!(client.call("test__echo", &json!({ "text": "on" })), "on");
    assert_eq!(gate.item(&approval), before);
    assert_eq!(gate.counted(), ["a"]);
}

//! Calls that are held open, and results that say where a call waits: for clients that cannot ask a person.

use super::{Gate, asked, clients, count, failed, only, ran, watched};
use crate::mcp_sdks::Playing;
use serde_json::{Value, json};

/// Waits for the approval, and for a client to end.
fn approved(gate: &Gate, playing: Playing) -> (String, Value) {
    let approval = gate.approve();
    (approval, playing.end())
}

#[test]
fn apr_6_a_held_call_is_kept_alive_by_progress_until_it_is_decided() {
    for (sdk, era) in clients() {
        let gate = Gate::new("");
        let playing = sdk.begin(&gate.home, gate.door(), &["--era", era], &json!([watched("a")]));
        let (approval, seen) = approved(&gate, playing);
        let step = only(&seen);
        ran(step, "a");
        let reports = step["progress"].as_array().unwrap_or_else(|| panic!("no reports: {step}"));
        let message = json!(format!("waiting for approval ({approval})"));
        assert!(reports.iter().any(|report| report["message"] == message), "{era}: {step}");
        let values: Vec<f64> = reports.iter().filter_map(|report| report["progress"].as_f64()).collect();
        assert!(values.is_sorted() && values.len() == reports.len(), "{era}: {step}");
    }
}

#[test]
fn apr_6_a_call_of_a_client_that_can_do_nothing_is_held_open_and_answered() {
    for (sdk, era) in clients() {
        let gate = Gate::new("");
        let playing = sdk.begin(&gate.home, gate.door(), &["--era", era], &json!([count("a")]));
        let (_, seen) = approved(&gate, playing);
        assert_eq!(asked(only(&seen)), None, "{era}");
        ran(only(&seen), "a");
    }
}

/// One yes is one execution, and its outcome is given once: who comes back for it gets it, who comes a third time asks
/// for something new.
#[test]
fn apr_6_a_client_that_waits_no_longer_learns_where_the_call_waits_and_gets_the_outcome_by_the_same_call_again()
 {
    for (sdk, era) in clients() {
        let gate = Gate::new("holdMs: 1000");
        let call = || {
            let seen = sdk.play_with(&gate.home, gate.door(), &["--era", era], &json!([count("a")]));
            only(&seen).clone()
        };
        let first = call();
        let approval = gate.pending();
        let reported = failed(&first, "APPROVAL_REQUIRED");
        for words in [&*approval, "Nothing was run yet", "the same call again gets the outcome"] {
            assert!(reported.contains(words), "{era}: {words}: {reported}");
        }
        assert_eq!(
            first["_meta"]["gantry/error"]["details"]["approvalId"],
            json!(approval),
            "{era}: {first}"
        );
        gate.decide(&approval, &json!({ "approved": true }));
        gate.becomes(&approval, "COMPLETED_SUCCESS");
        ran(&call(), "a");
        let third = call();
        let reported = failed(&third, "APPROVAL_REQUIRED");
        let asked_anew = gate.pending();
        assert!(asked_anew != approval && reported.contains(&asked_anew), "{era}: {reported}");
        // What was denied is answered likewise.
        gate.decide(&asked_anew, &json!({ "approved": false, "reason": "once is enough" }));
        let reported = call();
        assert!(failed(&reported, "REJECTED_BY_USER").contains("once is enough"), "{era}: {reported}");
        assert_eq!(gate.counted(), ["a"], "{era}");
    }
}

#[test]
fn apr_7_what_a_model_reads_tells_expired_from_denied() {
    for (sdk, era) in clients() {
        let gate = Gate::new("approvalTimeoutMs: 1000");
        let seen = sdk.play_with(&gate.home, gate.door(), &["--era", era], &json!([count("a")]));
        let reported = failed(only(&seen), "REJECTED_BY_TIMEOUT");
        assert_eq!(
            reported, "(tool failed: expired: no approver decided within 1 s; nothing was run)",
            "{era}"
        );
        assert!(gate.counted().is_empty(), "{era}");
    }
}

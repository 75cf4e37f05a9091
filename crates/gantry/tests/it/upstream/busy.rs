//! Servers that do one thing after the other: busy is not dead, and dead is not busy for ever.

use super::cancel::under_way;
use super::lights::hold;
use super::trace::logged;
use super::{Rig, journalling, with};
use crate::queues::{cancel, outcome};
use serde_json::{Value, json};

/// A server that is checked all the time, and whose frames are logged.
fn checked(more: &Value) -> Value {
    let check = json!({ "traceMCP": true, "healthCheck": { "intervalMs": 150, "timeoutMs": 150 } });
    with(with(journalling(&[]), &check), more)
}

fn pings(rig: &Rig) -> usize {
    logged(rig, "bad", "→").iter().filter(|line| line.contains("\"method\":\"ping\"")).count()
}

#[test]
fn ups_4_a_server_that_is_busy_with_a_call_is_left_alone() {
    let rig = Rig::beside_good(&checked(&json!({})));
    rig.ready("bad");
    let pid = rig.result("bad__pid", &json!({}));
    let id = under_way(&rig, "bad", &json!({ "tool": "bad__sleep", "arguments": { "ms": 600_000 } }));
    rig.while_good_works(|| {
        // To Gantry, a process that is held looks like one that works on something and reads nothing meanwhile.
        hold(&pid, true);
        let before = pings(&rig);
        rig.server.eventually("it misses many checks", || pings(&rig) > before + 6);
        let status = rig.status("bad");
        assert_eq!((&status["light"], &status["lastError"]), (&json!("yellow"), &Value::Null), "{status}");
        hold(&pid, false);
        rig.server.eventually("it answers", || rig.light("bad") == "green");
    });
    assert_eq!(rig.result("bad__pid", &json!({})), pid);
    cancel(&rig.server, &id);
    assert_eq!(outcome(&rig.server, &id).json()["error"]["code"], "CANCELED");
    rig.server.eventually("it had the call all the time", || rig.journal() == ["cancelled"]);
}

#[test]
fn ups_4_a_server_that_hangs_in_a_call_is_begun_anew_once_the_call_is_over() {
    let rig = Rig::beside_good(&checked(&json!({ "requestTimeoutMs": 1500 })));
    rig.ready("bad");
    let pid = rig.result("bad__pid", &json!({}));
    let id = under_way(&rig, "bad", &json!({ "tool": "bad__sleep", "arguments": { "ms": 600_000 } }));
    rig.while_good_works(|| {
        hold(&pid, true);
        assert_eq!(outcome(&rig.server, &id).json()["error"]["code"], "TIMEOUT");
        // Those who go on calling it do not keep it from being begun anew.
        rig.replaced("bad", &pid);
    });
    let why = rig.status("bad")["lastError"].as_str().expect("a reason").to_owned();
    assert!(why.contains("did not answer two health checks"), "{why}");
}

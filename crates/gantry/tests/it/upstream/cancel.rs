//! What is not wanted any more: the server behind it gets a cancellation.

use super::{Rig, journalling, remote};
use crate::queues::{cancel, defer, outcome};
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

/// Makes a call without waiting for it, and returns its id once the server has it.
#[track_caller]
pub(super) fn under_way(rig: &Rig, server: &str, call: &Value) -> String {
    let count = || -> u64 {
        let counters = rig.result(&format!("{server}__session"), &json!({}));
        serde_json::from_str::<Value>(&counters).expect("counters")["calls"].as_u64().expect("a number")
    };
    let before = count();
    let id = defer(&rig.server, call);
    let mut asked = 0;
    rig.server.eventually("the server has the call", || {
        asked += 1;
        count() == before + asked + 1
    });
    id
}

fn sleep(server: &str) -> Value {
    json!({ "tool": format!("{server}__sleep"), "arguments": { "ms": 600_000 } })
}

#[test]
fn cal_12_canceling_a_call_reaches_its_server_in_either_era_over_every_transport() {
    let folder = tempfile::tempdir().expect("a folder");
    let kinds = [("tcp", Kind::Tcp), ("http", Kind::Http), ("sse", Kind::Sse), ("websocket", Kind::Ws)];
    let mut servers = Vec::new();
    let mut entries = serde_json::Map::new();
    for era in ["legacy", "modern"] {
        let journal = |id: &str| folder.path().join(id).to_str().expect("UTF-8").to_owned();
        let stdio_id = format!("stdio_{era}");
        let local = super::stdio(&["--journal", &journal(&stdio_id), "--era", era]);
        entries.insert(stdio_id, local);
        // HTTP+SSE was over before the newer era began.
        for (word, kind) in kinds.iter().filter(|(word, _)| *word != "sse" || era == "legacy") {
            let id = format!("{word}_{era}");
            let server = Faulty::start(*kind, &["--journal", &journal(&id), "--era", era]);
            entries.insert(id, remote(word, &server.url));
            servers.push(server);
        }
    }
    let ids: Vec<String> = entries.keys().cloned().collect();
    let rig = Rig::of(&Value::Object(entries));
    for id in ids {
        rig.ready(&id);
        let call = under_way(&rig, &id, &sleep(&id));
        cancel(&rig.server, &call);
        let ended = outcome(&rig.server, &call).json();
        assert_eq!(ended["error"]["code"], "CANCELED", "{id}: {ended}");
        let reported = || std::fs::read_to_string(folder.path().join(&id)).unwrap_or_default();
        rig.server.eventually(&format!("{id} is told"), || reported() == "cancelled\n");
        assert_eq!(rig.result(&format!("{id}__echo"), &json!({ "text": "x" })), "x", "{id}");
        assert_eq!(rig.light(&id), "green", "{id}");
    }
}

#[test]
fn cal_12_canceling_a_run_cancels_its_calls_at_their_servers() {
    let rig = Rig::beside_good(&journalling(&[]));
    rig.ready("bad");
    let calls = [(); 3].map(|()| under_way(&rig, "bad", &sleep("bad")));
    let run = rig.server.get("/api/v1/runs").json()["items"][0]["id"].as_str().expect("a run").to_owned();
    let canceled = rig.server.post(&format!("/api/v1/runs/{run}/cancel"), "");
    assert_eq!(canceled.json()["canceled"], true, "{canceled:?}");
    for call in &calls {
        assert_eq!(outcome(&rig.server, call).json()["error"]["code"], "CANCELED");
    }
    rig.server.eventually("the server is told", || rig.journal() == ["cancelled"; 3]);
    assert_eq!(rig.light("bad"), "green");
}

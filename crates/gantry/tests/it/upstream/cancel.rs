//! What is not wanted any more: the server behind it is told.

use super::{JOURNAL, Rig, journalling, remote};
use crate::queues::{cancel, defer, outcome};
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

/// Makes a call that nobody waits for, and returns its id once the server has it.
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
fn cal_12_canceling_a_call_is_told_to_its_server_in_either_era_over_every_transport() {
    let folder = tempfile::tempdir().expect("a folder");
    let kinds = [("tcp", Kind::Tcp), ("http", Kind::Http), ("sse", Kind::Sse), ("websocket", Kind::Ws)];
    let mut servers = Vec::new();
    let mut entries = serde_json::Map::new();
    for era in ["legacy", "modern"] {
        entries.insert(format!("stdio-{era}"), json!(null));
        for (word, kind) in kinds.iter().filter(|(word, _)| *word != "sse" || era == "legacy") {
            let id = format!("{word}-{era}");
            let journal = folder.path().join(&id);
            let args = ["--journal", journal.to_str().expect("UTF-8"), "--era", era];
            let server = Faulty::start(*kind, &args);
            entries.insert(id, remote(word, &server.url));
            servers.push(server);
        }
        let journal = folder.path().join(format!("stdio-{era}"));
        let args = ["--journal", journal.to_str().expect("UTF-8"), "--era", era];
        entries.insert(format!("stdio-{era}"), super::stdio(&args));
    }
    let ids: Vec<String> = entries.keys().cloned().collect();
    let rig = Rig::of(&Value::Object(entries));
    for id in ids {
        rig.ready(&id);
        let call = under_way(&rig, &id, &sleep(&id));
        cancel(&rig.server, &call);
        let ended = outcome(&rig.server, &call).json();
        assert_eq!(ended["error"]["code"], "CANCELED", "{id}: {ended}");
        let told = || std::fs::read_to_string(folder.path().join(&id)).unwrap_or_default();
        rig.server.eventually(&format!("{id} is told"), || told() == "cancelled\n");
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

#[test]
fn cal_12_stopping_gantry_cancels_what_its_servers_do() {
    let rig = Rig::of(&json!({ "bad": journalling(&[]) }));
    rig.ready("bad");
    under_way(&rig, "bad", &sleep("bad"));
    let Rig { server, home } = rig;
    // Once asks; calls may end first, and these would take ten minutes. Twice is meant.
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).expect("a process id"))
        .expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    server.eventually("it has begun to stop", || server.said().contains("Stopping"));
    let (_, said) = server.stop();
    let journal = std::fs::read_to_string(home.path().join(JOURNAL)).unwrap_or_default();
    assert!(["cancelled\n", "disconnected\n"].contains(&journal.as_str()), "{journal:?}: {said}");
}

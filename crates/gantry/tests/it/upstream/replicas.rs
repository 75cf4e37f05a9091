//! Several replicas of one server: calls go to the one with the least to do, and to none that is down.

use super::{Rig, kill, script, stdio, with};
use crate::queues::cancel;
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The processes that answer so many calls one after the other.
#[track_caller]
fn pids(rig: &Rig, calls: usize) -> BTreeSet<String> {
    (0..calls).map(|_| rig.result("many__pid", &json!({}))).collect()
}

/// The lights of the replicas.
fn lights(rig: &Rig) -> Vec<Value> {
    let status = rig.status("many");
    status["replicas"].as_array().expect("replicas").iter().map(|replica| replica["light"].clone()).collect()
}

#[track_caller]
fn all_green(rig: &Rig) {
    rig.server.eventually("all replicas are there", || rig.light("many") == "green");
}

#[test]
fn ups_12_calls_are_spread_over_the_replicas_of_a_process() {
    let rig = Rig::of(&json!({ "many": with(stdio(&[]), &json!({ "replicas": 3 })) }));
    all_green(&rig);
    assert_eq!(pids(&rig, 12).len(), 3);
    assert_eq!(lights(&rig), ["green"; 3]);
    let status = rig.status("many");
    assert_eq!(status["tools"], rig.tools_of("many").len(), "the tools of one, not of three: {status}");
}

#[test]
fn ups_12_a_replica_that_is_down_is_avoided_and_the_light_is_yellow() {
    let start = "test -f stop && exit 9; exec $FAULTY";
    let rig = Rig::of(
        &json!({ "many": with(script(start, "many"), &json!({ "replicas": 3 })), "good": stdio(&[]) }),
    );
    all_green(&rig);
    rig.ready("good");
    let before = pids(&rig, 12);
    let dead = before.first().expect("a process").clone();
    rig.home.write("stop", "");
    kill(&dead);
    rig.while_good_works(|| {
        rig.server.eventually("it is missed", || lights(&rig).contains(&json!("red")));
        let status = rig.status("many");
        assert_eq!((&status["light"], &status["status"]), (&json!("yellow"), &json!("ready")), "{status}");
        assert_eq!(rig.metric("server_light", "many").as_deref(), Some("2"));
        let left = pids(&rig, 12);
        assert!(left.len() == 2 && left.is_subset(&before) && !left.contains(&dead), "{left:?}");
    });
    std::fs::remove_file(rig.home.path().join("stop")).expect("it is there");
    all_green(&rig);
    assert_eq!(pids(&rig, 12).len(), 3);
    // With all of them gone the server is down.
    rig.home.write("stop", "");
    pids(&rig, 12).iter().for_each(|pid| kill(pid));
    rig.down("many");
    rig.error("many__pid", &json!({}), "UPSTREAM_UNAVAILABLE");
}

#[test]
fn ups_12_calls_are_spread_over_addresses_and_avoid_the_one_that_is_down() {
    let mut servers: Vec<Faulty> = (0..3).map(|_| Faulty::start(Kind::Http, &[])).collect();
    let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
    let health = json!({ "intervalMs": 200, "timeoutMs": 1000 });
    let entry = json!({ "type": "http", "urls": urls, "healthCheck": health });
    let rig = Rig::of(&json!({ "many": entry }));
    all_green(&rig);
    let all: BTreeSet<String> = servers.iter().map(|server| server.pid().to_string()).collect();
    assert_eq!(pids(&rig, 12), all);
    let dead = servers.remove(1);
    let (port, url) = (dead.address.port(), dead.url.clone());
    drop(dead);
    rig.server.eventually("it is missed", || lights(&rig) == ["green", "red", "green"]);
    assert_eq!(rig.light("many"), "yellow");
    let left: BTreeSet<String> = servers.iter().map(|server| server.pid().to_string()).collect();
    assert_eq!(pids(&rig, 12), left);
    let status = rig.status("many");
    assert_eq!(status["replicas"][1]["name"], url, "{status}");
    assert!(status["replicas"][1]["lastError"].is_string(), "{status}");
    let public = rig.server.get("/api/v1/servers/many").text;
    assert!(!public.contains(&url), "addresses are for those who administer: {public}");
    servers.push(Faulty::start_at(Kind::Http, port, &[]));
    all_green(&rig);
    assert_eq!(pids(&rig, 12).len(), 3);
}

#[test]
fn ups_12_a_busy_replica_gets_no_more_while_another_is_idle() {
    let rig = Rig::of(&json!({ "many": with(stdio(&[]), &json!({ "replicas": 2 })) }));
    all_green(&rig);
    let busy = |n: usize| {
        let replicas = rig.status("many")["replicas"].clone();
        let loads = replicas.as_array().expect("replicas").iter();
        let mut loads: Vec<u64> =
            loads.map(|replica| replica["inFlight"].as_u64().expect("a number")).collect();
        loads.sort_unstable();
        loads == [n as u64 / 2, (n as u64).div_ceil(2)]
    };
    let call = json!({ "tool": "many__sleep", "arguments": { "ms": 600_000 } });
    let first = crate::queues::defer(&rig.server, &call);
    rig.server.eventually("one is busy", || busy(1));
    assert_eq!(pids(&rig, 10).len(), 1, "only the idle one is asked");
    // Of six, each gets three.
    let more: Vec<String> = (2..=6)
        .map(|n| {
            let id = crate::queues::defer(&rig.server, &call);
            rig.server.eventually("the load is even", || busy(n));
            id
        })
        .collect();
    more.iter().chain([&first]).for_each(|id| cancel(&rig.server, id));
    rig.server.eventually("all are idle", || busy(0));
    assert_eq!(pids(&rig, 10).len(), 2);
}

#[test]
fn ups_12_replicas_that_differ_are_named() {
    let start = "mkdir first 2>/dev/null && exec $FAULTY; exec $FAULTY --definition-version 2";
    let more = json!({ "replicas": 2, "protocol": "legacy" });
    let rig = Rig::of(&json!({ "many": with(script(start, "many"), &more) }));
    all_green(&rig);
    let doctor = rig.home.run(["doctor"]);
    assert!(doctor.stdout.contains("has other tools than the rest"), "{doctor:?}");
}

#[test]
fn ups_12_a_replica_that_cannot_be_reached_costs_no_call() {
    let mut servers: Vec<Faulty> = (0..3).map(|_| Faulty::start(Kind::Http, &[])).collect();
    let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
    // No health check comes in between: the calls themselves find out.
    let health = json!({ "intervalMs": 3_600_000, "timeoutMs": 1000 });
    let rig = Rig::of(&json!({ "many": { "type": "http", "urls": urls, "healthCheck": health } }));
    all_green(&rig);
    assert_eq!(pids(&rig, 12).len(), 3);
    drop(servers.remove(1));
    let left: BTreeSet<String> = servers.iter().map(|server| server.pid().to_string()).collect();
    assert_eq!(pids(&rig, 12), left, "what was not sent to the one is sent to another");
}

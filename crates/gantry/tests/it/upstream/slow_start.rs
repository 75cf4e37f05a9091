//! Servers that need most of the time that they have to start.

use super::{Rig, stdio, with};
use gantry_testkit::faulty::{LEGACY, MODERN};
use gantry_testkit::long;
use serde_json::{Value, json};

/// A server that starts after so many milliseconds and has so many.
fn slow(start: u32, limit: u32, args: &[&str]) -> Value {
    let start = start.to_string();
    let args = [&["--start-after", &start], args].concat();
    with(stdio(&args), &json!({ "startupTimeoutMs": limit }))
}

#[test]
fn ups_11_a_server_that_needs_most_of_its_time_starts_again() {
    // More than half of the time, so that it cannot be given up half-way and begun anew.
    let (start, limit) = (3_600, 6_000);
    let rows: [(&str, &[&str], &str); 3] = [
        ("legacy", &["--era", "legacy"], LEGACY),
        ("modern", &["--era", "modern"], MODERN),
        ("silent", &["--silent-on-discover"], LEGACY),
    ];
    let servers: Value =
        rows.map(|(id, args, _)| (id.to_owned(), slow(start, limit, args))).into_iter().collect();
    let rig = Rig::of(&servers);
    let pids = rows.map(|(id, _, era)| {
        rig.ready(id);
        assert_eq!(rig.status(id)["era"], era);
        rig.result(&format!("{id}__pid"), &json!({}))
    });
    // Now their eras are known, as they also are when Gantry starts anew.
    rows.iter().for_each(|(id, ..)| rig.restart(id));
    for ((id, _, era), pid) in rows.iter().zip(&pids) {
        rig.replaced(id, pid);
        assert_eq!(rig.status(id)["era"], *era);
    }
    let Rig { server, home } = rig;
    server.stop();
    let rig = Rig::at(home);
    for (id, _, era) in rows {
        rig.ready(id);
        assert_eq!(rig.status(id)["era"], era);
    }
}

#[test]
fn ups_3_heavy_a_server_that_starts_after_twenty_seconds_is_used() {
    let (start, limit) = if long() { (20_000, 30_000) } else { (3_000, 5_000) };
    let rig = Rig::of(&json!({
        "good": stdio(&[]),
        "bad": slow(start, limit, &[]),
        "impatient": slow(start, 1_000, &[]),
    }));
    rig.ready("good");
    rig.while_good_works(|| {
        let why = rig.down("impatient")["lastError"].as_str().expect("a reason").to_owned();
        assert!(why.contains("1000 ms") && why.contains("startupTimeoutMs"), "{why}");
        rig.ready("bad");
    });
    assert_eq!(rig.result("bad__echo", &json!({ "text": "late" })), "late");
}

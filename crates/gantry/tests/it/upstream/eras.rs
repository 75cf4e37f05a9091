//! Servers that answer the question which era they speak in unusual ways, and what Gantry makes of it.

use super::{Rig, stdio, with};
use gantry_testkit::faulty::{LEGACY, MODERN};
use serde_json::json;

#[test]
fn ups_11_every_reaction_to_discovery_ends_with_a_usable_server_in_the_right_era() {
    let rows: [(&str, &[&str], &str); 7] = [
        ("latch", &["--latch"], MODERN),
        ("silent", &["--silent-on-discover"], LEGACY),
        ("exits", &["--exit-on-discover"], LEGACY),
        ("legacy", &["--era", "legacy"], LEGACY),
        ("modern", &["--era", "modern"], MODERN),
        ("dual", &["--era", "dual"], MODERN),
        ("old", &["--revision", "2024-11-05"], "2024-11-05"),
    ];
    let servers = rows.map(|(id, args, _)| (id.to_owned(), stdio(args)));
    let rig = Rig::of(&servers.into_iter().collect());
    for (id, _, era) in rows {
        rig.ready(id);
        let status = rig.status(id);
        assert_eq!((&status["era"], &status["lastError"]), (&json!(era), &json!(null)), "{id}: {status}");
        assert_eq!(rig.result(&format!("{id}__echo"), &json!({ "text": id })), id);
    }
    let pids: Vec<String> =
        rows.iter().map(|(id, ..)| rig.result(&format!("{id}__pid"), &json!({}))).collect();
    // The second time it is known what they speak, and they are asked in no other words.
    rows.iter().for_each(|(id, ..)| rig.restart(id));
    for ((id, _, era), pid) in rows.iter().zip(pids) {
        rig.replaced(id, &pid);
        assert_eq!(rig.status(id)["era"], *era);
    }
}

#[test]
fn ups_11_a_server_that_is_replaced_by_one_of_the_other_era_is_found_out_anew() {
    let start = "exec $FAULTY --era $(cat era) --journal journal.txt";
    let home = gantry_testkit::TestDir::new()
        .config(&json!({ "mcpServers": { "bad": super::script(start, "bad") } }).to_string());
    home.write("era", "legacy");
    let rig = Rig::at(home);
    rig.ready("bad");
    assert_eq!(rig.status("bad")["era"], LEGACY);
    for (era, version) in [("modern", MODERN), ("legacy", LEGACY)] {
        rig.home.write("era", era);
        let pid = rig.result("bad__pid", &json!({}));
        rig.restart("bad");
        rig.replaced("bad", &pid);
        assert_eq!(rig.status("bad")["era"], version);
    }
}

#[test]
fn ups_11_an_era_that_is_configured_is_spoken_or_the_server_is_down() {
    let only = |protocol: &str, era: &str| with(stdio(&["--era", era]), &json!({ "protocol": protocol }));
    let rig = Rig::of(&json!({
        "legacy": only("legacy", "dual"),
        "modern": only("modern", "dual"),
        "neither": only("modern", "legacy"),
    }));
    for (id, era) in [("legacy", LEGACY), ("modern", MODERN)] {
        rig.ready(id);
        assert_eq!(rig.status(id)["era"], era);
    }
    let status = rig.down("neither");
    assert!(status["lastError"].as_str().is_some_and(|why| why.contains("server/discover")), "{status}");
}

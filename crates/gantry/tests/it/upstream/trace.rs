//! `traceMCP`: every message to and from a server, for a person who looks for an error, without secrets.

use super::{Rig, stdio, with};
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

/// A value that must never be seen.
const SECRET: &str = "hunter2-and-more";

/// The frames of a server as the log shows them.
pub(super) fn logged(rig: &Rig, server: &str, arrow: &str) -> Vec<String> {
    let start = format!("[INF] {server} {arrow} ");
    rig.server.stderr().lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
}

#[test]
fn ups_15_every_message_is_logged_both_ways_for_the_server_that_is_traced() {
    let rig =
        Rig::of(&json!({ "loud": with(stdio(&[]), &json!({ "traceMCP": true })), "quiet": stdio(&[]) }));
    rig.ready("loud");
    rig.ready("quiet");
    rig.result("loud__echo", &json!({ "text": "there and back" }));
    rig.result("quiet__echo", &json!({ "text": "unheard" }));
    rig.server.eventually("it is logged", || {
        logged(&rig, "loud", "←").iter().any(|line| line.contains("there and back"))
    });
    let sent = logged(&rig, "loud", "→");
    for method in ["initialize", "notifications/initialized", "tools/list", "tools/call"] {
        assert!(
            sent.iter().any(|line| line.contains(&format!("\"method\":\"{method}\""))),
            "{method}: {sent:?}"
        );
    }
    assert!(sent.iter().any(|line| line.contains("there and back")), "{sent:?}");
    assert!(!rig.server.stderr().contains("unheard"));
    // The live debugger reads the same from the stream of events.
    let events = rig.server.get_as_admin("/api/v1/events?follow=false").text;
    let frames: Vec<Value> = events
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
        .filter(|event: &Value| event["type"] == "mcp_frame" && event["server"] == "loud")
        .collect();
    assert!(
        frames
            .iter()
            .any(|frame| frame["sent"] == true && frame["text"].to_string().contains("there and back"))
    );
    assert!(
        frames
            .iter()
            .any(|frame| frame["sent"] == false && frame["text"].to_string().contains("there and back"))
    );
    assert!(
        !rig.server.get("/api/v1/events?follow=false").text.contains("mcp_frame"),
        "only for those who administer"
    );
}

#[test]
fn ups_15_a_default_traces_all_and_a_server_can_opt_out() {
    let rig = Rig::with_config(&json!({
        "defaults": { "traceMCP": true },
        "mcpServers": { "loud": stdio(&[]), "quiet": with(stdio(&[]), &json!({ "traceMCP": false })) },
    }));
    rig.ready("loud");
    rig.ready("quiet");
    rig.server.eventually("it is logged", || !logged(&rig, "loud", "→").is_empty());
    assert!(logged(&rig, "quiet", "→").is_empty() && logged(&rig, "quiet", "←").is_empty());
}

#[test]
fn ups_15_secrets_are_masked_in_both_directions() {
    let server = Faulty::start(Kind::Http, &[]);
    let remote = json!({
        "type": "http", "url": server.url, "traceMCP": true, "headers": { "Authorization": format!("Bearer {SECRET}") },
    });
    let rig = Rig::of(&json!({
        "local": with(stdio(&[]), &json!({ "traceMCP": true, "env": { "ACCESS": SECRET } })),
        "remote": remote,
    }));
    rig.ready("local");
    rig.ready("remote");
    // By the name of an argument, also where a server quotes it; and by the value that the configuration has.
    let hidden = json!({ "any": { "password": SECRET, "plain": "to be seen" } });
    assert!(rig.result("local__params", &hidden).contains(SECRET), "the server itself gets it");
    assert!(rig.result("local__env", &json!({})).contains(SECRET), "the server itself has it");
    assert!(rig.headers("remote").contains(SECRET), "the server itself gets it");
    let shown = rig.result("remote__headers", &json!({}));
    assert!(!shown.contains(SECRET) && shown.contains(r#""authorization":"[redacted]""#), "{shown}");
    rig.server.eventually("it is logged", || {
        logged(&rig, "remote", "←").len() > 3
            && logged(&rig, "local", "→").iter().any(|line| line.contains("to be seen"))
    });
    let events = rig.server.get_as_admin("/api/v1/events?follow=false").text;
    let frames: Vec<&str> = events.lines().filter(|line| line.contains(r#""type":"mcp_frame""#)).collect();
    // What is shown there is what was sent and answered, without what is masked.
    for (server, word) in [("local", "to be seen"), ("local", "ACCESS"), ("remote", "authorization")] {
        let own = format!(r#""server":"{server}""#);
        assert!(frames.iter().any(|line| line.contains(&own) && line.contains(word)), "{word}: {frames:#?}");
    }
    let leaks: Vec<&str> = events.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    let (code, said) = rig.server.stop();
    assert_eq!(code, 0, "{said}");
    let leaks: Vec<&str> = said.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

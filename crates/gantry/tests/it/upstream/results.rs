//! What calls of servers come to for those who made them: errors of tools, time limits, results that break a promise.

use super::{Rig, journalling, remote, script, stdio, with};
use crate::passthrough::{Door, Talk};
use gantry_testkit::TestDir;
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

/// A value that must never be seen.
const SECRET: &str = "hunter2-and-more";

#[test]
fn cal_3_an_error_of_a_servers_tool_is_an_error_over_http() {
    let server = Faulty::start(Kind::Http, &["--era", "modern"]);
    let rig = Rig::of(&json!({ "legacy": stdio(&[]), "modern": remote("http", &server.url) }));
    for id in ["legacy", "modern"] {
        rig.ready(id);
        let tool = format!("{id}__fail");
        let answer = rig.server.call(&tool, &json!({ "text": "the disk is full" }));
        let reply = answer.json();
        assert_eq!(answer.status, 200, "the request itself was fine: {answer:?}");
        assert_eq!((&reply["ok"], reply.get("result")), (&json!(false), None), "{reply}");
        let error = &reply["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!("EXECUTION_ERROR"), &json!("the disk is full")),
            "{reply}"
        );
        assert_eq!(
            (&reply["state"], &reply["extras"]["effect"]),
            (&json!("COMPLETED_FAILURE"), &json!("none"))
        );
        assert_eq!((&reply["kind"], &reply["namespace"]), (&json!("mcp"), &json!(id)), "{reply}");
        assert!(reply["latencyMs"].is_number(), "{reply}");
        // It is on record as what it was.
        let id = reply["id"].as_str().expect("an id");
        let record = rig.server.get(&format!("/api/v1/calls/{id}")).json()["record"].take();
        assert_eq!(
            (&record["state"], &record["error"]["code"], &record["error"]["message"]),
            (&json!("COMPLETED_FAILURE"), &json!("EXECUTION_ERROR"), &json!("the disk is full")),
            "{record}"
        );
        let silent = rig.error(&tool, &json!({ "text": "" }), "EXECUTION_ERROR");
        assert_eq!(silent["error"]["message"], "the tool failed and gave no reason", "{silent}");
    }
}

#[test]
fn cal_3_an_error_of_a_servers_tool_is_an_error_at_the_command_line() {
    let rig = Rig::of(&json!({ "s": stdio(&[]) }));
    rig.ready("s");
    let arguments = json!({ "text": "the disk is full" }).to_string();
    // With a server that runs, and without.
    for alone in [false, true] {
        let home = if alone { &TestDir::new() } else { &rig.home };
        if alone {
            home.write("gantry.yaml", &json!({ "mcpServers": { "s": stdio(&[]) } }).to_string());
        }
        let shown = home.run(["call", "s__fail", &arguments]);
        assert_eq!((shown.code, shown.stdout.as_str()), (1, ""), "{shown:?}");
        assert!(shown.stderr.starts_with("error: the disk is full"), "{shown:?}");
        assert!(shown.stderr.contains("[EXECUTION_ERROR]"), "{shown:?}");
        let data = home.run(["call", "s__fail", &arguments, "--json"]);
        let reply = data.json();
        assert_eq!((data.code, data.stderr.as_str(), &reply["ok"]), (1, "", &json!(false)), "{data:?}");
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["message"], &reply["namespace"]),
            (&json!("EXECUTION_ERROR"), &json!("the disk is full"), &json!("s")),
            "{reply}"
        );
        let fine = home.run(["call", "s__echo", &json!({ "text": "well" }).to_string()]);
        assert_eq!((fine.code, fine.stdout.trim_end()), (0, "well"), "{fine:?}");
    }
}

#[test]
fn cal_8_the_time_limit_of_a_server_counts_and_the_server_gets_a_cancellation() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = |id: &str| folder.path().join(id).to_str().expect("UTF-8").to_owned();
    // Long enough for a call to reach its server on a busy machine: one that did not arrive gets no cancellation.
    let limits = json!({ "requestTimeoutMs": 1000, "toolsTimeout": { "progress": 1200 } });
    let [legacy, modern] = ["legacy", "modern"].map(|era| {
        let id = format!("http_{era}");
        Faulty::start(Kind::Http, &["--era", era, "--journal", &journal(&id)])
    });
    let ids = ["stdio_legacy", "stdio_modern", "http_legacy", "http_modern"];
    let rig = Rig::with_config(&json!({
        "defaults": { "toolTimeout": 800 },
        "mcpServers": {
            "stdio_legacy": with(stdio(&["--journal", &journal(ids[0])]), &limits),
            "stdio_modern": with(stdio(&["--era", "modern", "--journal", &journal(ids[1])]), &limits),
            "http_legacy": with(remote("http", &legacy.url), &limits),
            "http_modern": with(remote("http", &modern.url), &limits),
            "without": journalling(&[]),
        },
    }));
    let asleep = json!({ "ms": 600_000 });
    for id in ids {
        rig.ready(id);
        let outcome = || std::fs::read_to_string(folder.path().join(id)).unwrap_or_default();
        for (n, (tool, limit)) in [("sleep", 1000), ("progress", 1200)].into_iter().enumerate() {
            let failed = rig.error(&format!("{id}__{tool}"), &asleep, "TIMEOUT");
            assert_eq!(failed["error"]["message"], "(tool failed: timeout)", "{failed}");
            assert_eq!(failed["error"]["details"]["timeoutMs"], limit, "{id}: {failed}");
            rig.server.eventually(&format!("{id} is told"), || outcome() == "cancelled\n".repeat(n + 1));
        }
        assert_eq!(rig.result(&format!("{id}__echo"), &json!({ "text": "x" })), "x", "{id}");
        let status = rig.status(id);
        assert_eq!((&status["light"], &status["lastError"]), (&json!("green"), &Value::Null), "{status}");
    }
    rig.ready("without");
    let failed = rig.error("without__sleep", &asleep, "TIMEOUT");
    assert_eq!(failed["error"]["details"]["timeoutMs"], 800, "the limit of all counts elsewhere: {failed}");
    rig.server.eventually("the server is told", || rig.journal() == ["cancelled"]);
}

#[test]
fn ups_5_a_result_that_breaks_its_own_schema_is_reported() {
    let rig = Rig::beside_good(&stdio(&["--lying-schema"]));
    rig.ready("bad");
    let mut client = Talk::legacy(Door::Http(&rig.server, "/mcp"));
    let call = json!({ "name": "bad__lying_output", "arguments": {} });
    for _ in 0..3 {
        // What it answered is passed on all the same: the client may know better than the schema.
        let result = client.result("tools/call", &call);
        assert_eq!(
            (&result["structuredContent"], &result["isError"]),
            (&json!({ "n": "many" }), &json!(false)),
            "{result}"
        );
        assert_eq!(rig.call("bad__lying_output", &json!({}))["ok"], true);
    }
    assert_eq!(rig.call("bad__add", &json!({ "a": 1, "b": 2 }))["result"], json!({ "sum": 3 }));
    // It is logged once, with everything to find it.
    let about =
        |line: &&str| ["bad__lying_output", "output schema", "/n"].iter().all(|word| line.contains(word));
    rig.server.eventually("it is in the log", || rig.server.stderr().lines().any(|line| about(&line)));
    let said = rig.server.stderr();
    assert_eq!(said.lines().filter(about).count(), 1, "once, however often it is called: {said}");
    let warned = said.lines().find(about).unwrap_or_default();
    assert!(warned.contains("[WRN]"), "{warned}");
    let doctor = rig.home.run(["doctor"]);
    assert_eq!(doctor.stdout.lines().filter(about).count(), 1, "{doctor:?}");
    let tool = rig.home.run(["doctor", "bad__lying_output"]);
    assert!(tool.stdout.lines().any(|line| about(&line)), "{tool:?}");
    assert_eq!(tool.code, 0, "it can be called: {tool:?}");
    let kept = rig.home.run(["doctor", "bad__add"]);
    assert!(!kept.stdout.contains("output schema"), "{kept:?}");
}

/// Every line that shows the secret, of all that a person can look at.
fn leaks(rig: &Rig, id: &str) -> Vec<String> {
    let (tool, path) = (format!("{id}__echo"), format!("/api/v1/servers/{id}"));
    let commands: [&[&str]; 6] = [
        &["servers"],
        &["servers", "--json"],
        &["doctor"],
        &["doctor", &tool],
        &["audit", "--json"],
        &["-vv", "tools"],
    ];
    let mut seen: Vec<(String, String)> = Vec::new();
    for args in commands {
        let ran = rig.home.run(args);
        seen.push((format!("gantry {}", args.join(" ")), format!("{}{}", ran.stdout, ran.stderr)));
    }
    for path in ["/api/v1/servers", &path, "/api/v1/events?follow=false", "/metrics"] {
        seen.push((path.to_owned(), rig.server.get_as_admin(path).text));
    }
    seen.push(("the log".to_owned(), rig.server.stderr()));
    let lines =
        seen.iter().flat_map(|(place, text)| text.lines().map(move |line| format!("{place}: {line}")));
    lines.filter(|line| line.contains(SECRET)).collect()
}

/// What servers say on standard error is in the log of those who want to see it.
fn serve_loudly(servers: &Value) -> Rig {
    let home = TestDir::new().config(&json!({ "mcpServers": servers }).to_string());
    Rig { server: home.serve_with(&["-vv"]), home }
}

#[test]
fn ups_9_secrets_of_a_server_do_not_show_in_its_errors() {
    let secret = json!({ "env": { "TOKEN": SECRET, "FAULTY": Faulty::program() } });
    let outcome = |start: &str| with(script(start, "s"), &secret);
    let refusing = Faulty::start(Kind::Http, &["--refuse"]);
    let header = json!({ "headers": { "Authorization": format!("Bearer {SECRET}") } });
    // One that never starts, one that runs and then dies of a call, one that only talks, and one that is elsewhere.
    let rig = serve_loudly(&json!({
        "never": outcome("echo \"401 for token $TOKEN\" >&2; exit 1"),
        "later": outcome("$FAULTY; echo \"401 for token $TOKEN\" >&2; exit 1"),
        "talks": outcome("echo \"starting with $TOKEN\" >&2; exec $FAULTY"),
        "refusing": with(remote("http", &refusing.url), &header),
    }));
    rig.ready("later");
    rig.ready("talks");
    rig.server.eventually("its words are logged", || rig.server.stderr().contains("talks: starting with"));
    let failed = rig.call("later__die", &json!({}));
    assert!(failed["ok"] == false && !failed.to_string().contains(SECRET), "{failed}");
    for id in ["never", "later", "refusing"] {
        rig.server.eventually(&format!("{id} says why"), || {
            rig.status(id)["lastError"].as_str().is_some_and(|why| why.contains("401 for token"))
        });
        assert_eq!(leaks(&rig, id), [] as [&str; 0], "{id}");
    }
    // What is left still says what happened.
    let why = rig.status("never")["lastError"].as_str().expect("a reason").to_owned();
    assert!(why.contains("exit code 1") && why.contains("401 for token"), "{why}");
}

#[test]
fn ups_9_keys_in_addresses_and_headers_do_not_show_when_no_server_answers_there() {
    let gone = Faulty::start(Kind::Http, &[]).address;
    let headers = json!({ "headers": { "Authorization": format!("Bearer {SECRET}") } });
    let address = |scheme: &str, path: &str| format!("{scheme}://{gone}/{path}?key={SECRET}");
    let rig = serve_loudly(&json!({
        "http": with(remote("http", &address("http", "mcp")), &headers),
        "sse": with(remote("sse", &address("http", "sse")), &headers),
        "websocket": with(remote("websocket", &address("ws", "")), &headers),
    }));
    for id in ["http", "sse", "websocket"] {
        let why = rig.down(id)["lastError"].as_str().expect("a reason").to_owned();
        assert!(why.contains(&gone.to_string()), "where it is not is told: {why}");
        assert_eq!(leaks(&rig, id), [] as [&str; 0]);
    }
}

#[test]
fn ups_12_keys_in_the_addresses_of_replicas_do_not_show() {
    let gone = Faulty::start(Kind::Http, &[]).address;
    let address = |path: &str| format!("http://{gone}/{path}?key={SECRET}");
    let rig = serve_loudly(&json!({ "s": { "type": "http", "urls": [address("one"), address("two")] } }));
    rig.down("s");
    assert_eq!(leaks(&rig, "s"), [] as [&str; 0]);
    let status = rig.status("s");
    let replicas = status["replicas"].as_array().expect("replicas");
    let names: Vec<&Value> = replicas.iter().map(|replica| &replica["name"]).collect();
    assert_eq!(names, [&json!(format!("http://{gone}/one")), &json!(format!("http://{gone}/two"))]);
}

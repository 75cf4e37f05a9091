//! NAM-1 and NAM-3 with real servers' names, and UPS-6: what servers say of themselves.

use super::{Door, Rig, Talk, elements, faulty, raw, with};
use gantry_testkit::Home;
use gantry_testkit::faulty::{COLLIDING, LONG_NAME};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The faulty server without a prefix, and with no tool but these.
fn bare(tools: &[&str]) -> Value {
    with(faulty(&[]), &json!({ "prefix": false, "toolsAllowed": tools }))
}

/// The tools of a server that have a title, by that title's last word, which is their own name.
#[track_caller]
fn by_own_name(client: &mut Talk, server: &str) -> BTreeMap<String, String> {
    let listed = client.result("tools/list", &json!({}));
    let tools = listed["tools"].as_array().expect("tools").iter();
    tools
        .filter_map(|tool| {
            let (name, title) = (tool["name"].as_str()?, tool["title"].as_str()?);
            name.starts_with(server).then_some(())?;
            Some((title.strip_prefix("Tool ")?.to_owned(), name.to_owned()))
        })
        .collect()
}

#[test]
fn nam_1_a_server_without_a_prefix_shows_its_own_definitions_unchanged() {
    let home = Home::new();
    let rig = Rig::of(&json!({ "bare": bare(&["echo", "odd", "odd-huge", "a-b", "a.b", "a_name*", "add"]) }));
    let (mut direct, mut through) = (Talk::legacy(Door::Direct(&home, &faulty(&[]))), rig.legacy());
    let (own, shown) = (direct.ask_raw("tools/list", "{}"), through.ask_raw("tools/list", "{}"));
    let own: BTreeMap<&str, &str> = elements(raw(&own, &["result", "tools"]))
        .into_iter()
        .map(|tool| (raw(tool, &["name"]), tool))
        .collect();
    let shown = elements(raw(&shown, &["result", "tools"]));
    let unchanged = shown.iter().filter(|tool| own.get(raw(tool, &["name"])) == Some(tool)).count();
    assert_eq!(unchanged, 7, "{shown:?}");
    for name in [LONG_NAME, "a-b", "a.b"] {
        assert_eq!(through.call(name, &json!({})), name);
    }
    assert_eq!(through.call("echo", &json!({ "text": "hi" })), "hi");
}

#[test]
fn nam_1_of_two_servers_with_one_bare_name_the_second_is_left_out_with_a_reason() {
    let rig = Rig::of(
        &json!({ "first": bare(&["echo", "pid"]), "other": faulty(&[]), "second": bare(&["echo", "add"]) }),
    );
    let mut client = rig.legacy();
    let tools = client.tools();
    assert_eq!(tools.iter().filter(|name| *name == "echo").count(), 1, "{tools:?}");
    assert!(tools.iter().any(|name| name == "pid") && !tools.iter().any(|name| name == "add"), "{tools:?}");
    assert_eq!(client.call("echo", &json!({ "text": "hi" })), "hi");
    assert_eq!(client.call("other__echo", &json!({ "text": "hi" })), "hi");
    let rows = rig.server.get_as_admin("/api/v1/audit?limit=2").json();
    assert_eq!((&rows["items"][1]["tool"], &rows["items"][1]["provider"]), (&json!("echo"), &json!("first")));
    let status = rig.server.get_as_admin("/api/v1/servers/second").json();
    assert_eq!(status["light"], "red", "{status}");
    assert!(
        status["lastError"]
            .as_str()
            .is_some_and(|why| why.contains("both first and second have a tool echo")),
        "{status}"
    );
    let doctor = rig.home.run(["doctor"]).stdout;
    for words in ["second is left out", "both first and second have a tool echo", "prefix: true"] {
        assert!(doctor.contains(words), "{words}: {doctor}");
    }
    let why = rig.home.run(["doctor", "second__add"]);
    assert!(why.code == 1 && why.stdout.contains("both first and second have a tool echo"), "{why:?}");
}

#[test]
fn nam_1_what_a_server_that_is_left_out_offers_besides_is_left_out_too() {
    let rig = Rig::of(&json!({ "first": bare(&["echo"]), "second": bare(&["echo"]) }));
    let mut client = rig.legacy();
    for (method, member, key) in [("resources/list", "resources", "uri"), ("prompts/list", "prompts", "name")]
    {
        let shown = super::members(&client.result(method, &json!({}))[member], key);
        let distinct: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(distinct.len(), shown.len(), "{method}: {shown:?}");
    }
    // So a URI has one owner only.
    let read = client.result("resources/read", &json!({ "uri": "faulty://text/one" }));
    assert_eq!(read["contents"][0]["text"], "the first resource", "{read}");
}

#[test]
fn nam_1_a_bare_name_of_gantrys_own_tools_is_gantrys() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = gantry_testkit::real_servers::find("filesystem").prepare(folder.path());
    let rig =
        Rig::of(&json!({ "files": with(files.entry(), &json!({ "prefix": false })), "one": faulty(&[]) }));
    rig.home.write("mine.txt", "of the workspace");
    let mut client = rig.legacy();
    let read =
        client.result("tools/call", &json!({ "name": "read_file", "arguments": { "path": "mine.txt" } }));
    assert_eq!(read["structuredContent"]["content"], "of the workspace", "{read}");
    assert!(!client.tools().contains(&"read_text_file".to_owned()), "the whole server is left out");
    assert_eq!(client.call("one__echo", &json!({ "text": "hi" })), "hi");
    let doctor = rig.home.run(["doctor"]).stdout;
    assert!(doctor.contains("files is left out: both workspace and files have a tool"), "{doctor}");
}

#[test]
fn nam_3_a_long_name_is_cut_and_stays_the_same() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let shown = by_own_name(&mut client, "one__")[LONG_NAME].clone();
    assert!(shown.len() <= 64 && shown.starts_with("one__a_name_of_exactly"), "{shown}");
    assert!(shown.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{shown}");
    for spelling in [&shown, &format!("one__{LONG_NAME}"), &format!("@one/{LONG_NAME}")] {
        assert_eq!(client.call(spelling, &json!({})), LONG_NAME, "{spelling}");
    }
    // Another Gantry with another set of servers gives it the same name.
    let another = Rig::of(&json!({ "one": faulty(&[]), "two": faulty(&["--page", "3"]) }));
    assert_eq!(by_own_name(&mut another.legacy(), "one__")[LONG_NAME], shown);
}

#[test]
fn nam_3_names_that_would_be_one_are_told_apart_and_doctor_says_so() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let names = by_own_name(&mut client, "one__");
    let shown = COLLIDING.map(|own| names[own].clone());
    assert_ne!(shown[0], shown[1]);
    for (own, shown) in COLLIDING.iter().zip(&shown) {
        assert!(shown.starts_with("one__a_b_"), "{shown}");
        for spelling in [shown, &format!("one__{own}"), &format!("@one/{own}")] {
            assert_eq!(client.call(spelling, &json!({})), *own, "{spelling}");
        }
    }
    // Neither of them has the name that both would have.
    client.error("tools/call", &json!({ "name": "one__a_b", "arguments": {} }), -32602);
    let doctor = rig.home.run(["doctor"]).stdout;
    assert!(doctor.contains("several tools would be called one__a_b"), "{doctor}");
    assert!(shown.iter().all(|name| doctor.contains(name)), "{doctor}");
}

#[test]
fn nam_3_servers_whose_ids_would_be_one_are_told_apart() {
    let rig = Rig::of(&json!({ "a-b": faulty(&[]), "a.b": faulty(&[]) }));
    let mut client = rig.legacy();
    let tools = client.tools();
    assert_eq!(tools.iter().collect::<BTreeSet<_>>().len(), tools.len(), "{tools:?}");
    let pids: BTreeSet<String> = ["a-b__pid", "a.b__pid", "@a-b/pid", "@a.b/pid"]
        .into_iter()
        .map(|spelling| client.call(spelling, &json!({})))
        .collect();
    assert_eq!(pids.len(), 2, "each spelling means one server");
    client.error("tools/call", &json!({ "name": "a_b__pid", "arguments": {} }), -32602);
}

#[test]
fn nam_3_reserved_ids_are_load_errors() {
    for id in ["agent", "rest", "router"] {
        let home = Home::new().config(&json!({ "mcpServers": { id: faulty(&[]) } }).to_string());
        for args in [["tools"].as_slice(), &["serve", "--bind", "127.0.0.1:0"], &["mcp"]] {
            let ran = home.run(args);
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{id} {args:?}: {ran:?}");
            assert!(
                ran.stderr.contains(id) && ran.stderr.contains("a name of Gantry's own"),
                "{id} {args:?}: {ran:?}"
            );
        }
    }
    // Over HTTP too.
    let rig = Rig::one();
    let body = with(faulty(&[]), &json!({ "id": "agent" })).to_string();
    let added =
        gantry_testkit::server::send(&rig.server.admin(), http::Method::POST, "/api/v1/servers", &[], &body);
    assert!((400..500).contains(&added.status) && added.text.contains("a name of Gantry's own"), "{added:?}");
}

#[test]
fn nam_3_reserved_names_are_nobodys_but_gantrys() {
    let rig = Rig::of(&json!({ "bare": with(faulty(&[]), &json!({ "prefix": false })), "one": faulty(&[]) }));
    let mut client = rig.legacy();
    let tools = client.tools();
    for reserved in ["final_report", "batch", "agent__final_report", "router__handoff-to"] {
        assert!(!tools.iter().any(|name| name == reserved), "{reserved} is listed");
        client.error("tools/call", &json!({ "name": reserved, "arguments": {} }), -32602);
        // Under a prefix any name will do.
        assert_eq!(client.call(&format!("one__{reserved}"), &json!({})), reserved);
    }
    assert_eq!(client.call("echo", &json!({ "text": "the rest is there" })), "the rest is there");
    let doctor = rig.home.run(["doctor"]).stdout;
    for reserved in ["final_report", "batch"] {
        assert!(doctor.contains(&format!("tool {reserved} of bare is left out")), "{doctor}");
    }
}

#[test]
fn ups_6_instructions_of_servers_are_gantrys_instructions_under_their_ids() {
    let config = json!({
        "mcpServers": { "one": faulty(&[]), "two": faulty(&["--era", "modern"]) },
        "agents": { "second": { "tools": ["two__echo"] } },
    });
    let rig = Rig::with_config(&config);
    let section = |id: &str| format!("# {id}\nInstructions of the faulty server: call echo first.");
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let instructions = |door: Door<'_>| {
        let old = Talk::silent(door).result("initialize", &hello)["instructions"].clone();
        let new = Talk::modern(door).result("server/discover", &json!({}))["instructions"].clone();
        assert_eq!(old, new);
        old.as_str().expect("instructions").to_owned()
    };
    for (what, door) in rig.doors() {
        let told = instructions(door);
        assert!(told.contains(&section("one")) && told.contains(&section("two")), "{what}: {told}");
        assert!(told.contains("# workspace\n"), "{what}: {told}");
    }
    // An agent is told what concerns it.
    assert_eq!(instructions(Door::Http(&rig.server, "/mcp/default/agents/second")), section("two"));
}

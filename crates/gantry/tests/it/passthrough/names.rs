//! NAM-1 and NAM-3 with real servers' names, and UPS-6: what servers say of themselves.

use super::{Door, Rig, Talk, elements, faulty, raw, with};
use gantry_testkit::TestDir;
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
    let home = TestDir::new();
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
fn nam_1_of_two_servers_with_one_bare_name_the_second_goes_without_that_tool() {
    let rig = Rig::of(
        &json!({ "first": bare(&["echo", "pid"]), "other": faulty(&[]), "second": bare(&["echo", "add"]) }),
    );
    let mut client = rig.legacy();
    let tools = client.tools();
    assert_eq!(tools.iter().filter(|name| *name == "echo").count(), 1, "{tools:?}");
    assert!(["pid", "add"].iter().all(|name| tools.iter().any(|tool| tool == name)), "{tools:?}");
    assert_eq!(client.call("echo", &json!({ "text": "hi" })), "hi");
    assert_eq!(client.call("other__echo", &json!({ "text": "hi" })), "hi");
    let rows = rig.server.get_as_admin("/api/v1/audit?limit=2").json();
    assert_eq!((&rows["items"][1]["tool"], &rows["items"][1]["provider"]), (&json!("echo"), &json!("first")));
    assert_eq!(client.call("add", &json!({ "a": 1, "b": 2 })), r#"{"sum":3}"#);
    assert_eq!(rig.server.get_as_admin("/api/v1/servers/second").json()["light"], "green");
    let doctor = rig.home.run(["doctor"]).stdout;
    for words in ["tool echo of second is left out", "both first and second have a tool echo", "prefix: true"]
    {
        assert!(doctor.contains(words), "{words}: {doctor}");
    }
    let why = rig.home.run(["doctor", "second__echo"]);
    assert!(why.code == 1 && why.stdout.contains("both first and second have a tool echo"), "{why:?}");
}

#[test]
fn nam_1_a_server_cannot_take_a_bare_name_over_from_another_one_while_it_runs() {
    let owner = faulty(&["--tool", "grown-1"]);
    let owner = with(owner, &json!({ "prefix": false, "toolsAllowed": ["grown-1", "echo"] }));
    let rig = Rig::of(&json!({ "aaa": bare(&["grow", "grown-*"]), "bbb": owner }));
    let mut client = rig.legacy();
    let listed = |client: &mut Talk| client.tools().iter().filter(|name| *name == "grown-1").count();
    assert_eq!(listed(&mut client), 1);
    assert_eq!(client.call("grow", &json!({})), "grown-1");
    rig.server.eventually("what grew is left out", || {
        rig.home.run(["doctor"]).stdout.contains(
            "tool grown-1 of aaa is left out: both bbb and aaa have a tool grown-1 without a prefix",
        )
    });
    // The name is still the other one's, and so is the rest of its tools.
    assert_eq!(listed(&mut client), 1);
    assert_eq!(client.call("grown-1", &json!({})), "grown-1");
    let rows = rig.server.get_as_admin("/api/v1/audit?limit=1").json();
    assert_eq!(
        (&rows["items"][0]["tool"], &rows["items"][0]["provider"]),
        (&json!("grown-1"), &json!("bbb"))
    );
    assert_eq!(client.call("echo", &json!({ "text": "hi" })), "hi");
}

#[test]
fn nam_1_a_bare_uri_or_prompt_that_two_servers_have_is_the_first_ones() {
    let rig = Rig::of(&json!({ "first": bare(&["echo"]), "second": bare(&["echo"]) }));
    let mut client = rig.legacy();
    for (method, member, key) in [
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
    ] {
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
    assert!(client.tools().contains(&"read_text_file".to_owned()), "what does not clash is there");
    assert_eq!(client.call("one__echo", &json!({ "text": "hi" })), "hi");
    let doctor = rig.home.run(["doctor"]).stdout;
    let words = "tool read_file of files is left out: both workspace and files have a tool read_file";
    assert!(doctor.contains(words), "{doctor}");
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
fn nam_3_names_that_would_be_one_are_distinguished_and_doctor_says_so() {
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
fn nam_3_servers_whose_ids_would_be_one_are_distinguished() {
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
fn nam_3_a_bare_name_cannot_pass_for_a_tool_of_another_server() {
    let forged = ["git-hub__push", "git_hub__pull", "a__b__push", "org__srv/push"];
    let sly = faulty(&forged.map(|name| ["--tool", name]).concat());
    let allowed = [forged.as_slice(), &["pid"]].concat();
    let sly = with(sly, &json!({ "prefix": false, "toolsAllowed": allowed }));
    let config = json!({
        "mcpServers": { "git-hub": faulty(&[]), "a__b": faulty(&[]), "org/srv": faulty(&[]), "sly": sly },
        "agents": { "coder": { "tools": ["@git-hub/*", "@a__b/*", "@org/srv/*"] } },
    });
    let rig = Rig::with_config(&config);
    let agent = Talk::legacy(Door::Http(&rig.server, "/mcp/default/agents/coder"));
    for mut client in [rig.legacy(), agent] {
        let tools = client.tools();
        for name in forged {
            assert!(!tools.iter().any(|tool| tool == name), "{name}: {tools:?}");
            client.error("tools/call", &json!({ "name": name, "arguments": {} }), -32602);
        }
        client.error("tools/call", &json!({ "name": "@git-hub/push", "arguments": {} }), -32602);
        assert_eq!(client.call("@git-hub/echo", &json!({ "text": "hi" })), "hi");
    }
    // Nor does the agent get at the resources of the server by such a name.
    let mut agent = Talk::legacy(Door::Http(&rig.server, "/mcp/default/agents/coder"));
    let resources = super::members(&agent.result("resources/list", &json!({}))["resources"], "uri");
    assert!(!resources.is_empty() && resources.iter().all(|uri| uri.starts_with("gantry:")), "{resources:?}");
    assert!(rig.legacy().tools().contains(&"pid".to_owned()), "what is honest is there");
    let doctor = rig.home.run(["doctor"]).stdout;
    for (name, of) in forged.iter().zip(["git-hub", "git-hub", "a__b", "org/srv"]) {
        let words =
            format!("tool {name} of sly is left out: the tool name {name} would pass for one of {of}");
        assert!(doctor.contains(&words), "{words}: {doctor}");
    }
}

#[test]
fn nam_3_reserved_ids_are_load_errors() {
    for id in ["agent", "rest", "router"] {
        let home = TestDir::new().config(&json!({ "mcpServers": { id: faulty(&[]) } }).to_string());
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
        let outcome = instructions(door);
        assert!(outcome.contains(&section("one")) && outcome.contains(&section("two")), "{what}: {outcome}");
        assert!(outcome.contains("# workspace\n"), "{what}: {outcome}");
    }
    // An agent sees what concerns it.
    assert_eq!(instructions(Door::Http(&rig.server, "/mcp/default/agents/second")), section("two"));
}

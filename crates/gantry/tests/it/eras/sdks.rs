//! The official SDKs, as clients of either era, with servers of either era behind Gantry.

use super::{LEGACY, MODERN, Rig, accept};
use crate::mcp_sdks::{Door, PYTHON, Sdk, TYPESCRIPT_1, TYPESCRIPT_2, inspector};
use crate::passthrough::{parsed, text};
use serde_json::{Value, json};

const FAULTY: [&str; 5] = [
    "faulty_legacy_stdio",
    "faulty_modern_stdio",
    "faulty_dual_stdio",
    "faulty_legacy_http",
    "faulty_modern_http",
];
const FIXTURES: [&str; 2] = ["fixture_legacy_stdio", "fixture_modern_http"];

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "call": { "name": name, "arguments": arguments } })
}

/// Everything that a client can do with one server.
fn script(server: &str) -> Vec<Value> {
    let tool = |name: &str| format!("{server}__{name}");
    let mut progress = call(&tool("progress"), &json!({ "steps": 2 }));
    progress["call"]["progress"] = json!(true);
    let mut withdrawn = call(&tool("progress"), &json!({ "steps": 1, "ms": 60_000 }));
    withdrawn["call"]["cancel"] = json!(true);
    vec![
        call(&tool("echo"), &json!({ "text": "grüße" })),
        call(&tool("add"), &json!({ "a": 1, "b": 2 })),
        json!({ "read": { "uri": format!("gantry:{server}/faulty://text/two") } }),
        json!({ "prompt": { "name": tool("greet"), "arguments": { "name": "ada" } } }),
        json!({ "complete": {
            "ref": { "type": "ref/prompt", "name": tool("greet") },
            "argument": { "name": "name", "value": "b" },
        } }),
        progress,
        call(&tool("log"), &json!({ "text": "quiet", "level": "info" })),
        call(&tool("log"), &json!({ "text": "loud", "level": "error" })),
        call(&tool("ask"), &json!({ "text": "Whose?", "rounds": 3 })),
        call(&tool("sample"), &json!({ "text": "Say hi" })),
        withdrawn,
        call(&tool("echo"), &json!({ "text": "still there" })),
    ]
}

#[track_caller]
fn check(server: &str, steps: &[Value]) {
    let [echo, add, read, prompt, complete, progress, quiet, loud, ask, sample, withdrawn, still] = steps
    else {
        panic!("not twelve steps: {steps:?}")
    };
    assert_eq!(text(echo), "grüße", "{server}");
    assert_eq!(add["structuredContent"], json!({ "sum": 3 }), "{server}: {add}");
    assert_eq!(read["contents"][0]["text"], "the second resource", "{server}: {read}");
    assert_eq!(prompt["messages"][0]["content"]["text"], r#"greet {"name":"ada"}"#, "{server}: {prompt}");
    assert_eq!(complete["completion"]["values"], json!(["barbara"]), "{server}: {complete}");
    let reports: Vec<&Value> =
        progress["progress"].as_array().expect("reports").iter().map(|report| &report["message"]).collect();
    // A TypeScript client drops reports that it reads together with the answer.
    assert!(
        ["step 1", "step 2"].iter().zip(&reports).all(|(said, heard)| *heard == said),
        "{server}: {progress}"
    );
    assert_eq!(text(progress), "2 steps", "{server}");
    assert_eq!((quiet.get("logged"), &loud["logged"][0]["data"]), (None, &json!("loud")), "{server}");
    assert_eq!(parsed(&text(ask)), accept("text"), "{server}");
    let asked = ask["asked"].as_array().expect("questions");
    assert_eq!(asked.len(), 3, "{server}: {ask}");
    assert!(asked.iter().all(|question| question["params"]["message"] == "Whose?"), "{server}: {ask}");
    assert_eq!(parsed(&text(sample))["content"]["text"], "the model says hi", "{server}: {sample}");
    assert_eq!(sample["asked"][0]["method"], "sampling/createMessage", "{server}: {sample}");
    assert_eq!(withdrawn["cancelled"], true, "{server}: {withdrawn}");
    assert_eq!(text(still), "still there", "{server}");
}

/// The dialogues of the fixture: a form with defaults, two rounds, and a prompt that asks.
fn dialogue(server: &str) -> [Value; 3] {
    let tool = |name: &str| format!("{server}__{name}");
    [
        call(&tool("test_elicitation_sep1034_defaults"), &json!({})),
        call(&tool("test_input_required_result_multi_round"), &json!({})),
        json!({ "prompt": { "name": tool("test_input_required_result_prompt") } }),
    ]
}

#[track_caller]
fn check_dialogue(server: &str, steps: &[Value]) {
    let [defaults, rounds, prompt] = steps else { panic!("not three steps: {steps:?}") };
    let outcome = text(defaults);
    for part in ["action=accept", r#""name":"John Doe""#, r#""age":30"#, r#""verified":true"#] {
        assert!(outcome.contains(part), "{server}: {outcome}");
    }
    assert_eq!(text(rounds), "text likes text", "{server}");
    assert_eq!(prompt["messages"][0]["content"]["text"], "Use this context: text", "{server}: {prompt}");
}

/// Has a client do everything with every server, by one door, in one era.
fn play(rig: &Rig, sdk: &Sdk, door: Door<'_>, (era, version): (&str, &str)) {
    let mut steps: Vec<Value> = vec![json!({ "list": {} })];
    steps.extend(FAULTY.into_iter().flat_map(script));
    steps.extend(FIXTURES.into_iter().flat_map(dialogue));
    let options = ["--era", era, "--elicit", "accept", "--sample", "the model says hi", "--log", "warning"];
    let seen = sdk.play_with(&rig.home, door, &options, &json!(steps));
    assert_eq!(seen["protocol"], version, "{era}");
    let steps = seen["steps"].as_array().expect("steps");
    let tools = steps[0]["tools"].as_array().expect("tools");
    let (faulty, fixtures) = steps[1..].split_at(FAULTY.len() * 12);
    for (server, steps) in FAULTY.iter().zip(faulty.chunks(12)) {
        assert!(tools.contains(&json!(format!("{server}__echo"))), "{tools:?}");
        check(server, steps);
        let count = |line: &str| rig.journal(server).iter().filter(|found| *found == line).count();
        rig.server.eventually(&format!("{server} is told"), || count("cancelled") == 1);
        assert_eq!((count("ask begun"), count("ask ended")), (1, 1), "{server}");
    }
    for (server, steps) in FIXTURES.iter().zip(fixtures.chunks(3)) {
        check_dialogue(server, steps);
    }
}

/// The same client, when its user does not want to answer.
fn decline(rig: &Rig, sdk: &Sdk, era: &str) {
    let ask =
        |server: &str| call(&format!("{server}__test_elicitation"), &json!({ "message": "Your name?" }));
    let options = ["--era", era, "--elicit", "decline"];
    let seen = sdk.play_with(&rig.home, Door::Http(&rig.server), &options, &json!(FIXTURES.map(ask)));
    for (server, step) in FIXTURES.iter().zip(seen["steps"].as_array().expect("steps")) {
        assert!(text(step).starts_with("User response: action=decline"), "{server}: {step}");
        assert_eq!(step["asked"][0]["params"]["message"], "Your name?", "{server}: {step}");
    }
}

/// Every era of a client, by both doors.
fn play_all(sdk: &Sdk, eras: &[(&str, &str)]) {
    // Servers of their own for each entry point: a client that calls right after a withdrawn call is not asked.
    let rig = || Rig::of(&[&FAULTY[..], &FIXTURES].concat());
    for era in eras {
        let (over_http, over_stdio) = (rig(), rig());
        play(&over_http, sdk, Door::Http(&over_http.server), *era);
        play(&over_stdio, sdk, Door::Stdio, *era);
        decline(&over_http, sdk, era.0);
    }
}

#[test]
fn ups_11_the_python_sdk_of_the_older_era_works_with_servers_of_every_era() {
    play_all(&PYTHON, &[("legacy", LEGACY)]);
}

#[test]
fn ups_11_the_python_sdk_of_the_newer_era_works_with_servers_of_every_era() {
    play_all(&PYTHON, &[("auto", MODERN)]);
}

#[test]
fn ups_11_the_typescript_sdk_1_works_with_servers_of_every_era() {
    play_all(&TYPESCRIPT_1, &[("legacy", LEGACY)]);
}

#[test]
fn ups_11_the_typescript_client_2_of_either_era_works_with_servers_of_every_era() {
    play_all(&TYPESCRIPT_2, &[("legacy", LEGACY), ("auto", MODERN)]);
}

#[test]
fn ups_11_the_mcp_inspector_of_either_era_works_with_servers_of_either_era() {
    let servers = ["faulty_legacy_stdio", "faulty_modern_http"];
    let rig = Rig::of(&servers);
    for (era, server) in ["legacy", "modern"].into_iter().flat_map(|era| servers.map(|server| (era, server)))
    {
        let tool = format!("{server}__add");
        let args = ["--method", "tools/call", "--tool-name", &tool, "--tool-args-json", r#"{"a":1,"b":2}"#];
        let ran = inspector(&rig.home, Door::Http(&rig.server), era, &args);
        assert_eq!(ran.code, 0, "{era} {server}: {ran:?}");
        assert_eq!(ran.json()["result"]["structuredContent"], json!({ "sum": 3 }), "{era} {server}: {ran:?}");
    }
}

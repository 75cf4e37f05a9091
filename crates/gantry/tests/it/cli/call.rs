//! `gantry call`: where arguments come from, what a reply looks like, and who does the work.

use super::{held, run};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

#[test]
fn data_goes_to_stdout_and_talk_to_stderr() {
    let home = TestDir::new();
    home.write("a.txt", "a");
    let done = run(&home, &["call", "write_file", r#"{"path": "b.txt", "content": "b"}"#]);
    assert_eq!((done.json(), done.stderr.as_str()), (json!({ "path": "b.txt", "size": 1 }), ""));
    let failed = run(&home, &["call", "read_file", r#"{"path": "none"}"#]);
    assert_eq!(failed.stdout, "");
    assert!(failed.stderr.starts_with("error: none does not exist"), "{failed:?}");
    assert!(failed.stderr.contains("[FILE_NOT_FOUND]"), "{failed:?}");
    let asked = run(&home, &["call", "delete_file", r#"{"path": "a.txt"}"#]);
    assert_eq!(asked.stdout, "");
    assert!(
        asked.stderr.contains("a person has to approve")
            && asked.stderr.contains("gantry approvals approve appr_"),
        "{asked:?}"
    );
}

#[test]
fn cal_3_a_reply_as_json_has_the_fields_of_the_specification() {
    let home = TestDir::new();
    home.write("a.txt", "a");
    let done = run(&home, &["call", "read_file", r#"{"path": "a.txt"}"#, "--json"]);
    let reply = done.json();
    assert_eq!(done.stdout.lines().count(), 1, "one line, for programs");
    assert_eq!((&reply["ok"], &reply["result"]["content"]), (&json!(true), &json!("a")));
    assert!(reply["latencyMs"].is_u64() && reply["extras"].is_object(), "{reply}");
    assert_eq!((&reply["kind"], &reply["namespace"]), (&json!("builtin"), &json!("workspace")));
    assert!(reply["id"].as_str().unwrap().starts_with("call_"), "{reply}");
    assert_eq!(reply["state"], "COMPLETED_SUCCESS");
    assert!(reply.get("error").is_none_or(Value::is_null), "{reply}");

    let failed = run(&home, &["call", "read_file", r#"{"path": "none"}"#, "--json"]);
    assert_eq!(failed.stderr, "");
    let reply = failed.json();
    assert_eq!((&reply["ok"], &reply["error"]["code"]), (&json!(false), &json!("FILE_NOT_FOUND")));
    assert!(reply["error"]["message"].is_string() && reply.get("result").is_none(), "{reply}");
    assert_eq!(reply["state"], "COMPLETED_FAILURE");
}

#[test]
fn arguments_come_from_the_command_line_from_a_file_or_from_standard_input() {
    let home = TestDir::new();
    home.write("a.txt", "a");
    home.write("arguments.json", "\n{ \"path\": \"a.txt\" }\n");
    for (args, input) in [
        (["call", "read_file", r#"{"path": "a.txt"}"#, "--json"], ""),
        (["call", "read_file", "@arguments.json", "--json"], ""),
        (["call", "read_file", "-", "--json"], "{\"path\":\n\"a.txt\"}\n"),
    ] {
        let ran = home.run_with_input(args, input);
        held(&ran);
        assert_eq!(ran.json()["result"]["content"], "a", "{args:?}");
    }
    // A large document fits too, where a command line would not take it.
    let content = "0123456789".repeat(300_000);
    let call = json!({ "path": "large.txt", "content": content }).to_string();
    let ran = home.run_with_input(["call", "write_file", "-", "--json"], &call);
    assert_eq!(ran.json()["result"]["size"], 3_000_000, "{}", ran.stderr);
}

#[test]
fn arguments_that_cannot_be_read_are_wrong_usage_and_nothing_is_called() {
    let home = TestDir::new();
    std::fs::write(home.path().join("latin1.json"), b"{\"path\": \"\xe4\"}").unwrap();
    for (arguments, word) in [
        ("{path: a.txt}", "not JSON"),
        ("{\"path\": \"a.txt\"", "not JSON"),
        ("", "not JSON"),
        ("-", "not JSON"),
        ("{\"path\": \"a.txt\"} trailing", "not JSON"),
        (r#"{"path": "a", "path": "b"}"#, "appears twice"),
        ("@none.json", "cannot read none.json"),
        ("@latin1.json", "cannot read latin1.json"),
        ("@.", "cannot read ."),
    ] {
        let ran = run(&home, &["call", "read_file", arguments]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(word), "{arguments:?}: {ran:?}");
    }
    assert_eq!(run(&home, &["audit", "--json"]).json(), json!([]));
    // What is JSON but fits no tool was a call, and is on record.
    for arguments in ["[1]", "\"text\"", "17"] {
        let ran = run(&home, &["call", "read_file", arguments, "--json"]);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!("INVALID_ARGUMENTS")), "{arguments}");
    }
}

#[test]
fn nam_6_an_unknown_tool_is_answered_with_the_closest_names_that_the_caller_may_see() {
    let home = TestDir::new().config("agents: { reader: { tools: [\"read_*\", \"list_directory\"] } }\n");
    let ran = run(&home, &["call", "raed_file"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("tool not found: raed_file. ") && ran.stderr.contains("read_file,"),
        "{ran:?}"
    );
    let unknown = run(&home, &["call", "wrote_file", "{}", "--agent", "reader"]);
    assert!(!unknown.stderr.contains("write_file"), "it tells what is hidden: {unknown:?}");
    // A tool that is hidden is answered exactly like one that is not there.
    let bare = TestDir::new().config(
        "tools: { workspace: { toolsAllowed: [\"read_*\", \"list_directory\"] } }\n\
         agents: { reader: { tools: [\"*\"] } }\n",
    );
    for name in ["write_file", "delete_file", "move_file", "@workspace/write_file", "reed_file"] {
        let args = ["call", name, "{}", "--agent", "reader"];
        assert_eq!(run(&home, &args).stderr, run(&bare, &args).stderr);
    }
}

#[test]
fn yes_is_recorded_as_the_approval_of_the_person() {
    let home = TestDir::new();
    home.write("a.txt", "old");
    let call = ["call", "write_file", r#"{"path": "a.txt", "content": "new"}"#, "--json"];
    assert_eq!(run(&home, &call).json()["error"]["code"], "APPROVAL_REQUIRED");
    assert_eq!(home.read("a.txt"), "old");
    let yes: Vec<_> = call.into_iter().chain(["--yes"]).collect();
    assert_eq!(run(&home, &yes).json()["ok"], true);
    assert_eq!(home.read("a.txt"), "new");
    let audit = run(&home, &["audit", "--json"]).json();
    let decisions: Vec<_> =
        audit.as_array().unwrap().iter().map(|c| (c["state"].clone(), c["decision"].clone())).collect();
    assert_eq!(decisions[0], (json!("COMPLETED_SUCCESS"), json!("approved by person")));
    assert_eq!(decisions[1].0, "PENDING_APPROVAL");
    // A rule that denies is not a question, so it cannot be approved.
    let home = home.config("policies: [{ name: never, tools: [\"*\"], decide: deny, reason: No. }]\n");
    home.accept_files();
    let denied = run(&home, &yes);
    assert_eq!((denied.code, &denied.json()["error"]["code"]), (1, &json!("PERMISSION_DENIED")));
}

#[test]
fn a_repeated_idempotency_key_gives_the_first_result_and_runs_nothing() {
    let home = TestDir::new();
    let args =
        ["call", "write_file", r#"{"path": "a.txt", "content": "a"}"#, "--json", "--idempotency-key", "k1"];
    let first = run(&home, &args).json();
    // The file is there now, which would be a question to a person; the key knows better.
    let second = run(&home, &args).json();
    assert_eq!((&first["ok"], &first["result"]), (&json!(true), &second["result"]));
    assert_eq!(second["extras"]["repeats"], first["id"]);
    std::fs::remove_file(home.path().join("a.txt")).unwrap();
    assert_eq!(run(&home, &args).json()["result"], first["result"]);
    assert!(!home.path().join("a.txt").exists(), "it ran again");
    let other = run(
        &home,
        &["call", "write_file", r#"{"path": "b.txt", "content": ""}"#, "--json", "--idempotency-key", "k1"],
    );
    assert_eq!(other.json()["error"]["code"], "IDEMPOTENCY_CONFLICT");
}

#[test]
fn the_server_on_the_same_data_folder_does_the_work() {
    let home = TestDir::new();
    home.write("a.txt", "a");
    let server = home.serve();
    let before = server.get_as_admin("/api/v1/events?follow=false").text;
    assert!(!before.contains("tool_finished"), "{before}");
    let reply = run(&home, &["call", "read_file", r#"{"path": "a.txt"}"#, "--json"]).json();
    assert_eq!(reply["result"]["content"], "a");
    // Events are the server's own memory, so what is in there happened in there.
    let after = server.get_as_admin("/api/v1/events?follow=false").text;
    assert!(after.contains(reply["id"].as_str().unwrap()), "{after}");
    let (code, said) = server.stop();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("panicked") && !said.contains('\x1b'), "{said}");
    // And without it, the command does it itself, on the same ledger.
    let again = run(&home, &["call", "read_file", r#"{"path": "a.txt"}"#, "--json"]).json();
    assert_eq!(again["ok"], true);
    assert_eq!(run(&home, &["audit", "--json"]).json().as_array().unwrap().len(), 2);
}

#[test]
fn a_server_that_died_is_not_asked() {
    let home = TestDir::new();
    home.write("a.txt", "a");
    let server = home.serve();
    server.kill();
    assert!(home.path().join(".gantry/server.json").exists(), "its note is still there");
    let ran = run(&home, &["call", "read_file", r#"{"path": "a.txt"}"#, "--json"]);
    assert_eq!(ran.json()["result"]["content"], "a", "{ran:?}");
}

#[test]
fn a_second_server_on_the_same_data_folder_is_refused_and_the_first_is_named() {
    let home = TestDir::new();
    let server = home.serve();
    let ran = run(&home, &["serve", "--bind", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("already runs") && ran.stderr.contains(&server.address.to_string()),
        "{ran:?}"
    );
    assert_eq!(server.get("/healthz").status, 200);
}

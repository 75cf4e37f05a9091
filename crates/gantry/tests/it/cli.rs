//! The command line: `call`, `tools`, `audit`, `runs`, `events`, `doctor`, exit codes and what people read.

#![cfg(test)]

mod absent;
mod audit;
mod call;
mod doctor;
mod help;
mod lock;
mod servers;
mod streams;
mod tools;

use gantry_testkit::{CommandOutput, TestDir};
use serde_json::json;

/// Runs a command and holds it to what every command keeps: no panic, no colour, no control characters in talk.
#[track_caller]
fn run(home: &TestDir, args: &[&str]) -> CommandOutput {
    let ran = home.run(args);
    held(&ran);
    ran
}

#[track_caller]
fn held(ran: &CommandOutput) {
    assert!((0..=3).contains(&ran.code), "{ran:?}");
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("RUST_BACKTRACE"), "{ran:?}");
    assert!(!ran.stdout.contains('\x1b'), "{ran:?}");
    assert!(!ran.stderr.contains(|c: char| c.is_control() && c != '\n'), "{ran:?}");
}

#[test]
fn blt_1_a_file_is_written_and_read_through_the_command_line() {
    let home = TestDir::new();
    let written = home.call("write_file", &json!({ "path": "a.txt", "content": "hi" }));
    assert_eq!(written["ok"], true);
    assert_eq!(written["result"], json!({ "path": "a.txt", "size": 2 }));
    assert_eq!((&written["kind"], &written["namespace"]), (&json!("builtin"), &json!("workspace")));
    let read = home.call("read_file", &json!({ "path": "a.txt" }));
    assert_eq!(read["result"]["content"], "hi");
    assert_eq!(read["result"]["size"], 2);
    assert_eq!(home.read("a.txt"), "hi");
}

#[test]
fn exit_codes_tell_done_from_refused_from_wrong_usage() {
    let home = TestDir::new();
    home.write("a.txt", "a");
    for (code, args) in [
        (0, ["call", "read_file", r#"{"path": "a.txt"}"#].as_slice()),
        (0, &["tools"]),
        (0, &["--version"]),
        (0, &["help", "audit"]),
        (0, &["audit"]),
        (1, &["call", "read_file", r#"{"path": "none"}"#]),
        (1, &["call", "read_file", r#"{"path": "none"}"#, "--json"]),
        (1, &["call", "delete_file", r#"{"path": "a.txt"}"#]),
        (1, &["call", "no_such_tool"]),
        (1, &["doctor", "no_such_tool"]),
        (2, &[]),
        (2, &["call"]),
        (2, &["frobnicate"]),
        (2, &["tools", "--frobnicate"]),
        (2, &["tools", "--agent", "nobody"]),
        (2, &["tools", "--project", "nowhere"]),
        (2, &["call", "read_file", "{}", "--priority", "urgent"]),
        (2, &["call", "read_file", "not json"]),
        (2, &["audit", "--since", "yesterday"]),
        (2, &["audit", "--state", "LOST"]),
        (2, &["audit", "--limit", "-1"]),
        (2, &["audit", "verify", "--limit", "1"]),
        (2, &["runs", "run_x"]),
        (2, &["runs", "a b/../c"]),
        (2, &["runs", "run_00000000000000000000000000000000"]),
        (2, &["runs", "--cancel"]),
        (2, &["events", "--follow"]),
        (2, &["serve", "--bind", "nowhere"]),
        (2, &["mcp", "--project", "nowhere"]),
    ] {
        let ran = run(&home, args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        // Every failure is printed, on standard error unless it is what was asked for.
        let silent = code == 0 || args.contains(&"--json") || args.contains(&"doctor");
        assert_eq!(silent, ran.stderr.is_empty(), "{args:?}: {ran:?}");
    }
}

#[test]
fn exit_code_3_is_for_internal_errors() {
    let home = TestDir::new();
    home.call("list_directory", &json!({ "path": "." }));
    home.write(".gantry/gantry.db", "this is no database any more, for whatever reason");
    for args in [["tools"].as_slice(), &["audit", "verify"], &["call", "list_directory", r#"{"path": "."}"#]]
    {
        let ran = run(&home, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{ran:?}");
        assert!(ran.stderr.contains("cannot open the ledger") && ran.stderr.contains("restore"), "{ran:?}");
    }
}

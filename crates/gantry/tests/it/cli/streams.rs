//! Readers that go away, terminals that must not be commanded, and JSON wherever data is printed.

use super::{held, run};
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

#[test]
fn every_command_that_prints_data_prints_it_as_json() {
    let home = TestDir::new();
    home.call("list_directory", &json!({ "path": "." }));
    let id = run(&home, &["runs", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let each = |home: &TestDir| {
        for args in [
            ["tools", "--json"].as_slice(),
            &["tools", "--format", "mcp"],
            &["call", "list_directory", r#"{"path": "."}"#, "--json"],
            &["audit", "--json"],
            &["audit", "verify", "--json"],
            &["runs", "--json"],
            &["runs", &id, "--json"],
            &["doctor", "--json"],
            &["doctor", "read_file", "--json"],
        ] {
            let ran = run(home, args);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
            assert!(ran.json().is_array() || ran.json().is_object(), "{args:?}");
        }
        for line in run(home, &["events", "--json"]).stdout.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok_and(|event| event.is_object()), "{line}");
        }
    };
    each(&home);
    let _server = home.serve();
    each(&home);
}

/// Runs a command whose reader is gone before it writes.
fn run_unread(home: &TestDir, args: &[&str]) -> CommandOutput {
    let mut child = home
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    CommandOutput { code: child.wait().unwrap().code().unwrap_or(-1), stdout: String::new(), stderr }
}

#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let home = TestDir::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let call = ["call", "list_directory", r#"{"path": "."}"#, "--json", "-v", "-v"];
    let ran = home.command(call).stdin(Stdio::null()).stderr(full()).output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let reply: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(reply["ok"], true, "{reply}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = TestDir::new();
    for args in [
        ["tools"].as_slice(),
        &["tools", "--json"],
        &["audit", "verify"],
        &["doctor"],
        &["--help"],
        &["call", "list_directory", r#"{"path": "."}"#],
    ] {
        let ran = run_unread(&home, args);
        held(&ran);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn following_events_ends_when_the_reader_has_seen_enough() {
    let home = TestDir::new();
    let server = home.serve();
    let mut following =
        home.command(["events", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    server.call("list_directory", &json!({ "path": "." }));
    let mut first = String::new();
    let mut reader = BufReader::new(following.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.contains("session_opened"), "{first}");
    drop(reader);
    // It finds out with the next event, so there has to be one.
    let mut code = None;
    server.eventually("the follower ends", || {
        server.call("list_directory", &json!({ "path": "." }));
        code = following.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.and_then(|status| status.code()), Some(0));
}

#[test]
fn output_that_is_lost_is_a_failure() {
    let home = TestDir::new();
    for args in [["tools"].as_slice(), &["call", "list_directory", r#"{"path": "."}"#, "--json"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = home.command(args).stdin(Stdio::null()).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains("cannot write the output"), "{stderr}");
    }
}

#[test]
fn nothing_is_coloured_where_no_terminal_is() {
    let home = TestDir::with_test_tools();
    for args in [
        ["tools"].as_slice(),
        &["doctor"],
        &["audit"],
        &["--help"],
        &["frobnicate"],
        &["call", "test__fail", r#"{"text": "broken"}"#],
        &["call", "test__fail", r#"{"text": "broken"}"#, "-vv"],
    ] {
        // `run` asserts it.
        run(&home, args);
    }
    let server = home.serve_with(&["-vv"]);
    server.call("test__fail", &json!({ "text": "broken" }));
    server.call("test__panic", &json!({}));
    server.eventually("the call is logged", || server.stderr().contains("tool response"));
    let (_, said) = server.stop();
    assert!(!said.contains('\x1b'), "{said}");
}

/// Names that would clear a screen, change a colour, or turn the rest of the line around.
const EVIL: [&str; 4] = ["esc\x1b[2J", "csi\u{9b}31m", "turned\u{202e}txt.exe", "bell\x07\r"];

#[test]
fn file_names_command_no_terminal() {
    let home = TestDir::new();
    for name in EVIL {
        home.write(name, "x");
        run(&home, &["call", "read_file", &json!({ "path": name }).to_string(), "--json"]);
        let missing = json!({ "path": format!("{name}-none") }).to_string();
        let ran = run(&home, &["call", "read_file", &missing]);
        assert_eq!(ran.code, 1);
        assert!(!ran.stderr.contains(harmful), "{ran:?}");
        // A tool's name is as untrusted as a file's.
        let ran = run(&home, &["call", name]);
        assert!(ran.code == 1 && !ran.stderr.contains(harmful), "{ran:?}");
        let ran = run(&home, &["doctor", name]);
        assert!(!ran.stdout.contains(harmful), "{ran:?}");
    }
    let id = run(&home, &["runs", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    for args in [
        ["call", "list_directory", r#"{"path": "."}"#].as_slice(),
        &["audit"],
        &["audit", "--json"],
        &["runs", &id],
        &["events"],
    ] {
        let ran = run(&home, args);
        assert!(
            ran.code == 0 && ran.stdout.contains("esc") && !ran.stdout.contains(harmful),
            "{args:?}: {ran:?}"
        );
    }
    // What was escaped is still the same name.
    let listing = run(&home, &["call", "list_directory", r#"{"path": "."}"#]).json();
    let names: Vec<_> =
        listing["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    for name in EVIL {
        assert!(names.contains(&name), "{name:?} in {names:?}");
    }
}

fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c)
}

#[test]
fn a_tool_that_panics_shows_no_panic_to_anyone() {
    let home = TestDir::with_test_tools();
    let ran = run(&home, &["call", "test__panic"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("error: Gantry failed while running this call"), "{ran:?}");
}

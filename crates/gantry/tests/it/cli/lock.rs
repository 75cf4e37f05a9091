//! `gantry lock diff` and `gantry lock accept` about servers that cannot be seen, tools that are not there, and texts
//! that are too long to be read.

use super::run;
use gantry_testkit::TestDir;
use gantry_testkit::faulty::entry as faulty;
use serde_json::{Value, json};

/// A program that is not there.
const MISSING_PROGRAM: &str = "gantry-no-such-program";

fn servers(home: &TestDir, servers: &Value) {
    home.write("gantry.yaml", &json!({ "mcpServers": servers }).to_string());
}

/// A home in which `f` is pinned as it is.
fn pinned() -> TestDir {
    let home = TestDir::new();
    servers(&home, &json!({ "f": faulty(&[]) }));
    let ran = run(&home, &["lock"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    home
}

#[test]
fn ups_13_a_pinned_server_that_cannot_be_seen_is_not_said_to_be_as_pinned() {
    let home = pinned();
    let fine = run(&home, &["lock", "diff"]);
    assert_eq!(
        (fine.code, fine.stderr.as_str()),
        (0, "The definitions are as they are pinned.\n"),
        "{fine:?}"
    );
    servers(&home, &json!({ "f": { "command": MISSING_PROGRAM } }));
    for args in [["lock", "diff"].as_slice(), &["lock", "diff", "f"]] {
        let ran = run(&home, args);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
        assert!(ran.stderr.contains("f could not be compared: it is down. See gantry doctor f."), "{ran:?}");
        assert!(!ran.stderr.contains("as they are pinned"), "{ran:?}");
    }
    let json = run(&home, &["lock", "diff", "--json"]);
    assert_eq!((json.code, json.json()), (1, json!([])), "{json:?}");
    assert!(json.stderr.contains("could not be compared"), "{json:?}");
}

#[test]
fn ups_13_a_server_that_was_never_pinned_is_missed_only_by_name() {
    let home = pinned();
    servers(&home, &json!({ "f": faulty(&[]), "new": { "command": MISSING_PROGRAM } }));
    let all = run(&home, &["lock", "diff"]);
    assert_eq!(all.code, 0, "{all:?}");
    assert!(all.stderr.contains("new could not be compared"), "{all:?}");
    assert_eq!(run(&home, &["lock", "diff", "f"]).code, 0);
    assert_eq!(run(&home, &["lock", "diff", "new"]).code, 1);
    // What its configuration switches off has no tools that could have changed.
    servers(&home, &json!({ "f": { "command": "x", "enabled": false } }));
    let off = run(&home, &["lock", "diff"]);
    assert_eq!(off.code, 0, "{off:?}");
    assert!(off.stderr.contains("f could not be compared: it is switched off"), "{off:?}");
    assert_eq!(run(&home, &["lock", "diff", "f"]).code, 1);
    home.write("gantry.lock", "{");
    let broken = run(&home, &["lock", "diff"]);
    assert_eq!(broken.code, 1, "{broken:?}");
    assert!(broken.stderr.contains("gantry.lock pins tools and cannot be read"), "{broken:?}");
}

#[test]
fn ups_13_what_cannot_be_accepted_is_said_and_not_passed_over() {
    let home = pinned();
    servers(&home, &json!({ "f": faulty(&[]), "g": faulty(&[]), "missing": { "command": MISSING_PROGRAM } }));
    for (what, code, words) in [
        ("f/versiond", 2, "server f has no tool \"versiond\"; did you mean \"versioned\"?"),
        ("f/zzz", 2, "server f has no tool \"zzz\"; use the server's own name"),
        ("g/versiond", 2, "did you mean \"versioned\"?"),
        ("missing", 1, "Nothing was accepted: missing is down"),
        ("missing/x", 1, "See gantry doctor missing."),
        ("nobody/x", 2, "there is no server"),
        ("f", 0, "There is nothing to accept"),
        ("f/versioned", 0, "There is nothing to accept"),
    ] {
        let ran = run(&home, &["lock", "accept", what, "--yes"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{what}: {ran:?}");
        assert!(ran.stderr.contains(words), "{what}: {ran:?}");
    }
    let none = run(&home, &["lock", "accept", "f", "--yes", "--json"]);
    assert_eq!((none.code, none.json()), (0, json!([])), "{none:?}");
    let accepted = run(&home, &["lock", "accept", "g/versioned", "--yes", "--json"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert_eq!(accepted.json()[0]["tool"], "versioned", "{accepted:?}");
    assert!(accepted.stderr.contains("g versioned: unpinned"), "it was shown: {accepted:?}");
}

#[test]
fn ups_13_servers_that_are_not_pinned_take_one_line_each() {
    let home = pinned();
    servers(&home, &json!({ "f": faulty(&[]), "g": faulty(&[]), "h": faulty(&["--poison"]) }));
    let ran = run(&home, &["lock", "diff"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("g: not pinned; gantry lock pins its ") && lines[0].ends_with(" definitions")
    );
    assert!(lines[1].starts_with("h: not pinned; gantry lock pins its "), "{ran:?}");
    assert!(lines[2..].iter().all(|line| line.starts_with("  ! ")), "only what is suspicious: {ran:?}");
    assert!(ran.stdout.contains("  ! poison-long: description is "), "{ran:?}");
}

#[test]
fn ups_13_a_very_long_definition_is_cut_and_its_length_is_said() {
    let home = pinned();
    servers(&home, &json!({ "f": faulty(&["--poison"]) }));
    let ran = run(&home, &["lock", "diff"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("f poison-long: added"), "{ran:?}");
    let longest = ran.stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|length| length < 1200), "{longest:?}");
    assert!(
        ran.stdout.contains("(200000 characters; gantry lock diff --json shows all)"),
        "{:.5000}",
        ran.stdout
    );
    let whole = run(&home, &["lock", "diff", "--json"]).stdout.len();
    assert!(whole > 200_000, "{whole}");
}

//! Grants on the command line: given, listed, revoked.

use super::{count, counted, held, home_with, run};
use gantry_testkit::TestDir;
use serde_json::json;

/// A home in which a yes to the tool that counts may reach any further.
fn home() -> TestDir {
    home_with("requiresApprovalTools: [test__count], remember: always")
}

#[test]
fn apr_10_a_grant_is_listed_lets_calls_through_and_is_revoked_at_once() {
    let home = home();
    let id = held(&home, "a");
    assert_eq!(run(&home, &["approvals", "approve", &id, "--always"]).code, 0);
    let table = run(&home, &["approvals", "grants"]);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{table:?}");
    for words in ["grant_", "test__count", " test ", "person", "always"] {
        assert!(lines[1].contains(words), "{words}: {table:?}");
    }
    assert_eq!(run(&home, &["call", "test__count", &count("b")]).code, 0, "nobody is asked");
    let grants = run(&home, &["approvals", "grants", "--json"]).json();
    let grant = grants[0]["id"].as_str().unwrap();
    assert_eq!(grants[0]["approvalId"], json!(id));
    let revoked = run(&home, &["approvals", "revoke", grant.get(20..).expect("32 digits")]);
    assert!(revoked.code == 0 && revoked.stdout.starts_with(&format!("revoked {grant}")), "{revoked:?}");
    held(&home, "c");
    assert_eq!(counted(&home), ["a", "b"]);
    assert!(run(&home, &["approvals", "grants"]).stderr.contains("There are no grants"));
    let all = run(&home, &["approvals", "grants", "--all"]).stdout;
    assert!(all.contains(grant) && all.contains("REVOKED"), "{all}");
    let again = run(&home, &["approvals", "revoke", grant, "--json"]);
    assert_eq!((again.code, &again.json()["held"]), (0, &json!(false)), "{again:?}");
    for (typed, words) in [("ffffffff", "there is no grant"), ("x", "the last 6")] {
        let ran = run(&home, &["approvals", "revoke", typed]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn apr_10_a_yes_has_one_scope() {
    let home = home();
    let id = held(&home, "a");
    let both = run(&home, &["approvals", "approve", &id, "--once", "--always"]);
    assert_eq!(both.code, 2, "{both:?}");
    // `gantry call` has no session of its own.
    let refused = run(&home, &["approvals", "approve", &id, "--scope", "session"]);
    let outcome = refused.stderr.contains("no session of its own; decide `once`, or `always`");
    assert!(refused.code != 0 && outcome, "{refused:?}");
    let named = run(&home, &["approvals", "approve", &id, "--scope", "always", "--json"]);
    assert_eq!((named.code, &named.json()["decision"]["scope"]), (0, &json!("always")), "{named:?}");
    let grants = run(&home, &["approvals", "grants", "--json"]).json();
    assert_eq!(grants[0]["scope"], "always");
}

//! `gantry keys`: keys that are shown once, open what their role opens, and are revoked.

use super::{count, held, home, run};
use gantry_testkit::Server;
use hyper::Method;
use serde_json::{Value, json};

/// What a server answers to the holder of a key.
fn asked(server: &Server, key: &str, method: Method, path: &str, body: &str) -> u16 {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    server.request(method, path, &headers, body).status
}

#[test]
fn apr_6_a_key_is_shown_once_decides_by_its_role_and_is_revoked() {
    let home = home();
    let server = home.serve();
    let made = run(&home, &["keys", "create", "--role", "approver", "--name", "ann", "--expires", "30d"]);
    let key = made.stdout.trim();
    assert!(made.code == 0 && key.starts_with("gk_") && made.stdout.lines().count() == 1, "{made:?}");
    for words in ["ann (approver, key_", "shown only now", "Authorization: Bearer gk_…", "keys revoke ann"]
    {
        assert!(made.stderr.contains(words), "{words}: {made:?}");
    }
    assert!(!made.stderr.contains(key), "once: {made:?}");
    let agent = run(&home, &["keys", "create", "--role", "agent", "--json"]).json();
    assert_eq!(agent["role"], "agent", "{agent}");
    assert!(agent["id"].as_str().is_some_and(|id| id.starts_with("key_")), "{agent}");
    assert!(agent["name"].as_str().is_some_and(|name| name.starts_with("agent-")), "{agent}");
    let listed = run(&home, &["keys"]);
    for words in ["ann", "approver", "EXPIRES", "agent-"] {
        assert!(listed.stdout.contains(words), "{words}: {listed:?}");
    }
    assert!(!listed.stdout.contains(key) && !listed.stdout.contains("gk_"), "{listed:?}");

    let id = held(&home, "a");
    let (path, yes) = (format!("/api/v1/approvals/{id}/decision"), json!({ "approved": true }).to_string());
    let agents = agent["key"].as_str().unwrap();
    assert_eq!(asked(&server, agents, Method::POST, &path, &yes), 403, "an agent decides nothing");
    assert_eq!(asked(&server, key, Method::POST, &path, &yes), 200);
    let shown = run(&home, &["approvals", "show", &id]).stdout;
    assert!(shown.contains("approved by ann (http)"), "{shown}");

    let revoked = run(&home, &["keys", "revoke", "ann"]);
    assert!(
        revoked.code == 0 && revoked.stdout.contains("(ann): it is not accepted any more"),
        "{revoked:?}"
    );
    assert_eq!(asked(&server, key, Method::GET, "/api/v1/approvals", ""), 401);
    let left = run(&home, &["keys", "list", "--json"]).json();
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    let all = run(&home, &["keys", "--all"]).stdout;
    assert!(all.contains("revoked") && all.contains("active"), "{all}");
    let by_id = run(&home, &["keys", "revoke", agent["id"].as_str().unwrap(), "--json"]);
    assert_eq!((by_id.code, &by_id.json()["revoked"]), (0, &json!(true)), "{by_id:?}");
    assert!(run(&home, &["keys"]).stderr.contains("There is only the key of the data folder"));
}

#[test]
fn apr_1_a_key_is_limited_as_it_was_made() {
    let home = home();
    let made = |args: &[&str]| -> Value {
        let args: Vec<&str> = ["keys", "create", "--json"].iter().chain(args).copied().collect();
        run(&home, &args).json()
    };
    let limited =
        made(&["--role", "approver", "--project", "default", "--tools", "db__*", "--tools", "read_*"]);
    assert_eq!(limited["projects"], json!(["default"]), "{limited}");
    assert_eq!(limited["tools"], json!(["db__*", "read_*"]), "{limited}");
    made(&["--role", "agent", "--name", "bot"]);
    made(&["--role", "admin", "--name", "root"]);
    let table = run(&home, &["keys"]).stdout;
    assert!(table.contains("db__*, read_*") && !table.contains("EXPIRES"), "{table}");
    let tools = |name: &str| {
        let line = table.lines().find(|line| line.contains(name)).expect("it is listed");
        line.split_whitespace().rev().nth(2).expect("before the time").to_owned()
    };
    assert_eq!((tools("bot").as_str(), tools("root").as_str()), ("-", "all"), "an agent decides nothing");
    for (args, words) in [
        (["--role", "agent", "--project", "nowhere"], "there is no project \"nowhere\""),
        (["--role", "agent", "--agent", "nobody"], "there is no agent \"nobody\""),
        (["--role", "agent", "--expires", "1w"], "--expires <TIME>': write a span such as 90m, 12h or 30d"),
        (["--role", "agent", "--name", "person"], "the name person is reserved; choose another"),
        (["--role", "boss", "--name", "x"], "possible values"),
    ] {
        let args: Vec<&str> = ["keys", "create"].into_iter().chain(args).collect();
        let ran = run(&home, &args);
        assert!(ran.code == 2 && ran.stdout.is_empty() && ran.stderr.contains(words), "{args:?}: {ran:?}");
    }
    let unknown = run(&home, &["keys", "revoke", "nobody"]);
    assert!(unknown.code == 2, "{unknown:?}");
    assert!(unknown.stderr.contains("there is no key \"nobody\"; gantry keys lists them"), "{unknown:?}");
}

#[test]
fn apr_1_only_those_whom_the_rule_names_may_approve_and_the_prompt_says_who() {
    let home = super::home_with("requiresApprovalTools: [test__count], approvers: { test__count: [ann] }");
    let server = home.serve();
    let key = run(&home, &["keys", "create", "--role", "approver", "--name", "ann"]).stdout;
    let id = held(&home, "a");
    let shown = run(&home, &["approvals", "show", &id]).stdout;
    assert!(shown.contains("may decide   ann"), "{shown}");
    let refused = run(&home, &["approvals", "approve", &id]);
    assert!(refused.code == 1 && refused.stderr.contains("takes the yes of ann"), "{refused:?}");
    let mut terminal = super::terminal::Terminal::start(&home, &["call", "test__count", &count("a")]);
    terminal.until("approver   ann");
    terminal.until("[l]eave it waiting?");
    terminal.enter("a");
    terminal.until("takes the yes of ann");
    terminal.until("It waits as appr_");
    assert_eq!(terminal.end().code, 1);
    let (path, yes) = (format!("/api/v1/approvals/{id}/decision"), json!({ "approved": true }).to_string());
    assert_eq!(asked(&server, key.trim(), Method::POST, &path, &yes), 200);
}

#[test]
fn apr_1_a_call_whose_lists_have_no_name_in_common_says_that_no_approver_is_left() {
    let home = gantry_testkit::TestDir::with_test_tools().config(
        r"
policies: [{ name: mine, tools: [test__count], decide: ask, approvers: [ann] }]
approvals: { requiresApprovalTools: [test__count], approvers: { test__count: [ben] } }
",
    );
    let missing = "no approver is in every list (ann; ben), so it cannot be approved; change the rules";
    let ran = run(&home, &["call", "test__count", &count("a")]);
    assert!(ran.stderr.contains(&format!("hint: {missing}, or deny it")), "{ran:?}");
    assert!(!ran.stderr.contains("lets it run"), "{ran:?}");
    let id = held(&home, "a");
    let shown = run(&home, &["approvals", "show", &id]).stdout;
    assert!(shown.contains(&format!("may decide   {missing}, or deny it\n")), "{shown}");
    let judged = run(&home, &["policy", "test", "test__count", &count("a")]);
    assert!(judged.code == 1 && judged.stdout.contains(&format!("  - {missing}\n")), "{judged:?}");
    let mut terminal = super::terminal::Terminal::start(&home, &["call", "test__count", &count("b")]);
    terminal.until(&format!("but        {missing}, or deny it"));
    terminal.until("[l]eave it waiting?");
    terminal.enter("d");
    terminal.until("Why?");
    terminal.enter("");
    assert_eq!(terminal.end().code, 1);
    assert_eq!(run(&home, &["approvals", "deny", &id]).code, 0);
}

//! The command line of approvals: `gantry approvals`, `gantry keys`, and what `gantry call` does while it is held.

mod grants;
mod keys;
mod prompt;
mod terminal;
mod waiting;
mod watch;

use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};

/// A home in which every call of the tool that counts in a file waits for a person.
fn home() -> TestDir {
    home_with("requiresApprovalTools: [test__count]")
}

/// A home with these rules about approvals.
fn home_with(approvals: &str) -> TestDir {
    TestDir::with_test_tools().config(&format!("approvals: {{ {approvals} }}\n"))
}

/// Runs a command and holds it to what every command keeps.
#[track_caller]
fn run(home: &TestDir, args: &[&str]) -> CommandOutput {
    let ran = home.run(args);
    assert!((0..=3).contains(&ran.code) && !ran.stderr.contains("panicked"), "{ran:?}");
    assert!(!ran.stdout.contains('\x1b'), "{ran:?}");
    assert!(!ran.stderr.contains(|c: char| c.is_control() && c != '\n'), "{ran:?}");
    ran
}

/// The arguments of a call that adds a line to the file `counted`.
fn count(text: &str) -> String {
    json!({ "file": "counted", "text": text }).to_string()
}

/// Makes a call that is held, and says as which request.
#[track_caller]
fn held(home: &TestDir, text: &str) -> String {
    let ran = run(home, &["call", "test__count", &count(text), "--json"]);
    let reply = ran.json();
    assert_eq!((ran.code, &reply["state"]), (1, &json!("PENDING_APPROVAL")), "{ran:?}");
    assert_eq!(reply["error"]["code"], "APPROVAL_REQUIRED", "{ran:?}");
    reply["approvalId"].as_str().expect("an id").to_owned()
}

/// The lines that were counted so far.
fn counted(home: &TestDir) -> Vec<String> {
    home.lines("counted")
}

/// Everything about a request.
#[track_caller]
fn item(home: &TestDir, id: &str) -> Value {
    run(home, &["approvals", "show", id, "--json"]).json()
}

#[test]
fn apr_6_a_held_call_says_how_to_approve_it_and_is_listed_with_all_that_there_is_to_know() {
    let home = home();
    let ran = run(&home, &["call", "test__count", &count("a")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    let listed = run(&home, &["approvals", "--json"]).json();
    let (id, call) = (listed[0]["id"].as_str().unwrap(), listed[0]["callId"].as_str().unwrap());
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    for words in ["[APPROVAL_REQUIRED]", &format!("gantry approvals approve {id}"), "--wait"] {
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
    assert!(ran.stderr.contains("it runs with that command"), "no server runs: {ran:?}");
    assert!(!ran.stderr.contains("--yes"), "that would be a second call: {ran:?}");
    for args in [["approvals"].as_slice(), &["approvals", "list", "--project", "default"]] {
        let table = run(&home, args);
        let lines: Vec<&str> = table.stdout.lines().collect();
        assert!(lines[0].starts_with("ID ") && lines[0].ends_with("WHY"), "{table:?}");
        for words in [id, "expires in ", "test__count", "person"] {
            assert!(lines[1].contains(words), "{words}: {table:?}");
        }
        assert!(!lines[0].contains("PROJECT") && !lines[0].contains("STATE"), "they say nothing: {table:?}");
    }
    let shown = run(&home, &["approvals", "show", id]);
    for words in [
        &format!("{id} is waiting\n"),
        "tool         test__count of test",
        &format!("call         {call}"),
        "may decide   any approver",
        "caller       person by cli",
        "    {\n      \"file\": \"counted\",\n      \"text\": \"a\"\n    }\n",
    ] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    assert!(shown.stderr.contains("gantry approvals approve"), "{shown:?}");
    assert_eq!(counted(&home), Vec::<String>::new());
}

#[test]
fn apr_6_an_approval_where_no_server_runs_executes_the_call_and_says_how_it_ended() {
    let home = home();
    let id = held(&home, "once");
    let ran = run(&home, &["approvals", "approve", &id, "--reason", "fine"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json(), json!({ "counted": "once" }), "the result is the data: {ran:?}");
    let said: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(said[0], format!("approved {id}: test__count runs now. Ctrl-C stops waiting."), "{ran:?}");
    assert!(said[1].starts_with("done: test__count succeeded"), "{ran:?}");
    assert_eq!(counted(&home), ["once"]);
    let over = item(&home, &id);
    assert_eq!((&over["state"], &over["decision"]["reason"]), (&json!("COMPLETED_SUCCESS"), &json!("fine")));
    assert_eq!((&over["decidedBy"], &over["decision"]["scope"]), (&json!("person"), &json!("once")));
    // A yes is used once.
    for args in [["approvals", "approve", &id], ["approvals", "deny", &id], ["approvals", "cancel", &id]] {
        let again = run(&home, &args);
        assert_eq!((again.code, again.stdout.as_str()), (1, ""), "{again:?}");
        assert!(again.stderr.contains("already"), "{again:?}");
    }
    assert_eq!(counted(&home), ["once"]);
    assert!(run(&home, &["approvals"]).stderr.contains("No calls wait"));
    let all = run(&home, &["approvals", "--all"]);
    assert!(all.stdout.contains(&id) && all.stdout.contains("done"), "{all:?}");
}

#[test]
fn apr_6_an_approval_prints_the_reply_of_the_call_as_json() {
    let home = home();
    let id = held(&home, "json");
    let ran = run(&home, &["approvals", "approve", &id, "--json"]);
    let item = ran.json();
    assert_eq!((ran.code, &item["id"]), (0, &json!(id)), "{ran:?}");
    assert_eq!(
        (&item["state"], &item["reply"]["ok"]),
        (&json!("COMPLETED_SUCCESS"), &json!(true)),
        "{ran:?}"
    );
    assert_eq!(item["reply"]["result"], json!({ "counted": "json" }), "{ran:?}");
    let failing = home_with("requiresApprovalTools: [test__fail]");
    let held = run(&failing, &["call", "test__fail", r#"{"text": "broken"}"#, "--json"]).json();
    let id = held["approvalId"].as_str().unwrap();
    let ran = run(&failing, &["approvals", "approve", id]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("error: broken [EXECUTION_ERROR]"), "{ran:?}");
}

#[test]
fn apr_6_with_a_running_server_an_approval_is_given_to_it_and_waited_for_on_request() {
    let home = home();
    let server = home.serve();
    let id = held(&home, "a");
    let ran = run(&home, &["approvals", "approve", &id]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert_eq!(ran.stdout, format!("approved {id}: test__count runs now\n"));
    server.eventually("it runs", || counted(&home) == ["a"]);
    let id = held(&home, "b");
    let ran = run(&home, &["approvals", "approve", &id, "--wait"]);
    assert!(ran.code == 0 && ran.stderr.contains("\ndone: test__count"), "{ran:?}");
    assert_eq!(counted(&home), ["a", "b"]);
    assert_eq!(item(&home, &id)["decidedVia"], "cli");
    let id = held(&home, "c");
    let ran = run(&home, &["approvals", "approve", &id, "--no-wait", "--json"]);
    assert_eq!((ran.code, &ran.json()["state"]), (0, &json!("APPROVED_READY")), "{ran:?}");
    server.eventually("it runs", || counted(&home) == ["a", "b", "c"]);
    drop(server);
    let id = held(&home, "d");
    let ran = run(&home, &["approvals", "approve", &id, "--no-wait"]);
    assert!(ran.code == 2 && ran.stderr.contains("leave --no-wait out"), "{ran:?}");
    assert_eq!(item(&home, &id)["state"], "PENDING_APPROVAL", "nothing was decided");
}

#[test]
fn apr_3_edited_arguments_are_run_instead_and_refused_if_they_do_not_fit() {
    let home = home();
    let id = held(&home, "old");
    for (arguments, words) in [
        ("{\"text\": 17}", "text"),
        ("[1]", "--args takes an object"),
        ("{", "not JSON"),
        ("{\"a\":1,\"a\":2}", "a"),
    ] {
        let ran = run(&home, &["approvals", "approve", &id, "--args", arguments]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments}: {ran:?}");
        assert!(ran.stderr.contains(words) && !ran.stderr.contains("modifiedArgs"), "{arguments}: {ran:?}");
        assert_eq!(item(&home, &id)["state"], "PENDING_APPROVAL", "{arguments}");
    }
    home.write("new.json", &count("new"));
    let ran = run(&home, &["approvals", "approve", &id, "--args", "@new.json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(counted(&home), ["new"]);
    let shown = run(&home, &["approvals", "show", &id]).stdout;
    assert!(shown.contains("approved by person (cli), with other arguments"), "{shown}");
    let (asked, instead) = shown.split_once("approved instead").expect("both");
    assert!(asked.contains("\"old\"") && instead.contains("\"new\""), "{shown}");
}

#[test]
fn apr_6_a_part_of_an_id_is_enough_if_it_means_one_request() {
    let home = home();
    let ids = [held(&home, "a"), held(&home, "b")];
    let digits = |id: &str| id.strip_prefix("appr_").expect("its form").to_owned();
    let [first, second] = ids.each_ref().map(|id| digits(id));
    let ends = |id: &str| id.get(20..).expect("32 digits").to_owned();
    let begins = |id: &str, count: usize| id.get(..count).expect("32 digits").to_owned();
    assert_eq!(item(&home, &ends(&first))["id"], json!(ids[0]));
    assert_eq!(item(&home, &format!("appr_{second}"))["id"], json!(ids[1]));
    // The first digits are those of the time, which a request made at that time has too.
    let ran = run(&home, &["approvals", "approve", &begins(&first, 16)]);
    assert!(ran.code == 2 && ran.stderr.contains("there is no request"), "{ran:?}");
    for (typed, words) in [
        (begins(&first, 5).as_str(), "the last 6"),
        ("deletes", "the last 6"),
        ("ffffffffffff", "there is no request ffffffffffff"),
        ("appr_00000000000000000000000000000000", "there is no approval"),
        ("../grants", "the last 6"),
    ] {
        let ran = run(&home, &["approvals", "show", typed]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{typed}: {ran:?}");
    }
    assert_eq!(run(&home, &["approvals", "deny", &ends(&first)]).code, 0);
    let ran = run(&home, &["approvals", "deny", &ends(&second)]);
    assert_eq!((ran.code, &item(&home, &second)["state"]), (0, &json!("REJECTED_BY_USER")), "{ran:?}");
}

#[test]
fn apr_1_requests_are_listed_by_state_and_project() {
    let rules = "requiresApprovalTools: [test__count]";
    let home = TestDir::with_test_tools().config(&format!(
        "approvals: {{ {rules} }}\nprojects: {{ other: {{ workspace: other, approvals: {{ {rules} }} }} }}\n"
    ));
    home.write("other/.keep", "");
    let id = held(&home, "a");
    let other = run(&home, &["call", "test__count", &count("b"), "--json", "--project", "other"]).json();
    let other = other["approvalId"].as_str().unwrap();
    let table = run(&home, &["approvals"]).stdout;
    assert!(table.contains("PROJECT") && table.contains(&id) && table.contains(other), "{table}");
    let listed = |args: &[&str]| -> Vec<String> {
        let args: Vec<&str> = ["approvals", "list", "--json"].iter().chain(args).copied().collect();
        let items = run(&home, &args).json();
        items.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&["--project", "other"]), [other]);
    assert_eq!(listed(&["--limit", "1"]).len(), 1);
    assert!(run(&home, &["approvals", "--limit", "1"]).stderr.contains("There are more"));
    assert_eq!(run(&home, &["approvals", "deny", &id]).code, 0);
    assert_eq!(listed(&[]), [other]);
    for state in ["denied", "REJECTED_BY_USER", "rejected_by_user"] {
        assert_eq!(listed(&["--state", state]), [id.as_str()], "{state}");
    }
    assert_eq!(listed(&["--all"]).len(), 2);
    assert!(listed(&["--state", "scheduled"]).is_empty());
    let ran = run(&home, &["approvals", "--state", "sleeping"]);
    assert!(ran.code == 2 && ran.stderr.contains("waiting, scheduled, approved"), "{ran:?}");
    for args in [["approvals", "list", "--project=nosuch"], ["approvals", "watch", "--project=nosuch"]] {
        let ran = run(&home, &args);
        assert!(ran.code == 2 && ran.stderr.contains("there is no such project"), "{ran:?}");
    }
}

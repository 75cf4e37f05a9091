//! The question that `gantry call` asks at a terminal.

use super::terminal::Terminal;
use super::{count, counted, home, home_with, item, run};
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};

/// The last words of the question.
const QUESTION: &str = "[l]eave it waiting?";

/// Calls the tool that counts, at a terminal, and waits for the question.
#[track_caller]
fn asked(home: &TestDir, text: &str) -> Terminal {
    let mut terminal = Terminal::start(home, &["call", "test__count", &count(text)]);
    terminal.until(QUESTION);
    terminal
}

/// The same with this answer, until it is over.
#[track_caller]
fn answered(home: &TestDir, text: &str, answer: &str) -> CommandOutput {
    let mut terminal = asked(home, text);
    terminal.enter(answer);
    terminal.end()
}

/// The request that was made first.
fn only(home: &TestDir) -> Value {
    run(home, &["approvals", "--all", "--json"]).json()[0].clone()
}

#[test]
fn apr_6_at_a_terminal_the_person_sees_the_exact_call_and_a_yes_prints_its_result() {
    let home = home();
    let each = |home: &TestDir, text: &str| {
        let ran = answered(home, text, "a");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.json(), json!({ "counted": text }), "only the result is data: {ran:?}");
        for words in ["test__count needs an approval", "why ", "person by cli", "bytes", "[a]pprove once"] {
            assert!(ran.stderr.contains(words), "{words}: {ran:?}");
        }
        let shown = format!("    {{\n      \"file\": \"counted\",\n      \"text\": \"{text}\"\n    }}\n");
        assert!(ran.stderr.contains(&shown), "{ran:?}");
        assert!(ran.stderr.contains("approved by person"), "{ran:?}");
    };
    each(&home, "a");
    let _server = home.serve();
    each(&home, "b");
    assert_eq!(counted(&home), ["a", "b"], "each ran once");
}

#[test]
fn apr_7_a_no_at_the_terminal_is_a_denial_with_its_reason() {
    let home = home();
    let mut terminal = asked(&home, "a");
    terminal.enter("d");
    terminal.until("Why?");
    terminal.enter("not today");
    let ran = terminal.end();
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("error: denied") && ran.stderr.contains(": not today ["), "{ran:?}");
    assert!(ran.stderr.contains("[REJECTED_BY_USER]"), "{ran:?}");
    assert_eq!(counted(&home), Vec::<String>::new());
}

#[test]
fn apr_6_a_call_that_is_left_waiting_runs_when_it_is_approved_later() {
    let home = home();
    let ran = answered(&home, "a", "l");
    let item = only(&home);
    let id = item["id"].as_str().unwrap();
    assert_eq!(
        (ran.code, ran.stdout.as_str(), &item["state"]),
        (1, "", &json!("PENDING_APPROVAL")),
        "{ran:?}"
    );
    for words in [&format!("It waits as {id}"), "gantry approvals approve", "gantry approvals cancel"] {
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
    assert_eq!(run(&home, &["approvals", "approve", id]).code, 0);
    assert_eq!(counted(&home), ["a"]);
    // Ctrl-C and the end of the input leave it waiting as well.
    let mut terminal = asked(&home, "b");
    terminal.interrupt();
    terminal.until("It waits as appr_");
    assert_eq!(terminal.end().code, 1);
    let ran = answered(&home, "c", "\u{4}");
    assert!(ran.code == 1 && ran.stderr.contains("It waits as appr_"), "{ran:?}");
    assert_eq!(run(&home, &["approvals", "--json"]).json().as_array().map(Vec::len), Some(2));
}

#[test]
fn apr_6_only_an_answer_decides() {
    let home = home();
    let mut terminal = asked(&home, "a");
    for typed in ["", "y", "yes", "approve it", "k"] {
        terminal.enter(typed);
        terminal.until("Type one of a, e, d, l");
        terminal.until(QUESTION);
    }
    assert_eq!(only(&home)["state"], "PENDING_APPROVAL");
    terminal.enter("A");
    assert_eq!(terminal.end().code, 0);
}

#[test]
fn apr_3_arguments_are_edited_in_the_editor_and_shown_before_they_run() {
    let home = home().env("EDITOR", "sh editor.sh --wait");
    home.write("editor.sh", "sed -i s/old/new/ \"$2\"\n");
    let mut terminal = asked(&home, "old");
    terminal.enter("e");
    let shown = terminal.until("These are your arguments");
    assert!(shown.contains("\"text\": \"new\"") && !shown.contains("\"old\""), "{shown}");
    terminal.until(QUESTION);
    terminal.enter("a");
    let ran = terminal.end();
    assert_eq!((ran.code, counted(&home)), (0, vec!["new".to_owned()]), "{ran:?}");
    assert!(ran.stderr.contains("It ran with the arguments that were approved instead"), "{ran:?}");
    assert_eq!(only(&home)["decision"]["modifiedArgs"]["text"], "new");
}

#[test]
fn apr_3_edits_that_cannot_be_used_decide_nothing() {
    let home = home().env("VISUAL", "sh editor.sh");
    home.write("editor.sh", "echo '{' > \"$1\"\n");
    let mut terminal = asked(&home, "old");
    terminal.enter("e");
    terminal.until("the arguments are not JSON");
    terminal.until(QUESTION);
    home.write("editor.sh", "exit 3\n");
    terminal.enter("e");
    terminal.until("set EDITOR to another");
    terminal.until(QUESTION);
    for no_object in ["null", "[1]"] {
        home.write("editor.sh", &format!("echo '{no_object}' > \"$1\"\n"));
        terminal.enter("e");
        terminal.until("the arguments of a call are an object");
        terminal.until(QUESTION);
    }
    // What fits no schema is known only to Gantry, which says so and changes nothing.
    home.write("editor.sh", "echo '{\"text\": 17}' > \"$1\"\n");
    terminal.enter("e");
    terminal.until("These are your arguments");
    terminal.until(QUESTION);
    terminal.enter("a");
    terminal.until("error: ");
    terminal.until(QUESTION);
    assert_eq!(only(&home)["state"], "PENDING_APPROVAL");
    terminal.enter("a");
    assert_eq!((terminal.end().code, counted(&home)), (0, vec!["old".to_owned()]));
}

#[test]
fn apr_6_a_decision_by_another_entry_point_comes_first_and_is_reported() {
    let home = home();
    let server = home.serve();
    let mut terminal = asked(&home, "a");
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    let decision = json!({ "approved": false, "reason": "too late" }).to_string();
    let key = format!("Bearer {}", server.key);
    let headers = [("authorization", key.as_str()), ("content-type", "application/json")];
    let path = format!("/api/v1/approvals/{id}/decision");
    assert_eq!(server.request(http_post(), &path, &headers, &decision).status, 200);
    terminal.until("denied by person (http): too late");
    let ran = terminal.end();
    assert!(ran.code == 1 && ran.stderr.contains("[REJECTED_BY_USER]"), "{ran:?}");
    assert_eq!(counted(&home), Vec::<String>::new());
}

fn http_post() -> hyper::Method {
    hyper::Method::POST
}

#[test]
fn apr_5_what_has_changed_since_the_person_looked_is_asked_again() {
    let home = TestDir::new();
    home.write("a.txt", "first");
    // Lists leave out arguments of this length; the prompt shows them.
    let mine = "mine ".repeat(600);
    let arguments = json!({ "path": "a.txt", "content": mine }).to_string();
    let call = ["call", "write_file", arguments.as_str()];
    let mut terminal = Terminal::start(&home, &call);
    terminal.until(QUESTION);
    home.write("a.txt", "second");
    terminal.enter("a");
    terminal.until("has changed since you looked, so you are asked again");
    let shown = terminal.until(QUESTION);
    assert!(shown.contains("\"content\": \"mine mine"), "{shown}");
    assert_eq!(home.read("a.txt"), "second", "nothing was run");
    terminal.enter("a");
    let ran = terminal.end();
    assert_eq!((ran.code, home.read("a.txt").as_str()), (0, mine.as_str()), "{ran:?}");
    // The same for a yes that is given later.
    let reply = run(&home, &[&call[..], &["--json"]].concat()).json();
    home.write("a.txt", "third");
    let ran = run(&home, &["approvals", "approve", reply["approvalId"].as_str().unwrap()]);
    assert!(ran.code == 1 && ran.stderr.contains("It needs another approval as appr_"), "{ran:?}");
    assert_eq!(home.read("a.txt"), "third");
    let waiting = run(&home, &["approvals", "--json"]).json();
    assert_eq!((&waiting[0]["callId"], &waiting[0]["supersedes"]), (&reply["id"], &reply["approvalId"]));
}

#[test]
fn apr_6_a_question_that_expires_says_so() {
    let home = home_with("requiresApprovalTools: [test__count], approvalTimeoutMs: 1500");
    let mut terminal = asked(&home, "a");
    terminal.until("expired");
    let ran = terminal.end();
    assert!(ran.code == 1 && ran.stderr.contains("[REJECTED_BY_TIMEOUT]"), "{ran:?}");
}

#[test]
fn apr_10_a_yes_for_always_is_a_grant_and_none_for_the_session_is_offered() {
    let home = home_with("requiresApprovalTools: [test__count], remember: always");
    let _server = home.serve();
    let mut terminal = asked(&home, "a");
    let screen = terminal.screen();
    assert!(!screen.contains("[s]ession"), "{screen}");
    assert!(screen.contains("a grant    would answer requiresApprovalTools, and no other rule"), "{screen}");
    terminal.enter("w");
    assert_eq!(terminal.end().code, 0);
    let grants = run(&home, &["approvals", "grants", "--json"]).json();
    assert_eq!((&grants[0]["scope"], &grants[0]["tool"]), (&json!("always"), &json!("test__count")));
    assert_eq!(run(&home, &["call", "test__count", &count("b")]).code, 0);
    let id = grants[0]["id"].as_str().unwrap();
    assert_eq!(run(&home, &["approvals", "revoke", id]).code, 0);
    assert_eq!(answered(&home, "c", "w").code, 0);
    let grants = run(&home, &["approvals", "grants"]).stdout;
    assert!(grants.contains("always") && !grants.contains(id), "{grants}");
    assert_eq!(counted(&home), ["a", "b", "c"]);
}

#[test]
fn apr_10_a_terminal_offers_no_yes_that_a_rule_does_not_allow() {
    let home = home();
    let mut terminal = asked(&home, "a");
    let screen = terminal.screen();
    assert!(!screen.contains("al[w]ays") && !screen.contains("[s]ession"), "{screen}");
    assert!(screen.contains("a grant    would not answer requiresApprovalTools"), "{screen}");
    terminal.enter("w");
    terminal.until("Type one of");
    terminal.until(QUESTION);
    terminal.enter("a");
    assert_eq!(terminal.end().code, 0);
    assert_eq!(run(&home, &["approvals", "grants", "--all", "--json"]).json(), json!([]));
}

#[test]
fn apr_6_nothing_in_the_arguments_commands_the_terminal_or_hides_from_the_eye() {
    let home = home();
    let evil = "esc\u{1b}[2Jcsi\u{9b}31mturned\u{202e}zero\u{200b}tag\u{e0041}bell\u{7}";
    let mut terminal = asked(&home, evil);
    let screen = terminal.screen();
    assert!(!screen.contains(|c: char| c.is_control() && c != '\n' && c != '\u{7}'), "{screen:?}");
    for words in
        ["esc\\u001b[2J", "csi\\u009b31m", "turned\\u202e", "zero\\u200b", "tag\\udb40\\udc41", "bell\\u0007"]
    {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    terminal.enter("d");
    terminal.until("Why?");
    terminal.enter("");
    assert_eq!(terminal.end().code, 1);
}

#[test]
fn apr_6_long_arguments_are_cut_with_their_length_and_shown_whole_elsewhere() {
    let home = home();
    let long = "x".repeat(5000);
    let mut terminal = asked(&home, &long);
    let screen = terminal.screen();
    assert!(screen.contains("… (50") && !screen.contains(&long), "{screen}");
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    assert!(screen.contains(&format!("gantry approvals show {id} shows all of it")), "{screen}");
    assert!(screen.contains(", show in [f]ull, "), "{screen}");
    terminal.enter("f");
    let screen = terminal.until(QUESTION);
    assert!(screen.contains(&long) && !screen.contains("[f]ull"), "{screen}");
    terminal.enter("l");
    terminal.end();
    assert!(run(&home, &["approvals", "show", &id]).stdout.contains(&long));
    assert_eq!(item(&home, &id)["arguments"]["text"], json!(long));
}

#[test]
fn a_terminal_is_not_asked_where_json_or_waiting_is_wanted() {
    let home = home();
    for option in ["--json", "--no-wait"] {
        let ran = Terminal::start(&home, &["call", "test__count", &count("a"), option]).end();
        assert!(ran.code == 1 && !ran.stderr.contains(QUESTION), "{ran:?}");
    }
    let mut terminal = Terminal::start(&home, &["call", "test__count", &count("a"), "--wait"]);
    terminal.until("waits for an approval as appr_");
    let id = only(&home)["id"].as_str().unwrap().to_owned();
    assert_eq!(run(&home, &["approvals", "deny", &id]).code, 0);
    let ran = terminal.end();
    assert!(
        ran.code == 1 && ran.stderr.contains("error: denied") && !ran.stderr.contains(QUESTION),
        "{ran:?}"
    );
}

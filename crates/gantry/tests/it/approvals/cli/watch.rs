//! `gantry approvals watch`: every request and what becomes of it, and questions at a terminal.

use super::terminal::Terminal;
use super::{counted, held, home, item, run};
use gantry_testkit::TestDir;
use gantry_testkit::process::ChildGuard;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Stdio};

/// A watcher without a person.
struct Watcher {
    _child: ChildGuard,
    lines: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(home: &TestDir, args: &[&str]) -> Self {
        let mut command = home.command(["approvals", "watch"].iter().chain(args));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { _child: ChildGuard(child), lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("text");
        line
    }

    /// The first line about a request in this state.
    fn until(&mut self, word: &str, id: &str) -> String {
        loop {
            let line = self.line();
            assert!(!line.is_empty(), "it ended before {id} was {word}");
            if line.contains(word) && line.contains(id) {
                return line;
            }
        }
    }
}

#[test]
fn apr_6_a_watcher_sees_every_request_and_decision() {
    let home = home();
    let each = |home: &TestDir, n: u8| {
        let before = held(home, &format!("before {n}"));
        let mut watcher = Watcher::start(home, &[]);
        let line = watcher.until("waiting", &before);
        assert!(line.contains("test__count") && line.contains("by person: "), "{line}");
        let after = held(home, &format!("after {n}"));
        watcher.until("waiting", &after);
        run(home, &["approvals", "deny", &before, "--reason", "no need"]);
        let line = watcher.until("denied", &before);
        assert!(line.contains("denied by person (cli): no need"), "{line}");
        run(home, &["approvals", "approve", &after]);
        watcher.until("done", &after);
    };
    each(&home, 1);
    let _server = home.serve();
    each(&home, 2);
}

#[test]
fn apr_6_a_watcher_prints_json_of_its_project_alone() {
    let rules = "requiresApprovalTools: [test__count]";
    let home = TestDir::with_test_tools().config(&format!(
        "approvals: {{ {rules} }}\nprojects: {{ other: {{ workspace: other, approvals: {{ {rules} }} }} }}\n"
    ));
    home.write("other/.keep", "");
    let _server = home.serve();
    let mut watcher = Watcher::start(&home, &["--json", "--project", "other"]);
    held(&home, "a");
    let arguments = super::count("b");
    run(&home, &["call", "test__count", &arguments, "--project", "other"]);
    let first: Value = serde_json::from_str(&watcher.line()).expect("a line of JSON");
    assert_eq!((&first["caller"]["project"], &first["arguments"]["text"]), (&json!("other"), &json!("b")));
}

#[test]
fn apr_6_at_a_terminal_a_watcher_asks_about_each_request() {
    let home = home();
    let ids = ["a", "b", "c", "d"].map(|text| held(&home, text));
    let mut terminal = Terminal::start(&home, &["approvals", "watch"]);
    let texts: Vec<&str> = vec!["\"a\"", "\"b\"", "\"c\"", "\"d\""];
    for (text, answer) in texts.iter().zip(["k", "d", "a"]) {
        let shown = terminal.until("s[k]ip?");
        assert!(shown.contains(text), "oldest first: {shown}");
        terminal.enter(answer);
        if answer == "d" {
            terminal.until("Why?");
            terminal.enter("no");
        }
    }
    terminal.until("s[k]ip?");
    // Another approver decides about the last one; what is typed then decides about nothing.
    run(&home, &["approvals", "deny", &ids[3]]);
    terminal.until("Press Enter to go on");
    let late = held(&home, "late");
    terminal.enter("a");
    terminal.until("\"late\"");
    terminal.until("s[k]ip?");
    assert_eq!(item(&home, &late)["state"], "PENDING_APPROVAL");
    terminal.interrupt();
    let ran = terminal.end();
    assert_eq!(ran.code, 0, "{ran:?}");
    let states = ids.map(|id| item(&home, &id)["state"].as_str().unwrap().to_owned());
    assert_eq!(states, ["PENDING_APPROVAL", "REJECTED_BY_USER", "COMPLETED_SUCCESS", "REJECTED_BY_USER"]);
    assert_eq!(counted(&home), ["c"], "it ran in the watcher");
    for words in ["denied by person (cli): no", "approved by person (cli)"] {
        assert!(ran.stdout.contains(words), "{words}: {ran:?}");
    }
}

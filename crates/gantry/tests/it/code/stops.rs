//! Signals: after all that asks a Gantry that runs code to stop, nothing of the code runs on and nothing is left in the workspace.

use super::sealed::{prepare, tree};
use super::site::{eventually, homes};
use gantry_testkit::{CommandOutput, TestDir, process};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

/// Says that it runs, and runs on, deaf to what can be ignored.
const ENDLESS: &str = "touch begun; trap '' TERM INT HUP; while :; do sleep 1; done";

/// Arguments of `run_code`, whose processes are known by the mark.
fn endless(mark: &str) -> Value {
    json!({ "language": "bash", "code": ENDLESS, "env": { "MARK": mark }, "timeout": 600 })
}

fn mark(name: &str) -> String {
    format!("gantry-mark-{}-{name}-end", std::process::id())
}

/// Starts a command as a shell does: in a process group of its own, to which Ctrl-C goes.
fn start(home: &TestDir, words: &[&str]) -> Child {
    let mut command = home.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().expect("the program starts")
}

/// Sends a signal to a command that runs endless code, waits for the command, and looks what is left.
fn stopped(
    home: &TestDir,
    child: Child,
    signal: Signal,
    before: &BTreeSet<(String, String)>,
    mark: &str,
) -> CommandOutput {
    eventually("the code runs", || home.path().join("begun").exists());
    assert_eq!(&without_begun(home), before, "nothing is made for the job");
    let below = process::descendants(child.id());
    kill_process_group(Pid::from_child(&child), signal).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let ran = CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert_eq!(&without_begun(home), before, "what is left in the workspace: {ran:?}");
    assert_eq!(process::find_processes(mark), [], "what runs on: {ran:?}");
    eventually("no helper is left", || !below.iter().any(|pid| process::is_running(*pid)));
    ran
}

/// Everything in the workspace but for what the code itself has made.
fn without_begun(home: &TestDir) -> BTreeSet<(String, String)> {
    tree(home.path()).into_iter().filter(|(name, _)| name != "begun").collect()
}

/// How the last call on record ended.
fn recorded(home: &TestDir) -> Value {
    home.run(["audit", "--json"]).json()[0]["error"]["code"].take()
}

#[test]
fn blt_2_a_call_that_is_interrupted_or_terminated_ends_with_all_that_it_started() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for home in homes() {
            let (home, mark) = (prepare(home), mark("call"));
            let before = tree(home.path());
            let child = start(&home, &["call", "run_code", &endless(&mark).to_string()]);
            let ran = stopped(&home, child, signal, &before, &mark);
            assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{ran:?}");
            assert!(ran.stderr.contains("the call is canceled"), "{ran:?}");
            assert_eq!(recorded(&home), "CANCELED", "{ran:?}");
        }
    }
}

#[test]
fn blt_2_a_call_that_a_running_gantry_makes_goes_on_there_when_the_command_is_interrupted() {
    let home = prepare(TestDir::new());
    let server = home.serve();
    let code = json!({ "language": "bash", "code": "touch begun; until [ -e go ]; do sleep 0.1; done; echo on > after" });
    let child = start(&home, &["call", "run_code", &code.to_string()]);
    eventually("the code runs", || home.path().join("begun").exists());
    kill_process_group(Pid::from_child(&child), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("goes on in the running Gantry"), "{output:?}");
    home.write("go", "");
    eventually("the code goes on", || home.path().join("after").exists());
    assert_eq!(server.stop().0, 0);
}

#[test]
fn blt_2_a_gantry_for_one_client_that_is_interrupted_or_terminated_ends_its_jobs_first() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        for home in homes() {
            let (home, mark) = (prepare(home), mark("mcp"));
            let before = tree(home.path());
            let mut child = start(&home, &["mcp"]);
            let mut input = child.stdin.take().expect("a pipe");
            let mut say = |message: &Value| writeln!(input, "{message}").expect("it reads");
            say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } }));
            let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
            answers.read_line(&mut String::new()).expect("an answer");
            say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            let call = json!({ "name": "run_code", "arguments": endless(&mark) });
            say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));
            let ran = stopped(&home, child, signal, &before, &mark);
            assert_eq!(ran.code, code, "{ran:?}");
            assert_eq!(recorded(&home), "CANCELED", "{ran:?}");
            drop(input);
        }
    }
}

#[test]
fn blt_2_a_server_that_is_terminated_while_a_job_ends_waits_for_the_end_of_it() {
    for home in homes() {
        let (home, mark) = (prepare(home), mark("serve"));
        let server = home.serve();
        let before = tree(home.path());
        let call = json!({ "tool": "run_code", "arguments": endless(&mark) });
        let id = crate::queues::defer(&server, &call);
        eventually("the code runs", || home.path().join("begun").exists());
        let below = process::descendants(server.pid());
        // The call is over at once, its job only when everything of it is dead.
        crate::queues::cancel(&server, &id);
        let (code, said) = server.stop();
        assert_eq!(code, 0, "{said}");
        assert_eq!(without_begun(&home), before, "{said}");
        assert_eq!(process::find_processes(&mark), []);
        eventually("no helper is left", || !below.iter().any(|pid| process::is_running(*pid)));
    }
}

//! Ends: all that ends a run ends everything that it started, and runs at the same time are strangers to each other.

use super::site::{Site, eventually, homes};
use crate::queues::{cancel, defer, outcome};
use gantry_testkit::process;
use serde_json::json;
use std::thread;

/// Starts twenty daemons that left their parents, their sessions and their signals behind, and says so.
const DAEMONS: &str = "
import os, signal, sys, time
ready, done = os.pipe()
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        null = os.open('/dev/null', os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.write(done, b'x')
        while True:
            time.sleep(600)
began = 0
while began < 20:
    began += len(os.read(ready, 20))
print('begun', began, flush=True)
";

/// What waits for ever, deaf to what can be ignored.
const DEAF: &str =
    "trap '' TERM INT HUP QUIT; echo begun; (trap '' TERM; sleep 600) & while :; do sleep 1; done";

#[test]
fn blt_2_daemons_that_left_everything_behind_are_dead_when_the_call_returns() {
    Site::each("", |site| {
        let result = site.code("python", DAEMONS);
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("begun 20\n"), &json!(0)), "{result}");
        site.nothing_runs();
        site.has_files(&[]);
    });
}

#[test]
fn blt_2_daemons_that_hold_the_output_open_do_not_hold_the_call() {
    Site::each("", |site| {
        let result = site.code("bash", "(trap '' TERM HUP; sleep 600) & disown; echo done");
        assert_eq!((&result["stdout"], &result["exitCode"]), (&json!("done\n"), &json!(0)), "{result}");
    });
}

#[test]
fn blt_2_a_program_that_ignores_signals_is_ended_at_its_time_with_all_that_it_started() {
    Site::each("", |site| {
        let error = site.error("bash", DEAF, &json!({ "timeout": 1 }));
        assert_eq!(
            (&error["code"], &error["details"]["stdout"]),
            (&json!("TIMEOUT"), &json!("begun\n")),
            "{error}"
        );
        let error = site.error("python", &format!("{DAEMONS}\ntime.sleep(600)"), &json!({ "timeout": 2 }));
        assert_eq!(
            (&error["code"], &error["details"]["stdout"]),
            (&json!("TIMEOUT"), &json!("begun 20\n")),
            "{error}"
        );
        site.has_files(&[]);
    });
}

/// Starts a call without waiting for it, and returns its id once it runs.
fn under_way(site: &Site, language: &str, code: &str) -> String {
    let code = format!("{code}\n");
    let call = json!({ "tool": "run_code", "arguments": site.arguments(language, &code, &json!({ "timeout": 3600 })) });
    let id = defer(site.server(), &call);
    eventually("the code runs", || site.inside("begun").exists());
    assert!(!process::find_processes(&site.mark).is_empty());
    id
}

#[test]
fn blt_2_a_call_that_is_canceled_is_ended_with_all_that_it_started() {
    Site::each("", |site| {
        let code = format!("{DAEMONS}\nopen('begun', 'w').close()\ntime.sleep(600)");
        let id = under_way(site, "python", &code);
        cancel(site.server(), &id);
        let reply = outcome(site.server(), &id).json();
        assert_eq!(reply["error"]["code"], "CANCELED", "{reply}");
        site.nothing_runs();
        site.on_record(&reply);
        site.comes_to_have(&["begun"]);
    });
}

#[test]
fn blt_2_when_gantry_is_killed_everything_in_the_sandbox_dies_with_it() {
    for home in homes() {
        let mut site = Site::at(home, "");
        let code = format!("{DAEMONS}\nopen('begun', 'w').close()\ntime.sleep(600)");
        let id = under_way(&site, "python", &code);
        let pid = site.server().pid();
        let below = process::descendants(pid);
        assert!(!below.is_empty());
        site.kill();
        site.nothing_runs();
        eventually("the helpers are gone too", || !below.iter().any(|pid| process::is_running(*pid)));
        // What the dead could not take away, the next run does.
        site.start();
        let record = site.server().get_as_admin(&format!("/api/v1/calls/{id}")).json()["record"].take();
        assert_eq!(
            (&record["tool"], &record["state"]),
            (&json!("run_code"), &json!("OUTCOME_UNKNOWN")),
            "{record}"
        );
        site.has_files(&["begun"]);
        site.settled();
    }
}

#[test]
fn blt_2_when_gantry_is_asked_to_stop_code_that_ends_in_time_is_waited_for() {
    let site = Site::one("");
    let id = under_way(&site, "bash", "touch begun; trap '' TERM; sleep 1; echo finished > after");
    let site = site.stopped();
    site.nothing_runs();
    assert_eq!(site.home.read("ws/after"), "finished\n", "{id}");
}

#[test]
fn blt_2_a_client_that_hangs_up_leaves_the_call_to_its_own_end() {
    let site = Site::one("");
    let call = json!({ "tool": "run_code", "arguments": site.arguments("bash", "touch begun; sleep 1; touch after", &json!({})) });
    let body = call.to_string();
    let mut connection = site.server().connect();
    let head = format!(
        "POST /api/v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        site.server().address,
        body.len()
    );
    connection.send((head + &body).as_bytes()).expect("it listens");
    eventually("the code runs", || site.inside("begun").exists());
    drop(connection);
    eventually("it ends by itself", || site.inside("after").exists());
    site.nothing_runs();
    site.settled();
}

#[test]
fn blt_2_runs_at_the_same_time_share_the_workspace_and_nothing_else() {
    let one = "
import os, socket, sys, time
open('/tmp/mine', 'w').write('x')
open('/dev/shm/mine', 'w').write('x')
open(os.path.expanduser('~/mine'), 'w').write('x')
abstract = socket.socket(socket.AF_UNIX); abstract.bind('\\0mine'); abstract.listen()
tcp = socket.create_server(('127.0.0.1', 4567))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.msgget(4711, 0o1666)
open('ready', 'w').write(str(os.getpid()))
while not os.path.exists('looked'):
    time.sleep(0.01)
print(os.path.exists('/tmp/mine'))
";
    let other = "
import ctypes, json, os, socket, time
while not os.path.exists('ready'):
    time.sleep(0.01)
def tries(what):
    try:
        what(); return 'done'
    except OSError as error:
        return error.errno
def abstract():
    socket.socket(socket.AF_UNIX).connect('\\0mine')
def tcp():
    socket.create_connection(('127.0.0.1', 4567))
libc = ctypes.CDLL(None, use_errno=True)
pids = [int(name) for name in os.listdir('/proc') if name.isdigit()]
found = [os.path.exists(path) for path in ['/tmp/mine', '/dev/shm/mine', os.path.expanduser('~/mine')]]
queue = libc.msgget(4711, 0)
print(json.dumps([found, tries(abstract), tries(tcp), queue, sorted(set(pids) - {1, os.getpid()})]))
open('looked', 'w').close()
";
    Site::each("", |site| {
        thread::scope(|scope| {
            let first = scope.spawn(|| site.code("python", one));
            let seen = site.python(other, &[]);
            assert_eq!(seen[0], json!([false, false, false]), "{seen}");
            assert_eq!((&seen[1], &seen[2], &seen[3]), (&json!(111), &json!(111), &json!(-1)), "{seen}");
            assert_eq!(seen[4], json!([]), "it sees other processes: {seen}");
            let first = first.join().expect("a result");
            assert_eq!(first["stdout"], "True\n", "{first}");
        });
        site.has_files(&["looked", "ready"]);
    });
}

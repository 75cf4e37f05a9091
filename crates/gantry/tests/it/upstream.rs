//! MCP servers behind Gantry that fail, change and lie: what Gantry does about it, and that nothing else suffers.
//!
//! Most tests have two servers: `bad`, which is what the test says, and `good`, which is not and has to go on.

mod busy;
mod calls;
mod cancel;
mod changes;
mod echoed;
mod eras;
mod expansion;
mod floods;
mod lights;
mod news;
mod once;
mod pins;
mod processes;
mod replicas;
mod results;
mod slow_start;
mod sockets;
mod starts;
mod tls;
mod trace;

use gantry_testkit::faulty::{APART, Faulty};
use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Server, TestDir, with};
use http::Method;
use serde_json::{Value, json};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The file in the home that servers write down what really happened in.
const JOURNAL: &str = "journal.txt";

/// How much Gantry may grow over what it needs for a server that sends more than it should, in KiB. The largest message
/// that it takes has 16 MiB, and it may hold more than one copy of it.
const ROOM_KIB: u64 = 80 * 1024;

/// A Gantry with MCP servers.
struct Rig {
    server: Server,
    home: TestDir,
}

/// A server on stdio that is run like this, and nothing else.
fn stdio(args: &[&str]) -> Value {
    json!({ "command": Faulty::program(), "args": args })
}

/// The same with a journal.
fn journalling(args: &[&str]) -> Value {
    stdio(&[&["--journal", JOURNAL], args].concat())
}

/// A server behind this address.
fn remote(kind: &str, url: &str) -> Value {
    json!({ "type": kind, "url": url })
}

/// A server that a shell starts: `$FAULTY` is the program, `$0` what follows the script.
fn script(script: &str, name: &str) -> Value {
    json!({ "command": "sh", "args": ["-c", script, name], "env": { "FAULTY": Faulty::program() } })
}

impl Rig {
    /// Serves with `bad`, and `good` beside it, and waits until `good` is there.
    #[track_caller]
    fn beside_good(bad: &Value) -> Self {
        let rig = Self::of(&json!({ "bad": bad, "good": stdio(&[]) }));
        rig.ready("good");
        rig
    }

    /// Serves with these servers; waits for none.
    fn of(servers: &Value) -> Self {
        Self::with_config(&json!({ "mcpServers": servers }))
    }

    fn with_config(config: &Value) -> Self {
        Self::at(TestDir::new().config(&config.to_string()))
    }

    fn at(home: TestDir) -> Self {
        let server = home.serve();
        Self { server, home }
    }

    /// Makes a call and returns the reply.
    #[track_caller]
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.server.call(tool, arguments).json()
    }

    /// What a call answers that has to work.
    #[track_caller]
    fn result(&self, tool: &str, arguments: &Value) -> String {
        let reply = self.call(tool, arguments);
        assert_eq!(reply["ok"], true, "{tool}: {reply}");
        reply["result"].as_str().unwrap_or_else(|| panic!("no text: {reply}")).to_owned()
    }

    /// The headers that a server gets. It says them such that Gantry does not know them again, and so masks nothing.
    #[track_caller]
    fn headers(&self, id: &str) -> String {
        self.result(&format!("{id}__headers"), &json!({ "text": "apart" })).replace(APART, "")
    }

    /// The error of a call that has to fail with this code.
    #[track_caller]
    fn error(&self, tool: &str, arguments: &Value, code: &str) -> Value {
        let reply = self.call(tool, arguments);
        assert_eq!((&reply["ok"], &reply["error"]["code"]), (&json!(false), &json!(code)), "{tool}: {reply}");
        reply
    }

    /// A server as those who administer see it.
    #[track_caller]
    fn status(&self, id: &str) -> Value {
        self.server.get_as_admin(&format!("/api/v1/servers/{id}")).json()
    }

    fn light(&self, id: &str) -> String {
        self.status(id)["light"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until a server is ready, and its tools can be called.
    #[track_caller]
    fn ready(&self, id: &str) {
        let explain = format!("/api/v1/explain?tool={}__pid", id.replace('-', "_"));
        self.server.eventually(&format!("{id} is ready"), || {
            self.status(id)["status"] == "ready"
                && self.server.get_as_admin(&explain).json()["visible"] == true
        });
    }

    /// Waits until another process does a server's work than before.
    #[track_caller]
    fn replaced(&self, id: &str, pid: &str) {
        self.server.eventually(&format!("{id} is another process"), || {
            let now = self.call(&format!("{id}__pid"), &json!({}));
            now["ok"] == true && now["result"] != pid
        });
    }

    /// Waits until a server has failed, and returns what it says.
    #[track_caller]
    fn down(&self, id: &str) -> Value {
        self.server.eventually(&format!("{id} is down"), || self.light(id) == "red");
        self.status(id)
    }

    /// The names of all tools that can be called.
    #[track_caller]
    fn tools(&self) -> Vec<String> {
        let listed = self.server.get("/api/v1/tools").json();
        let ready =
            listed["items"].as_array().expect("tools").iter().filter(|tool| tool["status"] == "ready");
        ready.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Those of one server.
    fn tools_of(&self, id: &str) -> Vec<String> {
        let prefix = format!("{id}__");
        self.tools().into_iter().filter(|tool| tool.starts_with(&prefix)).collect()
    }

    /// A request with the key.
    fn admin(&self, method: Method, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send(&self.server.admin(), method, path, &[], &body)
    }

    /// Begins a server anew at once, also while it waits.
    #[track_caller]
    fn restart(&self, id: &str) {
        let answer = self.admin(Method::POST, &format!("/api/v1/servers/{id}/restart"), &Value::Null);
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Does something, while `good` is called again and again and has to answer every time.
    #[track_caller]
    fn while_good_works<T>(&self, act: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let calling = scope.spawn(|| self.call_good_until(&done));
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            done.store(true, Ordering::Release);
            calling.join().expect("the server beside it works");
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn call_good_until(&self, done: &AtomicBool) {
        let mut connection = self.server.connect();
        for n in 0.. {
            let text = n.to_string();
            let answer = connection.call("good__echo", &json!({ "text": text })).expect("an answer");
            assert_eq!(answer.json()["result"], text, "the server beside it: {answer:?}");
            if done.load(Ordering::Acquire) {
                return;
            }
            thread::sleep(Duration::from_millis(5)); // The machine is not for this alone.
        }
    }

    /// The lines of the journal so far.
    fn journal(&self) -> Vec<String> {
        self.home.lines(JOURNAL)
    }

    /// The most memory that Gantry ever had, in KiB.
    fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// What a line of `/metrics` says of a server.
    fn metric(&self, name: &str, server: &str) -> Option<String> {
        let page = self.server.get_as_admin("/metrics").text;
        let line = format!("gantry_{name}{{project=\"default\",server=\"{server}\"}} ");
        page.lines().find_map(|found| found.strip_prefix(&line)).map(str::to_owned)
    }
}

/// The processes that have this text in their command line.
fn processes_with(marker: &str) -> Vec<u32> {
    let found = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(marker)
    };
    let pids = fs::read_dir("/proc")
        .expect("the process file system")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(found).collect()
}

/// Ends a process like a crash. It may be gone already.
fn kill(pid: &str) {
    let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process id");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
}

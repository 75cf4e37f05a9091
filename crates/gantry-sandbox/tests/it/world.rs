//! The processes of one test, found by a variable that all of them inherit.

use gantry_sandbox::{Child, Spec};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{Instant, sleep};

/// The program that can be a guard.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_sandbox-probe");

/// Starts a daemon as daemons do it: in a session of its own, and orphaned.
pub(crate) const DAEMON: &str = "setsid sh -c 'sleep 1000 </dev/null >/dev/null 2>&1 &'";

/// The grace of a stop that needs none.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How long a condition may take on a busy machine, and how often it is looked at.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// One process as the system shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) parent: i32,
    pub(crate) session: i32,
}

/// The processes that one test has started; those that are left when it fails are killed.
pub(crate) struct World {
    pub(crate) mark: String,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { mark: uuid::Uuid::now_v7().to_string() }
    }

    pub(crate) fn shell(&self, script: &str) -> Spec {
        let mut spec = Spec::new("sh");
        spec.args = vec!["-c".into(), script.into()];
        spec.env.insert("MARK".into(), self.mark.clone().into());
        spec.guard = Some(PROBE.into());
        spec
    }

    /// Starts a script and waits for its first line, so that its daemons are there.
    pub(crate) async fn start(&self, script: &str) -> Child {
        let mut child = gantry_sandbox::spawn(&self.shell(script)).await.expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).await.expect("a line");
        assert_eq!(line, "ready\n");
        child.stdout = Some(stdout.into_inner());
        child
    }

    /// Every living process that has inherited the mark, the guards included.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let has_mark = |pid: i32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| String::from_utf8_lossy(&environ).contains(&self.mark))
        };
        all_processes().into_iter().filter(|process| has_mark(process.pid)).collect()
    }

    /// One of them, by its number alone: while a program is being executed, it shows no mark.
    #[expect(clippy::unused_self, reason = "the number is one of this world")]
    pub(crate) fn process(&self, pid: i32) -> Option<Process> {
        all_processes().into_iter().find(|process| process.pid == pid && process.state != "Z")
    }

    /// Waits until a daemon has come loose from the program and belongs to the inner guard.
    pub(crate) async fn daemon(&self, child: &Child) -> Process {
        let inner = self.inner_guard(child).pid;
        let is_daemon = |p: &Process| p.name == "sleep" && p.parent == inner && p.session != child.pid();
        eventually("a daemon", || self.processes().into_iter().find(is_daemon)).await
    }

    pub(crate) fn inner_guard(&self, child: &Child) -> Process {
        let program = self.process(child.pid()).expect("the program runs");
        self.process(program.parent).expect("its guard runs")
    }

    pub(crate) fn outer_guard(&self, child: &Child) -> Process {
        self.process(self.inner_guard(child).parent).expect("the outer guard runs")
    }

    /// Waits until nothing is left.
    pub(crate) async fn is_empty(&self) {
        eventually("no process left", || {
            let left = self.processes();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.processes().iter().for_each(|process| kill(process.pid));
    }
}

/// SIGKILL, also for what is gone already.
pub(crate) fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).expect("a process id"), Signal::KILL).ok();
}

pub(crate) fn all_processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("a process file system");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// The process that runs the tests.
pub(crate) fn this_process() -> Process {
    process(std::process::id().cast_signed()).expect("it runs")
}

/// Read from the process file system, because the session may be one of another process namespace: that is
/// 0 there, which rustix takes for impossible.
fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (start, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.to_owned();
    let mut number = || fields.next()?.parse::<i32>().ok();
    let (parent, _group, session) = (number()?, number()?, number()?);
    Some(Process { pid, name: start.split_once('(')?.1.to_owned(), state, parent, session })
}

/// What a condition is waited for: something that is there or not, with or without a reason.
pub(crate) trait Condition {
    type Found;
    fn found(self) -> Result<Self::Found, String>;
}

impl<T> Condition for Option<T> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, E: std::fmt::Debug> Condition for Result<T, E> {
    type Found = T;
    fn found(self) -> Result<T, String> {
        self.map_err(|error| format!("{error:#?}"))
    }
}

/// Looks again until the condition holds.
pub(crate) async fn eventually<C: Condition>(what: &str, mut look: impl FnMut() -> C) -> C::Found {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match look().found() {
            Ok(found) => return found,
            Err(seen) if Instant::now() > deadline => panic!("waited for {what}; there is: {seen}"),
            Err(_) => sleep(POLL_INTERVAL).await,
        }
    }
}

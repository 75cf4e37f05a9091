//! Starting a program in the sandbox, beside starting it bare and with bubblewrap; and `run_code` as an agent calls it.

use super::in_process::folder;
use super::report::{Table, percentiles};
use super::{ROUNDS, Section, progress};
use crate::test_dir::executable;
use crate::{Connection, TestDir};
use anyhow::{Context as _, Result, ensure};
use gantry_sandbox::jail::{Access, ExitReason, Job, Limits, ProtectedPaths, Sandbox, Workspace};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often each is started in a round.
const TIMES: usize = 50;

/// Starts before anything is measured.
const WARM_UPS: usize = 3;

const BUBBLEWRAP: &str = "/usr/bin/bwrap";

/// The programs, each by a path that is the same in every jail.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("true", &["/usr/bin/true"]),
    ("bash -c :", &["/usr/bin/bash", "-c", ":"]),
    ("python3 -c pass", &["/usr/bin/python3", "-c", "pass"]),
];

/// What makes bubblewrap build about the same view. It has no filter for system calls, no landlock and no limits.
const VIEW: &str = "--unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind /usr /usr \
    --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev \
    --tmpfs /tmp --tmpfs /home --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache --chdir /workspace --clearenv --bind";

const LIMITS: Limits = Limits {
    wall: Duration::from_secs(60),
    cpu: Duration::from_secs(60),
    memory: 512 << 20,
    processes: 64,
    written: 1 << 30,
    output: 1 << 20,
};

pub(super) async fn measure() -> Result<Table> {
    let folder = folder()?;
    // The program whose helper builds the jail is the one that people run.
    let sandbox = Sandbox::find_with(executable("gantry"))?;
    let workspace = Workspace::open(folder.path(), ProtectedPaths::default())?;
    // The same programs for `run_code` as for the others.
    let home = TestDir::new().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let gantry = home.serve();
    let mut connection = Connection::open(gantry.address)?;
    let level = sandbox.info().level;
    let title = format!(
        "Starting a program and waiting for its end: bare, in the sandbox ({level}), with bubblewrap; and `run_code`"
    );
    let mut table = Table::new(title, &["program", "how"]);
    for round in 0..ROUNDS {
        for (name, words) in PROGRAMS {
            progress(Section::Sandbox, round, name);
            let mut taken = [const { Vec::new() }; 4];
            for n in 0..WARM_UPS + TIMES {
                // In turn, so that a busy moment falls on all of them.
                let times = [
                    Some(timed(Command::new(words[0]).args(&words[1..]))?),
                    Some(jailed(&sandbox, &workspace, words).await?),
                    bubblewrapped(folder.path(), words)?,
                    called(&mut connection, words)?,
                ];
                if n >= WARM_UPS {
                    let times = times.map(|time| time.map(|time| time.as_secs_f64() * 1e3));
                    taken.iter_mut().zip(times).for_each(|(list, time)| list.extend(time));
                }
            }
            let ways = ["bare", "sandbox", "bubblewrap", "run_code over HTTP"].into_iter().zip(taken);
            for (how, taken) in ways.filter(|(_, taken)| !taken.is_empty()) {
                let figures = percentiles(taken, [("p50 ms", 50), ("p95 ms", 95), ("least ms", 0)]);
                table.add(&[name, how], figures);
            }
        }
    }
    Ok(table)
}

fn bubblewrapped(workspace: &Path, words: &[&str]) -> Result<Option<Duration>> {
    if !Path::new(BUBBLEWRAP).exists() {
        return Ok(None);
    }
    let mut command = Command::new(BUBBLEWRAP);
    command.args(VIEW.split_whitespace()).arg(workspace).args(["/workspace", "--"]).args(words);
    timed(&mut command).map(Some)
}

/// From the start of a program to its end, its outputs read.
fn timed(command: &mut Command) -> Result<Duration> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let taken = start.elapsed();
    ensure!(output.status.success(), "{command:?}: {output:?}");
    Ok(taken)
}

async fn jailed(sandbox: &Sandbox, workspace: &Workspace, words: &[&str]) -> Result<Duration> {
    let job = Job {
        program: words[0].into(),
        args: words[1..].iter().map(Into::into).collect(),
        env: Vec::new(),
        folder: "".into(),
        input: [].into(),
        access: Access::Write,
        network: false,
        toolchains: [].into(),
        store: None,
        files: Vec::new(),
        limits: LIMITS,
    };
    let start = Instant::now();
    let ran = sandbox.start(workspace, job).await?.end().await?;
    let taken = start.elapsed();
    ensure!(ran.end == ExitReason::Exited(0), "{words:?}: {ran:?}");
    Ok(taken)
}

/// The same as an agent has it: with a check of the arguments, a record on disk before and after, and the reply.
fn called(connection: &mut Connection, words: &[&str]) -> Result<Option<Duration>> {
    let (language, code) = match words[0] {
        "/usr/bin/bash" => ("bash", ":"),
        "/usr/bin/python3" => ("python", "pass"),
        _ => return Ok(None),
    };
    let start = Instant::now();
    let reply = connection.call("run_code", &json!({ "language": language, "code": code }))?;
    let taken = start.elapsed();
    let reply = reply.json();
    let exit = reply["result"]["exitCode"].as_i64().with_context(|| reply.to_string())?;
    ensure!(exit == 0, "{reply}");
    Ok(Some(taken))
}

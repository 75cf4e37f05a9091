//! A PostgreSQL server of Debian for one test: its own folder, a Unix socket and no network.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};
use tempfile::TempDir;

/// Limit: how long the server may take to start.
const START: Duration = Duration::from_secs(60);

const INSTALL: &str =
    "PostgreSQL is needed for this test: apt-get install postgresql, or cargo xtask test --install";

/// A server that runs until it is dropped.
pub(crate) struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    server: Child,
}

impl Postgres {
    pub(crate) fn start() -> Self {
        let programs = programs().expect(INSTALL);
        let folder = tempfile::tempdir().unwrap();
        // The server refuses to run as root, so its user needs the folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let data = folder.path().join("data");
        let made = command(&programs.join("initdb"))
            .args([
                "--auth=trust",
                "--no-sync",
                "--username=postgres",
                "--encoding=UTF8",
                "--locale=C",
                "--pgdata",
            ])
            .arg(&data)
            .output()
            .unwrap();
        check(&made).unwrap();
        let server = command(&programs.join("postgres"))
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-k"])
            .arg(folder.path())
            .arg("-D")
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut postgres = Self { folder, programs, server };
        let end = Instant::now() + START;
        while postgres.try_run("SELECT 1").is_err() {
            assert!(postgres.server.try_wait().unwrap().is_none(), "PostgreSQL ended while it started");
            assert!(Instant::now() < end, "PostgreSQL did not start in time");
            thread::sleep(Duration::from_millis(20));
        }
        postgres
    }

    /// Runs a script that must succeed.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) {
        self.try_run(script).unwrap();
    }

    /// Runs a script; the error names the first statement that failed.
    pub(crate) fn try_run(&self, script: &str) -> Result<(), String> {
        let mut client = command(&self.programs.join("psql"))
            .args([
                "--no-psqlrc",
                "--quiet",
                "--set=ON_ERROR_STOP=1",
                "--username=postgres",
                "--dbname=postgres",
                "--host",
            ])
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        client.stdin.take().unwrap().write_all(script.as_bytes()).ok();
        check(&client.wait_with_output().unwrap())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The immediate shutdown of PostgreSQL; the folder is deleted anyway.
        let quit = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(quit, rustix::process::Signal::QUIT).ok();
        self.server.wait().ok();
    }
}

fn check(output: &Output) -> Result<(), String> {
    let said =
        || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// The folder with the programs: the newest that Debian has installed, or one on the path.
fn programs() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = debian
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let newest = versions.into_iter().rev().map(|(_, folder)| folder);
    let path = env::var_os("PATH").unwrap_or_default();
    let has_all =
        |folder: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file());
    newest.chain(env::split_paths(&path)).find(has_all)
}

/// A program of PostgreSQL, as the user `postgres` or `nobody` where the test is root.
fn command(program: &Path) -> Command {
    let is_root = rustix::process::geteuid().is_root();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = if users.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" };
    let words: Vec<&OsStr> = if is_root {
        ["setpriv", "--reuid", user, "--clear-groups", "--"].map(OsStr::new).into_iter().collect()
    } else {
        Vec::new()
    };
    let mut words = words.into_iter().chain([program.as_os_str()]);
    #[expect(clippy::disallowed_methods, reason = "a test needs another program")]
    let mut command = Command::new(words.next().unwrap());
    command.args(words).current_dir("/").env("LC_ALL", "C");
    command
}

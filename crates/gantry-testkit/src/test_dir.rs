//! A home for one Gantry: a workspace, a configuration, a data folder, and the program to run in it.

use crate::server::Server;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder of its own with everything in it. Gone when dropped.
#[must_use]
#[derive(Debug)]
pub struct TestDir {
    folder: TempDir,
    /// Where servers start: outside of the workspace, and not in the home of the user who runs the tests.
    state: TempDir,
    program: &'static str,
    env: Vec<(String, String)>,
    user: Option<User>,
}

/// Another user than the one who runs the test.
#[derive(Debug)]
struct User {
    id: u32,
    /// Where this user finds the program: the folder in which it was built need not be open to others.
    folder: TempDir,
}

/// The PATH of a user who has nothing but the system's programs.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[derive(Debug)]
pub struct CommandOutput {
    /// Its exit code; -1 if a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON: {error}\n{self:?}"))
    }
}

impl TestDir {
    /// A home for the real program, without a configuration.
    pub fn new() -> Self {
        Self::of("gantry")
    }

    /// A home for `test-gantry`: the same program with the tools of [`crate::provider`] (`test__echo` and others).
    pub fn with_test_tools() -> Self {
        Self::of("test-gantry")
    }

    fn of(program: &'static str) -> Self {
        let folder = tempfile::Builder::new().prefix("gantry-home-").tempdir().expect("a temporary folder");
        let state = tempfile::Builder::new().prefix("gantry-state-").tempdir().expect("a temporary folder");
        Self { folder, state, program, env: Vec::new(), user: None }
    }

    /// The same, with the program run by another user, whose home this becomes with everything that is in it whenever the
    /// program is started. Only root can do that.
    pub fn run_by(mut self, id: u32) -> Self {
        let program = self.executable();
        let folder =
            tempfile::Builder::new().prefix("gantry-program-").tempdir().expect("a temporary folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("an open folder");
        let copy = folder.path().join(program.file_name().expect("a name"));
        if std::fs::hard_link(&program, &copy).is_err() {
            std::fs::copy(&program, &copy).expect("a copy of the program");
        }
        self.user = Some(User { id, folder });
        self
    }

    /// The same, with this configuration as `gantry.yaml`.
    pub fn config(self, yaml: &str) -> Self {
        self.write("gantry.yaml", yaml);
        self
    }

    /// The same, with this variable in the program's environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same, with the test tools run like this: `{queue, cache, requestTimeoutMs, toolsQueue, toolsCache, toolsTimeout}`.
    pub fn settings(self, settings: &Value) -> Self {
        self.env("TEST_GANTRY_SETTINGS", &settings.to_string())
    }

    /// The folder; it is the workspace too.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder in which a server of the project `default` starts.
    pub fn server_folder(&self, id: &str) -> PathBuf {
        let data = std::fs::read_dir(self.state.path().join("gantry/servers")).expect("a server has started");
        let of_data = data.flatten().next().expect("the folder of the data folder");
        of_data.path().join("default").join(id)
    }

    /// Writes a file, with its parents.
    pub fn write(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        std::fs::write(path, content).expect("the file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("the file")
    }

    /// The lines of a file; none while there is no such file.
    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn executable(&self) -> PathBuf {
        let user = self.user.as_ref();
        user.map_or_else(|| executable(self.program), |user| user.folder.path().join(self.program))
    }

    /// A command that runs the program here, with no environment of the machine's leaking into it.
    pub fn command<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I) -> Command {
        let mut command = Command::new(self.executable());
        command.args(args).current_dir(self.path()).env_clear();
        for name in ["PATH", "HOME", "LANG", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("XDG_STATE_HOME", self.state.path());
        if let Some(user) = &self.user {
            give(self.path(), user.id);
            give(self.state.path(), user.id);
            command.uid(user.id).gid(user.id).env("HOME", self.path()).env("PATH", SYSTEM_PATH);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I) -> CommandOutput {
        self.run_with_input(args, "")
    }

    /// Runs the program with this on its standard input.
    pub fn run_with_input<I: IntoIterator<Item: AsRef<OsStr>>>(&self, args: I, input: &str) -> CommandOutput {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        // The program may answer before it has read everything, or not read at all.
        let feeding = std::thread::spawn(move || stdin.write_all(input.as_bytes()).ok());
        let output = child.wait_with_output().expect("the program ends");
        feeding.join().expect("the input is written");
        CommandOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// `gantry config apply --yes`, as a person does who has read the new files.
    #[track_caller]
    pub fn accept_files(&self) {
        let applied = self.run(["config", "apply", "--yes"]);
        assert_eq!(applied.code, 0, "{applied:?}");
    }

    /// `gantry call TOOL ARGS --json` and its reply.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.run(["call", tool, &arguments.to_string(), "--json"]).json()
    }

    /// The same, approved by the person at the keyboard.
    #[track_caller]
    pub fn call_yes(&self, tool: &str, arguments: &Value) -> Value {
        self.run(["call", tool, &arguments.to_string(), "--json", "--yes"]).json()
    }

    /// Starts `gantry serve` on a free port and waits until it answers.
    pub fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// The same with more arguments.
    pub fn serve_with(&self, args: &[&str]) -> Server {
        Server::start(self, args)
    }
}

/// Makes a folder with everything in it a user's.
pub fn give(folder: &Path, user: u32) {
    lchown(folder, Some(user), Some(user)).expect("only root gives things away");
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            give(&entry.path(), user);
        } else if let Err(error) = lchown(entry.path(), Some(user), Some(user)) {
            // What a running program has just taken away need not be given to it.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}", entry.path().display());
        }
    }
}

impl Default for TestDir {
    fn default() -> Self {
        Self::new()
    }
}

/// A program that was built beside the running test.
pub fn executable(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the running program has a path");
    // A test binary lies in target/<profile>/deps, other programs in target/<profile>.
    let folder = test.parent().expect("a folder");
    let folder = if folder.ends_with("deps") { folder.parent().expect("a folder") } else { folder };
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built; run `cargo build --workspace --bins --examples` first",
        path.display()
    );
    path
}

/// Where `cargo xtask test` has installed what others wrote (`clients`, `servers` or `specs`): in the target folder, or where
/// a variable such as `GANTRY_TEST_CLIENTS` says.
pub fn installed(set: &str) -> PathBuf {
    std::env::var_os(format!("GANTRY_TEST_{}", set.to_uppercase())).map_or_else(
        || {
            let test = std::env::current_exe().expect("the running program has a path");
            test.ancestors().nth(3).expect("a target folder").join(set)
        },
        PathBuf::from,
    )
}

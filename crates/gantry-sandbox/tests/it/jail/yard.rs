//! Workspaces with protected paths, and the processes that run jobs on them as Gantry would: each way that jails are
//! built, as the user that runs the tests and, if that is root, as an ordinary one.

use crate::world::{PROBE, World};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// An ordinary user without an account.
const ORDINARY: u32 = 54321;

/// How a job is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the user that runs the tests.
    Native,
    /// By an ordinary user.
    OrdinaryNative,
    OrdinaryBubblewrap,
}

pub(crate) const WAYS: [Way; 3] = [Way::Native, Way::OrdinaryNative, Way::OrdinaryBubblewrap];

/// A workspace for one way.
pub(crate) struct Yard {
    folder: tempfile::TempDir,
    way: Way,
    /// What is said to the probe, such as what is protected.
    words: Vec<(&'static str, PathBuf)>,
    pub(crate) world: World,
}

impl Yard {
    /// A workspace with these files; the content of each is its path. Those that end in `/` are folders.
    pub(crate) fn new(way: Way, entries: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let yard = Self { folder, way, words: Vec::new(), world: World::new() };
        fs::create_dir(yard.at("")).expect("a workspace");
        for entry in entries {
            if let Some(folder) = entry.strip_suffix('/') {
                fs::create_dir_all(yard.at(folder)).expect("a folder");
            } else {
                fs::create_dir_all(yard.at(entry).parent().expect("a parent")).expect("a folder");
                fs::write(yard.at(entry), entry).expect("a file");
            }
        }
        yard.open_up();
        yard
    }

    /// Lets the ordinary user in, and gives it the workspace.
    pub(crate) fn open_up(&self) {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        if self.user().is_some() {
            fs::copy(PROBE, self.folder.path().join("probe")).expect("a copy");
            chown_all(&self.at(""));
        }
    }

    /// Gives a path beside the workspace to the user that runs jobs.
    pub(crate) fn open_up_to(&self, path: &Path) {
        if self.user().is_some() {
            chown_all(path);
        }
    }

    pub(crate) fn protect(mut self, kind: &'static str, paths: &[&str]) -> Self {
        let paths = paths.iter().map(|path| (kind, self.at(path)));
        self.words.extend(paths.collect::<Vec<_>>());
        self
    }

    /// Has jobs read a folder as their store.
    pub(crate) fn store(mut self, path: &Path) -> Self {
        self.words.push(("store", path.to_owned()));
        self
    }

    /// Changes a limit: `wall` in seconds, `memory` or `written` in MiB.
    pub(crate) fn limit(mut self, what: &'static str, most: u32) -> Self {
        self.words.push((what, most.to_string().into()));
        self
    }

    /// A path in the workspace.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).expect("it is there")
    }

    /// The user to run as, if it is another.
    fn user(&self) -> Option<u32> {
        (self.way != Way::Native && rustix::process::geteuid().is_root()).then_some(ORDINARY)
    }

    pub(crate) fn command(&self, script: &str) -> Command {
        let own = self.folder.path().join("probe");
        let mut command = Command::new(if self.user().is_some() { own.as_path() } else { Path::new(PROBE) });
        let level = if self.way == Way::OrdinaryBubblewrap { "bubblewrap" } else { "native" };
        command.env_clear().env("GANTRY_SANDBOX", level).env("MARK", &self.world.mark);
        command.arg("jail").arg(self.at("")).arg(script);
        for (what, value) in &self.words {
            command.arg(what).arg(value);
        }
        if let Some(user) = self.user() {
            command.uid(user).gid(user);
        }
        command
    }

    /// Runs a script to its end.
    pub(crate) fn run(&self, script: &str) -> Output {
        self.command(script).output().expect("it runs")
    }

    /// What a script that must succeed writes.
    #[track_caller]
    pub(crate) fn output(&self, script: &str) -> String {
        let ran = self.run(script);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(ran.status.success(), "{:?}: {}{}", self.way, text(&ran.stdout), text(&ran.stderr));
        text(&ran.stdout)
    }

    /// Starts a script.
    pub(crate) fn start(&self, script: &str) -> Child {
        self.command(script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Every path in the workspace, with a letter for its kind.
    pub(crate) fn entries(&self) -> Vec<String> {
        let mut found = Vec::new();
        list(&self.at(""), Path::new(""), &mut found);
        found.sort();
        found
    }
}

fn list(folder: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let path = below.join(entry.file_name());
        let kind = entry.file_type().expect("a kind");
        let letter = match kind {
            kind if kind.is_dir() => "d",
            kind if kind.is_symlink() => "l",
            kind if kind.is_socket() => "s",
            _ => "f",
        };
        found.push(format!("{letter} {}", path.display()));
        if kind.is_dir() {
            list(&entry.path(), &path, found);
        }
    }
}

fn chown_all(path: &Path) {
    std::os::unix::fs::lchown(path, Some(ORDINARY), Some(ORDINARY)).expect("root may");
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).expect("a folder") {
            chown_all(&entry.expect("an entry").path());
        }
    }
}

/// A script that makes attempts which must fail, and says which of them did not.
pub(crate) fn survivors(attempts: &[&str]) -> String {
    let line =
        |attempt: &&str| format!("( {attempt} ) 2>/dev/null && echo 'done: {}'\n", attempt.replace('\'', ""));
    attempts.iter().map(line).collect::<String>() + "true\n"
}

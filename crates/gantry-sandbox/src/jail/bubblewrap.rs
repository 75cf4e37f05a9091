//! The second rung: bubblewrap builds the walls, and the helper, started in them as their first process, does the rest.
//!
//! What a job sees is the same as on the first rung, said in arguments. bubblewrap goes by paths, and a job on the same
//! workspace can change where those lead at any moment. So the first process compares the workspace, the store and what
//! each cover shows with what Gantry had opened, and goes no further if that is something else (see `inside/covers.rs`).
//! What bubblewrap makes on the way cannot be undone by that, so it is not even started beside a job that could lead it
//! elsewhere: see [`keep_apart`].
//!
//! Not `--die-with-parent`: it is bound to the thread that starts bubblewrap, which may end at any time. The control
//! socket, which the helper holds, ties the jail to Gantry.

use super::ground::{Cover, How};
use super::inside::view::{DEVICES, IN_MEMORY, LINKS, SETTINGS, SYSTEM, TEXTS, check_toolchain};
use super::{Access, FILES, JailError, STORE, WORKSPACE};
use crate::sys;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only place where it is taken from: never from a search path, and never from a workspace.
pub(crate) const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// Where the helper's executable is in the jail.
const HELPER: &str = "/run/gantry-helper";
/// What comes to be protected only when it is made.
const REPOSITORY: &str = ".git";
/// The user and the group in the jail.
const INSIDE: &str = "1000";
/// Bytes for a folder in memory that holds nothing but what other things are mounted on.
const EMPTY_SIZE: u64 = 1 << 20;
/// Bytes for the files of a job.
const FILES_SIZE: u64 = super::plan::FILES_LIMIT + (8 << 20);

/// The namespaces, each by name: with `--unshare-all`, bubblewrap goes on without the ones that it cannot have.
const NAMESPACES: [&str; 6] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup",
];

/// What a job sees besides what is in every jail.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) workspace: Option<Workspace>,
    /// Where the store is.
    pub(crate) store: Option<PathBuf>,
    pub(crate) toolchains: Vec<PathBuf>,
}

/// The workspace as bubblewrap is told of it.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    pub(crate) covers: Vec<Cover>,
}

/// Arguments, and the files that they speak of.
#[derive(Debug, Default)]
struct Arguments {
    words: Vec<OsString>,
    files: Vec<OwnedFd>,
}

/// Whether it is installed.
pub(crate) fn is_installed() -> bool {
    Path::new(BUBBLEWRAP).is_file()
}

/// Keeps a job away from a repository that another job could turn into something else while bubblewrap lays the covers:
/// one that has run since before there was a repository, so that nothing in it is held in place. bubblewrap follows links
/// anywhere, and makes what it does not find to mount on. All else that is protected is held in place in every jail.
pub(crate) fn keep_apart(opened: &OwnedFd, workspace: &Workspace) -> Result<(), JailError> {
    let (repository, access) = (workspace.path.join(REPOSITORY), workspace.access);
    let is_held = workspace.covers.iter().any(|cover| cover.path.starts_with(REPOSITORY));
    let failed = |reason: String| JailError::Ground {
        what: format!("{} cannot be protected", repository.display()),
        reason,
    };
    let is_free = match access {
        // It changes nothing, and covers nothing there.
        Access::Read => Ok(true),
        Access::Write if is_held => sys::jail::is_marked(opened).map(|is_marked| !is_marked),
        Access::Write => sys::jail::mark(opened).map(|()| true),
    };
    match is_free {
        Ok(true) => Ok(()),
        Ok(false) => Err(failed(
            "a job that still runs was started before it was made, and can change it; try again when that job has ended"
                .to_owned(),
        )),
        Err(error) => Err(failed(format!("the workspace cannot be locked: {error}"))),
    }
}

/// The command that starts the helper in the walls; the helper's arguments are to be added.
#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
pub(crate) fn command(helper: &Path, shown: &Shown) -> Result<Command, JailError> {
    // Not the path as it is: `/proc/self/exe` would be bubblewrap itself.
    let helper = fs::canonicalize(helper).map_err(|error| setup("finding the helper", &error))?;
    let arguments = Arguments::new(&helper, shown)?;
    let mut command = Command::new(BUBBLEWRAP);
    command.args(&arguments.words).env_clear();
    for file in arguments.files {
        sys::inherit(&mut command, file);
    }
    Ok(command)
}

impl Arguments {
    fn new(helper: &Path, shown: &Shown) -> Result<Self, JailError> {
        let mut arguments = Self::default();
        arguments.words.extend(NAMESPACES.map(OsString::from));
        arguments.add("--uid", [INSIDE]);
        arguments.add("--gid", [INSIDE]);
        arguments.add("--hostname", ["gantry"]);
        arguments.add("--cap-drop", ["ALL"]);
        arguments.words.push("--as-pid-1".into());
        arguments.words.push("--new-session".into());
        arguments.machine(helper);
        arguments.texts().map_err(|error| setup("handing over files", &error))?;
        arguments.toolchains(&shown.toolchains)?;
        match &shown.workspace {
            Some(workspace) => arguments.workspace(workspace)?,
            None => arguments.add("--dir", [WORKSPACE]),
        }
        if let Some(store) = &shown.store {
            arguments.add("--bind", [store.as_os_str(), OsStr::new(STORE)]);
        }
        arguments.add("--remount-ro", ["/"]);
        arguments.add("--chdir", ["/"]);
        arguments.add("--", [HELPER]);
        Ok(arguments)
    }

    fn add<S: AsRef<OsStr>>(&mut self, option: &str, values: impl IntoIterator<Item = S>) {
        self.words.push(option.into());
        self.words.extend(values.into_iter().map(|value| value.as_ref().to_owned()));
    }

    /// What is in every jail.
    fn machine(&mut self, helper: &Path) {
        for path in SYSTEM {
            match fs::read_link(path) {
                Ok(target) => self.add("--symlink", [target.as_os_str(), OsStr::new(path)]),
                Err(_) => self.add("--ro-bind-try", [path, path]),
            }
        }
        for path in SETTINGS {
            self.add("--ro-bind-try", [path, path]);
        }
        self.memory("/dev", EMPTY_SIZE, 0o755);
        for (path, device) in DEVICES {
            self.add("--dev-bind", [device, path]);
        }
        for (path, target) in LINKS {
            self.add("--symlink", [target, path]);
        }
        for (path, size, _, mode) in IN_MEMORY {
            self.memory(path, size, mode);
        }
        self.add("--remount-ro", ["/dev"]);
        self.add("--proc", ["/proc"]);
        self.memory(FILES, FILES_SIZE, 0o755);
        self.add("--ro-bind", [helper.as_os_str(), OsStr::new(HELPER)]);
    }

    fn memory(&mut self, path: &str, size: u64, mode: u32) {
        self.add("--perms", [format!("{mode:04o}")]);
        self.add("--size", [size.to_string()]);
        self.add("--tmpfs", [path]);
    }

    /// What the jail says about itself.
    fn texts(&mut self) -> io::Result<()> {
        for (path, text) in TEXTS {
            let (reader, mut writer) = io::pipe()?;
            // So little that the pipe holds it all.
            writer.write_all(text.as_bytes())?;
            self.add("--perms", ["0444"]);
            self.add("--ro-bind-data", [reader.as_raw_fd().to_string(), path.to_owned()]);
            self.files.push(reader.into());
        }
        Ok(())
    }

    fn toolchains(&mut self, toolchains: &[PathBuf]) -> Result<(), JailError> {
        for path in toolchains {
            check_toolchain(path).map_err(|error| setup(&path.display().to_string(), &error))?;
            // What is in there anyway is shown already.
            if !path.starts_with("/usr") {
                self.add("--ro-bind-try", [path, path]);
            }
        }
        Ok(())
    }

    fn workspace(&mut self, workspace: &Workspace) -> Result<(), JailError> {
        let option = match workspace.access {
            Access::Read => "--ro-bind",
            Access::Write => "--bind",
        };
        self.add(option, [workspace.path.as_os_str(), OsStr::new(WORKSPACE)]);
        for cover in &workspace.covers {
            let (from, to) = (workspace.path.join(&cover.path), Path::new(WORKSPACE).join(&cover.path));
            if from.is_symlink() {
                let what = format!("{} cannot be protected", from.display());
                let reason = "it is a link, which bubblewrap cannot cover; put what it leads to in its place";
                return Err(JailError::Ground { what, reason: reason.to_owned() });
            }
            match cover.how {
                How::Pin => self.add("--bind", [&from, &to]),
                How::Seal => self.add("--ro-bind", [&from, &to]),
                How::Hide if cover.is_dir => {
                    self.add("--size", [EMPTY_SIZE.to_string()]);
                    self.add("--tmpfs", [&to]);
                    self.add("--remount-ro", [&to]);
                }
                // A device that cannot be opened, because devices are not let in.
                How::Hide => self.add("--ro-bind", [Path::new("/dev/null"), &to]),
            }
        }
        Ok(())
    }
}

/// Whether what stands at the workspace's place in the jail is the folder that Gantry had opened. For the first process.
pub(crate) fn is_in_place(opened: &OwnedFd, at: &str) -> io::Result<bool> {
    let (wanted, found) = (rustix::fs::fstat(opened)?, rustix::fs::stat(at)?);
    Ok((wanted.st_dev, wanted.st_ino) == (found.st_dev, found.st_ino))
}

fn setup(what: &str, error: &io::Error) -> JailError {
    JailError::Setup { step: what.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(shown: &Shown) -> String {
        let arguments = Arguments::new(Path::new("/opt/gantry"), shown).unwrap();
        arguments.words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn covers_come_after_the_workspace_and_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let cover = |path: &str, how, is_dir| Cover { path: path.into(), how, is_dir };
        let covers = vec![
            cover("a", How::Pin, true),
            cover("a/secret", How::Hide, false),
            cover("data", How::Hide, true),
            cover("gantry.yaml", How::Seal, false),
        ];
        let workspace = Workspace { path: folder.path().to_owned(), access: Access::Write, covers };
        let words = words(&Shown { workspace: Some(workspace), ..Shown::default() });
        let root = folder.path().display();
        let expected = format!(
            "--bind {root} /workspace --bind {root}/a /workspace/a --ro-bind /dev/null /workspace/a/secret \
             --size 1048576 --tmpfs /workspace/data --remount-ro /workspace/data \
             --ro-bind {root}/gantry.yaml /workspace/gantry.yaml --remount-ro / --chdir / -- /run/gantry-helper"
        );
        assert!(words.ends_with(&expected), "{words}");
    }

    #[test]
    fn a_workspace_to_read_is_not_to_be_written() {
        let workspace = Workspace { path: "/w".into(), access: Access::Read, covers: Vec::new() };
        let words = words(&Shown { workspace: Some(workspace), ..Shown::default() });
        assert!(words.contains("--ro-bind /w /workspace --remount-ro /"), "{words}");
    }

    #[test]
    fn a_link_that_would_have_to_be_covered_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        let covers = vec![Cover { path: "link".into(), how: How::Hide, is_dir: false }];
        let workspace = Workspace { path: folder.path().to_owned(), access: Access::Write, covers };
        let shown = Shown { workspace: Some(workspace), ..Shown::default() };
        let refused = Arguments::new(Path::new("/opt/gantry"), &shown).unwrap_err().to_string();
        assert!(refused.contains("it is a link"), "{refused}");
    }

    #[test]
    fn nothing_of_the_machine_is_shown_at_a_place_of_the_jails_own() {
        let shown = Shown { toolchains: vec!["/proc/1".into()], ..Shown::default() };
        Arguments::new(Path::new("/opt/gantry"), &shown).unwrap_err();
        let words =
            words(&Shown { toolchains: vec!["/opt/rust".into(), "/usr/lib/x".into()], ..Shown::default() });
        assert!(
            words.contains("--ro-bind-try /opt/rust /opt/rust") && !words.contains("/usr/lib/x"),
            "{words}"
        );
    }
}

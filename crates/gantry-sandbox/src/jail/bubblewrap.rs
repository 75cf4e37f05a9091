//! The second backend: bubblewrap makes the namespaces and mounts, and the helper, which it starts as the first process
//! of the jail, does the rest.
//!
//! A job sees the same as with the native backend. bubblewrap goes by paths, and a job on the same workspace can change
//! where those lead at any moment. So the first process compares the workspace, the stores and each protected mount with
//! what Gantry had opened, and goes no further if they differ (see `helper/mounts.rs`). That cannot undo what bubblewrap
//! makes on the way, so bubblewrap is not even started beside a job that could lead it elsewhere: see [`keep_apart`].
//!
//! Not `--die-with-parent`: it is bound to the thread that starts bubblewrap, which may end at any time. The control
//! socket, which the helper holds, ties the jail to Gantry.

use super::error::JailError;
use super::helper::rootfs::{DEVICES, IN_MEMORY, LINKS, SETTINGS, SYSTEM, TEXTS, check_toolchain};
use super::launch::FILES_LIMIT;
use super::protocol::JobSpec;
use super::workspace::{MountMode, WorkspaceLease, unprotected};
use super::{Access, FILES, WORKSPACE};
use crate::sys;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use tokio::process::Command;

/// The only place where it is taken from: never from a search path, and never from a workspace.
pub(crate) const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// Where the helper's executable is in the jail.
const HELPER: &str = "/run/gantry-helper";
/// Bytes for a folder in memory that holds nothing but mount points.
const EMPTY_SIZE: u64 = 1 << 20;
/// Bytes for the files of a job.
const FILES_SIZE: u64 = FILES_LIMIT + (8 << 20);

/// The arguments of every jail. Each namespace by its name: with `--unshare-all`, bubblewrap goes on without those that it
/// cannot have.
const ALWAYS: [&str; 16] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--hostname",
    "gantry",
    "--cap-drop",
    "ALL",
    "--as-pid-1",
    "--new-session",
];

/// Arguments, and the files that they name by number.
#[derive(Debug, Default)]
struct Arguments {
    words: Vec<OsString>,
    files: Vec<OwnedFd>,
}

/// The command that starts the helper in the jail; the helper's arguments are to be added.
#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
pub(crate) fn command(
    helper: &Path,
    spec: &JobSpec,
    lease: Option<&WorkspaceLease>,
) -> Result<Command, JailError> {
    if let Some(lease) = lease {
        keep_apart(lease, spec)?;
    }
    // Not the path as it is: `/proc/self/exe` would be bubblewrap itself.
    let helper = fs::canonicalize(helper).map_err(|error| JailError::setup("finding the helper", &error))?;
    let arguments = Arguments::new(&helper, spec, lease.map(WorkspaceLease::path))?;
    let mut command = Command::new(BUBBLEWRAP);
    // Ctrl-C is for Gantry, which stops its jobs in good order.
    command.args(&arguments.words).env_clear().process_group(0);
    for file in arguments.files {
        sys::inherit(command.as_std_mut(), file);
    }
    Ok(command)
}

/// Refuses a job while another one could turn something protected into something else as bubblewrap mounts over it: a job
/// that has run since before there was a repository, or while a protected path did not exist, so that it is not held in
/// place. bubblewrap follows links anywhere, and makes mount points that it does not find.
fn keep_apart(lease: &WorkspaceLease, spec: &JobSpec) -> Result<(), JailError> {
    let refused = match spec.job.access {
        Access::Read => Ok(false),
        Access::Write if lease.has_missing => sys::jail::mark(&lease.dir).map(|()| false),
        Access::Write => sys::jail::is_marked(&lease.dir),
    };
    let reason = match refused {
        Ok(false) => return Ok(()),
        Ok(true) => {
            "a job that still runs was started before there was a repository, or another protected file, and can change it; \
             try again when that job has ended"
                .to_owned()
        }
        Err(error) => format!("the workspace cannot be locked: {error}"),
    };
    Err(unprotected(lease.path(), &reason))
}

fn bind(access: Access) -> &'static str {
    match access {
        Access::Read => "--ro-bind",
        Access::Write => "--bind",
    }
}

impl Arguments {
    fn new(helper: &Path, spec: &JobSpec, workspace: Option<&Path>) -> Result<Self, JailError> {
        let mut arguments = Self { words: ALWAYS.map(OsString::from).into(), files: Vec::new() };
        arguments.system(helper).map_err(|error| JailError::setup("handing over files", &error))?;
        for path in &spec.job.toolchains {
            check_toolchain(path).map_err(|error| JailError::setup(&path.display().to_string(), &error))?;
            // It is shown already.
            if !path.starts_with("/usr") {
                arguments.add("--ro-bind-try", [path, path]);
            }
        }
        match workspace {
            Some(workspace) => arguments.workspace(workspace, spec)?,
            None => arguments.add("--dir", [WORKSPACE]),
        }
        for store in &spec.job.stores {
            arguments.add(bind(store.access), [&store.path, &store.at]);
        }
        arguments.add("--remount-ro", ["/", "--chdir", "/", "--", HELPER]);
        Ok(arguments)
    }

    fn add<S: AsRef<OsStr>>(&mut self, option: &str, values: impl IntoIterator<Item = S>) {
        self.words.push(option.into());
        self.words.extend(values.into_iter().map(|value| value.as_ref().to_owned()));
    }

    fn system(&mut self, helper: &Path) -> io::Result<()> {
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
        self.add("--remount-ro", ["/dev", "--proc", "/proc"]);
        self.memory(FILES, FILES_SIZE, 0o755);
        self.add("--ro-bind", [helper, Path::new(HELPER)]);
        for (path, text) in TEXTS {
            let (reader, mut writer) = io::pipe()?;
            // So little that the pipe holds it all.
            writer.write_all(text.as_bytes())?;
            self.add("--perms", ["0444", "--ro-bind-data", &reader.as_raw_fd().to_string(), path]);
            self.files.push(reader.into());
        }
        Ok(())
    }

    fn memory(&mut self, path: &str, size: u64, mode: u32) {
        self.add("--perms", [&format!("{mode:04o}"), "--size", &size.to_string(), "--tmpfs", path]);
    }

    fn workspace(&mut self, workspace: &Path, spec: &JobSpec) -> Result<(), JailError> {
        self.add(bind(spec.job.access), [workspace, Path::new(WORKSPACE)]);
        for mount in &spec.mounts {
            let (from, to) = (workspace.join(&mount.path), Path::new(WORKSPACE).join(&mount.path));
            if from.is_symlink() {
                let reason = "it is a link, which bubblewrap cannot cover; put what it leads to in its place";
                return Err(unprotected(&from, &reason));
            }
            match mount.mode {
                MountMode::Pin => self.add("--bind", [&from, &to]),
                MountMode::ReadOnly => self.add("--ro-bind", [&from, &to]),
                MountMode::Hide if mount.is_dir => {
                    self.add("--size", [EMPTY_SIZE.to_string()]);
                    self.add("--tmpfs", [&to]);
                    self.add("--remount-ro", [&to]);
                }
                // A device that cannot be opened: the mount permits no devices.
                MountMode::Hide => self.add("--ro-bind", [Path::new("/dev/null"), &to]),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::Backend;
    use super::super::workspace::ProtectedMount;
    use super::super::{Job, Store};
    use super::*;

    fn spec(access: Access, mounts: Vec<ProtectedMount>) -> JobSpec {
        let job = Job { access, ..Job::probe() };
        JobSpec {
            backend: Backend::Bubblewrap,
            job,
            workspace: None,
            stores: Vec::new(),
            mounts,
            absent: Vec::new(),
        }
    }

    fn words(spec: &JobSpec, workspace: Option<&Path>) -> String {
        let arguments = Arguments::new(Path::new("/opt/gantry"), spec, workspace).unwrap();
        arguments.words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn protected_mounts_come_after_the_workspace_and_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let mount = |path: &str, mode, is_dir| ProtectedMount { path: path.into(), mode, is_dir };
        let mounts = vec![
            mount("a", MountMode::Pin, true),
            mount("a/secret", MountMode::Hide, false),
            mount("data", MountMode::Hide, true),
            mount("gantry.yaml", MountMode::ReadOnly, false),
        ];
        let words = words(&spec(Access::Write, mounts), Some(folder.path()));
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
        let words = words(&spec(Access::Read, Vec::new()), Some(Path::new("/w")));
        assert!(words.contains("--ro-bind /w /workspace --remount-ro /"), "{words}");
    }

    #[test]
    fn a_store_to_read_is_not_to_be_written() {
        let mut spec = spec(Access::Write, Vec::new());
        let store = |at: &str, access| Store {
            path: Path::new("/data").join(at),
            at: Path::new("/").join(at),
            access,
        };
        spec.job.stores = vec![store("store", Access::Read), store("builds", Access::Write)];
        let words = words(&spec, Some(Path::new("/w")));
        let expected = "--ro-bind /data/store /store --bind /data/builds /builds --remount-ro / --chdir";
        assert!(words.contains(expected), "{words}");
    }

    #[test]
    fn a_link_that_would_have_to_be_covered_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        let mounts = vec![ProtectedMount { path: "link".into(), mode: MountMode::Hide, is_dir: false }];
        let spec = spec(Access::Write, mounts);
        let refused = Arguments::new(Path::new("/opt/gantry"), &spec, Some(folder.path()));
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("it is a link"), "{refused}");
    }

    #[test]
    fn nothing_of_the_machine_is_shown_at_a_place_of_the_jails_own() {
        let toolchains = |paths: &[&str]| {
            let mut spec = spec(Access::Read, Vec::new());
            spec.job.toolchains = paths.iter().map(Into::into).collect();
            spec
        };
        Arguments::new(Path::new("/opt/gantry"), &toolchains(&["/proc/1"]), None).unwrap_err();
        let words = words(&toolchains(&["/opt/rust", "/usr/lib/x"]), None);
        assert!(
            words.contains("--ro-bind-try /opt/rust /opt/rust") && !words.contains("/usr/lib/x"),
            "{words}"
        );
    }
}

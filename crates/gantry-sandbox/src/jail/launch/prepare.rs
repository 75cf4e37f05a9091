//! What is done before a job exists, on a thread for work that blocks: checks, locks, descriptors and the helper.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::process::{Child, Command};

use super::{Refused, Way, broken};
use crate::jail::bubblewrap::{self, Shown, Workspace};
use crate::jail::cgroup::{Cgroups, Leaf};
use crate::jail::ground::{Ground, Occupied};
use crate::jail::ladder::Rung;
use crate::jail::plan::{self, FILES_LIMIT, Owner, Plan, View, Walls};
use crate::jail::{Access, HELPER_ARG, HOME, JailError, Job, Limits};

/// What the helper is called in a list of processes. `pkill gantry` must not end Gantry and its jobs together.
const PROCESS_NAME: &str = "sandbox-jail";

/// How long the helper may take to read the plan.
const PLAN_LIMIT: Duration = Duration::from_secs(5);

/// What a job finds in its environment if nothing else is said.
const DEFAULTS: [(&str, &str); 3] = [("HOME", HOME), ("TMPDIR", "/tmp"), ("LANG", "C.UTF-8")];

/// A helper that has its plan.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) control: UnixStream,
    pub(super) process: Child,
    /// Gantry's end of the job's standard input.
    pub(super) stdin: OwnedFd,
    pub(super) occupied: Option<Occupied>,
    pub(super) leaf: Option<Leaf>,
}

/// Checks the job, occupies the workspace, starts the helper and hands it the plan.
pub(super) fn prepare(way: &Way, ground: Option<Ground>, job: &Job) -> Result<Prepared, Refused> {
    check(job).map_err(Refused::Error)?;
    let occupied = ground.map(|ground| ground.occupy(job.access)).transpose().map_err(Refused::Error)?;
    let store = job.store.as_deref().map(open_store).transpose().map_err(Refused::Error)?;
    let (mut command, walls) = match way.rung {
        Rung::Native => {
            let owner = |occupied: &Occupied| Owner { uid: occupied.owner.0, gid: occupied.owner.1 };
            let view = View {
                workspace: occupied.as_ref().map(owner),
                store: store.as_ref().map(|(_, owner)| *owner),
                toolchains: job.toolchains.to_vec(),
                covers: occupied.as_ref().map(|occupied| occupied.covers.clone()).unwrap_or_default(),
            };
            (native(&way.helper), Walls::Native(view))
        }
        Rung::Bubblewrap => {
            let shown = shown(occupied.as_ref(), job);
            (bubblewrap::command(&way.helper, &shown).map_err(Refused::Error)?.into(), Walls::Given)
        }
    };
    let failed = |error| broken("starting the helper", &error);
    let (control, theirs) = UnixStream::pair().map_err(failed)?;
    let (their_stdin, stdin) = io::pipe().map_err(failed)?;
    command.arg(HELPER_ARG).stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = command.spawn().map_err(failed)?;
    // It keeps its copy of the helper's end, which would keep the helper's death from being seen.
    drop(command);
    let leaf = leaf(&process, &job.limits);
    let plan = Plan { memory_is_bounded: leaf.is_some(), ..plan(job, walls) };
    let mut descriptors = vec![their_stdin.as_fd()];
    descriptors.extend(occupied.as_ref().map(|occupied| occupied.dir.as_fd()));
    descriptors.extend(store.as_ref().map(|(folder, _)| folder.as_fd()));
    let send = || {
        control.set_write_timeout(Some(PLAN_LIMIT))?;
        plan::send(&control, &plan, &descriptors)?;
        job.files.iter().try_for_each(|(_, content)| (&control).write_all(content))
    };
    match send() {
        // It has ended already; why, is found where its answer is waited for.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(broken("handing the plan to the helper", &error));
        }
        Ok(()) | Err(_) => {}
    }
    Ok(Prepared { control, process, stdin: stdin.into(), occupied, leaf })
}

/// The helper, whose standard input is the control socket: so nothing has to be done between its fork and its
/// execution, and the system need not copy the whole of Gantry for it.
#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
fn native(helper: &Path) -> Command {
    let mut command = Command::new(helper);
    command.arg0(PROCESS_NAME).env_clear();
    command
}

/// A control group for the helper and all that it starts, where the machine has any to give. The jail has limits
/// without one, too.
fn leaf(process: &Child, limits: &Limits) -> Option<Leaf> {
    let make = |cgroups: &Cgroups, pid| {
        let leaf = cgroups.leaf(limits)?;
        leaf.admit(pid)?;
        Ok(leaf)
    };
    make(Cgroups::find()?, process.id()?)
        .inspect_err(|error: &io::Error| tracing::warn!(%error, "a job gets no control group"))
        .ok()
}

/// What bubblewrap is to show.
fn shown(occupied: Option<&Occupied>, job: &Job) -> Shown {
    let workspace = |occupied: &Occupied| Workspace {
        path: occupied.path().to_owned(),
        access: job.access,
        covers: occupied.covers.clone(),
    };
    Shown {
        workspace: occupied.map(workspace),
        store: job.store.clone(),
        toolchains: job.toolchains.to_vec(),
    }
}

fn plan(job: &Job, walls: Walls) -> Plan {
    let mut env = job.env.clone();
    for (name, value) in DEFAULTS {
        env.entry(name.into()).or_insert_with(|| value.into());
    }
    Plan {
        walls,
        program: job.program.clone(),
        args: job.args.clone(),
        env: env.into_iter().collect(),
        folder: job.folder.clone(),
        access: job.access,
        network: job.network,
        files: job.files.iter().map(|(name, content)| (name.clone(), content.len() as u64)).collect(),
        limits: job.limits,
        memory_is_bounded: false,
    }
}

/// What no jail could do.
fn check(job: &Job) -> Result<(), JailError> {
    let refuse =
        |reason: &str| Err(JailError::Setup { step: "the job".to_owned(), reason: reason.to_owned() });
    let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
    let names = job.env.keys();
    let mut texts = job.args.iter().chain(job.env.values()).chain(names.clone()).chain([&job.program]);
    if texts.any(|text| has_nul(text)) || has_nul(job.folder.as_os_str()) {
        return refuse("a text for it contains a NUL byte; remove it");
    }
    if names.into_iter().any(|name| name.is_empty() || name.as_bytes().contains(&b'=')) {
        return refuse("the name of a variable is empty or contains `=`");
    }
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
    if !job.files.iter().all(|(name, _)| is_plain(name)) {
        return refuse("the name of a file for it is not a plain name");
    }
    if job.files.iter().map(|(_, content)| content.len() as u64).sum::<u64>() > FILES_LIMIT {
        return refuse("its files are too large together");
    }
    Ok(())
}

fn open_store(path: &Path) -> Result<(OwnedFd, Owner), JailError> {
    let open = || {
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, folder, Mode::empty())?;
        let stat = rustix::fs::fstat(&folder)?;
        Ok((folder, Owner { uid: stat.st_uid, gid: stat.st_gid }))
    };
    open().map_err(|error: io::Error| JailError::Ground {
        what: format!("the folder {} for the job", path.display()),
        reason: error.to_string(),
    })
}

/// A job that shows whether jails work.
pub(super) fn nothing() -> Job {
    Job {
        program: "true".into(),
        args: Vec::new(),
        env: BTreeMap::<OsString, OsString>::new(),
        folder: PathBuf::new(),
        input: Arc::default(),
        access: Access::Read,
        network: false,
        toolchains: Arc::default(),
        store: None,
        files: Vec::new(),
        limits: Limits {
            wall: Duration::from_secs(4),
            cpu: Duration::from_secs(4),
            memory: 256 << 20,
            processes: 8,
            written: 1 << 20,
            output: 1 << 10,
        },
    }
}

//! What is done before a job exists, on a thread for work that blocks: checks, locks, descriptors and the helper.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::process::Child;

use super::helper::Helper;
use super::{Refused, Way, broken};
use crate::jail::bubblewrap::{self, Shown, Workspace};
use crate::jail::cgroup::{Cgroups, Leaf};
use crate::jail::ground::{Ground, Occupied};
use crate::jail::ladder::Rung;
use crate::jail::plan::{self, FILES_LIMIT, Owner, Plan, View, Walls};
use crate::jail::{Access, HOME, JailError, Job, Limits};

/// How long the helper may take to read the plan.
const PLAN_LIMIT: Duration = Duration::from_secs(5);

/// What a job finds in its environment if nothing else is said.
const DEFAULTS: [(&str, &str); 3] = [("HOME", HOME), ("TMPDIR", "/tmp"), ("LANG", "C.UTF-8")];

/// A helper that was told its plan.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) control: UnixStream,
    pub(super) process: Child,
    /// Gantry's end of the job's standard input.
    pub(super) stdin: OwnedFd,
    pub(super) occupied: Option<Occupied>,
    pub(super) leaf: Option<Leaf>,
}

/// What is needed besides the workspace before the plan is told.
struct Equipped {
    helper: Helper,
    walls: Walls,
    store: Option<(OwnedFd, Owner)>,
    /// The job's end of its standard input, and Gantry's.
    stdin: (io::PipeReader, io::PipeWriter),
}

/// Checks the job, occupies the workspace, starts the helper and hands it the plan. With what is prepared comes whether it
/// has the plan; if not, it has to be ended all the same.
pub(super) fn prepare(
    way: &Way,
    ground: Option<Ground>,
    job: &Job,
) -> Result<(Prepared, Result<(), Refused>), Refused> {
    check(job).map_err(Refused::Error)?;
    // It is loaded while the workspace is looked at.
    let loading = match way.rung {
        Rung::Native => Some(Helper::take(&way.helper).map_err(|error| not_started(&error))?),
        Rung::Bubblewrap => None,
    };
    let occupied = ground.map(|ground| ground.occupy(job.access)).transpose().map_err(Refused::Error)?;
    match equip(way, loading, occupied.as_ref(), job) {
        Ok(equipped) => Ok(equipped.hand_over(way.rung, occupied, job)),
        Err(refused) => {
            // Without a plan there is no job.
            if let Some(occupied) = occupied {
                occupied.leave();
            }
            Err(refused)
        }
    }
}

fn not_started(error: &io::Error) -> Refused {
    broken("starting the helper", error)
}

fn equip(
    way: &Way,
    loading: Option<Helper>,
    occupied: Option<&Occupied>,
    job: &Job,
) -> Result<Equipped, Refused> {
    let store = job.store.as_deref().map(open_store).transpose().map_err(Refused::Error)?;
    let (helper, walls) = match loading {
        Some(helper) => {
            let owner = |occupied: &Occupied| Owner { uid: occupied.owner.0, gid: occupied.owner.1 };
            let view = View {
                workspace: occupied.map(owner),
                store: store.as_ref().map(|(_, owner)| *owner),
                toolchains: job.toolchains.to_vec(),
                covers: occupied.map(|occupied| occupied.covers.clone()).unwrap_or_default(),
            };
            (helper, Walls::Native(view))
        }
        None => {
            let shown = shown(occupied, job);
            if let Some((occupied, workspace)) = occupied.zip(shown.workspace.as_ref()) {
                bubblewrap::keep_apart(&occupied.dir, workspace).map_err(Refused::Error)?;
            }
            let mut command = bubblewrap::command(&way.helper, &shown).map_err(Refused::Error)?;
            // Ctrl-C is for Gantry, which stops its jobs in good order.
            command.process_group(0);
            let covers = occupied.map(|occupied| occupied.covers.clone()).unwrap_or_default();
            (Helper::start(command.into()).map_err(|error| not_started(&error))?, Walls::Given { covers })
        }
    };
    Ok(Equipped { helper, walls, store, stdin: io::pipe().map_err(|error| not_started(&error))? })
}

impl Equipped {
    /// Tells the helper its plan.
    fn hand_over(self, rung: Rung, occupied: Option<Occupied>, job: &Job) -> (Prepared, Result<(), Refused>) {
        let Self { helper: Helper { control, process }, walls, store, stdin: (their_stdin, stdin) } = self;
        let leaf = leaf(rung, &process, &job.limits);
        let plan = Plan { memory_is_bounded: leaf.is_some(), ..plan(job, walls) };
        let mut descriptors = vec![their_stdin.as_fd()];
        descriptors.extend(occupied.as_ref().map(|occupied| occupied.dir.as_fd()));
        descriptors.extend(store.as_ref().map(|(folder, _)| folder.as_fd()));
        let send = || {
            control.set_write_timeout(Some(PLAN_LIMIT))?;
            plan::send(&control, &plan, &descriptors)?;
            job.files.iter().try_for_each(|(_, content)| (&control).write_all(content))
        };
        let handed = match send() {
            // It has ended already; why, is found where its answer is waited for.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(broken("handing the plan to the helper", &error))
            }
            Ok(()) | Err(_) => Ok(()),
        };
        (Prepared { control, process, stdin: stdin.into(), occupied, leaf }, handed)
    }
}

/// A control group for the helper and all that it starts, where the machine has any to give. The jail has limits
/// without one, too.
fn leaf(rung: Rung, process: &Child, limits: &Limits) -> Option<Leaf> {
    // Only a helper without a plan is known to have started nothing. bubblewrap may be past the first process of the
    // jail, which would stay outside of the group, unbounded.
    if rung == Rung::Bubblewrap {
        return None;
    }
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

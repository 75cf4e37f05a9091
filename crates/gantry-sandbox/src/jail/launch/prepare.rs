//! The work before a job exists, on a thread that may block: checks, descriptors and the start of the helper.

use super::Builder;
use super::running::{Pipes, RunningJob};
use crate::jail::bubblewrap;
use crate::jail::cgroup::{Cgroups, JobCgroup};
use crate::jail::helper::PROCESS_NAME;
use crate::jail::probe::Backend;
use crate::jail::protocol::{self, JobSpec, Owner};
use crate::jail::workspace::{Workspace, WorkspaceLease};
use crate::jail::{HELPER_ARG, JailError, Job, Limits};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Limit: bytes of the files of a job together.
pub(in crate::jail) const FILES_LIMIT: u64 = 64 << 20;

/// Limit: bytes of a path, with a NUL at its end; that of the kernel. A report names a path, and must fit in a message.
const PATH_LIMIT: usize = libc::PATH_MAX as usize;

/// Checks the job, secures the workspace, starts the helper and hands it the job.
pub(super) fn prepare(
    builder: &Builder,
    workspace: Option<&Workspace>,
    job: &Job,
) -> Result<(RunningJob, Pipes), JailError> {
    check(job)?;
    let lease = workspace.map(|workspace| workspace.acquire(job.access)).transpose()?;
    let (mut running, pipes) = start_helper(builder, lease.as_ref(), job)?;
    running.lease = lease;
    Ok((running, pipes))
}

fn start_helper(
    builder: &Builder,
    lease: Option<&WorkspaceLease>,
    job: &Job,
) -> Result<(RunningJob, Pipes), JailError> {
    let failed = |error: io::Error| JailError::setup("starting the helper", &error);
    let stores = job.stores.iter().map(|store| open_store(&store.path)).collect::<Result<Vec<_>, _>>()?;
    let spec = JobSpec {
        backend: builder.backend,
        job: job.clone(),
        workspace: lease.map(|lease| lease.owner),
        stores: stores.iter().map(|(_, owner)| *owner).collect(),
        mounts: lease.map(|lease| lease.mounts.clone()).unwrap_or_default(),
        absent: lease.map(WorkspaceLease::absent).unwrap_or_default(),
    };
    let job_file = protocol::write_job(&spec).map_err(failed)?;
    let (their_stdin, stdin) = io::pipe().map_err(failed)?;
    let (control, theirs) = protocol::pair().map_err(failed)?;
    let mut command = match builder.backend {
        Backend::Native => native(&builder.helper),
        Backend::Bubblewrap => bubblewrap::command(&builder.helper, &spec, lease)?,
    };
    command.arg(HELPER_ARG).stdin(theirs).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(failed)?;
    // The command holds the helper's end of the socket, which would hide the helper's death.
    drop(command);

    let pipes = Pipes { stdin: stdin.into(), stdout: process.stdout.take(), stderr: process.stderr.take() };
    let cgroup = job_cgroup(builder.backend, &process, &job.limits);
    let memory_is_bounded = cgroup.is_some();
    let running = RunningJob::new(control, process, cgroup).map_err(failed)?;
    let mut descriptors = vec![job_file.as_fd(), their_stdin.as_fd()];
    descriptors.extend(lease.map(|lease| lease.dir.as_fd()));
    descriptors.extend(stores.iter().map(|(folder, _)| folder.as_fd()));
    match protocol::send(&running.control, &memory_is_bounded, &descriptors) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(JailError::setup("handing the job to the helper", &error))
        }
        // A helper that has ended already is explained where its reports are read.
        Ok(()) | Err(_) => Ok((running, pipes)),
    }
}

/// This executable again. Its standard input is the control socket: so nothing runs between fork and exec, and the
/// kernel need not copy the whole of Gantry.
#[expect(clippy::disallowed_methods, reason = "this crate is the one that starts processes")]
fn native(executable: &Path) -> Command {
    let mut command = Command::new(executable);
    command.arg0(PROCESS_NAME).env_clear();
    command
}

/// A control group for the helper and its descendants, where the machine has one to give. The jail has limits without
/// one, too.
fn job_cgroup(backend: Backend, process: &Child, limits: &Limits) -> Option<JobCgroup> {
    // Only a helper without a job is known to have started nothing. bubblewrap may have started the first process of the
    // jail, which would stay outside of the group, unbounded.
    if backend == Backend::Bubblewrap {
        return None;
    }
    let make = |cgroups: &Cgroups, pid| {
        let cgroup = cgroups.job(limits)?;
        cgroup.admit(pid)?;
        Ok(cgroup)
    };
    make(Cgroups::find()?, process.id()?)
        .inspect_err(|error: &io::Error| tracing::warn!(%error, "a job gets no control group"))
        .ok()
}

/// Refuses a job that no jail can run.
fn check(job: &Job) -> Result<(), JailError> {
    let refuse = |reason: &str| Err(JailError::setup("the job", &reason));
    let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
    let variables = job.env.iter().flat_map(|(name, value)| [name, value]);
    let mut texts = job.args.iter().chain(variables).chain([&job.program]);
    if texts.any(|text| has_nul(text)) || has_nul(job.folder.as_os_str()) {
        return refuse("a text for it contains a NUL byte; remove it");
    }
    if job.program.len() >= PATH_LIMIT {
        return Err(JailError::NoProgram { program: job.program.clone() });
    }
    if job.folder.as_os_str().len() >= PATH_LIMIT {
        let (folder, reason) = (job.folder.display().to_string(), "its path is too long".to_owned());
        return Err(JailError::Folder { folder, reason });
    }
    if job.env.iter().any(|(name, _)| name.is_empty() || name.as_bytes().contains(&b'=')) {
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
    open().map_err(|error: io::Error| JailError::Workspace {
        what: format!("the folder {} for the job", path.display()),
        reason: error.to_string(),
    })
}

impl Job {
    /// A job that does nothing, which shows whether jails work.
    pub(in crate::jail) fn probe() -> Self {
        Self {
            program: "true".into(),
            limits: Limits {
                wall: Duration::from_secs(4),
                cpu: Duration::from_secs(4),
                memory: 256 << 20,
                processes: 8,
                written: 1 << 20,
                output: 1 << 10,
            },
            ..Self::default()
        }
    }
}

//! The jail: runs untrusted programs on one folder, within limits, and leaves nothing of them running.
//!
//! A job sees the machine's programs (read-only), its workspace at [`WORKSPACE`], folders in memory, and no process,
//! socket, network or file of the machine besides. See `jail/helper.rs` for how that is built.

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod cgroup;
mod error;
#[cfg(target_os = "linux")]
mod helper;
mod job;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod protocol;
mod workspace;

pub use error::JailError;
pub use job::{
    Access, BUILDS, Captured, ExitReason, FILES, HOME, Job, JobOutput, Limits, PROXY, STORE, SandboxInfo,
    Store, WORKSPACE,
};
pub use workspace::Workspace;

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::LazyLock;
use tokio::sync::oneshot;

/// The first argument that makes a program the helper that builds a jail.
pub(crate) const HELPER_ARG: &str = "__jail";

/// The way to build jails that works on this machine.
#[derive(Debug)]
pub struct Sandbox {
    info: SandboxInfo,
    #[cfg(target_os = "linux")]
    builder: launch::Builder,
}

impl Sandbox {
    /// The best way that works here; found once per process, by really running a program each way. Blocks meanwhile, for
    /// some milliseconds as a rule.
    pub fn find() -> Result<&'static Self, &'static JailError> {
        static FOUND: LazyLock<Result<Sandbox, JailError>> = LazyLock::new(|| {
            if crate::process::is_guard_capable() {
                Sandbox::find_with("/proc/self/exe".into())
            } else {
                Err(JailError::Unavailable {
                    cause: "this program cannot build a jail".to_owned(),
                    fix: "its `main` must call `gantry_sandbox::guard_main` first".to_owned(),
                })
            }
        });
        FOUND.as_ref()
    }

    /// The same for another executable whose `main` calls [`crate::guard_main`], such as that of a test.
    #[doc(hidden)]
    #[cfg(target_os = "linux")]
    pub fn find_with(helper: PathBuf) -> Result<Self, JailError> {
        let (builder, info) = probe::find(helper)?;
        Ok(Self { info, builder })
    }

    #[doc(hidden)]
    #[cfg(not(target_os = "linux"))]
    pub fn find_with(_helper: PathBuf) -> Result<Self, JailError> {
        Err(JailError::Unavailable {
            cause: "only Linux has what it takes".to_owned(),
            fix: "run Gantry on Linux, in a virtual machine for example".to_owned(),
        })
    }

    #[must_use]
    pub fn info(&self) -> &SandboxInfo {
        &self.info
    }

    /// Starts a job, and returns when its program is executed. Dropping what is returned, or the future, ends it with
    /// every process that it started.
    ///
    /// # Errors
    /// The job cannot be started; nothing of it has run, unless the error says so.
    #[cfg(target_os = "linux")]
    pub async fn start(&self, workspace: &Workspace, job: Job) -> Result<Running, JailError> {
        let (running, _notes) = launch::start(&self.builder, Some(workspace.clone()), job).await?;
        Ok(running)
    }

    #[cfg(not(target_os = "linux"))]
    pub async fn start(&self, _workspace: &Workspace, _job: Job) -> Result<Running, JailError> {
        Err(JailError::setup("making namespaces", &"only Linux has them"))
    }
}

/// A job that runs. Dropped, it is ended with every process that it started.
#[derive(Debug)]
pub struct Running {
    listener: Option<TcpListener>,
    /// The job's task ends the job when this is gone.
    ended: oneshot::Receiver<Result<JobOutput, JailError>>,
}

impl Running {
    /// The listener that the job sees at [`PROXY`], if it has a network; once. It is set not to block.
    pub fn listener(&mut self) -> Option<TcpListener> {
        self.listener.take()
    }

    /// Waits for the end of the job and of every process that it started.
    ///
    /// # Errors
    /// The jail broke. Everything in it is dead all the same.
    pub async fn end(self) -> Result<JobOutput, JailError> {
        drop(self.listener);
        self.ended.await.unwrap_or_else(|_| Err(JailError::Broken("Gantry is stopping".to_owned())))
    }
}

/// Waits, for some seconds at most, until nothing is left of jobs that have ended or were dropped. Call it before this
/// process ends, or what they made in `.git` is not looked at. Without jobs it returns at once.
pub async fn wait_idle() {
    #[cfg(target_os = "linux")]
    launch::wait_idle().await;
}

/// Runs the helper; returns whether it was given a job.
pub(crate) fn helper_main() -> bool {
    #[cfg(target_os = "linux")]
    return helper::main();
    #[cfg(not(target_os = "linux"))]
    return false;
}

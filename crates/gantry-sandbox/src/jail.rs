//! The jail: runs programs that nobody trusts, on one folder, within limits, and leaves nothing of them running.
//!
//! A job sees the machine's programs (read-only), its workspace at [`WORKSPACE`], folders in memory, and no process,
//! socket, network or file of the machine besides. See `jail/inside.rs` for how that is built.

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod cgroup;
mod ground;
#[cfg(target_os = "linux")]
mod inside;
mod job;
#[cfg(target_os = "linux")]
mod ladder;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod plan;

pub use ground::{Ground, Protected, holds_a_place, looks_like_a_place};
pub use job::{
    Access, Captured, End, FILES, HOME, JailError, Job, Level, Limits, PROXY, Ran, STORE, Unavailable,
    WORKSPACE,
};

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::LazyLock;

use tokio::sync::oneshot;

/// The first argument that makes a program the helper that builds a jail.
pub(crate) const HELPER_ARG: &str = "__jail";

/// The way to build a jail that works on this machine.
#[derive(Debug)]
pub struct Sandbox {
    level: Level,
    #[cfg(target_os = "linux")]
    way: launch::Way,
}

impl Sandbox {
    /// The best way that works here; found once per process, by really running something each way. Blocks meanwhile, for
    /// some milliseconds as a rule.
    ///
    /// # Errors
    /// None works.
    pub fn find() -> Result<&'static Self, &'static Unavailable> {
        static FOUND: LazyLock<Result<Sandbox, Unavailable>> = LazyLock::new(|| {
            if crate::guard::is_guard_capable() {
                Sandbox::find_with("/proc/self/exe".into())
            } else {
                Err(Unavailable {
                    cause: "this program cannot build a jail".to_owned(),
                    fix: "its `main` must call `gantry_sandbox::guard_main` first".to_owned(),
                })
            }
        });
        FOUND.as_ref()
    }

    /// The same for another executable whose `main` calls [`crate::guard_main`], such as that of a test.
    ///
    /// # Errors
    /// None works.
    #[doc(hidden)]
    pub fn find_with(helper: PathBuf) -> Result<Self, Unavailable> {
        found_with(helper)
    }

    /// How jails are built.
    #[must_use]
    pub fn level(&self) -> &Level {
        &self.level
    }

    /// Starts a job, and returns when its program is executed. Dropping what is returned, or the future, ends it with
    /// everything it started.
    ///
    /// # Errors
    /// The job cannot be started; nothing of it has run, unless the error says so.
    pub async fn start(&self, ground: &Ground, job: Job) -> Result<Running, JailError> {
        started(self, ground, job).await
    }
}

/// A job that runs. Dropped, it is ended with everything it started.
#[derive(Debug)]
pub struct Running {
    listener: Option<TcpListener>,
    ended: oneshot::Receiver<Result<Ran, JailError>>,
    /// Whoever looks after the job ends it when this is gone.
    _wanted: oneshot::Sender<()>,
}

impl Running {
    /// The listener that the job sees at [`PROXY`], if it has a network; once. It is set not to block.
    pub fn listener(&mut self) -> Option<TcpListener> {
        self.listener.take()
    }

    /// Waits for the end of the job and of everything it started.
    ///
    /// # Errors
    /// The jail broke. Everything in it is dead all the same.
    pub async fn end(self) -> Result<Ran, JailError> {
        let Self { listener, ended, _wanted } = self;
        drop(listener);
        ended.await.unwrap_or_else(|_| Err(JailError::Broken("Gantry is stopping".to_owned())))
    }
}

/// Waits until nothing is left of jobs that have ended or that nobody waits for any more: call it before this process ends,
/// or it ends before what stood in for protected paths is taken out of the workspace. It does not wait for ever, and where
/// there was no job not at all.
pub async fn settled() {
    #[cfg(target_os = "linux")]
    launch::settled().await;
}

/// Runs the helper; returns whether there was anything to help with.
pub(crate) fn helper_main() -> bool {
    #[cfg(target_os = "linux")]
    return inside::main();
    #[cfg(not(target_os = "linux"))]
    return false;
}

#[cfg(target_os = "linux")]
fn found_with(helper: PathBuf) -> Result<Sandbox, Unavailable> {
    let probe = |rung| launch::probe(&launch::Way { rung, helper: helper.clone() });
    let (rung, level) = ladder::find(&helper, probe)?;
    Ok(Sandbox { level, way: launch::Way { rung, helper } })
}

#[cfg(target_os = "linux")]
async fn started(sandbox: &Sandbox, ground: &Ground, job: Job) -> Result<Running, JailError> {
    let program = job.program.clone();
    let started = launch::start(&sandbox.way, Some(ground.clone()), job).await;
    started.map(|(running, _)| running).map_err(|refused| refused.into_error(&program))
}

#[cfg(not(target_os = "linux"))]
fn found_with(_helper: PathBuf) -> Result<Sandbox, Unavailable> {
    Err(Unavailable {
        cause: "only Linux has what it takes".to_owned(),
        fix: "run Gantry on Linux, in a virtual machine for example".to_owned(),
    })
}

#[cfg(not(target_os = "linux"))]
async fn started(_sandbox: &Sandbox, _ground: &Ground, _job: Job) -> Result<Running, JailError> {
    Err(JailError::Setup { step: "making namespaces".to_owned(), reason: "only Linux has them".to_owned() })
}

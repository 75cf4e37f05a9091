//! A workspace with a sandbox, to run jobs in.

use crate::world::{PROBE, World};
use gantry_sandbox::jail::{
    Access, ExitReason, JailError, Job, JobOutput, Limits, Running, STORE, Sandbox, Store, Workspace,
};
use gantry_sandbox::protected::ProtectedPaths;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The program that can be a helper; somewhere else if another user runs the tests.
pub(crate) fn probe() -> PathBuf {
    std::env::var_os("SANDBOX_PROBE").map_or_else(|| PROBE.into(), PathBuf::from)
}

/// A folder of the machine as the store of a job.
pub(crate) fn kept(path: impl Into<PathBuf>, access: Access) -> Store {
    Store { path: path.into(), at: STORE.into(), access }
}

/// One test's workspace, and the mark of its processes.
pub(crate) struct Cell {
    pub(crate) world: World,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) sandbox: Sandbox,
}

impl Cell {
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::find_with(probe()).expect("jails work on this machine");
        Self { world: World::new(), folder: tempfile::tempdir().expect("a folder"), sandbox }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::open(self.path(), ProtectedPaths::default()).expect("a workspace")
    }

    /// A program with its arguments, and generous limits.
    pub(crate) fn job(&self, program: &str, args: &[&str]) -> Job {
        Job {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: Vec::from([
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("MARK".into(), self.world.mark.clone().into()),
            ]),
            folder: PathBuf::new(),
            input: Arc::default(),
            access: Access::Write,
            network: false,
            toolchains: Vec::new(),
            stores: Vec::new(),
            files: Vec::new(),
            limits: Limits {
                wall: Duration::from_secs(60),
                cpu: Duration::from_secs(60),
                memory: 512 << 20,
                processes: 64,
                written: 256 << 20,
                output: 64 << 10,
            },
        }
    }

    pub(crate) fn shell(&self, script: &str) -> Job {
        self.job("sh", &["-c", script])
    }

    pub(crate) fn python(&self, script: &str) -> Job {
        self.job("/usr/bin/python3", &["-c", script])
    }

    pub(crate) async fn start(&self, job: Job) -> Running {
        self.sandbox.start(&self.workspace(), job).await.expect("it starts")
    }

    pub(crate) async fn try_run(&self, job: Job) -> Result<JobOutput, JailError> {
        self.sandbox.start(&self.workspace(), job).await?.end().await
    }

    /// Runs a job to its end. Nothing of it is left then.
    pub(crate) async fn run(&self, job: Job) -> JobOutput {
        let ran = self.try_run(job).await.expect("it runs");
        assert_eq!(self.world.processes(), [], "nothing is left");
        ran
    }

    /// What a job writes that has to succeed, while another runs.
    pub(crate) async fn run_beside(&self, job: Job) -> String {
        let ran = self.try_run(job).await.expect("it runs");
        assert_eq!(ran.end, ExitReason::Exited(0), "{ran:?}");
        ran.stdout.text()
    }

    /// What a job writes that has to succeed.
    pub(crate) async fn output(&self, job: Job) -> String {
        let ran = self.run(job).await;
        assert_eq!(ran.end, ExitReason::Exited(0), "{ran:?}\n{}", ran.stderr.text());
        ran.stdout.text()
    }
}

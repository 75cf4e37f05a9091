//! What runs in the jail, within which limits, and what came of it.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where the workspace is in the jail.
pub const WORKSPACE: &str = "/workspace";
/// Where a [`Store`] can be in the jail.
pub const STORE: &str = "/store";
pub const BUILDS: &str = "/builds";
/// Where [`Job::files`] are in the jail; read-only.
pub const FILES: &str = "/run/gantry";
/// The home folder in the jail; empty and gone with the run.
pub const HOME: &str = "/home/gantry";
/// Where a job with a network finds its only partner: a proxy, in a network that has nothing else.
pub const PROXY: &str = "127.0.0.1:3128";

/// One program to run in the jail.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Job {
    /// A path in the jail, or a name to look up on the PATH of `env`. Never looked up in the workspace.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The whole environment, but for HOME, TMPDIR and LANG, which the jail sets if this does not. Of two values of a
    /// variable, the last counts.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts, relative to the workspace; it must be beneath it.
    pub folder: PathBuf,
    #[serde(skip)]
    pub input: Arc<[u8]>,
    pub access: Access,
    /// Whether there is a listener at [`PROXY`] for it to talk to. Without, there is no network at all.
    pub network: bool,
    /// Folders and files outside the workspace that it may read, at the same path in the jail.
    pub toolchains: Vec<PathBuf>,
    /// At most two.
    pub stores: Vec<Store>,
    /// Names and contents of files at [`FILES`].
    pub files: Vec<(String, String)>,
    pub limits: Limits,
}

/// A folder of Gantry's that a job has besides the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// Where it is on the machine.
    #[serde(skip)]
    pub path: PathBuf,
    /// Where it is in the jail: [`STORE`] or [`BUILDS`].
    pub at: PathBuf,
    pub access: Access,
}

/// What a job may do with the workspace, or with a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    #[default]
    Read,
    /// Read and change it, but for what is protected.
    Write,
}

/// How much a job may take; nothing, if it is not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From its start to its end.
    pub wall: Duration,
    /// Seconds of processor time of each process.
    pub cpu: Duration,
    /// Bytes of memory of all its processes together.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u32,
    /// Bytes that all its processes together write to disk; no single file gets larger either.
    pub written: u64,
    /// Bytes that are kept of its standard output, and of its standard error. The rest is read and dropped.
    pub output: usize,
}

/// What a job wrote, and how it ended.
#[derive(Debug, Clone)]
pub struct JobOutput {
    pub stdout: Captured,
    pub stderr: Captured,
    pub end: ExitReason,
    /// From its start to its end.
    pub duration: Duration,
}

/// The beginning of what a job wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// Not more than [`Limits::output`].
    pub bytes: Vec<u8>,
    /// How many bytes the job wrote.
    pub total: u64,
}

impl Captured {
    /// Whether the job wrote more than what is kept.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }

    /// As text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// How a job ended. Every process that it started has ended with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitReason {
    Exited(i32),
    /// By this signal, which is not of a limit.
    Signalled(i32),
    WallLimit,
    CpuLimit,
    MemoryLimit,
    WriteLimit,
}

/// How jails are built on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxInfo {
    /// `native` or `bubblewrap`.
    pub level: &'static str,
    /// What a jail lacks on this machine, for people; empty as a rule.
    pub notes: Vec<String>,
}

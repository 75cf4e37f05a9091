//! Runs the programs of a project's tools on its workspace, in a jail and within the project's limits.
//!
//! Every tool that starts a program does it here, so that what is protected, what may be reached and what the limits
//! are is said once. A job without `network` has none; with it, the only thing that it can reach is the
//! egress proxy, which looks at every address.

use crate::command::toolchains::Toolchains;
use crate::failure::{self, Result};
use crate::options::{BuildLimits, CodeOptions};
use crate::workspace::ProtectedPaths;
use gantry_core::{CallFailure, EffectState, ErrorCode, ToolError};
use gantry_egress::address_guard::IpNet;
use gantry_egress::host_pattern::{HostPattern, InvalidHostPattern};
use gantry_egress::proxy::{self, Credential, Rules};
use gantry_provider::options::Secret;
use gantry_provider::task;
use gantry_sandbox::jail::{
    Access, BUILDS, ExitReason, JailError, Job, JobOutput, Limits, PROXY, STORE, Sandbox, Store, WORKSPACE,
    Workspace,
};
use gantry_sandbox::protected::{EntryKind, existing};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Jobs of a project that run at once; more wait for their turn.
const JOBS: usize = 16;
/// Which limits of the configuration hold for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitKind {
    /// Those of code that an agent wrote, and of git.
    Code,
    /// Those of builds, tests and installations.
    Builds,
}

#[derive(Debug, Clone)]
pub(crate) struct CommandSpec {
    /// A name, or a path in the jail.
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// Variables besides those that every job has.
    pub(crate) env: BTreeMap<String, String>,
    /// Where it starts, relative to the workspace; empty is the workspace itself.
    pub(crate) folder: PathBuf,
    pub(crate) input: Vec<u8>,
    /// What it may do with the workspace.
    pub(crate) access: Access,
    /// The hosts that it may reach, if any.
    pub(crate) network: Option<NetworkAccess>,
    /// What it may do with the packages that were installed, if it has them.
    pub(crate) packages: Option<Access>,
    /// Files to read at `/run/gantry`.
    pub(crate) files: Vec<(String, String)>,
    /// How much it may take.
    pub(crate) limits: LimitKind,
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// Bytes that are kept of each of its two outputs.
    pub(crate) output: usize,
}

/// The hosts that a job with a network may reach.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkAccess {
    /// The hosts, such as `example.com`, `*.example.com` or `example.com:8443`; none means every public one.
    pub(crate) hosts: Option<Vec<String>>,
    /// Secrets for some origins, which the proxy adds: an origin such as `https://example.com`, and the value of the
    /// header Authorization.
    pub(crate) credentials: Vec<(String, Secret)>,
}

impl CommandSpec {
    /// A program that only reads the workspace and has no network.
    pub(crate) fn new(program: impl Into<String>, limits: LimitKind, wall: Duration) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            folder: PathBuf::new(),
            input: Vec::new(),
            access: Access::Read,
            network: None,
            packages: None,
            files: Vec::new(),
            limits,
            wall,
            output: OUTPUT_BYTES,
        }
    }

    pub(crate) fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env<'a>(mut self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.env.extend(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())));
        self
    }

    pub(crate) fn command_line(&self) -> Vec<String> {
        [&self.program].into_iter().chain(&self.args).cloned().collect()
    }
}

/// A megabyte, as the configuration counts them.
const MIB: u64 = 1024 * 1024;
/// Bytes that are kept of each output of a job, unless it says otherwise.
pub(crate) const OUTPUT_BYTES: usize = 1024 * 1024;

/// Where the programs of one project run.
#[derive(Debug)]
pub struct CommandRunner {
    /// The workspace as jobs have it, or why there are no jobs on it.
    jail_workspace: Result<Workspace, String>,
    /// The folder that jobs work on.
    pub(crate) workspace: PathBuf,
    /// What jobs do not touch in it.
    pub(crate) protected: ProtectedPaths,
    /// Where [`INSTALLS`] and [`BUILT`] are.
    data: PathBuf,
    private: Vec<IpNet>,
    pub(crate) options: CodeOptions,
    /// What there is besides the system's own programs.
    pub(crate) toolchains: Toolchains,
    slots: Semaphore,
}

impl CommandRunner {
    /// Opens a workspace, with what jobs do not touch in it. Starts nothing. Where opening fails, so does every job, and
    /// nothing else. `data` is the folder of the project's data, which need not exist; `private` are the private
    /// addresses that jobs with a network may reach.
    #[must_use]
    pub fn open(
        workspace: PathBuf,
        protected: ProtectedPaths,
        data: PathBuf,
        private: Vec<IpNet>,
        options: CodeOptions,
    ) -> Self {
        let jail_workspace = Workspace::open(&workspace, protected.clone());
        let excluded = protected.hidden.iter().chain(&protected.read_only).chain([&workspace]);
        let excluded: Vec<PathBuf> = excluded.cloned().collect();
        let toolchains = Toolchains::find(&options.toolchains, &excluded);
        Self {
            jail_workspace: jail_workspace.map_err(|error| error.to_string()),
            workspace,
            protected,
            data,
            private,
            options,
            toolchains,
            slots: Semaphore::new(JOBS),
        }
    }

    /// See [`covered`].
    pub(crate) fn hidden(&self) -> Result<Vec<PathBuf>, String> {
        covered(&self.workspace, &self.protected)
    }

    /// The program that a command means to jobs: its folder as it really is, and its name as it is written. A name is
    /// looked up as jobs look it up; a path must be absolute and lead into one of the same folders.
    pub(crate) fn program(&self, command: &str) -> Option<PathBuf> {
        let at = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        if !command.contains('/') {
            return at(&self.toolchains.program(command)?);
        }
        let found = Path::new(command).is_absolute().then(|| at(Path::new(command))).flatten()?;
        let is_one = found.metadata().is_ok_and(|metadata| metadata.is_file());
        let is_there = |folder: &Path| folder.canonicalize().is_ok_and(|it| found.parent() == Some(&it));
        (is_one && self.toolchains.folders().any(is_there)).then_some(found)
    }

    /// Why nothing can be run here, if so.
    pub(crate) fn unavailable_reason() -> Option<String> {
        Sandbox::find().err().map(ToString::to_string)
    }

    /// How jobs are confined here.
    pub(crate) fn level() -> &'static str {
        Sandbox::find().map_or("none", |sandbox| sandbox.info().level)
    }

    /// Runs a program to its end. Dropping the future ends it with everything that it started.
    ///
    /// # Errors
    /// It was not started, or the jail broke. A limit or a failure of the program is no error here.
    pub(crate) async fn run(&self, command: CommandSpec) -> Result<JobOutput> {
        let sandbox = Sandbox::find().map_err(|unavailable| failure::failed(unavailable.to_string()))?;
        let workspace = self.jail_workspace.as_ref().map_err(|error| failure::failed(error.clone()))?;
        let rules = command.network.as_ref().map(|access| self.rules(access)).transpose()?;
        let job = self.job(command).await?;
        // It is never closed.
        let _slot = self.slots.acquire().await;
        let mut running = sandbox.start(workspace, job).await.map_err(|error| fault(&error))?;
        let proxy = match (rules, running.listener()) {
            (Some(rules), Some(listener)) => Some(serve(rules, listener)?),
            (Some(_) | None, _) => None,
        };
        let ran = running.end().await.map_err(|error| fault(&error))?;
        drop(proxy);
        Ok(ran)
    }

    async fn job(&self, command: CommandSpec) -> Result<Job> {
        let stores = command.packages.map(|access| self.stores(access)).unwrap_or_default();
        let installs = STORES.iter().filter(|_| command.packages.is_some()).map(|(_, folder)| folder);
        let installs = installs.map(|folder| self.data.join(INSTALLS).join(folder));
        // A manager may not make its folder in a store that it only reads.
        for folder in installs.chain(stores.iter().map(|store| store.path.clone())) {
            let made = tokio::fs::create_dir_all(&folder).await;
            made.map_err(|error| failure::failed(format!("cannot make {}: {error}", folder.display())))?;
        }
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.insert("PATH".into(), self.toolchains.path());
        // What a job runs must not fetch itself another version of a compiler.
        env.insert("GOTOOLCHAIN".into(), "local".into());
        if command.packages.is_some() {
            env.extend(STORES.map(|(name, folder)| (name.into(), format!("{STORE}/{folder}").into())));
        }
        if command.packages == Some(Access::Read) {
            env.insert("GOCACHE".into(), format!("{BUILDS}/go").into());
        }
        if command.network.is_some() {
            env.extend(PROXIES.map(|name| (name.into(), format!("http://{PROXY}").into())));
            env.extend(["NO_PROXY", "no_proxy"].map(|name| (name.into(), "localhost,127.0.0.1".into())));
        }
        env.extend(command.env.into_iter().map(|(name, value)| (name.into(), value.into())));
        Ok(Job {
            program: command.program.into(),
            args: command.args.into_iter().map(Into::into).collect(),
            env: env.into_iter().collect(),
            folder: command.folder,
            input: command.input.into(),
            access: command.access,
            network: command.network.is_some(),
            toolchains: self.toolchains.mounts.clone(),
            stores,
            files: command.files,
            limits: Limits { output: command.output, ..self.limits(command.limits, command.wall).0 },
        })
    }

    /// The folders for packages. What approved installations install from is written by them only; what is built by
    /// jobs without an approval is seen by no installation.
    fn stores(&self, access: Access) -> Vec<Store> {
        let installs = Store { path: self.data.join(INSTALLS), at: STORE.into(), access };
        let builds = Store { path: self.data.join(BUILT), at: BUILDS.into(), access: Access::Write };
        [installs].into_iter().chain((access == Access::Read).then_some(builds)).collect()
    }

    /// The limits of a program, and the key of the configuration that they are under.
    fn limits(&self, kind: LimitKind, wall: Duration) -> (Limits, &'static str) {
        let CodeOptions { memory_mb, cpu_seconds, processes, disk_mb, builds, .. } = &self.options;
        let (memory, cpu, processes, written, keys) = match kind {
            LimitKind::Code => {
                (memory_mb.get(), cpu_seconds.get(), (*processes).into(), disk_mb.get(), "code")
            }
            LimitKind::Builds => {
                let BuildLimits { memory_mb, cpu_seconds, processes, disk_mb } = *builds;
                (memory_mb.get(), cpu_seconds.get(), processes.into(), disk_mb.get(), "code.builds")
            }
        };
        let (memory, written) = (memory.saturating_mul(MIB), written.saturating_mul(MIB));
        (Limits { wall, cpu: Duration::from_secs(cpu), memory, processes, written, output: 0 }, keys)
    }

    /// How a run that a limit ended is reported; none if it ended otherwise. `task` and `wall` are its name and its time
    /// limit.
    pub(crate) fn limit_fault(
        &self,
        ran: &JobOutput,
        task: &str,
        wall: Duration,
        kind: LimitKind,
    ) -> Option<CallFailure> {
        let (limits, keys) = self.limits(kind, wall);
        let (code, what) = match ran.end {
            ExitReason::Exited(_) | ExitReason::Signalled(_) => return None,
            ExitReason::WallLimit => {
                (ErrorCode::Timeout, format!("ran longer than {} s", wall.as_secs_f32()))
            }
            ExitReason::CpuLimit => (
                ErrorCode::Timeout,
                format!("used more than {} s of processor time ({keys}.cpuSeconds)", limits.cpu.as_secs()),
            ),
            ExitReason::MemoryLimit => (
                ErrorCode::ExecutionError,
                format!("used more than {} MiB of memory ({keys}.memoryMb)", limits.memory / MIB),
            ),
            ExitReason::WriteLimit => (
                ErrorCode::ExecutionError,
                format!("wrote more than {} MiB to disk ({keys}.diskMb)", limits.written / MIB),
            ),
        };
        let message =
            format!("{task} {what} and was ended with everything it had started; what it wrote stays");
        let details = json!({
            "stdout": ran.stdout.text(),
            "stderr": ran.stderr.text(),
            "duration": millis(ran.duration),
            "sandbox": Self::level(),
        });
        let error = ToolError::new(code, message).with_details(details);
        Some(CallFailure { error, effect: EffectState::Done })
    }

    /// What a job with a network may reach.
    fn rules(&self, access: &NetworkAccess) -> Result<Rules> {
        let mut rules = Rules { private: self.private.clone(), ..Rules::default() };
        let patterns =
            access.hosts.as_ref().map(|hosts| hosts.iter().map(|host| HostPattern::parse(host)).collect());
        rules.hosts =
            patterns.transpose().map_err(|error: InvalidHostPattern| failure::failed(error.to_string()))?;
        for (origin, authorization) in &access.credentials {
            let credential = Credential::new(origin, authorization.expose());
            rules.credentials.push(credential.map_err(|error| failure::failed(error.to_string()))?);
        }
        Ok(rules)
    }
}

/// Serves the only partner that a job with a network has, until what is returned is dropped.
fn serve(rules: Rules, listener: std::net::TcpListener) -> Result<DropGuard> {
    let listener = TcpListener::from_std(listener).map_err(|error| {
        let message = format!("the proxy of the sandbox cannot be served, so the job was ended: {error}");
        failure::effect_unknown(message)
    })?;
    let stop = CancellationToken::new();
    let guard = stop.clone().drop_guard();
    task::spawn("sandbox proxy", async move {
        let report = proxy::serve(listener, Arc::new(rules), stop).await;
        tracing::info!(hosts = ?report.hosts, refused = ?report.refused, bytes = report.bytes, "a job used the network");
    });
    Ok(guard)
}

/// The variables by which programs find a proxy.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"];
/// The folder for what installations keep, and the one for what other jobs build, in the data of a project.
const INSTALLS: &str = "installs";
const BUILT: &str = "builds";
/// The variables by which package managers find what they keep, and its folder among the installations.
const STORES: [(&str, &str); 4] = [
    ("CARGO_HOME", "cargo"),
    ("NPM_CONFIG_CACHE", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("GOMODCACHE", "go/mod"),
];

/// A path in the workspace as programs in the jail have it.
pub(crate) fn in_jail(path: &Path) -> PathBuf {
    Path::new(WORKSPACE).join(path)
}

/// The code of an end as shells count it.
pub(crate) fn exit_code(end: ExitReason) -> i32 {
    match end {
        ExitReason::Exited(code) => code,
        ExitReason::Signalled(signal) => SIGNAL_BASE + signal,
        ExitReason::WallLimit | ExitReason::CpuLimit | ExitReason::MemoryLimit | ExitReason::WriteLimit => {
            SIGNAL_BASE + KILLED
        }
    }
}

const SIGNAL_BASE: i32 = 128;
const KILLED: i32 = 9;

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn fault(error: &JailError) -> CallFailure {
    let has_run = error.has_run();
    let code = match error {
        JailError::Folder { .. } => ErrorCode::InvalidPath,
        JailError::Unavailable { .. }
        | JailError::NoProgram { .. }
        | JailError::Workspace { .. }
        | JailError::Step { .. }
        | JailError::Setup { .. }
        | JailError::HelperExited { .. }
        | JailError::Broken(_) => ErrorCode::ExecutionError,
    };
    let error = ToolError::new(code, error.to_string());
    if has_run { CallFailure::with_possible_effect(error) } else { CallFailure::without_effect(error) }
}

/// What jobs do not see in the workspace as it is, relative to it: what is hidden, and each link that leads to it or to what
/// is read-only.
fn covered(workspace: &Path, protected: &ProtectedPaths) -> Result<Vec<PathBuf>, String> {
    let root = workspace.canonicalize().map_err(|error| error.to_string())?;
    let ProtectedPaths { hidden, read_only } = protected;
    let mut found = Vec::new();
    for (n, path) in hidden.iter().chain(read_only).enumerate() {
        let entries = existing(path).map_err(|(at, error)| format!("{}: {error}", at.display()))?;
        let covered = entries.iter().filter(|entry| match entry.kind {
            EntryKind::Folder => false,
            EntryKind::Link => true,
            EntryKind::End { .. } => n < hidden.len(),
        });
        found.extend(covered.filter_map(|entry| Some(entry.path.strip_prefix(&root).ok()?.to_owned())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_that_jobs_find_covered_are_left_out_by_git_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir(at("real")).unwrap();
        for file in ["real/secret", "real/agent", ".env"] {
            fs::write(at(file), "").unwrap();
        }
        symlink("real", at("way")).unwrap();
        symlink("real/agent", at("agent")).unwrap();
        let hidden = vec![at("way/secret"), at(".env"), at("none")];
        let protected = ProtectedPaths { hidden, read_only: vec![at("agent"), at("real/agent")] };
        let found = covered(folder.path(), &protected).unwrap();
        assert_eq!(found, ["way", "real/secret", ".env", "agent"].map(PathBuf::from));
    }
}

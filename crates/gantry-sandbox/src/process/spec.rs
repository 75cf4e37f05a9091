//! A program to start, and the checks that can be made before.

use crate::Error;
use rustix::fs::{Access, access};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Limit: starts of one specification at once. A start that hangs in the kernel keeps a thread.
const STARTS: usize = 4;

#[derive(Clone)]
pub struct Spec {
    /// A name to look up on the PATH in `env`, or a path; a relative path starts at `cwd`.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The whole environment; nothing is added to it. See [`crate::base_environment`].
    pub env: BTreeMap<OsString, OsString>,
    /// The working folder; none: that of this process.
    pub cwd: Option<PathBuf>,
    /// The executable whose `main` calls [`crate::guard_main`]; none: the one that is running.
    pub guard: Option<PathBuf>,
    /// Permits to start it; copies share them.
    pub(crate) starts: Arc<Semaphore>,
}

impl Spec {
    /// A program without arguments and with [`crate::base_environment`].
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: crate::base_environment(),
            cwd: None,
            guard: None,
            starts: Arc::new(Semaphore::new(STARTS)),
        }
    }

    /// Checks the specification and finds the file to execute. Blocks for as long as the file system does not answer.
    pub(crate) fn resolve(&self) -> Result<PathBuf, Error> {
        self.check_text()?;
        let folder = self.working_folder()?;
        if self.program.as_bytes().contains(&b'/') {
            return resolve_path(folder.join(&self.program));
        }
        let path = self.env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        // Invariant: an empty entry, which for a shell means the working folder, finds nothing: a program that can write
        // there must not choose what runs.
        let entries = std::env::split_paths(&path).filter(|entry| !entry.as_os_str().is_empty());
        let mut not_executable = None;
        for candidate in entries.map(|entry| folder.join(entry).join(&self.program)) {
            match resolve_path(candidate) {
                Ok(found) => return Ok(found),
                Err(error @ Error::NotExecutable { .. }) => {
                    not_executable.get_or_insert(error);
                }
                Err(_) => {}
            }
        }
        Err(not_executable.unwrap_or(Error::CommandNotFound { command: self.program.clone(), path }))
    }

    fn check_text(&self) -> Result<(), Error> {
        let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
        let nul = |what: String| Err(Error::NulByte { what });
        if has_nul(&self.program) {
            return nul("the command".into());
        }
        if let Some(index) = self.args.iter().position(|arg| has_nul(arg)) {
            return nul(format!("argument {}", index + 1));
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.as_bytes().contains(&b'=') || has_nul(name) {
                return Err(Error::VariableName { name: name.clone() });
            }
            if has_nul(value) {
                return nul(format!("the environment variable `{}`", name.display()));
            }
        }
        Ok(())
    }

    fn working_folder(&self) -> Result<PathBuf, Error> {
        let here = || std::path::absolute(self.cwd.as_deref().unwrap_or(Path::new(".")));
        let usable = || {
            let folder = here()?;
            if !fs::metadata(&folder)?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::NotADirectory));
            }
            access(&folder, Access::EXEC_OK)?;
            Ok(folder)
        };
        usable()
            .map_err(|source| Error::WorkingFolder { folder: self.cwd.clone().unwrap_or_default(), source })
    }
}

/// Leaves out the values of the environment: they are often secrets.
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

fn resolve_path(program: PathBuf) -> Result<PathBuf, Error> {
    match fs::metadata(&program) {
        Ok(metadata) if metadata.is_dir() => Err(Error::ProgramNotFound { program }),
        Ok(metadata) if !metadata.is_file() => Err(Error::NotExecutable { program }),
        Ok(_) if access(&program, Access::EXEC_OK).is_err() => Err(Error::NotExecutable { program }),
        Ok(_) => Ok(program),
        Err(_) => Err(Error::ProgramNotFound { program }),
    }
}

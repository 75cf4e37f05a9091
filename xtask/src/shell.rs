//! The one place where this crate starts other programs.

#![expect(clippy::disallowed_methods, reason = "automation runs cargo, npm and python; the product does not")]

mod background;

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

pub(crate) use background::BackgroundProcess;

/// A program to run in a folder, with what to show for it.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
    shown: String,
}

impl Program {
    pub(crate) fn new(name: impl AsRef<OsStr>, folder: &Path) -> Self {
        let mut command = Command::new(name.as_ref());
        command.current_dir(folder);
        let shown =
            Path::new(name.as_ref()).file_name().unwrap_or(name.as_ref()).to_string_lossy().into_owned();
        Self { command, shown }
    }

    /// Cargo of the toolchain that runs us.
    pub(crate) fn cargo(folder: &Path) -> Self {
        let mut cargo = Self::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), folder);
        // With the variables that cargo set for this program, some build scripts and all that depends on them run again.
        let is_ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in env::vars_os().filter(|(name, _)| is_ours(&name.to_string_lossy())) {
            cargo.command.env_remove(name);
        }
        cargo
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self.shown.push(' ');
            self.shown.push_str(&arg.as_ref().to_string_lossy());
            self.command.arg(arg);
        }
        self
    }

    /// An argument that is too long to be shown.
    pub(crate) fn long_arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.shown.push_str(" …");
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Shows the command, runs it with our terminal, and fails unless it succeeds.
    pub(crate) fn run(mut self) -> Result<()> {
        eprintln!("$ {}", self.shown);
        let status = self.command.status().with_context(|| format!("cannot start `{}`", self.shown))?;
        ensure!(status.success(), "`{}` failed ({status})", self.shown);
        Ok(())
    }

    /// Runs quietly and returns its standard output; its standard error stays visible.
    pub(crate) fn output(mut self) -> Result<String> {
        self.command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = self.command.output().with_context(|| format!("cannot start `{}`", self.shown))?;
        ensure!(output.status.success(), "`{}` failed ({})", self.shown, output.status);
        String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no valid UTF-8", self.shown))
    }

    /// Runs a program that may not be installed: what it printed, or `None` if it is absent or fails.
    pub(crate) fn probe(mut self) -> Option<String> {
        let output = self.command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Becomes the program, so that its signals and its exit code are its own.
    pub(crate) fn replace(mut self) -> Result<ExitCode> {
        eprintln!("$ {}", self.shown);
        Err(self.command.exec()).with_context(|| format!("cannot start `{}`", self.shown))
    }
}

/// The packages, targets and features that clippy, the build and the test runner ask cargo for. Cargo unifies features
/// over what it is asked for, so another choice would compile most of the workspace a second time.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-targets"];

/// Builds the programs alone, unless they are built already. There are no examples: asking for them brings the features
/// that tests have.
pub(crate) fn build_programs(root: &Path) -> Result<()> {
    Program::cargo(root).args(["build", "--workspace", "--bins", "--examples"]).run()
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

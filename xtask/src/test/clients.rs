//! The `clients` step: MCP clients that others wrote, in their own languages, for the end-to-end tests.
//!
//! They live under the target folder. A stamp beside each holds all that went into it (a copy, not a hash: it is
//! small, and cannot collide), so an unchanged set costs nothing and a half-finished one is made anew.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Outcome;
use crate::shell::{Program, target_dir};

const CLIENTS: &str = "crates/gantry-testkit/clients";

/// Where the clients are: `py` is a virtual environment, `node` has the scripts beside their `node_modules`.
pub(super) fn folder(root: &Path) -> PathBuf {
    target_dir(root).join("clients")
}

pub(super) fn ensure(root: &Path) -> Result<Outcome> {
    ensure_python(root)?;
    ensure_node(root)?;
    Ok(Outcome::Done)
}

fn ensure_python(root: &Path) -> Result<()> {
    let home = folder(root).join("py");
    let requirements = root.join(CLIENTS).join("requirements.txt");
    let version = Program::new("python3", root).args(["--version"]).output()?;
    // A virtual environment holds its own absolute path, so a moved repository needs a new one.
    let inputs = [version, home.display().to_string(), read(&requirements)?];

    install_if_changed(&home, &inputs, || {
        Program::new("python3", root).args(["-m", "venv", "--clear"]).args([&home]).run()?;
        Program::new(home.join("bin").join("python"), root)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .args([&requirements])
            .run()
    })
}

fn ensure_node(root: &Path) -> Result<()> {
    let home = folder(root).join("node");
    let clients = root.join(CLIENTS);
    let version = Program::new("node", root).args(["--version"]).output()?;
    let mut inputs = vec![version];
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        inputs.push(read(&clients.join(name))?);
    }

    // The scripts go along even when nothing is installed: they find their packages only beside themselves.
    copy_files(&clients, &home)?;
    install_if_changed(&home, &inputs, || {
        Program::new("npm", &home).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).run()
    })
}

/// Copies the files of one folder, without its subfolders, into another.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    create_folder(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", from.display()))?;
        if entry.path().is_file() {
            let target = to.join(entry.file_name());
            fs::copy(entry.path(), &target).with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

/// Runs `install` unless the stamp in `home` says that these very inputs are installed.
fn install_if_changed(home: &Path, inputs: &[String], install: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = home.join("installed-from.txt");
    let wanted = inputs.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        eprintln!("{} is up to date", home.display());
        return Ok(());
    }
    create_folder(home)?;
    match fs::remove_file(&stamp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", stamp.display()));
        }
        _ => {}
    }
    install()?;
    fs::write(&stamp, &wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Home {
        folder: tempfile::TempDir,
        n_installs: Cell<u32>,
    }

    impl Home {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), n_installs: Cell::new(0) }
        }

        /// Tries to install and gives how often anything was installed so far.
        fn install(&self, input: &str, result: Result<()>) -> u32 {
            let outcome = install_if_changed(self.folder.path(), &[input.to_owned()], || {
                self.n_installs.set(self.n_installs.get() + 1);
                result
            });
            drop(outcome);
            self.n_installs.get()
        }
    }

    #[test]
    fn the_same_inputs_install_once() {
        let home = Home::new();
        assert_eq!(home.install("a", Ok(())), 1);
        assert_eq!(home.install("a", Ok(())), 1);
    }

    #[test]
    fn changed_inputs_install_again() {
        let home = Home::new();
        assert_eq!(home.install("a", Ok(())), 1);
        assert_eq!(home.install("b", Ok(())), 2);
    }

    #[test]
    fn an_install_that_failed_is_not_taken_for_done() {
        let home = Home::new();
        assert_eq!(home.install("a", Ok(())), 1);
        assert_eq!(home.install("b", Err(anyhow::anyhow!("no network"))), 2);
        assert_eq!(home.install("b", Ok(())), 3);
        assert_eq!(home.install("b", Ok(())), 3);
    }
}

//! Packages that others wrote, installed under the target folder for the tests.
//!
//! A stamp beside each set holds all that went into it (a copy, not a hash: it is small, and cannot collide), so an
//! unchanged set costs nothing and a half-finished one is made anew.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use crate::shell::Program;

/// Copies the files of a folder, with its `package.json`, to `home` and installs there what the lock file names.
pub(super) fn npm(from: &Path, home: &Path, root: &Path) -> Result<()> {
    let version = Program::new("node", root).args(["--version"]).output()?;
    let mut inputs = vec![version];
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        inputs.push(read(&from.join(name))?);
    }

    // The scripts go along even when nothing is installed: they find their packages only beside themselves.
    copy_files(from, home)?;
    if_changed(home, &inputs, || {
        Program::new("npm", home).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).run()
    })
}

/// Makes `home` a virtual environment with what the requirements name.
pub(super) fn pip(requirements: &Path, home: &Path, root: &Path) -> Result<()> {
    let version = Program::new("python3", root).args(["--version"]).output()?;
    // A virtual environment holds its own absolute path, so a moved repository needs a new one.
    let inputs = [version, home.display().to_string(), read(requirements)?];

    if_changed(home, &inputs, || {
        Program::new("python3", root).args(["-m", "venv", "--clear"]).args([home]).run()?;
        Program::new(home.join("bin").join("python"), root)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .args([requirements])
            .run()
    })
}

/// Runs `install` unless the stamp in `home` says that these very inputs are installed.
pub(super) fn if_changed(home: &Path, inputs: &[String], install: impl FnOnce() -> Result<()>) -> Result<()> {
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

pub(super) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
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

fn create_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
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
            let outcome = if_changed(self.folder.path(), &[input.to_owned()], || {
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

//! Packages from npm and PyPI that the tests use, installed under the target folder.
//!
//! A stamp beside each set holds all that went into it (a copy, not a hash: it is small, and cannot collide), so an
//! unchanged set costs nothing and a half-finished one is installed again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{Program, target_dir};

/// Below this folder, each set has a folder with its lock files and scripts.
const SETS: &str = "crates/gantry-testkit";

pub(super) fn folder(root: &Path, set: &str) -> PathBuf {
    target_dir(root).join(set)
}

/// MCP clients of the official SDKs, and playwright: the virtual environment `py`, and `node`.
pub(super) fn install_clients(root: &Path) -> Result<()> {
    pip(root, "clients", "requirements.txt", "py")?;
    npm(root, "clients", "clients/node")
}

/// MCP servers that others wrote. The second Python SDK breaks a server that was written for the first.
pub(super) fn install_servers(root: &Path) -> Result<()> {
    pip(root, "servers", "requirements.txt", "py")?;
    pip(root, "servers", "requirements-mcp1.txt", "py-mcp1")?;
    npm(root, "servers", "servers/node")
}

/// OpenAPI documents that others wrote; the compressed ones are unpacked.
pub(super) fn install_specs(root: &Path) -> Result<()> {
    npm(root, "specs", "specs")?;
    // It takes a moment, so it runs whether or not anything was installed.
    Program::new("node", &folder(root, "specs")).args(["unpack.mjs"]).run()
}

/// Copies a set with its `package.json` to a folder of the target folder, and installs there what its lock file names.
pub(super) fn npm(root: &Path, set: &str, to: &str) -> Result<()> {
    let (from, home) = (root.join(SETS).join(set), folder(root, to));
    let mut inputs = vec![Program::new("node", root).args(["--version"]).output()?];
    for name in ["package.json", "package-lock.json", ".npmrc"] {
        inputs.push(read(&from.join(name))?);
    }
    // The scripts are copied even when nothing is installed: they find their packages only beside themselves.
    copy_files(&from, &home)?;
    if_changed(&home, &inputs, || {
        Program::new("npm", &home).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).run()
    })
}

/// Makes a virtual environment of the set with what the requirements name.
fn pip(root: &Path, set: &str, requirements: &str, name: &str) -> Result<()> {
    let (requirements, home) = (root.join(SETS).join(set).join(requirements), folder(root, set).join(name));
    let version = Program::new("python3", root).args(["--version"]).output()?;
    // A virtual environment holds its own absolute path, so a moved repository needs a new one.
    let inputs = [version, home.display().to_string(), read(&requirements)?];
    if_changed(&home, &inputs, || {
        Program::new("python3", root).args(["-m", "venv", "--clear"]).args([&home]).run()?;
        Program::new(home.join("bin").join("python"), root)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .args([requirements])
            .run()
    })
}

/// Runs `install` unless the stamp in `home` says that the same inputs are installed.
fn if_changed(home: &Path, inputs: &[String], install: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = home.join("installed-from.txt");
    let wanted = inputs.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        eprintln!("{} is up to date", home.display());
        return Ok(());
    }
    create_folder(home)?;
    let write =
        |text: &str| fs::write(&stamp, text).with_context(|| format!("cannot write {}", stamp.display()));
    // Until it is done, nothing counts as installed.
    write("")?;
    install()?;
    write(&wanted)
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
    use super::*;

    #[test]
    fn only_changed_inputs_and_failed_installs_are_installed_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut n_installs = 0;
        let mut install = |input: &str, result| {
            let count = || {
                n_installs += 1;
                result
            };
            if_changed(folder.path(), &[input.to_owned()], count).is_ok().then_some(n_installs)
        };
        assert_eq!(install("a", Ok(())), Some(1));
        assert_eq!(install("a", Ok(())), Some(1));
        assert_eq!(install("b", Err(anyhow::anyhow!("no network"))), None);
        assert_eq!(install("b", Ok(())), Some(3));
        assert_eq!(install("b", Ok(())), Some(3));
    }
}

//! What a yes to an installation rests on: who installs, from where, and the files that say more about it.

use super::members;
use super::plan::Plan;
use super::requirements::{REQUIREMENTS, included};
use crate::develop::ecosystem::Ecosystem;
use crate::develop::site::{MANIFEST_BYTES, Site};
use crate::develop::suite::python_in;
use gantry_core::Fault;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Files that say what is installed, and from where. A change to one of them is told.
pub(super) const MANIFESTS: [&str; 12] = [
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    REQUIREMENTS,
    "pyproject.toml",
    "setup.py",
    "Cargo.toml",
    "Cargo.lock",
    "go.mod",
    "go.sum",
];
/// Settings of the programs that install. They say from where and what else is run, so that a yes depends on them too.
pub(super) const SETTINGS: [&str; 12] = [
    "setup.cfg",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "go.work",
    "go.work.sum",
    ".cargo/config.toml",
    ".cargo/config",
    "rust-toolchain.toml",
    "rust-toolchain",
];
/// Settings of an environment of Python: where pip looks, and where the rest of the interpreter is.
const ENVIRONMENT_SETTINGS: [&str; 2] = ["pip.conf", "pyvenv.cfg"];
/// An interpreter that was copied into an environment.
const INTERPRETER_BYTES: u64 = 256 * 1024 * 1024;
/// The manifests of all members of a project together.
const MEMBERS_BYTES: usize = 256 * 1024 * 1024;

/// All of it as one text. It is looked at in the folder, in those above it, and in those of the project's members.
///
/// # Errors
/// One of the files is there and cannot be looked at, or there are too many.
pub(super) fn state(site: &Site, plan: &Plan) -> Result<String, Fault> {
    let mut basis = Basis(Sha256::new());
    basis.add(plan.manager.as_bytes());
    basis.add(plan.source.as_bytes());
    for folder in site.folder.ancestors() {
        for name in MANIFESTS.into_iter().chain(SETTINGS) {
            basis.add_file(site, &folder.join(name), MANIFEST_BYTES)?;
        }
    }
    basis.add_members(site, plan.ecosystem)?;
    if plan.ecosystem == Ecosystem::Python {
        let included = included(site)?;
        basis.add_count(included.len());
        for path in included {
            basis.add(path.as_os_str().as_bytes());
            basis.add_file(site, &path, MANIFEST_BYTES)?;
        }
    }
    if let Some(environment) = plan.environment {
        basis.add_environment(site, environment)?;
    }
    let mut text = String::from("judged:");
    for byte in basis.0.finalize() {
        // Writing to a text does not fail.
        write!(text, "{byte:02x}").ok();
    }
    Ok(text)
}

struct Basis(Sha256);

impl Basis {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes.len().to_le_bytes());
        self.0.update(bytes);
    }

    /// How many of something follow, so that the last of them cannot be taken for something else.
    fn add_count(&mut self, count: usize) {
        self.0.update(count.to_le_bytes());
    }

    fn add_file(&mut self, site: &Site, path: &Path, limit: u64) -> Result<(), Fault> {
        let print = site.print(path, limit)?;
        self.0.update([u8::from(print.is_some())]);
        self.0.update(print.unwrap_or_default());
        Ok(())
    }

    fn add_members(&mut self, site: &Site, ecosystem: Ecosystem) -> Result<(), Fault> {
        let manifests = members::manifests(site, ecosystem)?;
        self.add_count(manifests.len());
        let mut left = MEMBERS_BYTES;
        for path in manifests {
            // A link may lead nowhere.
            let Some(content) = site.content(&path, MANIFEST_BYTES)? else { continue };
            left = left.checked_sub(content.len()).ok_or_else(members::too_large)?;
            self.add(path.as_os_str().as_bytes());
            self.add(&content);
        }
        Ok(())
    }

    /// The interpreter that would be run: the links that lead to it, and itself if it lies in the workspace.
    fn add_environment(&mut self, site: &Site, environment: &str) -> Result<(), Fault> {
        let folder = site.folder.join(environment);
        for name in ENVIRONMENT_SETTINGS {
            self.add_file(site, &folder.join(name), MANIFEST_BYTES)?;
        }
        let followed = site.follow(&site.folder.join(python_in(environment)))?;
        for (link, target) in &followed.links {
            self.add(link.as_os_str().as_bytes());
            self.add(target.as_os_str().as_bytes());
        }
        match followed.end {
            Some(end) => {
                self.add(end.as_os_str().as_bytes());
                self.add_file(site, &end, INTERPRETER_BYTES)
            }
            None => Ok(()),
        }
    }
}

//! What a yes to an installation rests on: who installs, from where, and the files that say more about it.

use super::plan::Plan;
use crate::provider::develop::ecosystem::Ecosystem;
use crate::provider::develop::site::{MANIFEST_BYTES, Site};
use crate::provider::develop::suite::python_in;
use crate::provider::develop::{fault, words};
use gantry_core::Fault;
use gantry_sandbox::jail::WORKSPACE;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

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
const SETTINGS: [&str; 10] = [
    "setup.cfg",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    ".cargo/config.toml",
    ".cargo/config",
    "rust-toolchain.toml",
    "rust-toolchain",
];
/// Settings of an environment of Python: where pip looks, and where the rest of the interpreter is.
const ENVIRONMENT_SETTINGS: [&str; 2] = ["pip.conf", "pyvenv.cfg"];
const REQUIREMENTS: &str = "requirements.txt";
/// Files of requirements that include each other.
const INCLUDES: usize = 50;
/// An interpreter that was copied into an environment.
const INTERPRETER_BYTES: u64 = 256 * 1024 * 1024;

/// All of it as one text. It is looked at in the folder and in those above it.
///
/// # Errors
/// One of the files is there and cannot be looked at.
pub(super) fn state(site: &Site, plan: &Plan) -> Result<String, Fault> {
    let mut basis = Basis(Sha256::new());
    basis.add(plan.manager.as_bytes());
    basis.add(plan.source.as_bytes());
    for folder in site.folder.ancestors() {
        for name in MANIFESTS.into_iter().chain(SETTINGS) {
            basis.add_file(site, &folder.join(name), MANIFEST_BYTES)?;
        }
    }
    if plan.ecosystem == Ecosystem::Python {
        for path in included(site)? {
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

    fn add_file(&mut self, site: &Site, path: &Path, limit: u64) -> Result<(), Fault> {
        let print = site.print(path, limit)?;
        self.0.update([u8::from(print.is_some())]);
        self.0.update(print.unwrap_or_default());
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

/// The files that the requirements include, and those that these include.
fn included(site: &Site) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    let mut unread = vec![site.folder.join(REQUIREMENTS)];
    while let Some(file) = unread.pop() {
        // A file that is there and cannot be read is refused where it is hashed.
        let content = site.read_at(&file, MANIFEST_BYTES).unwrap_or_default();
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        for named in includes(&String::from_utf8_lossy(&content)) {
            if ["http://", "https://"].iter().any(|scheme| named.starts_with(scheme)) {
                // It comes from the network, where only the registry can be reached.
                continue;
            }
            let path = inside(&folder, &named)?;
            if found.insert(path.clone()) {
                unread.push(path);
            }
            if found.len() > INCLUDES {
                return Err(fault::failed(format!(
                    "the files of requirements include more than {INCLUDES} others; put them into fewer files"
                )));
            }
        }
    }
    Ok(found)
}

/// What the lines of a file of requirements include: `-r FILE`, `-c FILE`, in all the ways in which pip takes it.
fn includes(text: &str) -> Vec<String> {
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut named = Vec::new();
    for line in joined.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let mut words = line.split_whitespace();
        while let Some(word) = words.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ if word.starts_with("--") => (word, None),
                _ => (word.get(..2).unwrap_or(word), word.get(2..).filter(|value| !value.is_empty())),
            };
            // pip takes the beginnings of long options for the whole.
            let is_long = |whole: &str| option.len() > 2 && whole.starts_with(option);
            if matches!(option, "-r" | "-c") || is_long("--requirement") || is_long("--constraint") {
                let value = value.or_else(|| words.next()).unwrap_or_default();
                named.push(value.trim_matches(['"', '\'']).to_owned());
            }
        }
    }
    named
}

/// A file that another one names, relative to the workspace.
fn inside(folder: &Path, named: &str) -> Result<PathBuf, Fault> {
    let path = Path::new(named);
    let path = match path.strip_prefix(WORKSPACE) {
        Ok(inside) => inside.to_owned(),
        Err(_) => folder.join(path),
    };
    if path.is_absolute() || named.contains("${") || named.starts_with("file:") {
        return Err(fault::failed(format!(
            "the requirements include {}, which is no path in the workspace; installing needs one",
            words::shown(named)
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_in_every_spelling() {
        let text = "-r a.txt\n--requirement b.txt\n--requirement=c.txt\n-cd.txt\n--const 'e.txt'\n  -i https://x -r \\\n f.txt\n\
                    requests==1 # -r no.txt\n--require-hashes\n--extra-index-url y\n";
        assert_eq!(includes(text), ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt", "f.txt"]);
    }

    #[test]
    fn includes_from_elsewhere_are_refused() {
        assert_eq!(inside(Path::new("p"), "x.txt").unwrap(), Path::new("p/x.txt"));
        assert_eq!(inside(Path::new("p"), "/workspace/x.txt").unwrap(), Path::new("x.txt"));
        for odd in ["/store/x.txt", "file:///workspace/x.txt", "${HOME}/x.txt"] {
            assert!(inside(Path::new("p"), odd).is_err(), "{odd}");
        }
    }
}

//! Programs that only choose a version of another one when they run: where what they would run is.

use super::{Search, is_program};
use serde::Deserialize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The variables by which they are told where they are and what to choose.
pub(super) const VARIABLES: [&str; 6] =
    ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "PYENV_ROOT", "PYENV_VERSION", "VOLTA_HOME", "ASDF_DATA_DIR"];
/// A file that says what is chosen.
const CHOICE_BYTES: u64 = 64 * 1024;

/// What is behind a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// It is no shim.
    Itself,
    /// This is what would be run.
    Other(PathBuf),
    /// A shim that would run nothing that is known.
    Nothing,
}

impl From<Option<PathBuf>> for Behind {
    fn from(found: Option<PathBuf>) -> Self {
        found.filter(|path| is_program(path)).map_or(Self::Nothing, Self::Other)
    }
}

pub(super) fn behind(search: &Search, path: &Path, name: &str) -> Behind {
    let Some(folder) = path.parent() else { return Behind::Itself };
    let real = std::fs::canonicalize(path).unwrap_or_default();
    let real_name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if real_name == "rustup" || is_same(path, &folder.join("rustup")) {
        return rust(search).map(|toolchain| toolchain.join("bin").join(name)).into();
    }
    if real_name == "volta-shim" {
        return volta(search, name).into();
    }
    if real_name == "mise" && name != "mise" {
        return Behind::Nothing;
    }
    if folder.file_name().is_some_and(|name| name == "shims") {
        let Some(root) = folder.parent() else { return Behind::Itself };
        // A folder of shims that another manager put beside the versions of this one.
        let pyenv = search.folder("PYENV_ROOT", ".pyenv").filter(|root| folder.starts_with(root));
        if let Some(root) = pyenv {
            return pyenv_program(search, &root, name).into();
        }
        if root.join("installs").is_dir() {
            return asdf(search, root, name).into();
        }
    }
    Behind::Itself
}

/// Whether both are the same file, under whatever name.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    id(one).is_some_and(|one| id(other) == Some(one))
}

/// The folder of the Rust toolchain that is active outside of any project. A project's own choice would have to be
/// downloaded where it is missing, so that it does not count.
fn rust(search: &Search) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Settings {
        default_toolchain: Option<String>,
    }
    let home = search.folder("RUSTUP_HOME", ".rustup")?;
    let chosen = search.var("RUSTUP_TOOLCHAIN").and_then(|name| name.to_str()).map(str::to_owned);
    let name = match chosen {
        Some(name) => name,
        None => toml::from_str::<Settings>(&read(&home.join("settings.toml"))?).ok()?.default_toolchain?,
    };
    let toolchains = home.join("toolchains");
    let exact = toolchains.join(&name);
    // `stable` stands for `stable-` with this machine's triple.
    let triple = || format!("{name}-{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = if exact.is_dir() { exact } else { toolchains.join(triple()) };
    is_plain(&name).then(|| std::fs::canonicalize(folder).ok()).flatten()
}

fn pyenv_program(search: &Search, root: &Path, name: &str) -> Option<PathBuf> {
    let chosen = match search.var("PYENV_VERSION") {
        Some(versions) => versions.to_str()?.to_owned(),
        None => read(&root.join("version"))?,
    };
    let versions = chosen.split([':', '\n', ' ']).filter(|version| is_plain(version));
    let mut programs = versions.map(|version| root.join("versions").join(version).join("bin").join(name));
    programs.find(|program| is_program(program))
}

/// What the user's `.tool-versions` says.
fn asdf(search: &Search, root: &Path, name: &str) -> Option<PathBuf> {
    let chosen = read(&search.home.as_ref()?.join(".tool-versions"))?;
    let mut programs = chosen.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (tool, version) = (words.next()?, words.next()?);
        (is_plain(tool) && is_plain(version))
            .then(|| root.join("installs").join(tool).join(version).join("bin").join(name))
    });
    programs.find(|program| is_program(program))
}

fn volta(search: &Search, name: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Platform {
        node: Node,
    }
    #[derive(Deserialize)]
    struct Node {
        runtime: String,
    }
    let tools = search.folder("VOLTA_HOME", ".volta")?.join("tools");
    let platform: Platform = serde_json::from_str(&read(&tools.join("user/platform.json"))?).ok()?;
    let version = platform.node.runtime;
    is_plain(&version).then(|| tools.join("image/node").join(version).join("bin").join(name))
}

/// Whether this is one name, and not a way to somewhere else.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains('/')
}

fn read(path: &Path) -> Option<String> {
    let found = path.metadata().ok().filter(|found| found.is_file() && found.len() <= CHOICE_BYTES);
    found.and_then(|_| std::fs::read_to_string(path).ok())
}

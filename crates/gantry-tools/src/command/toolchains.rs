//! Finds the programs that people have installed outside the system's folders: compilers, interpreters, package
//! managers. Jobs read them where they are.
//!
//! A home folder holds secrets beside programs. So nothing is taken because it lies on the PATH: only known places of
//! version managers and package managers are looked at, and of each the version that is on the PATH or that the manager
//! has chosen outside of any project. Everything else is named in `code.toolchains`. No process is started.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where version managers keep their versions: the variable that names the manager's folder, where that usually is in the
/// home folder, where the versions are in there and how many folders deep; then the variable or else the file that says
/// which version is chosen outside of any project.
const MANAGERS: [(&str, &str, &str, usize, &str, &str); 8] = [
    ("RUSTUP_HOME", ".rustup", "toolchains", 1, "RUSTUP_TOOLCHAIN", "settings.toml"),
    ("PYENV_ROOT", ".pyenv", "versions", 1, "PYENV_VERSION", "version"),
    ("RBENV_ROOT", ".rbenv", "versions", 1, "RBENV_VERSION", "version"),
    ("NVM_DIR", ".nvm", "versions/node", 1, "", "alias/default"),
    ("FNM_DIR", ".local/share/fnm", "node-versions", 2, "", ""),
    ("VOLTA_HOME", ".volta", "tools/image/node", 1, "", "tools/user/platform.json"),
    ("ASDF_DATA_DIR", ".asdf", "installs", 2, "", "../.tool-versions"),
    ("MISE_DATA_DIR", ".local/share/mise", "installs", 2, "", "../../../.config/mise/config.toml"),
];
/// Places with one version of everything, relative to the home folder or absolute. They come after the versions, because
/// rustup's proxies in cargo's folder do not work without the rest of rustup.
const PLACES: [&str; 3] = [".cargo/bin", "/opt/homebrew", "/home/linuxbrew/.linuxbrew"];
/// All that is in here may be read by everyone, and its programs need each other. The PATH says where they are.
const NIX: &str = "/nix/store";
/// What is not taken of an installation: its settings, as `etc/npmrc`, may hold secrets.
const LEFT_OUT: [&str; 2] = ["etc", "var"];
/// What every jail has of the system. Programs in there need nothing.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// Where the system's programs are, in the order of the PATH in the jail.
const SYSTEM_BINS: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Folders of a PATH that are looked into.
const PATH_FOLDERS: usize = 100;
/// Entries of a folder that are looked at.
const ENTRIES: usize = 200;
/// Folders and files that are mounted; a jail is built anew for each job.
const MOUNTS: usize = 100;
/// A file that says what is chosen.
const CHOICE_BYTES: u64 = 64 * 1024;

/// What jobs may read besides the system's own programs.
#[derive(Debug, Clone, Default)]
pub struct Toolchains {
    mounts: Arc<[PathBuf]>,
    folders: Vec<PathBuf>,
    env: Vec<(String, String)>,
}

impl Toolchains {
    /// Those in the known places, and these folders; but nothing that holds one of the paths in `excluded`, or lies
    /// within one of them.
    #[must_use]
    pub fn find(more: &[PathBuf], excluded: &[PathBuf]) -> Self {
        let names = MANAGERS.iter().flat_map(|(folder, .., choice, _)| [*folder, *choice]);
        let vars =
            names.filter(|name| !name.is_empty()).filter_map(|name| Some((name, std::env::var_os(name)?)));
        let search = Search {
            home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            path: std::env::var_os("PATH").unwrap_or_default(),
            vars: vars.collect(),
            excluded: excluded.iter().map(|path| real(path)).collect(),
        };
        search.run(more)
    }

    /// What has to be there in the jail.
    #[must_use]
    pub fn mounts(&self) -> Arc<[PathBuf]> {
        Arc::clone(&self.mounts)
    }

    /// Variables that they need.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// Where jobs look for programs, in this order: their folders, then the system's. Never the workspace.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(PathBuf::as_path).chain(SYSTEM_BINS.iter().map(Path::new))
    }

    /// The same as a PATH.
    #[must_use]
    pub fn path(&self) -> OsString {
        let folders: Vec<&OsStr> = self.folders().map(Path::as_os_str).collect();
        folders.join(OsStr::new(":"))
    }

    /// Where jobs find a program of this name, if there is one.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.folders().map(|folder| folder.join(name)).find(|path| is_program(path))
    }
}

/// One search for toolchains: what it goes by, so that tests can say it.
#[derive(Debug)]
struct Search {
    home: Option<PathBuf>,
    path: OsString,
    vars: BTreeMap<&'static str, OsString>,
    /// With links resolved.
    excluded: Vec<PathBuf>,
}

/// A version manager that is there.
struct Manager {
    /// Where its versions are, and how many folders deep.
    versions: PathBuf,
    levels: usize,
    /// What says which of them is chosen.
    choice: String,
}

/// What a search has found so far.
#[derive(Debug, Default)]
struct Found {
    mounts: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Search {
    fn run(&self, more: &[PathBuf]) -> Toolchains {
        let mut found = Found::default();
        for folder in more {
            match self.may_mount(&real(folder)) {
                Ok(()) => {
                    let bin = folder.join("bin");
                    add(&mut found.folders, if bin.is_dir() { bin } else { folder.clone() });
                    add(&mut found.mounts, folder.clone());
                }
                Err(why) => {
                    tracing::warn!(folder = %folder.display(), "a folder of code.toolchains is left out: it {why}");
                }
            }
        }
        let managers = self.managers();
        let path = std::env::split_paths(&self.path).take(PATH_FOLDERS);
        for folder in
            path.filter(|folder| folder.is_absolute()).filter_map(|folder| folder.canonicalize().ok())
        {
            self.on_path(&folder, &managers, &mut found);
        }
        for manager in &managers {
            for version in manager.chosen() {
                self.take(&version, &version.join("bin"), &mut found);
            }
        }
        let home = self.home.as_deref().unwrap_or(Path::new("/"));
        for place in PLACES.iter().filter_map(|place| home.join(place).canonicalize().ok()) {
            let bin = place.join("bin");
            self.take(&place, if bin.is_dir() { &bin } else { &place }, &mut found);
        }
        found.mounts.truncate(MOUNTS);
        // What a job runs must not fetch itself another version of a compiler.
        let env = vec![("GOTOOLCHAIN".to_owned(), "local".to_owned())];
        Toolchains { mounts: found.mounts.into(), folders: found.folders, env }
    }

    /// The version managers that are there.
    fn managers(&self) -> Vec<Manager> {
        let there = MANAGERS.iter().filter_map(|(variable, usual, versions, levels, choice, file)| {
            let named = self.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            let root = named.or_else(|| Some(self.home.as_ref()?.join(usual)))?;
            let versions = root.join(versions).canonicalize().ok()?;
            let choice = self.var(choice).and_then(|value| value.to_str()).map(str::to_owned);
            let choice = choice.or_else(|| read(&root.join(file))).unwrap_or_default();
            Some(Manager { versions, levels: *levels, choice })
        });
        there.collect()
    }

    /// Takes a folder of the PATH, if it is of the system or in one of the known places.
    fn on_path(&self, folder: &Path, managers: &[Manager], found: &mut Found) {
        if is_system(folder) {
            // It is in the jail already, but perhaps not where that looks for programs.
            if !SYSTEM_BINS.iter().any(|bin| folder == Path::new(bin)) {
                add(&mut found.folders, folder.to_owned());
            }
            return;
        }
        for Manager { versions, levels, .. } in managers {
            let Ok(below) = folder.strip_prefix(versions) else { continue };
            let version: PathBuf = below.components().take(*levels).collect();
            if version.components().count() == *levels {
                self.take(&versions.join(version), folder, found);
            }
        }
        if folder.starts_with(NIX) {
            self.take(Path::new(NIX), folder, found);
        }
    }

    /// Takes an installation: a folder of programs for the PATH, and mounts for all of it but its settings.
    fn take(&self, installation: &Path, folder: &Path, found: &mut Found) {
        let has_parts = installation.join("bin").is_dir();
        let parts = if has_parts { entries(installation) } else { vec![installation.to_owned()] };
        let is_left_out = |part: &Path| LEFT_OUT.contains(&name(part)) || name(part).starts_with('.');
        let parts: Vec<PathBuf> =
            parts.into_iter().filter(|part| part.exists() && (!has_parts || !is_left_out(part))).collect();
        let is_refused = |part: &Path| self.may_mount(&real(part)).is_err();
        if !is_refused(installation) && !parts.iter().any(|part| is_refused(part)) {
            add(&mut found.folders, folder.to_owned());
            parts.into_iter().for_each(|part| add(&mut found.mounts, part));
        }
    }

    /// Whether a folder or file may be shown to jobs; if not, why.
    fn may_mount(&self, path: &Path) -> Result<(), &'static str> {
        if !path.is_absolute() || path.parent().is_none() {
            return Err("is not a folder of its own");
        }
        if ["/proc", "/sys", "/dev", "/run"].iter().any(|folder| path.starts_with(folder)) {
            return Err("belongs to the system");
        }
        if self.home.as_deref().is_some_and(|home| real(home).starts_with(path)) {
            return Err("holds the home folder");
        }
        if self.excluded.iter().any(|excluded| excluded.starts_with(path) || path.starts_with(excluded)) {
            return Err("holds, or lies in, what jobs are kept away from");
        }
        if !path.exists() {
            return Err("does not exist");
        }
        Ok(())
    }

    fn var(&self, name: &str) -> Option<&OsString> {
        self.vars.get(name).filter(|value| !value.is_empty())
    }
}

impl Manager {
    /// The chosen versions: those of the folders that the choice names first. `stable` also names
    /// `stable-x86_64-unknown-linux-gnu`.
    fn chosen(&self) -> Vec<PathBuf> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let names: Vec<&str> = self.choice.split(|c| !is_part(c)).filter(|name| !name.is_empty()).collect();
        let groups = if self.levels == 1 { vec![self.versions.clone()] } else { entries(&self.versions) };
        let in_group = |group: PathBuf| {
            let folders = entries(&group);
            let called = |wanted: &&str| {
                let is_exact = |folder: &&PathBuf| name(folder) == *wanted;
                let is_longer = |folder: &&PathBuf| name(folder).starts_with(&format!("{wanted}-"));
                folders.iter().find(is_exact).or_else(|| folders.iter().find(is_longer))
            };
            names.iter().find_map(called)?.canonicalize().ok()
        };
        groups.into_iter().filter_map(in_group).collect()
    }
}

/// The name of a file or folder; empty if it is no text.
fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// The entries of a folder, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES);
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort_unstable();
    entries
}

fn read(path: &Path) -> Option<String> {
    let found = path.metadata().ok().filter(|found| found.is_file() && found.len() <= CHOICE_BYTES);
    found.and_then(|_| std::fs::read_to_string(path).ok())
}

fn add(list: &mut Vec<PathBuf>, path: PathBuf) {
    if !list.contains(&path) {
        list.push(path);
    }
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|system| path.starts_with(system))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A path with its links resolved, as far as it exists.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

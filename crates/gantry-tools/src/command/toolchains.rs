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
/// What is no folder on a disk.
const KERNEL: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// Where the system's programs are, in the order of the PATH in the jail.
const SYSTEM_BINS: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Entries of a folder that are looked at.
const ENTRIES: usize = 200;
/// Folders and files that are mounted; a jail is built anew for each job.
const MOUNTS: usize = 100;
/// A file that says what is chosen.
const CHOICE_BYTES: u64 = 64 * 1024;

/// What jobs may read besides the system's own programs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toolchains {
    /// What has to be there in the jail.
    pub(crate) mounts: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Toolchains {
    /// Those in the known places, and these folders; but nothing that holds one of the paths in `excluded`, or lies
    /// within one of them.
    pub(crate) fn find(more: &[PathBuf], excluded: &[PathBuf]) -> Self {
        let excluded = excluded.iter().map(|path| real(path)).collect();
        Search { vars: std::env::vars_os().collect(), excluded }.run(more)
    }

    /// Where jobs look for programs, in this order: their folders, then the system's. Never the workspace.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(PathBuf::as_path).chain(SYSTEM_BINS.iter().map(Path::new))
    }

    pub(crate) fn path(&self) -> OsString {
        let folders: Vec<&OsStr> = self.folders().map(Path::as_os_str).collect();
        folders.join(OsStr::new(":"))
    }

    /// Where jobs find a program of this name, if there is one.
    pub(crate) fn program(&self, name: &str) -> Option<PathBuf> {
        self.folders().map(|folder| folder.join(name)).find(|path| is_program(path))
    }
}

/// One search for toolchains: what it goes by, so that tests can say it.
#[derive(Debug)]
struct Search {
    vars: BTreeMap<OsString, OsString>,
    /// With links resolved.
    excluded: Vec<PathBuf>,
}

impl Search {
    fn run(&self, more: &[PathBuf]) -> Toolchains {
        let mut found = Toolchains::default();
        for folder in more {
            if let Some(why) = self.why_left_out(&real(folder)) {
                tracing::warn!(folder = %folder.display(), "a folder of code.toolchains is left out: it {why}");
                continue;
            }
            add(&mut found.folders, bin_of(folder));
            add(&mut found.mounts, folder.clone());
        }
        let (versions, chosen) = self.versions();
        let path = self.var("PATH").map(std::env::split_paths).into_iter().flatten();
        for folder in path.filter(|folder| folder.is_absolute()).filter_map(|it| it.canonicalize().ok()) {
            self.take_from_path(&folder, &versions, &mut found);
        }
        for version in &chosen {
            self.take(version, &version.join("bin"), &mut found);
        }
        let home = self.home().unwrap_or(Path::new("/"));
        for place in PLACES.iter().filter_map(|place| home.join(place).canonicalize().ok()) {
            self.take(&place, &bin_of(&place), &mut found);
        }
        found.mounts.truncate(MOUNTS);
        found
    }

    /// The folders of all versions that version managers keep, and of the chosen ones.
    fn versions(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let there = MANAGERS.iter().filter_map(|(variable, usual, versions, levels, choice, file)| {
            let named = self.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
            let root = named.or_else(|| Some(self.home()?.join(usual)))?;
            let versions = root.join(versions).canonicalize().ok()?;
            let choice = self.var(choice).and_then(|value| value.to_str()).map(str::to_owned);
            let choice = choice.or_else(|| read(&root.join(file))).unwrap_or_default();
            // Where the versions are two folders deep, each program has its own folder of versions.
            let programs = if *levels == 1 { vec![versions] } else { entries(&versions) };
            let programs: Vec<Vec<PathBuf>> = programs.iter().map(|program| entries(program)).collect();
            let chosen = programs.iter().filter_map(|versions| chosen(versions, &choice)).collect();
            Some((programs.concat(), chosen))
        });
        let (versions, chosen): (Vec<_>, Vec<Vec<PathBuf>>) = there.unzip();
        (versions.concat(), chosen.concat())
    }

    /// Takes a folder of the PATH, if it is of the system or in one of the known places.
    fn take_from_path(&self, folder: &Path, versions: &[PathBuf], found: &mut Toolchains) {
        if is_system(folder) {
            // It is in the jail already, but perhaps not where that looks for programs.
            if !SYSTEM_BINS.iter().any(|bin| folder == Path::new(bin)) {
                add(&mut found.folders, folder.to_owned());
            }
            return;
        }
        if let Some(version) = versions.iter().find(|version| folder.starts_with(version)) {
            self.take(version, folder, found);
        }
        if folder.starts_with(NIX) {
            self.take(Path::new(NIX), folder, found);
        }
    }

    /// Takes an installation: a folder of programs for the PATH, and mounts for all of it but its settings.
    fn take(&self, installation: &Path, folder: &Path, found: &mut Toolchains) {
        let is_kept = |part: &PathBuf| !LEFT_OUT.contains(&name(part)) && !name(part).starts_with('.');
        let parts: Vec<PathBuf> = if installation.join("bin").is_dir() {
            entries(installation).into_iter().filter(|part| part.exists() && is_kept(part)).collect()
        } else {
            vec![installation.to_owned()]
        };
        let may_mount = |part: &Path| self.why_left_out(&real(part)).is_none();
        if may_mount(installation) && parts.iter().all(|part| may_mount(part)) {
            add(&mut found.folders, folder.to_owned());
            parts.into_iter().for_each(|part| add(&mut found.mounts, part));
        }
    }

    /// Why a folder or file may not be shown to jobs, if so.
    fn why_left_out(&self, path: &Path) -> Option<&'static str> {
        let holds_or_lies_in = |other: &PathBuf| other.starts_with(path) || path.starts_with(other);
        let reasons = [
            ("is not a folder of its own", !path.is_absolute() || path.parent().is_none()),
            ("belongs to the system", KERNEL.iter().any(|folder| path.starts_with(folder))),
            ("holds the home folder", self.home().is_some_and(|home| real(home).starts_with(path))),
            ("holds, or lies in, what jobs are kept away from", self.excluded.iter().any(holds_or_lies_in)),
            ("does not exist", !path.exists()),
        ];
        reasons.iter().find(|(_, applies)| *applies).map(|(why, _)| *why)
    }

    fn var(&self, name: &str) -> Option<&OsString> {
        self.vars.get(OsStr::new(name)).filter(|value| !value.is_empty())
    }

    fn home(&self) -> Option<&Path> {
        self.var("HOME").map(Path::new).filter(|home| home.is_absolute())
    }
}

/// The chosen version: that of the folders which the choice names first. `stable` also names
/// `stable-x86_64-unknown-linux-gnu`.
fn chosen(versions: &[PathBuf], choice: &str) -> Option<PathBuf> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let mut names = choice.split(|c| !is_part(c)).filter(|name| !name.is_empty());
    let called = |wanted: &str| {
        let is_longer = |version: &&PathBuf| name(version).starts_with(&format!("{wanted}-"));
        let exact = versions.iter().find(|version| name(version) == wanted);
        exact.or_else(|| versions.iter().find(is_longer))
    };
    names.find_map(called)?.canonicalize().ok()
}

/// The folder of an installation that has its programs.
fn bin_of(installation: &Path) -> PathBuf {
    let bin = installation.join("bin");
    if bin.is_dir() { bin } else { installation.to_owned() }
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

//! Finds the programs that people have installed outside the system's folders: compilers, interpreters, managers of
//! packages. Jobs read them where they are.
//!
//! A home folder holds secrets beside programs. So nothing is taken because it lies on the PATH: only programs of
//! known names are looked for, each is followed to the installation that it really belongs to, and of that only the
//! parts with programs and libraries are taken. Shims, which choose a version when they run, are followed to the
//! version that they would choose. No process is started.

mod prefix;
mod shims;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The programs that are looked for, besides whatever lies in the same installation.
const PROGRAMS: [&str; 44] = [
    "cargo",
    "rustc",
    "rustfmt",
    "cargo-fmt",
    "cargo-clippy",
    "node",
    "npm",
    "npx",
    "corepack",
    "pnpm",
    "yarn",
    "bun",
    "deno",
    "prettier",
    "eslint",
    "tsc",
    "python3",
    "python",
    "pip3",
    "pip",
    "pytest",
    "ruff",
    "black",
    "mypy",
    "uv",
    "poetry",
    "go",
    "gofmt",
    "java",
    "javac",
    "mvn",
    "gradle",
    "ruby",
    "gem",
    "bundle",
    "zig",
    "cmake",
    "ninja",
    "clang-format",
    "shfmt",
    "shellcheck",
    "just",
    "jq",
    "rg",
];
/// What every jail has of the system. Programs in there need nothing.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];
/// Where the system's programs are, in the order of the PATH in the jail.
const SYSTEM_BINS: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Folders of a PATH that are looked into.
const PATH_FOLDERS: usize = 100;
/// Folders and files that are mounted; a jail is built anew for each job.
const MOUNTS: usize = 100;

/// What jobs may read besides the system's own programs.
#[derive(Debug, Clone, Default)]
pub struct Toolchains {
    mounts: Arc<[PathBuf]>,
    folders: Vec<PathBuf>,
    env: Vec<(String, String)>,
}

impl Toolchains {
    /// Those on the PATH of this process, and these folders; but nothing that holds one of the paths in `apart`, or
    /// lies within one of them.
    #[must_use]
    pub fn find(more: &[PathBuf], apart: &[PathBuf]) -> Self {
        let vars = shims::VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let search = Search {
            home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            path: std::env::var_os("PATH").unwrap_or_default(),
            vars: vars.collect(),
            apart: apart.iter().map(|path| real(path)).collect(),
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
    apart: Vec<PathBuf>,
}

impl Search {
    fn run(&self, more: &[PathBuf]) -> Toolchains {
        let mut mounts = Vec::new();
        let mut folders = Vec::new();
        for folder in more {
            match self.may_mount(&real(folder)) {
                Ok(()) => {
                    let bin = folder.join("bin");
                    add(&mut folders, if bin.is_dir() { bin } else { folder.clone() });
                    add(&mut mounts, folder.clone());
                }
                Err(why) => {
                    tracing::warn!(folder = %folder.display(), "a folder of code.toolchains is left out: it {why}");
                }
            }
        }
        let home = self.home.as_deref().map(real);
        for name in PROGRAMS {
            let Some(found) = self.program(name) else { continue };
            if is_system(&found) {
                // It is there already, but perhaps not where the jail looks for programs.
                let folder = found.parent().map(Path::to_owned).unwrap_or_default();
                if !SYSTEM_BINS.iter().any(|bin| folder == Path::new(bin)) {
                    add(&mut folders, folder);
                }
                continue;
            }
            let Some(taken) = prefix::of(&found, name, home.as_deref()) else { continue };
            if taken.parts.iter().chain([&taken.prefix]).all(|part| self.may_mount(part).is_ok()) {
                add(&mut folders, taken.folder);
                taken.parts.into_iter().for_each(|part| add(&mut mounts, part));
            }
        }
        mounts.truncate(MOUNTS);
        // What a job runs must not fetch itself another version of a compiler.
        let env = vec![("GOTOOLCHAIN".to_owned(), "local".to_owned())];
        Toolchains { mounts: mounts.into(), folders, env }
    }

    /// The first program of this name on the PATH; behind a shim, what that would run.
    fn program(&self, name: &str) -> Option<PathBuf> {
        for folder in
            std::env::split_paths(&self.path).take(PATH_FOLDERS).filter(|folder| folder.is_absolute())
        {
            let path = folder.join(name);
            if !is_program(&path) {
                continue;
            }
            match shims::behind(self, &path, name) {
                shims::Behind::Itself => return Some(path),
                shims::Behind::Other(program) => return Some(program),
                shims::Behind::Nothing => {}
            }
        }
        None
    }

    /// Whether a folder or file may be shown to jobs; if not, why.
    fn may_mount(&self, path: &Path) -> Result<(), &'static str> {
        if !path.is_absolute() || path.parent().is_none() {
            return Err("is not a folder of its own");
        }
        if ["/proc", "/sys", "/dev", "/run"].iter().any(|odd| path.starts_with(odd)) {
            return Err("belongs to the system");
        }
        if self.home.as_deref().is_some_and(|home| real(home).starts_with(path)) {
            return Err("holds the home folder");
        }
        if self.apart.iter().any(|apart| apart.starts_with(path) || path.starts_with(apart)) {
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

    /// A folder that a variable names, or else this one in the home folder.
    fn folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let named = self.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| Some(self.home.as_ref()?.join(usual)))
    }
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

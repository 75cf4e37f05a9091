//! The parts of a git repository that make git run programs, or make it look for those elsewhere.
//!
//! The rest of `.git` stays writable, so that git works in the jail. What is missing there gets a stand-in with which
//! git does what it would do without.

use super::stand_in::{self, EMPTY, ITSELF, StandIn};
use super::{JailError, Site, unprotected};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const GIT: &str = ".git";
/// A folder that most repositories have; without it, git makes it when needed.
const INFO: &str = "info";
const INFO_MODE: u32 = 0o755;

/// What a file instead of a repository begins with, and the file in a repository that names the one it is part of.
const LEADS_TO: &[u8] = b"gitdir:";
const COMMON: &str = "commondir";
/// The most that is read of either.
const POINTER_LIMIT: u64 = 4096;

/// What is sealed in a repository, and what stands in for it.
const SEALED: [(&str, StandIn); 7] = [
    ("hooks", StandIn::Folder),
    ("modules", StandIn::Folder),
    ("worktrees", StandIn::Folder),
    ("config", StandIn::File(EMPTY)),
    ("config.worktree", StandIn::File(EMPTY)),
    ("info/attributes", StandIn::File(EMPTY)),
    (COMMON, StandIn::File(ITSELF)),
];

/// What to seal in the workspace because of git. Nothing where there is no repository yet: a job may make one.
pub(super) fn sealed(site: &Site) -> Result<Vec<(PathBuf, StandIn)>, JailError> {
    let at = site.path.join(GIT);
    let in_repository =
        |at: &PathBuf| SEALED.iter().map(|(name, stand_in)| (at.join(name), *stand_in)).collect::<Vec<_>>();
    match found(site).map_err(|error| unprotected(&at, &error))? {
        Found::Nothing => Ok(Vec::new()),
        Found::Repository | Found::Link => Ok(in_repository(&at)),
        Found::File => {
            // What is outside of the workspace is ignored later.
            let mut sealed: Vec<_> = repositories(site).iter().flat_map(in_repository).collect();
            sealed.push((at, StandIn::Socket));
            Ok(sealed)
        }
    }
}

/// Makes the folder that would otherwise be stood in for, which git could then not write to.
pub(super) fn prepare(site: &Site) {
    let repositories = match found(site) {
        Ok(Found::Repository) => vec![site.path.join(GIT)],
        Ok(Found::File) => repositories(site),
        Ok(Found::Nothing | Found::Link) | Err(_) => Vec::new(),
    };
    for repository in repositories {
        let Ok(relative) = repository.strip_prefix(&site.path) else { continue };
        // A job can turn it into a link at any time, which must not lead elsewhere.
        if let Ok(folder) = stand_in::open(site, relative, OFlags::PATH | OFlags::DIRECTORY) {
            // Where it cannot be made, it is stood in for or no job can make it either.
            mkdirat(folder, INFO, Mode::from_raw_mode(INFO_MODE)).ok();
        }
    }
}

/// The repository that a file called `.git` leads to, and the one that it is part of.
fn repositories(site: &Site) -> Vec<PathBuf> {
    let text = pointer(&site.path.join(GIT));
    let Some(own) = text.as_deref().and_then(|text| text.strip_prefix(LEADS_TO)) else { return Vec::new() };
    let own = site.path.join(trimmed(own));
    let common = pointer(&own.join(COMMON)).map(|common| own.join(trimmed(&common)));
    let is_other = |common: &PathBuf| *common != own;
    let common = common.filter(is_other);
    [own].into_iter().chain(common).collect()
}

/// The beginning of a file, if it is one.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(POINTER_LIMIT).read_to_end(&mut text).ok()?;
    Some(text)
}

fn trimmed(text: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(text.trim_ascii()))
}

/// What is called `.git`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A folder with anything in it. Not only with what makes it a repository: a job could take that away for a while.
    Repository,
    Link,
    /// A worktree or a submodule: a file that says where the repository is.
    File,
}

fn found(site: &Site) -> Result<Found, Errno> {
    let stat = match statat(site.dir(), GIT, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        return Ok(Found::Link);
    }
    if kind != FileType::Directory {
        return Ok(Found::File);
    }
    match stand_in::is_empty(site, Path::new(GIT)) {
        Ok(true) => Ok(Found::Nothing),
        // A job can take the right to look into it, and give it back.
        Ok(false) | Err(Errno::ACCESS) => Ok(Found::Repository),
        Err(error) => Err(error),
    }
}

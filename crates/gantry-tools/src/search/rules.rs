//! Which files are left out: `.ignore`, `.gitignore` and `.git/info/exclude`, as git and ripgrep read them.
//!
//! Only files inside the workspace are read: neither the rules of the user who runs Gantry nor those of folders above
//! the workspace count. A `.gitignore` counts whether or not there is a repository.

use super::open;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// A repository's own directory, which is never searched.
pub(super) const GIT: &[u8] = b".git";
const GITIGNORE: &[u8] = b".gitignore";
const IGNORE: &[u8] = b".ignore";
/// What is read of one file with rules.
const RULE_BYTES: u64 = 256 * 1024;

/// The rules of a directory, and of those above it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Option<Gitignore>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// It is the top of a repository, so what git says further up does not count here.
    repository: bool,
}

/// What the rules say of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    LeaveOut,
    /// It is wanted, even if its name begins with a dot.
    Keep,
}

impl Rules {
    /// The rules in a directory with that path (without a slash at the end), if it has any of these names.
    pub(super) fn in_directory(
        above: &Arc<Self>,
        dir: BorrowedFd<'_>,
        path: &[u8],
        has: impl Fn(&[u8]) -> bool,
    ) -> Arc<Self> {
        let (ignore, git, repository) = (has(IGNORE), has(GITIGNORE), has(GIT));
        if !ignore && !git && !repository {
            return Arc::clone(above);
        }
        let read = |there: bool, name| there.then(|| read(dir, name, path)).flatten();
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            ignore: read(ignore, IGNORE),
            git: read(git, GITIGNORE),
            exclude: if repository { exclude(dir, path) } else { None },
            repository,
        })
    }

    /// What they say of a path relative to the root: of `.ignore` files the nearest one that says something, else of
    /// `.gitignore` files, else of `info/exclude`.
    pub(super) fn say(&self, path: &Path, is_dir: bool) -> Said {
        let (mut by_ignore, mut by_git, mut by_exclude) = (Said::Nothing, Said::Nothing, Said::Nothing);
        let mut in_repository = true;
        let mut rules = Some(self);
        while let Some(here) = rules {
            by_ignore = by_ignore.or_else(|| ask(here.ignore.as_ref(), path, is_dir));
            if in_repository {
                by_git = by_git.or_else(|| ask(here.git.as_ref(), path, is_dir));
                by_exclude = by_exclude.or_else(|| ask(here.exclude.as_ref(), path, is_dir));
            }
            in_repository &= !here.repository;
            rules = here.above.as_deref();
        }
        by_ignore.or_else(|| by_git).or_else(|| by_exclude)
    }
}

impl Said {
    fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self == Self::Nothing { other() } else { self }
    }
}

fn ask(rules: Option<&Gitignore>, path: &Path, is_dir: bool) -> Said {
    match rules.map(|rules| rules.matched(path, is_dir)) {
        None | Some(ignore::Match::None) => Said::Nothing,
        Some(ignore::Match::Ignore(_)) => Said::LeaveOut,
        Some(ignore::Match::Whitelist(_)) => Said::Keep,
    }
}

/// The rules in a file, for the directory with that path. What cannot be read or understood is no rule.
fn read(dir: BorrowedFd<'_>, name: &[u8], path: &[u8]) -> Option<Gitignore> {
    let (file, _) = open::regular(dir, OsStr::from_bytes(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(RULE_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(OsStr::from_bytes(path));
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern is skipped, as git does.
        builder.add_line(None, line).ok();
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn exclude(dir: BorrowedFd<'_>, path: &[u8]) -> Option<Gitignore> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let git = rustix::fs::openat(dir, OsStr::from_bytes(GIT), flags, Mode::empty()).ok()?;
    let info = rustix::fs::openat(git, "info", flags, Mode::empty()).ok()?;
    read(info.as_fd(), b"exclude", path)
}

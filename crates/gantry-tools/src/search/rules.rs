//! Which files are left out: `.ignore`, `.gitignore` and `.git/info/exclude`, as git and ripgrep read them.
//!
//! Only files inside the workspace are read: neither the rules of the user who runs Gantry nor those of folders above
//! the workspace count. A `.gitignore` counts whether or not there is a repository.
//!
//! The patterns are those of the `ignore` crate. Its walk is not used: it reads these files through links, without a
//! limit and from pipes (a `.gitignore` that is a link to `/dev/zero` would fill the memory), and it goes by path, so a
//! directory that is replaced by a link meanwhile would lead it outside.

use crate::workspace::entry::{open_directory, open_regular, stat_at};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// A repository's own directory, which is never searched.
pub(super) const GIT: &str = ".git";
/// What is read of one file with rules.
const RULE_BYTES: u64 = 256 * 1024;

/// The rules of a directory, and of those above it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Option<Gitignore>,
    /// Those of `.gitignore`, and of `info/exclude` where it does not decide.
    git: Option<Gitignore>,
    /// It is the top of a repository, so what git says further up does not count here.
    repository: bool,
}

impl Rules {
    /// The rules in an opened directory with that path; those of the directory above if it has none.
    pub(super) fn in_directory(above: &Arc<Self>, dir: BorrowedFd<'_>, path: &Path) -> Arc<Self> {
        let repository = matches!(stat_at(dir, OsStr::new(GIT)), Ok(Some(_)));
        let exclude = if repository { read_exclude(dir) } else { None };
        let rules = Self {
            above: Some(Arc::clone(above)),
            ignore: parse(path, [None, read(dir, ".ignore")]),
            // The last pattern that fits decides.
            git: parse(path, [exclude, read(dir, ".gitignore")]),
            repository,
        };
        if repository || rules.ignore.is_some() || rules.git.is_some() {
            Arc::new(rules)
        } else {
            Arc::clone(above)
        }
    }

    /// Whether an entry is searched, by its path relative to the root. Of `.ignore` files the nearest one with a rule
    /// for it decides, else of `.gitignore` files, else of `info/exclude`; without any rule, a dot hides a name.
    pub(super) fn keep(&self, path: &Path, is_dir: bool) -> bool {
        let (mut by_ignore, mut by_git, mut in_repository) = (None, None, true);
        for here in std::iter::successors(Some(self), |rules| rules.above.as_deref()) {
            by_ignore = by_ignore.or_else(|| keeps(here.ignore.as_ref(), path, is_dir));
            if in_repository {
                by_git = by_git.or_else(|| keeps(here.git.as_ref(), path, is_dir));
            }
            in_repository &= !here.repository;
        }
        let has_dot = || path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
        by_ignore.or(by_git).unwrap_or_else(|| !has_dot())
    }
}

/// What some rules decide, if they decide anything.
fn keeps(rules: Option<&Gitignore>, path: &Path, is_dir: bool) -> Option<bool> {
    match rules?.matched(path, is_dir) {
        ignore::Match::None => None,
        ignore::Match::Ignore(_) => Some(false),
        ignore::Match::Whitelist(_) => Some(true),
    }
}

/// The first part of a file with rules. One that cannot be read has none.
fn read(dir: BorrowedFd<'_>, name: &str) -> Option<Vec<u8>> {
    let (file, _) = open_regular(dir, OsStr::new(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(RULE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn read_exclude(dir: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let (git, _) = open_directory(dir, OsStr::new(GIT)).ok()?;
    let (info, _) = open_directory(git, OsStr::new("info")).ok()?;
    read(info.as_fd(), "exclude")
}

/// The rules in some files, for the directory with that path.
fn parse(path: &Path, files: [Option<Vec<u8>>; 2]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(path);
    for file in files.into_iter().flatten() {
        for line in String::from_utf8_lossy(&file).trim_start_matches('\u{feff}').lines() {
            // A line that is no pattern is skipped, as git does.
            builder.add_line(None, line).ok();
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

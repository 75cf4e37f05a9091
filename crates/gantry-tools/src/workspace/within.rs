//! The workspace for tools that look through all of it: the same folder, confined and protected in the same way.
//!
//! Such a tool starts from an opened directory and goes down by single names without following links, so it cannot be
//! led outside; before it looks into anything, it asks whether that is hidden.

use super::path::{RelPath, printable};
use super::protected::{Fences, Id};
use super::root::{Resolved, WorkspaceRoot};
use super::{Error, ProtectedPaths};
use crate::failure;
use gantry_core::Fault;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A workspace to look through.
#[derive(Debug)]
pub(crate) struct Within {
    root: WorkspaceRoot,
}

/// What must not be looked into at the moment.
#[derive(Debug)]
pub(crate) struct Hidden {
    fences: Fences,
}

/// A path as names to go down by, the `..` in it resolved.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) names: Vec<String>,
    /// The path as messages have it.
    shown: String,
}

impl Within {
    pub(crate) fn open(path: &Path, fenced: ProtectedPaths) -> Result<Self, Error> {
        Ok(Self { root: WorkspaceRoot::open(path, fenced)? })
    }

    /// The root, to go down from, and what to leave out on the way.
    pub(crate) fn enter(&self) -> Result<(OwnedFd, Hidden), Fault> {
        match self.root.descend(Path::new("."), None, ".")? {
            Resolved::Reached(parent) => Ok((parent.dir, Hidden { fences: parent.fences })),
            Resolved::Missing { .. } | Resolved::NotADirectory => Err(failure::not_found(".")),
        }
    }
}

impl Hidden {
    /// Whether this is something that no tool reads.
    pub(crate) fn has(&self, stat: &Stat) -> bool {
        self.fences.has(Id::of(stat))
    }

    /// Refuses it, if so.
    pub(crate) fn check(&self, stat: &Stat, way: &Way) -> Result<(), Fault> {
        self.fences.check(Id::of(stat), &way.shown)
    }
}

impl Way {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let path = RelPath::parse(text)?;
        let mut names: Vec<String> = Vec::new();
        for name in path.text().split('/') {
            match name {
                "." => {}
                // No link is followed, so this is what the kernel would do.
                ".." => drop(names.pop()),
                _ => names.push(name.to_owned()),
            }
        }
        Ok(Self { names, shown: path.shown().to_owned() })
    }

    /// Why it could not be gone.
    pub(crate) fn barred(&self, error: Errno) -> Fault {
        let shown = &self.shown;
        match error {
            Errno::LOOP => failure::invalid_path(format!(
                "{shown} leads through a symbolic link, which is not followed; use the path that it points to"
            )),
            _ => failure::os_error("opening", shown, error),
        }
    }
}

/// A path as results have it, made of any bytes.
pub(crate) fn shown_path(path: &[u8]) -> String {
    printable(path)
}

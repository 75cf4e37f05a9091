//! `list_directory`: what is in a directory, in order, up to a limit.

use super::act::List;
use super::fault;
use super::path::{RelPath, printable};
use super::place::{Descent, Kind, Root, names, open_dir, stat_at};
use super::protect::{Fences, Id};
use super::state::{modified, size};
use gantry_core::Fault;
use gantry_sandbox::jail::looks_like_a_place;
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use tokio_util::sync::CancellationToken;

/// Entries in one answer.
pub(super) const LISTED: usize = 10_000;
/// Directories within directories that `recursive` enters.
pub(super) const DEPTH: usize = 16;
/// Names that are read to find the first [`LISTED`]; beyond, their order is not looked for any more.
const SCANNED: usize = 2_000_000;

pub(super) fn run(root: &Root, args: &List, stop: &CancellationToken) -> Result<Value, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let ground = match root.descend(&path.whole(), None, shown)? {
        Descent::Reached(ground) => ground,
        Descent::Missing { .. } => return Err(fault::missing(shown)),
        Descent::NotADirectory => {
            return Err(fault::failed(format!("{shown} is not a directory; read_file reads files")));
        }
    };
    let mut listing =
        Listing { args, fences: &ground.fences, stop, entries: Vec::new(), scanned: 0, complete: true };
    listing.add(&ground.dir, "", 1).map_err(|error| fault::os(shown, "listing", error))?;
    if stop.is_cancelled() {
        return Err(fault::canceled());
    }
    listing.entries.sort_by(|a, b| a.0.cmp(&b.0));
    let entries: Vec<Value> = listing.entries.iter().map(|(name, stat)| entry(name, stat)).collect();
    Ok(match listing.complete {
        true => json!({ "entries": entries }),
        false => json!({ "entries": entries, "truncated": true }),
    })
}

struct Listing<'a> {
    args: &'a List,
    fences: &'a Fences,
    stop: &'a CancellationToken,
    entries: Vec<(String, Stat)>,
    scanned: usize,
    complete: bool,
}

impl Listing<'_> {
    fn add(&mut self, dir: impl AsFd, prefix: &str, depth: usize) -> Result<(), Errno> {
        for name in self.first_names(dir.as_fd())? {
            if self.entries.len() == LISTED || self.stop.is_cancelled() {
                self.complete = false;
                return Ok(());
            }
            // What is gone by now is not there.
            let Some(stat) = stat_at(dir.as_fd(), &name)? else { continue };
            if self.fences.has(Id::of(&stat)) || stands_in(dir.as_fd(), &name, &stat) {
                continue;
            }
            let shown = format!("{prefix}{}", printable(name.as_bytes()));
            self.entries.push((shown.clone(), stat));
            if self.args.recursive && Kind::of(&stat) == Kind::Directory {
                self.enter(dir.as_fd(), &name, &shown, depth);
            }
        }
        Ok(())
    }

    /// Lists a directory within. One that cannot be read leaves the listing incomplete, not failed.
    fn enter(&mut self, dir: impl AsFd, name: &OsStr, shown: &str, depth: usize) {
        let listed = depth < DEPTH
            && open_dir(dir, name)
                .and_then(|inner| {
                    if self.fences.has(Id::of(&fstat(&inner)?)) {
                        return Err(Errno::ACCESS);
                    }
                    self.add(&inner, &format!("{shown}/"), depth + 1)
                })
                .is_ok();
        self.complete &= listed;
    }

    /// The first names in order, as many as an answer can still take and one more. A directory with millions of
    /// entries costs time but no memory.
    fn first_names(&mut self, dir: impl AsFd) -> Result<Vec<OsString>, Errno> {
        let limit = LISTED - self.entries.len() + 1;
        let mut first = BinaryHeap::new();
        for name in names(dir)? {
            let name = name?;
            if !self.args.include_hidden && name.as_bytes().starts_with(b".") {
                continue;
            }
            self.scanned += 1;
            if self.scanned > SCANNED || self.stop.is_cancelled() {
                self.complete = false;
                break;
            }
            first.push(name);
            if first.len() > limit {
                first.pop();
            }
        }
        Ok(first.into_sorted_vec())
    }
}

/// Whether this stands in for something while a program runs, and so is nobody's file: there is nothing in it.
fn stands_in(dir: impl AsFd, name: &OsStr, stat: &Stat) -> bool {
    let is_empty = || open_dir(dir, name).and_then(names).is_ok_and(|mut names| names.next().is_none());
    looks_like_a_place(stat.st_mode, size(stat)) && (Kind::of(stat) != Kind::Directory || is_empty())
}

fn entry(name: &str, stat: &Stat) -> Value {
    let (kind, size) = match Kind::of(stat) {
        Kind::Directory => ("directory", 0),
        Kind::Link => ("symlink", size(stat)),
        Kind::File | Kind::Special => ("file", size(stat)),
    };
    json!({ "name": name, "type": kind, "size": size, "modified": modified(stat) })
}

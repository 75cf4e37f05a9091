//! `move_file`: one rename, which replaces something only if that was looked at.

use super::act::{Move, Precondition};
use super::path::RelPath;
use super::place::{Kind, Links, Place, Root, Target, stat_at, sync};
use super::protect::Id;
use super::state::{self, Existing};
use super::{definitions, fault};
use gantry_core::Fault;
use gantry_core::digest::Digest;
use gantry_core::policy::OwnVerdict;
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

/// Both ends of a move, checked.
struct Ends {
    from: Place,
    to: Place,
    from_path: RelPath,
    to_path: RelPath,
}

pub(super) fn inspect(root: &Root, args: &Move) -> Result<OwnVerdict, Fault> {
    let ends = Ends::find(root, args)?;
    let (from, to) = (ends.from_path.shown(), ends.to_path.shown());
    let replaced = ends.replaced(args)?;
    Ok(OwnVerdict {
        ask: replaced
            .as_ref()
            .map(|it| format!("{to} exists ({}) and would be replaced by {from}", it.words)),
        precondition: Some(Precondition::Unchanged(ends.fingerprint(replaced.as_ref())?).to_text()),
    })
}

pub(super) fn run(root: &Root, args: &Move, precondition: Option<&Precondition>) -> Result<Value, Fault> {
    let turn = definitions::turn();
    let ends = Ends::find(root, args)?;
    let (old, new) = (ends.from.entry(), ends.to.entry());
    let (from, to) = (ends.from_path.shown(), ends.to_path.shown());
    let Some(Precondition::Unchanged(judged)) = precondition else { return Err(fault::unjudged()) };
    let replaced = ends.replaced(args)?;
    if ends.fingerprint(replaced.as_ref())? != *judged {
        return Err(fault::outdated(format!(
            "{from} or {to} has changed since the call was judged, and nothing was moved; call again"
        )));
    }
    if replaced.is_some() {
        rustix::fs::renameat(old.0, old.1, new.0, new.1).map_err(|error| ends.failed(error))?;
    } else {
        without_replacing(old, new).map_err(|error| match error {
            Errno::EXIST if args.overwrite => fault::outdated(format!(
                "{to} appeared since the call was judged, and nothing was moved; call again"
            )),
            Errno::EXIST => fault::failed(format!(
                "{to} exists, and nothing was moved; pass overwrite: true to replace it"
            )),
            _ => ends.failed(error),
        })?;
    }
    drop(turn);
    for dir in [old.0, new.0] {
        sync(dir).map_err(|error| fault::not_synced(to, error))?;
    }
    Ok(json!({ "from": ends.from_path.text(), "to": ends.to_path.text() }))
}

impl Ends {
    fn find(root: &Root, args: &Move) -> Result<Self, Fault> {
        let (from_path, to_path) = (RelPath::parse(&args.from)?, RelPath::parse(&args.to)?);
        let (old, new) = (from_path.shown(), to_path.shown());
        let from = root.place(from_path.entry()?, Links::Keep, old)?;
        let Target::Place(to) = root.find(to_path.entry()?, Links::Keep, new)? else {
            return Err(fault::missing_parent(new));
        };
        let moved = from.existing(old)?;
        from.ground.may_change(&from.name, Some(moved), old)?;
        to.ground.may_change(&to.name, to.stat.as_ref(), new)?;
        to.ground.may_receive(&to.name, &from, new)?;
        // Asked of the kernel, it would be told apart from a rename it does not know only by trying.
        if Kind::of(moved) == Kind::Directory && to.ground.is_in(Id::of(moved)) {
            return Err(into_itself(old, new));
        }
        if let Some(replaced) = &to.stat {
            // A rename between two names of one file does nothing and says that it succeeded.
            if Id::of(moved) == Id::of(replaced) {
                return Err(fault::failed(format!("{old} and {new} are the same file; nothing was moved")));
            }
            if args.overwrite && Kind::of(moved) == Kind::Directory && Kind::of(replaced) != Kind::Directory {
                return Err(fault::failed(format!("{old} is a directory and cannot replace the file {new}")));
            }
        }
        Ok(Self { from, to, from_path, to_path })
    }

    /// What would be replaced, if anything would.
    fn replaced(&self, args: &Move) -> Result<Option<Existing>, Fault> {
        if args.overwrite { state::look(&self.to, self.to_path.shown()) } else { Ok(None) }
    }

    /// Tells what would be moved, and what would be replaced, from everything else.
    fn fingerprint(&self, replaced: Option<&Existing>) -> Result<String, Fault> {
        let moved = state::identity(self.from.existing(self.from_path.shown())?);
        let replaced = replaced.map_or("", |existing| &existing.fingerprint);
        Ok(Digest::of_parts(&[moved.as_bytes(), replaced.as_bytes()]).to_string())
    }

    /// What a failed rename means.
    fn failed(&self, error: Errno) -> Fault {
        let (from, to) = (self.from_path.shown(), self.to_path.shown());
        match error {
            Errno::INVAL => into_itself(from, to),
            Errno::XDEV => fault::failed(format!(
                "{from} and {to} are on different file systems; write the file anew and delete the old one"
            )),
            _ => fault::os(from, "moving", error),
        }
    }
}

fn into_itself(from: &str, to: &str) -> Fault {
    fault::failed(format!("{from} cannot be moved into itself ({to})"))
}

impl Place {
    fn entry(&self) -> (&OwnedFd, &OsString) {
        (&self.ground.dir, &self.name)
    }
}

/// Renames in one step that fails with `EXIST` if the new name is taken.
pub(super) fn without_replacing(
    (old_dir, old): (&OwnedFd, &OsString),
    (new_dir, new): (&OwnedFd, &OsString),
) -> Result<(), Errno> {
    let (old, new) = (old.as_os_str(), new.as_os_str());
    match rustix::fs::renameat_with(old_dir, old, new_dir, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => by_claiming((old_dir, old), (new_dir, new)),
        renamed => renamed,
    }
}

/// The same where the file system has no such rename: the new name is claimed first, by something that fails if it
/// is taken.
pub(super) fn by_claiming(
    (old_dir, old): (&OwnedFd, &OsStr),
    (new_dir, new): (&OwnedFd, &OsStr),
) -> Result<(), Errno> {
    let stat = stat_at(old_dir, old)?.ok_or(Errno::NOENT)?;
    let (moved, undo) = if Kind::of(&stat) == Kind::Directory {
        rustix::fs::mkdirat(new_dir, new, Mode::from_raw_mode(0o700))?;
        // A directory may take the place of an empty one.
        (rustix::fs::renameat(old_dir, old, new_dir, new), AtFlags::REMOVEDIR)
    } else {
        rustix::fs::linkat(old_dir, old, new_dir, new, AtFlags::empty())?;
        (rustix::fs::unlinkat(old_dir, old, AtFlags::empty()), AtFlags::empty())
    };
    moved.inspect_err(|_| {
        if let Err(error) = rustix::fs::unlinkat(new_dir, new, undo) {
            tracing::warn!(name = ?new, %error, "a name that was claimed for a move could not be given back");
        }
    })
}

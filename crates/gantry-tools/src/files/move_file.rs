//! `move_file`: one rename, which replaces something only if that was looked at.

use super::{FileTool, unchanged, verdict};
use crate::tool::prelude::*;
use crate::workspace::entry::{Kind, identity, stat_at, sync};
use crate::workspace::path::RelPath;
use crate::workspace::protected::FileId;
use crate::workspace::root::{Entry, Existing, Links, WorkspaceRoot};
use gantry_core::digest::Digest;
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(super) struct MoveFile;

/// Moves or renames a file or directory within the workspace, in one step. The directory of the new path must exist. An
/// existing target is left alone unless overwrite is true, which waits for a person's approval.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file or directory to move, relative to the workspace root.
    from: String,
    /// Its new path including its new name, relative to the workspace root.
    to: String,
    /// Whether to replace a file that has the new path.
    #[serde(default)]
    overwrite: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The old path.
    from: String,
    /// The new path.
    to: String,
}

impl FileTool for MoveFile {
    const NAME: &'static str = "move_file";
    const TITLE: &'static str = "Move file";
    const HINTS: Annotations = CHANGES;
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    type Args = Args;
    type Output = Output;

    fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<Preflight> {
        let ends = Ends::find(root, args)?;
        let ask = ends.replaced.as_ref().map(|existing| {
            format!(
                "{} exists ({}) and would be replaced by {}",
                ends.to.shown, existing.description, ends.from.shown
            )
        });
        Ok(verdict(ask, unchanged(&ends.fingerprint)))
    }

    fn run(root: &WorkspaceRoot, call: &PermittedCall<Args>) -> Result<Output> {
        let (args, judged) = (&call.args, call.judged()?);
        let ends = Ends::find(root, args)?;
        let (from, to) = (&ends.from.shown, &ends.to.shown);
        if unchanged(&ends.fingerprint) != judged {
            return Err(failure::outdated(format!(
                "{from} or {to} has changed since the call was judged, and nothing was moved; call again"
            )));
        }
        let (old, new) = (ends.from.at()?, ends.to.at()?);
        rename(old, new, ends.replaced.is_some()).map_err(|error| match error {
            Errno::EXIST if args.overwrite => failure::outdated(format!(
                "{to} appeared since the call was judged, and nothing was moved; call again"
            )),
            Errno::EXIST => failure::failed(format!(
                "{to} exists, and nothing was moved; pass overwrite: true to replace it"
            )),
            Errno::XDEV => failure::failed(format!(
                "{from} and {to} are on different file systems; write the file anew and delete the old one"
            )),
            _ => ends.from.os_error("moving", error),
        })?;
        for dir in [old.0, new.0] {
            sync(dir).map_err(|error| failure::not_synced(to, error))?;
        }
        Ok(Output { from: RelPath::parse(&args.from)?.text(), to: RelPath::parse(&args.to)?.text() })
    }
}

/// Both ends of a move, checked.
struct Ends {
    from: Entry,
    to: Entry,
    /// What would be replaced, if anything would.
    replaced: Option<Existing>,
    /// Tells what would be moved, and what would be replaced, from everything else.
    fingerprint: String,
}

impl Ends {
    fn find(root: &WorkspaceRoot, args: &Args) -> Result<Self> {
        let from = root.resolve(&RelPath::parse(&args.from)?, Links::Keep)?;
        let to = root.resolve(&RelPath::parse(&args.to)?, Links::Keep)?;
        let (moved, old, new) = (from.existing()?, &from.shown, &to.shown);
        // Its directory must exist.
        to.at()?;
        from.may_change()?;
        to.may_change()?;
        // Asked of the kernel, it would be told apart from a rename it does not know only by trying.
        if Kind::of(moved) == Kind::Directory && to.parent.is_in(FileId::of(moved)) {
            return Err(failure::failed(format!("{old} cannot be moved into itself ({new})")));
        }
        if let Some(replaced) = &to.stat {
            // A rename between two names of one file does nothing and says that it succeeded.
            if FileId::of(moved) == FileId::of(replaced) {
                return Err(failure::failed(format!("{old} and {new} are the same file; nothing was moved")));
            }
            if args.overwrite && Kind::of(moved) == Kind::Directory && Kind::of(replaced) != Kind::Directory {
                return Err(failure::failed(format!(
                    "{old} is a directory and cannot replace the file {new}"
                )));
            }
        }
        let replaced = if args.overwrite { to.describe_target()? } else { None };
        let old = replaced.as_ref().map_or("", |existing| &existing.fingerprint);
        let fingerprint = Digest::of_parts(&[identity(moved).as_bytes(), old.as_bytes()]).to_string();
        Ok(Self { from, to, replaced, fingerprint })
    }
}

/// Renames in one step, which fails with `EXIST` if the new name is taken and may not be replaced.
pub(super) fn rename(
    (old_dir, old): (&OwnedFd, &OsStr),
    (new_dir, new): (&OwnedFd, &OsStr),
    replace: bool,
) -> Result<(), Errno> {
    if replace {
        return rustix::fs::renameat(old_dir, old, new_dir, new);
    }
    match rustix::fs::renameat_with(old_dir, old, new_dir, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => by_claiming((old_dir, old), (new_dir, new)),
        renamed => renamed,
    }
}

/// The same where the file system has no rename that replaces nothing: the new name is claimed first, by something that fails if it
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

//! `move_file`: one rename, which replaces something only if that was looked at.

use super::{FileCall, Precondition, preflight_blocking, run_blocking};
use crate::failure;
use crate::tool::{CHANGES, Tool};
use crate::toolbox::PermittedCall;
use crate::workspace::definitions::rename_lock;
use crate::workspace::path::RelPath;
use crate::workspace::protected::Id;
use crate::workspace::root::{Entry, Kind, Links, Target, WorkspaceRoot, stat_at, sync};
use crate::workspace::state::{Existing, describe_target, identity};
use gantry_core::digest::Digest;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, OwnRule};
use gantry_core::{EffectState, Fault};
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The tool.
#[derive(Debug)]
pub(super) struct MoveFile(pub(super) Arc<WorkspaceRoot>);

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

impl Tool for MoveFile {
    const NAME: &'static str = "move_file";
    const TITLE: &'static str = "Move file";
    const HINTS: Annotations = CHANGES;
    const APPROVAL: OwnRule = OwnRule::Depends;
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<OwnVerdict, Fault> {
        preflight_blocking(&self.0, args, preflight).await
    }

    async fn run(&self, call: PermittedCall<'_, Args>) -> Result<Output, Fault> {
        run_blocking(&self.0, call, EffectState::Possible, move_entry).await
    }
}

/// Both ends of a move, checked.
struct Ends {
    from: Entry,
    to: Entry,
    from_path: RelPath,
    to_path: RelPath,
}

fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<OwnVerdict, Fault> {
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

pub(super) fn move_entry(root: &WorkspaceRoot, call: &FileCall<Args>) -> Result<Output, Fault> {
    let FileCall { args, precondition, .. } = call;
    let lock = rename_lock();
    let ends = Ends::find(root, args)?;
    let (old, new) = (ends.from.at(), ends.to.at());
    let (from, to) = (ends.from_path.shown(), ends.to_path.shown());
    let Some(Precondition::Unchanged(judged)) = precondition else {
        return Err(failure::missing_precondition());
    };
    let replaced = ends.replaced(args)?;
    if ends.fingerprint(replaced.as_ref())? != *judged {
        return Err(failure::outdated(format!(
            "{from} or {to} has changed since the call was judged, and nothing was moved; call again"
        )));
    }
    if replaced.is_some() {
        rustix::fs::renameat(old.0, old.1, new.0, new.1).map_err(|error| ends.failed(error))?;
    } else {
        without_replacing(old, new).map_err(|error| match error {
            Errno::EXIST if args.overwrite => failure::outdated(format!(
                "{to} appeared since the call was judged, and nothing was moved; call again"
            )),
            Errno::EXIST => failure::failed(format!(
                "{to} exists, and nothing was moved; pass overwrite: true to replace it"
            )),
            _ => ends.failed(error),
        })?;
    }
    drop(lock);
    for dir in [old.0, new.0] {
        sync(dir).map_err(|error| failure::not_synced(to, error))?;
    }
    Ok(Output { from: ends.from_path.text(), to: ends.to_path.text() })
}

impl Ends {
    fn find(root: &WorkspaceRoot, args: &Args) -> Result<Self, Fault> {
        let (from_path, to_path) = (RelPath::parse(&args.from)?, RelPath::parse(&args.to)?);
        let (old, new) = (from_path.shown(), to_path.shown());
        let from = root.entry(from_path.entry()?, Links::Keep, old)?;
        let Target::Entry(to) = root.find(to_path.entry()?, Links::Keep, new)? else {
            return Err(failure::missing_parent(new));
        };
        let moved = from.existing(old)?;
        from.parent.may_change(&from.name, Some(moved), old)?;
        to.parent.may_change(&to.name, to.stat.as_ref(), new)?;
        to.parent.may_receive(&to.name, &from, new)?;
        // Asked of the kernel, it would be told apart from a rename it does not know only by trying.
        if Kind::of(moved) == Kind::Directory && to.parent.is_in(Id::of(moved)) {
            return Err(into_itself(old, new));
        }
        if let Some(replaced) = &to.stat {
            // A rename between two names of one file does nothing and says that it succeeded.
            if Id::of(moved) == Id::of(replaced) {
                return Err(failure::failed(format!("{old} and {new} are the same file; nothing was moved")));
            }
            if args.overwrite && Kind::of(moved) == Kind::Directory && Kind::of(replaced) != Kind::Directory {
                return Err(failure::failed(format!(
                    "{old} is a directory and cannot replace the file {new}"
                )));
            }
        }
        Ok(Self { from, to, from_path, to_path })
    }

    /// What would be replaced, if anything would.
    fn replaced(&self, args: &Args) -> Result<Option<Existing>, Fault> {
        if args.overwrite { describe_target(&self.to, self.to_path.shown()) } else { Ok(None) }
    }

    /// Tells what would be moved, and what would be replaced, from everything else.
    fn fingerprint(&self, replaced: Option<&Existing>) -> Result<String, Fault> {
        let moved = identity(self.from.existing(self.from_path.shown())?);
        let replaced = replaced.map_or("", |existing| &existing.fingerprint);
        Ok(Digest::of_parts(&[moved.as_bytes(), replaced.as_bytes()]).to_string())
    }

    /// What a failed rename means.
    fn failed(&self, error: Errno) -> Fault {
        let (from, to) = (self.from_path.shown(), self.to_path.shown());
        match error {
            Errno::INVAL => into_itself(from, to),
            Errno::XDEV => failure::failed(format!(
                "{from} and {to} are on different file systems; write the file anew and delete the old one"
            )),
            _ => failure::os_error("moving", from, error),
        }
    }
}

fn into_itself(from: &str, to: &str) -> Fault {
    failure::failed(format!("{from} cannot be moved into itself ({to})"))
}

impl Entry {
    /// The directory and the name in it.
    fn at(&self) -> (&OwnedFd, &OsString) {
        (&self.parent.dir, &self.name)
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

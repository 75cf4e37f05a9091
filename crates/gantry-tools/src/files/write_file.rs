//! `write_file`: a file appears whole or not at all, and replaces only what was looked at.
//!
//! The content goes to a temporary file in the same directory and takes its name by a rename, so a reader sees the
//! old content or the new one. That also leaves alone what else shares the old file by a hard link. A crash can
//! leave the temporary file behind, as `.gantry-….tmp`, and nothing worse.

use super::{Encoding, FileCall, Precondition, move_file, preflight_blocking, run_blocking};
use crate::failure;
use crate::tool::{CHANGES, Tool};
use crate::toolbox::PermittedCall;
use crate::workspace::definitions::rename_lock;
use crate::workspace::path::RelPath;
use crate::workspace::protected::OpenDir;
use crate::workspace::root::{Entry, Kind, Links, Target, WorkspaceRoot, stat_at, sync};
use crate::workspace::state::describe_target;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::{Annotations, OwnRule};
use gantry_core::{EffectState, Fault};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fstat};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The content of one call.
const WRITTEN_BYTES: usize = 10 * 1024 * 1024;

/// The tool.
#[derive(Debug)]
pub(super) struct WriteFile(pub(super) Arc<WorkspaceRoot>);

/// Writes a whole file of the workspace. Use it to create a file, or to replace the content of one; replacing waits for
/// a person's approval. The file changes in one step: it has the old content or the new one, never a part. At most 10
/// MiB.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Args {
    /// The file, relative to the workspace root.
    path: String,
    /// The whole new content, in the given encoding.
    content: String,
    /// How the content is given: as text, or as base64 for binary files.
    #[serde(default)]
    encoding: Encoding,
    /// Whether to create the directories of the path that do not exist.
    #[serde(default)]
    create_dirs: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The file, relative to the workspace root.
    path: String,
    /// The size of the file in bytes.
    size: usize,
}

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write file";
    const HINTS: Annotations = Annotations { idempotent_hint: Some(true), ..CHANGES };
    const APPROVAL: OwnRule = OwnRule::Depends;
    type Args = Args;
    type Output = Output;

    async fn preflight(&self, args: Args) -> Result<OwnVerdict, Fault> {
        preflight_blocking(&self.0, args, preflight).await
    }

    async fn run(&self, call: PermittedCall<'_, Args>) -> Result<Output, Fault> {
        run_blocking(&self.0, call, EffectState::Possible, write).await
    }
}

fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<OwnVerdict, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    content(args)?;
    let entry = match root.find(path.entry()?, Links::Follow, shown)? {
        Target::Entry(entry) => entry,
        Target::NoParent { base, rest, name } => {
            check_new((&base, &rest, &name), args, shown)?;
            return Ok(OwnVerdict { ask: None, precondition: Some(Precondition::Absent.to_text()) });
        }
    };
    check(&entry, shown)?;
    Ok(match describe_target(&entry, shown)? {
        None => OwnVerdict { ask: None, precondition: Some(Precondition::Absent.to_text()) },
        Some(existing) => OwnVerdict {
            ask: Some(format!("{shown} exists ({}) and would be overwritten", existing.words)),
            precondition: Some(Precondition::Unchanged(existing.fingerprint).to_text()),
        },
    })
}

pub(super) fn write(root: &WorkspaceRoot, call: &FileCall<Args>) -> Result<Output, Fault> {
    let args = &call.args;
    let precondition = call.precondition.as_ref().ok_or_else(failure::missing_precondition)?;
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let content = content(args)?;
    match root.find(path.entry()?, Links::Follow, shown)? {
        Target::Entry(entry) => put(&entry, &content, precondition, shown)?,
        Target::NoParent { base, rest, name } => {
            check_new((&base, &rest, &name), args, shown)?;
            let entry = make_parents(base, &rest, name, shown)?;
            put(&entry, &content, precondition, shown).map_err(after_directories)?;
        }
    }
    Ok(Output { path: path.text(), size: content.len() })
}

/// The bytes to write.
fn content(args: &Args) -> Result<Cow<'_, [u8]>, Fault> {
    let bytes: Cow<'_, [u8]> = match args.encoding {
        Encoding::Utf8 => args.content.as_bytes().into(),
        Encoding::Base64 => BASE64_STANDARD
            .decode(&args.content)
            .map_err(|error| failure::invalid(format!("content is not valid base64: {error}")))?
            .into(),
    };
    if bytes.len() > WRITTEN_BYTES {
        return Err(failure::invalid(format!(
            "content has {} bytes; at most {WRITTEN_BYTES} are written by one call",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// Whether the place may be written to: it is not protected, and nothing or a regular file is there.
fn check(entry: &Entry, shown: &str) -> Result<(), Fault> {
    entry.parent.may_change(&entry.name, entry.stat.as_ref(), shown)?;
    match entry.stat.as_ref().map(Kind::of) {
        None | Some(Kind::File) => Ok(()),
        Some(Kind::Directory) => {
            Err(failure::failed(format!("{shown} is a directory and cannot be overwritten by a file")))
        }
        Some(Kind::Link | Kind::Special) => {
            Err(failure::failed(format!("{shown} is not a regular file and cannot be overwritten")))
        }
    }
}

/// Whether the missing directories of a path may be made.
fn check_new(
    (base, rest, name): (&OpenDir, &[OsString], &OsStr),
    args: &Args,
    shown: &str,
) -> Result<(), Fault> {
    if !args.create_dirs {
        return Err(failure::missing_parent(shown));
    }
    if rest.iter().any(|name| name == "..") {
        return Err(failure::invalid_path(format!(
            "{shown} goes back from a directory that does not exist; leave that part out"
        )));
    }
    base.may_make(rest, name, shown)
}

/// Makes the missing directories, each inside the one before by handle, so that no link can lead astray.
fn make_parents(base: OpenDir, rest: &[OsString], name: OsString, shown: &str) -> Result<Entry, Fault> {
    let mut parent = base;
    for (n, directory) in rest.iter().enumerate() {
        let effect = |fault: Fault| if n == 0 { fault } else { after_directories(fault) };
        parent.may_change(directory, None, shown).map_err(effect)?;
        let creating = |error| failure::os_error("creating the directory of", shown, error);
        match rustix::fs::mkdirat(&parent.dir, directory, Mode::from_raw_mode(0o777)) {
            Ok(()) => sync(&parent.dir).map_err(|error| after_directories(creating(error)))?,
            // Another process made it meanwhile.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(effect(creating(error))),
        }
        parent = parent.step(directory, shown).map_err(after_directories)?;
    }
    let stat = stat_at(&parent.dir, &name)
        .map_err(|error| after_directories(failure::os_error("looking at", shown, error)))?;
    Ok(Entry { parent, name, stat })
}

/// Directories that were made stay, even if the file does not come.
fn after_directories(fault: Fault) -> Fault {
    match fault.effect {
        EffectState::None => Fault { effect: EffectState::Possible, ..fault },
        EffectState::Possible | EffectState::Done => fault,
    }
}

/// Puts the content in place, if what is there is what was judged.
fn put(entry: &Entry, content: &[u8], precondition: &Precondition, shown: &str) -> Result<(), Fault> {
    check(entry, shown)?;
    let dir = &entry.parent.dir;
    let writing = |error: io::Error| failure::io_error("writing", shown, &error);
    let mut temporary = Temporary::create(dir, entry.stat.as_ref()).map_err(writing)?;
    temporary.fill(content).map_err(writing)?;
    if let Precondition::Unchanged(fingerprint) = precondition
        && describe_target(entry, shown)?.is_none_or(|existing| existing.fingerprint != *fingerprint)
    {
        return Err(failure::outdated(format!(
            "{shown} has changed since it was approved, and nothing was overwritten; call again"
        )));
    }
    let lock = rename_lock();
    // The directory can have been moved meanwhile to where this name means more.
    check(entry, shown)?;
    let renamed = match precondition {
        Precondition::Absent => move_file::without_replacing((dir, &temporary.name), (dir, &entry.name)),
        Precondition::Unchanged(_) => rustix::fs::renameat(dir, &temporary.name, dir, &entry.name),
    };
    drop(lock);
    renamed.map_err(|error| match (precondition, error) {
        (Precondition::Absent, Errno::EXIST) => failure::outdated(format!(
            "{shown} appeared since the call was judged, and nothing was overwritten; call again"
        )),
        (Precondition::Absent | Precondition::Unchanged(_), _) => failure::os_error("writing", shown, error),
    })?;
    temporary.took_its_place = true;
    sync(dir).map_err(|error| failure::not_synced(shown, error))
}

/// A file under a name of its own, gone again unless it takes another file's place.
struct Temporary<'a> {
    dir: &'a OwnedFd,
    name: OsString,
    file: File,
    took_its_place: bool,
}

impl<'a> Temporary<'a> {
    /// Makes it, with the permissions of the file that it will replace.
    fn create(dir: &'a OwnedFd, replaced: Option<&Stat>) -> io::Result<Self> {
        let name: OsString = format!(".gantry-{}.tmp", uuid::Uuid::now_v7().simple()).into();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let file = rustix::fs::openat(dir, OsStr::new(&name), flags, Mode::from_raw_mode(mode))?;
        let temporary = Self { dir, name, file: file.into(), took_its_place: false };
        if let Some(replaced) = replaced {
            let own = fstat(&temporary.file)?;
            if (own.st_uid, own.st_gid) != (replaced.st_uid, replaced.st_gid) {
                let owner = (Uid::from_raw(replaced.st_uid), Gid::from_raw(replaced.st_gid));
                // Only root can give files away; for anyone else the new file is their own.
                rustix::fs::fchown(&temporary.file, Some(owner.0), Some(owner.1)).ok();
            }
            // Changed content does not inherit the right to run as another user.
            rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(replaced.st_mode & 0o777))?;
        }
        Ok(temporary)
    }

    fn fill(&mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.file.sync_all()
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.took_its_place {
            return;
        }
        if let Err(error) = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty()) {
            tracing::warn!(name = ?self.name, %error, "a temporary file could not be removed");
        }
    }
}

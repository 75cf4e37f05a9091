//! `write_file`: a file appears whole or not at all, and replaces only what was looked at.
//!
//! The content goes to a temporary file in the same directory and takes its name by a rename, so a reader sees the
//! old content or the new one. That also leaves alone what else shares the old file by a hard link. A crash can
//! leave the temporary file behind, as `.gantry-….tmp`, and nothing worse.

use super::move_file::rename;
use super::{ABSENT, Encoding, FileTool, unchanged, verdict};
use crate::tool::prelude::*;
use crate::workspace::entry::{Kind, sync};
use crate::workspace::path::RelPath;
use crate::workspace::root::{Entry, Existing, Links, WorkspaceRoot};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::EffectState;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

const WRITTEN_BYTES: usize = 10 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct WriteFile;

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

impl FileTool for WriteFile {
    const NAME: &'static str = "write_file";
    const TITLE: &'static str = "Write file";
    const HINTS: Annotations = Annotations { idempotent_hint: Some(true), ..CHANGES };
    const APPROVAL: ApprovalRule = ApprovalRule::Depends;
    type Args = Args;
    type Output = Output;

    fn preflight(root: &WorkspaceRoot, args: &Args) -> Result<Preflight> {
        let path = RelPath::parse(&args.path)?;
        decode_content(args)?;
        Ok(match find_target(root, &path, args)?.describe_target()? {
            None => verdict(None, ABSENT),
            Some(Existing { description, fingerprint }) => {
                let ask = format!("{} exists ({description}) and would be overwritten", path.shown());
                verdict(Some(ask), unchanged(&fingerprint))
            }
        })
    }

    fn run(root: &WorkspaceRoot, call: &PermittedCall<Args>) -> Result<Output> {
        let args = &call.args;
        let judged = call.judged()?;
        let path = RelPath::parse(&args.path)?;
        let content = decode_content(args)?;
        let target = find_target(root, &path, args)?;
        let mut has_made = false;
        let entry = make_parents(target, &mut has_made);
        let written = entry.and_then(|entry| put_content(&entry, &content, judged));
        // Directories that were made stay, even if the file does not come.
        written.map_err(|fault| match fault.effect {
            EffectState::None if has_made => CallFailure { effect: EffectState::Possible, ..fault },
            EffectState::None | EffectState::Possible | EffectState::Done => fault,
        })?;
        Ok(Output { path: path.text(), size: content.len() })
    }
}

fn decode_content(args: &Args) -> Result<Cow<'_, [u8]>> {
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

/// Finds where the content goes, and refuses what may not be written or made. Directories are made only if the call asks
/// for it.
fn find_target(root: &WorkspaceRoot, path: &RelPath, args: &Args) -> Result<Entry> {
    let entry = root.resolve(path, Links::Follow)?;
    if !args.create_dirs {
        entry.at()?;
    }
    if entry.missing.iter().any(|name| name == "..") {
        return Err(failure::invalid_path(format!(
            "{} goes back from a directory that does not exist; leave that part out",
            entry.shown
        )));
    }
    check_target(&entry)?;
    Ok(entry)
}

/// Refuses to write to what is protected, or to anything but a regular file or a free name.
fn check_target(entry: &Entry) -> Result<()> {
    entry.may_change()?;
    match entry.stat.as_ref().map(Kind::of) {
        None | Some(Kind::File) => Ok(()),
        Some(Kind::Directory | Kind::Link | Kind::Special) => {
            Err(failure::failed(format!("{} is not a regular file and cannot be overwritten", entry.shown)))
        }
    }
}

/// Makes the missing directories, each inside the one before by handle, so that no link can lead astray.
fn make_parents(target: Entry, has_made: &mut bool) -> Result<Entry> {
    let Entry { mut parent, missing, name, shown, stat: _ } = target;
    for directory in &missing {
        parent.may_change(directory, None, &shown)?;
        let creating = |error| failure::os_error("creating the directory of", &shown, error);
        match rustix::fs::mkdirat(&parent.dir, directory, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                *has_made = true;
                sync(&parent.dir).map_err(creating)?;
            }
            // Another process made it meanwhile.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(creating(error)),
        }
        parent = parent.enter_child(directory, &shown)?;
    }
    Entry::find(parent, name, &shown)
}

/// Puts the content in place, if what is there is what was judged.
fn put_content(entry: &Entry, content: &[u8], judged: &str) -> Result<()> {
    check_target(entry)?;
    let (shown, (dir, name)) = (&entry.shown, entry.at()?);
    let writing = |error: io::Error| failure::io_error("writing", shown, &error);
    let mut temporary = Temporary::create(dir, entry.stat.as_ref()).map_err(writing)?;
    temporary.file.write_all(content).and_then(|()| temporary.file.sync_all()).map_err(writing)?;
    let is_new = judged == ABSENT;
    if !is_new && entry.describe_target()?.is_none_or(|it| unchanged(&it.fingerprint) != judged) {
        return Err(failure::outdated(format!(
            "{shown} has changed since it was approved, and nothing was overwritten; call again"
        )));
    }
    rename((dir, &temporary.name), (dir, name), !is_new).map_err(|error| match error {
        Errno::EXIST if is_new => failure::outdated(format!(
            "{shown} appeared since the call was judged, and nothing was overwritten; call again"
        )),
        _ => entry.os_error("writing", error),
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
            let (uid, gid) = (Uid::from_raw(replaced.st_uid), Gid::from_raw(replaced.st_gid));
            // Only root can give files away; any other user owns the new file.
            rustix::fs::fchown(&temporary.file, Some(uid), Some(gid)).ok();
            // Changed content does not inherit the right to run as another user.
            rustix::fs::fchmod(&temporary.file, Mode::from_raw_mode(replaced.st_mode & 0o777))?;
        }
        Ok(temporary)
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

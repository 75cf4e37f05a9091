//! `write_file`: a file appears whole or not at all, and replaces only what was looked at.
//!
//! The content goes to a temporary file in the same directory and takes its name by a rename, so a reader sees the
//! old content or the new one. That also leaves alone whatever else shares the old file by a hard link. A crash can
//! leave the temporary file behind, as `.gantry-….tmp`, and nothing worse.

use super::act::{Encoding, Precondition, Write};
use super::path::RelPath;
use super::place::{Kind, Links, Place, Root, Target, stat_at, sync};
use super::protect::Ground;
use super::{definitions, fault, rename, state};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::policy::OwnVerdict;
use gantry_core::{EffectState, Fault};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fstat};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

/// The content of one call.
pub(super) const WRITTEN_BYTES: usize = 10 * 1024 * 1024;

pub(super) fn inspect(root: &Root, args: &Write) -> Result<OwnVerdict, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    content(args)?;
    let place = match root.find(path.entry()?, Links::Follow, shown)? {
        Target::Place(place) => place,
        Target::NoParent { base, rest, name } => {
            check_new((&base, &rest, &name), args, shown)?;
            return Ok(OwnVerdict { ask: None, precondition: Some(Precondition::Absent.to_text()) });
        }
    };
    check(&place, shown)?;
    Ok(match state::look(&place, shown)? {
        None => OwnVerdict { ask: None, precondition: Some(Precondition::Absent.to_text()) },
        Some(existing) => OwnVerdict {
            ask: Some(format!("{shown} exists ({}) and would be overwritten", existing.words)),
            precondition: Some(Precondition::Unchanged(existing.fingerprint).to_text()),
        },
    })
}

pub(super) fn run(root: &Root, args: &Write, precondition: Option<&Precondition>) -> Result<Value, Fault> {
    let precondition = precondition.ok_or_else(fault::unjudged)?;
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let content = content(args)?;
    match root.find(path.entry()?, Links::Follow, shown)? {
        Target::Place(place) => put(&place, &content, precondition, shown)?,
        Target::NoParent { base, rest, name } => {
            check_new((&base, &rest, &name), args, shown)?;
            let place = make_parents(base, &rest, name, shown)?;
            put(&place, &content, precondition, shown).map_err(after_directories)?;
        }
    }
    Ok(json!({ "path": path.text(), "size": content.len() }))
}

/// The bytes to write.
fn content(args: &Write) -> Result<Cow<'_, [u8]>, Fault> {
    let bytes: Cow<'_, [u8]> = match args.encoding {
        Encoding::Utf8 => args.content.as_bytes().into(),
        Encoding::Base64 => BASE64_STANDARD
            .decode(&args.content)
            .map_err(|error| fault::invalid_arguments(format!("content is not valid base64: {error}")))?
            .into(),
    };
    if bytes.len() > WRITTEN_BYTES {
        return Err(fault::invalid_arguments(format!(
            "content has {} bytes; at most {WRITTEN_BYTES} are written by one call",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// Whether the place may be written to: it is not protected, and nothing or a regular file is there.
fn check(place: &Place, shown: &str) -> Result<(), Fault> {
    place.ground.may_change(&place.name, place.stat.as_ref(), shown)?;
    match place.stat.as_ref().map(Kind::of) {
        None | Some(Kind::File) => Ok(()),
        Some(Kind::Directory) => {
            Err(fault::failed(format!("{shown} is a directory and cannot be overwritten by a file")))
        }
        Some(Kind::Link | Kind::Special) => {
            Err(fault::failed(format!("{shown} is not a regular file and cannot be overwritten")))
        }
    }
}

/// Whether the missing directories of a path may be made.
fn check_new(
    (base, rest, name): (&Ground, &[OsString], &OsStr),
    args: &Write,
    shown: &str,
) -> Result<(), Fault> {
    if !args.create_dirs {
        return Err(fault::missing_parent(shown));
    }
    if rest.iter().any(|name| name == "..") {
        return Err(fault::invalid_path(format!(
            "{shown} goes back from a directory that does not exist; leave that part out"
        )));
    }
    base.may_make(rest, name, shown)
}

/// Makes the missing directories, each inside the one before by handle, so that no link can lead astray.
fn make_parents(base: Ground, rest: &[OsString], name: OsString, shown: &str) -> Result<Place, Fault> {
    let mut ground = base;
    for (n, directory) in rest.iter().enumerate() {
        let effect = |fault: Fault| if n == 0 { fault } else { after_directories(fault) };
        ground.may_change(directory, None, shown).map_err(effect)?;
        let creating = |error| fault::os(shown, "creating the directory of", error);
        match rustix::fs::mkdirat(&ground.dir, directory, Mode::from_raw_mode(0o777)) {
            Ok(()) => sync(&ground.dir).map_err(|error| after_directories(creating(error)))?,
            // Somebody else made it meanwhile.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(effect(creating(error))),
        }
        ground = ground.step(directory, shown).map_err(after_directories)?;
    }
    let stat = stat_at(&ground.dir, &name)
        .map_err(|error| after_directories(fault::os(shown, "looking at", error)))?;
    Ok(Place { ground, name, stat })
}

/// Directories that were made stay, even if the file does not come.
fn after_directories(fault: Fault) -> Fault {
    match fault.effect {
        EffectState::None => Fault { effect: EffectState::Possible, ..fault },
        EffectState::Possible | EffectState::Done => fault,
    }
}

/// Puts the content in place, if what is there is what was judged.
fn put(place: &Place, content: &[u8], precondition: &Precondition, shown: &str) -> Result<(), Fault> {
    check(place, shown)?;
    let dir = &place.ground.dir;
    let writing = |error: io::Error| fault::io(shown, "writing", &error);
    let mut temporary = Temporary::create(dir, place.stat.as_ref()).map_err(writing)?;
    temporary.fill(content).map_err(writing)?;
    if let Precondition::Unchanged(fingerprint) = precondition
        && state::look(place, shown)?.is_none_or(|existing| existing.fingerprint != *fingerprint)
    {
        return Err(fault::outdated(format!(
            "{shown} has changed since it was approved, and nothing was overwritten; call again"
        )));
    }
    let turn = definitions::turn();
    // The directory can have been moved meanwhile to where this name means more.
    check(place, shown)?;
    let renamed = match precondition {
        Precondition::Absent => rename::without_replacing((dir, &temporary.name), (dir, &place.name)),
        Precondition::Unchanged(_) => rustix::fs::renameat(dir, &temporary.name, dir, &place.name),
    };
    drop(turn);
    renamed.map_err(|error| match (precondition, error) {
        (Precondition::Absent, Errno::EXIST) => fault::outdated(format!(
            "{shown} appeared since the call was judged, and nothing was overwritten; call again"
        )),
        (Precondition::Absent | Precondition::Unchanged(_), _) => fault::os(shown, "writing", error),
    })?;
    temporary.took_its_place = true;
    sync(dir).map_err(|error| fault::not_synced(shown, error))
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
            // Changed content does not inherit the right to run as somebody else.
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

//! What is at a place right now: in words for the person who is asked, and as a fingerprint to compare later.

use super::root::{Entry, Kind, link_target, stat_at};
use crate::failure;
use gantry_core::Fault;
use gantry_core::digest::Digest;
use rustix::fs::{Mode, OFlags, Stat, fstat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// A file whose content is compared; of a larger one, identity, size and times are.
const HASHED_BYTES: u64 = 64 * 1024 * 1024;
/// What is read at a time to hash a file.
const HASH_BUFFER: usize = 64 * 1024;

/// Something that would be overwritten.
#[derive(Debug)]
pub(crate) struct Existing {
    /// What it is, such as `12 bytes, sha256 ab12cd…`.
    pub(crate) words: String,
    /// Equal fingerprints mean that it is still the same.
    pub(crate) fingerprint: String,
}

/// Looks at what has the place's name now, which may not be what had it when the place was found.
pub(crate) fn describe_target(entry: &Entry, shown: &str) -> Result<Option<Existing>, Fault> {
    let failed = |error: Errno| failure::os_error("looking at", shown, error);
    let dir = &entry.parent.dir;
    let Some(stat) = stat_at(dir, &entry.name).map_err(failed)? else { return Ok(None) };
    let existing = match Kind::of(&stat) {
        Kind::File => {
            regular(entry, &stat).map_err(|error| failure::io_error("looking at", shown, &error))?
        }
        Kind::Link => {
            let target = link_target(dir, &entry.name).map_err(failed)?;
            let digest = Digest::of_parts(&[b"link", &target]);
            Existing { words: "a symbolic link".to_owned(), fingerprint: digest.to_string() }
        }
        Kind::Directory => {
            return Err(failure::failed(format!("{shown} is a directory, which is never replaced")));
        }
        Kind::Special => by_stat("a special file", &stat),
    };
    Ok(Some(existing))
}

fn regular(entry: &Entry, stat: &Stat) -> io::Result<Existing> {
    let size = size(stat);
    let words = bytes(size);
    if size > HASHED_BYTES {
        return Ok(by_stat(&words, stat));
    }
    let file = match open_regular(entry) {
        // A file that may be replaced but not read is still told from another one.
        Err(Errno::ACCESS) => return Ok(by_stat(&words, stat)),
        opened => opened?,
    };
    let (digest, hashed) = hash(File::from(file).take(HASHED_BYTES + 1))?;
    if hashed > HASHED_BYTES {
        return Ok(by_stat(&words, stat));
    }
    let words = format!("{}, sha256 {}…", bytes(hashed), digest.short(6));
    Ok(Existing { words, fingerprint: digest.to_string() })
}

fn hash(mut content: impl Read) -> io::Result<(Digest, u64)> {
    let mut hasher = Sha256::new();
    let mut hashed = 0;
    let mut buffer = vec![0; HASH_BUFFER];
    loop {
        let n = match content.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if n == 0 {
            return Ok((Digest::from_bytes(hasher.finalize().into()), hashed));
        }
        hasher.update(buffer.get(..n).unwrap_or_default());
        hashed += n as u64;
    }
}

/// The fingerprint of what is not read as a whole. Any write to it changes it.
fn by_stat(words: &str, stat: &Stat) -> Existing {
    Existing {
        words: words.to_owned(),
        fingerprint: format!("stat-{}", Digest::of(identity(stat).as_bytes())),
    }
}

/// Which one it is, and when it was last written to, moved or otherwise changed.
pub(crate) fn identity(stat: &Stat) -> String {
    format!(
        "{}:{}:{}:{}.{}:{}.{}",
        stat.st_dev,
        stat.st_ino,
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ctime,
        stat.st_ctime_nsec
    )
}

/// Opens the file at a place to read it. Neither a link nor a pipe without a writer can hold this up.
pub(crate) fn open_regular(entry: &Entry) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&entry.parent.dir, &entry.name, flags, Mode::empty())?;
    if Kind::of(&fstat(&file)?) == Kind::File { Ok(file) } else { Err(Errno::INVAL) }
}

/// A number of bytes in words.
pub(crate) fn bytes(n: u64) -> String {
    if n == 1 { "1 byte".to_owned() } else { format!("{n} bytes") }
}

/// The size in bytes.
pub(crate) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The time of the last change of the content, as RFC 3339 in UTC.
pub(crate) fn modified(stat: &Stat) -> String {
    let nanoseconds = i32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    let time = jiff::Timestamp::new(stat.st_mtime, nanoseconds);
    // A file system can hold times that no calendar has.
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

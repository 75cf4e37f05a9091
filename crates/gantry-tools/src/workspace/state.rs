//! What is at a path right now: described for the approver, and as a fingerprint to compare later.

use super::entry::{Kind, digest_bounded, identity, link_target, open_regular, size, stat_at};
use super::root::Entry;
use crate::failure;
use crate::text::counted;
use gantry_core::Fault;
use gantry_core::digest::Digest;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::io;

/// A file whose content is compared; of a larger one, identity, size and times are.
const HASHED_BYTES: u64 = 64 * 1024 * 1024;

/// Something that would be overwritten.
#[derive(Debug)]
pub(crate) struct Existing {
    /// What it is, such as `12 bytes, sha256 ab12cd…`.
    pub(crate) description: String,
    /// Equal fingerprints mean that it is still the same.
    pub(crate) fingerprint: String,
}

impl Entry {
    /// Describes what has the name now, which may not be what had it when the path was resolved.
    pub(crate) fn describe_target(&self) -> Result<Option<Existing>, Fault> {
        let (dir, name) = self.at();
        let failed = |error| self.os_error("looking at", error);
        let Some(stat) = stat_at(dir, name).map_err(failed)? else { return Ok(None) };
        let existing = match Kind::of(&stat) {
            Kind::File => {
                let found = describe_file(self, &stat);
                found.map_err(|error| failure::io_error("looking at", &self.shown, &error))?
            }
            Kind::Link => {
                let target = link_target(dir, name).map_err(failed)?;
                let fingerprint = Digest::of_parts(&[b"link", &target]).to_string();
                Existing { description: "a symbolic link".to_owned(), fingerprint }
            }
            Kind::Directory => {
                let message = format!("{} is a directory, which is never replaced", self.shown);
                return Err(failure::failed(message));
            }
            Kind::Special => describe_by_stat("a special file".to_owned(), &stat),
        };
        Ok(Some(existing))
    }
}

fn describe_file(entry: &Entry, stat: &Stat) -> io::Result<Existing> {
    let by_stat = || describe_by_stat(counted(size(stat), "byte"), stat);
    if size(stat) > HASHED_BYTES {
        return Ok(by_stat());
    }
    let (dir, name) = entry.at();
    let file = match open_regular(dir, name) {
        // A file that may be replaced but not read is still told from another one.
        Err(Errno::ACCESS) => return Ok(by_stat()),
        opened => opened?.0,
    };
    Ok(digest_bounded(file, HASHED_BYTES)?.map_or_else(by_stat, |(digest, size)| Existing {
        description: format!("{}, sha256 {}…", counted(size, "byte"), digest.short(6)),
        fingerprint: digest.to_string(),
    }))
}

/// The fingerprint of what is not read as a whole. Any write to it changes it.
fn describe_by_stat(description: String, stat: &Stat) -> Existing {
    Existing { description, fingerprint: format!("stat-{}", Digest::of(identity(stat).as_bytes())) }
}

//! `read_file`: the content of a regular file, as far as it fits.

use super::act::{Encoding, Read};
use super::fault;
use super::path::RelPath;
use super::place::{Kind, Links, Root};
use super::protect::Id;
use super::state::{modified, open_regular, size};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::Fault;
use rustix::fs::fstat;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;

/// What is read of one file; a larger file is refused, not cut.
pub(super) const READ_BYTES: u64 = 10 * 1024 * 1024;

pub(super) fn run(root: &Root, args: &Read) -> Result<Value, Fault> {
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let place = root.place(path.entry()?, Links::Follow, shown)?;
    let found = place.existing(shown)?;
    place.ground.fences.check(Id::of(found), shown)?;
    match Kind::of(found) {
        Kind::File => {}
        Kind::Directory => {
            return Err(fault::failed(format!("{shown} is a directory; list_directory shows what is in it")));
        }
        Kind::Link | Kind::Special => {
            return Err(fault::failed(format!("{shown} is not a regular file, so it is not read")));
        }
    }
    let opening = |error| fault::os(shown, "reading", error);
    let file = open_regular(&place).map_err(opening)?;
    let stat = fstat(&file).map_err(opening)?;
    // What is open counts, not what had the name a moment ago.
    place.ground.fences.check(Id::of(&stat), shown)?;
    let bytes = bounded(file.into(), size(&stat), shown)?;
    let size = bytes.len();
    let content = match args.encoding {
        Encoding::Base64 => BASE64_STANDARD.encode(&bytes),
        Encoding::Utf8 => String::from_utf8(bytes).map_err(|error| {
            fault::failed(format!(
                "{shown} is not UTF-8 text (byte {}); read it with encoding: \"base64\"",
                error.utf8_error().valid_up_to()
            ))
        })?,
    };
    Ok(json!({ "content": content, "size": size, "modified": modified(&stat) }))
}

/// Reads a file that may grow while it is read, or be larger than it says.
fn bounded(file: File, size: u64, shown: &str) -> Result<Vec<u8>, Fault> {
    let too_large = |size: u64| {
        fault::failed(format!(
            "{shown} has {size} bytes or more; at most {READ_BYTES} are read from one file"
        ))
    };
    if size > READ_BYTES {
        return Err(too_large(size));
    }
    let mut bytes = Vec::new();
    let read = file.take(READ_BYTES + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| fault::io(shown, "reading", &error))? as u64;
    if read > READ_BYTES { Err(too_large(read)) } else { Ok(bytes) }
}

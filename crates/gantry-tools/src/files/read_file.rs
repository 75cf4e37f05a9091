//! `read_file`: the content of a regular file, as far as it fits.

use super::{Encoding, FileCall, run_blocking};
use crate::failure;
use crate::tool::{READS, Tool};
use crate::toolbox::PermittedCall;
use crate::workspace::path::RelPath;
use crate::workspace::protected::Id;
use crate::workspace::root::{Kind, Links, WorkspaceRoot};
use crate::workspace::state::{modified, open_regular, size};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gantry_core::tool::Annotations;
use gantry_core::{EffectState, Fault};
use rustix::fs::fstat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

/// What is read of one file; a larger file is refused, not cut.
pub(super) const READ_BYTES: u64 = 10 * 1024 * 1024;

/// The tool.
#[derive(Debug)]
pub(super) struct ReadFile(pub(super) Arc<WorkspaceRoot>);

/// Reads a whole file of the workspace. Use it to see a file's content before changing it. Text comes as it is; read
/// anything that is not UTF-8 text with encoding base64. At most 10 MiB.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file, relative to the workspace root.
    path: String,
    /// How to return the content: as text, or as base64 for binary files.
    #[serde(default)]
    encoding: Encoding,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The content, in the encoding that was asked for.
    content: String,
    /// The size of the file in bytes.
    size: usize,
    /// When the content was last changed, in UTC.
    #[schemars(extend("format" = "date-time"))]
    modified: String,
}

impl Tool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const HINTS: Annotations = READS;
    type Args = Args;
    type Output = Output;

    async fn run(&self, call: PermittedCall<'_, Args>) -> Result<Output, Fault> {
        run_blocking(&self.0, call, EffectState::None, read).await
    }
}

pub(super) fn read(root: &WorkspaceRoot, call: &FileCall<Args>) -> Result<Output, Fault> {
    let args = &call.args;
    let path = RelPath::parse(&args.path)?;
    let shown = path.shown();
    let entry = root.entry(path.entry()?, Links::Follow, shown)?;
    let found = entry.existing(shown)?;
    entry.parent.fences.check(Id::of(found), shown)?;
    match Kind::of(found) {
        Kind::File => {}
        Kind::Directory => {
            return Err(failure::failed(format!(
                "{shown} is a directory; list_directory shows what is in it"
            )));
        }
        Kind::Link | Kind::Special => {
            return Err(failure::failed(format!("{shown} is not a regular file, so it is not read")));
        }
    }
    let opening = |error| failure::os_error("reading", shown, error);
    let file = open_regular(&entry).map_err(opening)?;
    let stat = fstat(&file).map_err(opening)?;
    // What is open counts, not what had the name a moment ago.
    entry.parent.fences.check(Id::of(&stat), shown)?;
    let bytes = bounded(file.into(), size(&stat), shown)?;
    let size = bytes.len();
    let content = match args.encoding {
        Encoding::Base64 => BASE64_STANDARD.encode(&bytes),
        Encoding::Utf8 => String::from_utf8(bytes).map_err(|error| {
            failure::failed(format!(
                "{shown} is not UTF-8 text (byte {}); read it with encoding: \"base64\"",
                error.utf8_error().valid_up_to()
            ))
        })?,
    };
    Ok(Output { content, size, modified: modified(&stat) })
}

/// Reads a file that may grow while it is read, or be larger than it says.
fn bounded(file: File, size: u64, shown: &str) -> Result<Vec<u8>, Fault> {
    let too_large = |size: u64| {
        failure::failed(format!(
            "{shown} has {size} bytes or more; at most {READ_BYTES} are read from one file"
        ))
    };
    if size > READ_BYTES {
        return Err(too_large(size));
    }
    let mut bytes = Vec::new();
    let read = file.take(READ_BYTES + 1).read_to_end(&mut bytes);
    let read = read.map_err(|error| failure::io_error("reading", shown, &error))? as u64;
    if read > READ_BYTES { Err(too_large(read)) } else { Ok(bytes) }
}

//! `read_file`: the content of a regular file, as far as it fits.

use super::{Encoding, FileTool};
use crate::tool::prelude::*;
use crate::workspace::entry::{Kind, modified, open_regular, read_bounded, size};
use crate::workspace::path::RelPath;
use crate::workspace::protected::FileId;
use crate::workspace::root::{Links, WorkspaceRoot};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// What is read of one file; a larger file is refused, not cut.
pub(super) const READ_BYTES: u64 = 10 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct ReadFile;

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

impl FileTool for ReadFile {
    const NAME: &'static str = "read_file";
    const TITLE: &'static str = "Read file";
    const HINTS: Annotations = READS;
    type Args = Args;
    type Output = Output;

    fn run(root: &WorkspaceRoot, call: &PermittedCall<Args>) -> Result<Output> {
        let args = &call.args;
        let path = RelPath::parse(&args.path)?;
        let shown = path.shown();
        let entry = root.resolve(&path, Links::Follow)?;
        let found = entry.existing()?;
        entry.parent.protection.refuse_hidden(FileId::of(found), shown)?;
        if Kind::of(found) != Kind::File {
            return Err(failure::failed(format!(
                "{shown} is not a regular file, so it is not read; list_directory shows what is in a directory"
            )));
        }
        let (dir, name) = entry.at()?;
        let (file, stat) = open_regular(dir, name).map_err(|error| entry.os_error("reading", error))?;
        // What is open counts, not what had the name a moment ago.
        entry.parent.protection.refuse_hidden(FileId::of(&stat), shown)?;
        let content = read_bounded(file, READ_BYTES);
        let bytes =
            content.map_err(|error| failure::io_error("reading", shown, &error))?.ok_or_else(|| {
                let size = size(&stat).max(READ_BYTES + 1);
                failure::failed(format!(
                    "{shown} has {size} bytes or more; at most {READ_BYTES} are read from one file"
                ))
            })?;
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
}

//! The file tools, confined to the workspace.
//!
//! **Invariant:** nothing is overwritten that was not looked at. A preflight check says what is there, the permit
//! carries it as a precondition, and running the tool compares it with what is there by then.

mod delete_file;
mod list_directory;
mod move_file;
mod read_file;
mod write_file;

use crate::failure;
use crate::toolbox::{PermittedCall, ToolBox};
use crate::workspace::allow::Allowed;
use crate::workspace::root::WorkspaceRoot;
use crate::workspace::{Error, ProtectedPaths};
use delete_file::DeleteFile;
use gantry_core::policy::OwnVerdict;
use gantry_core::{EffectState, Fault};
use list_directory::ListDirectory;
use move_file::MoveFile;
use read_file::ReadFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use write_file::WriteFile;

/// What an agent should know before it uses any of them.
const INSTRUCTIONS: &str = "Files are named by paths relative to the workspace root, with forward \
slashes (\"src/main.rs\"); \".\" is the root. Absolute paths and paths that lead outside are refused. Overwriting \
and deleting wait for a person's approval; creating, reading, listing and moving to a free name do not.";

/// What an entry of the tool catalogue offers to do with files.
#[derive(Debug, Clone)]
pub struct FilePolicy {
    /// The tools that it gives.
    pub tools: FsTools,
    /// Where they work: at these paths in the workspace, files or folders that may not exist yet, and below them. No
    /// path at all means the whole workspace.
    pub allowed: Vec<PathBuf>,
}

/// The file tools that one entry gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsTools {
    /// `fs_read`: those that change nothing.
    Read,
    /// `fs_write`: the others.
    Write,
}

/// The file tools of a folder.
///
/// # Errors
/// There is no such folder, it cannot be opened, or it lies inside a hidden one.
pub fn file_tools(root: &Path, protected: ProtectedPaths) -> Result<ToolBox, Error> {
    Ok(all_tools(&Arc::new(WorkspaceRoot::open(root, protected)?)))
}

/// The file tools of an entry of the tool catalogue, under the entry's id: the same tools on the same folder, but
/// only some of them, and only where the entry allows.
///
/// # Errors
/// As for [`file_tools`]; or an allowed path is not inside the folder.
pub fn catalogue_tools(
    id: &str,
    root: &Path,
    protected: ProtectedPaths,
    policy: &FilePolicy,
) -> Result<ToolBox, Error> {
    let opened = WorkspaceRoot::open(root, protected)?;
    Ok(some_tools(&Arc::new(opened.confined(Allowed::new(id, root, &policy.allowed)?)), policy.tools))
}

fn all_tools(root: &Arc<WorkspaceRoot>) -> ToolBox {
    writing(reading(ToolBox::new(), root), root).with_instructions(INSTRUCTIONS)
}

fn some_tools(root: &Arc<WorkspaceRoot>, tools: FsTools) -> ToolBox {
    let scope = root.allowed().map_or("Works in the whole workspace.".to_owned(), |allowed| {
        format!("Works only at these paths of the workspace and below them: {allowed}; others are refused.")
    });
    let tools = match tools {
        FsTools::Read => reading(ToolBox::new(), root),
        FsTools::Write => writing(ToolBox::new(), root),
    };
    tools
        .with_instructions(format!("Files are named by paths relative to the workspace root. {scope}"))
        .with_note(&scope)
}

fn reading(tools: ToolBox, root: &Arc<WorkspaceRoot>) -> ToolBox {
    tools.with(ListDirectory(Arc::clone(root))).with(ReadFile(Arc::clone(root)))
}

fn writing(tools: ToolBox, root: &Arc<WorkspaceRoot>) -> ToolBox {
    tools
        .with(WriteFile(Arc::clone(root)))
        .with(DeleteFile(Arc::clone(root)))
        .with(MoveFile(Arc::clone(root)))
}

/// How a file's bytes stand in JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

/// A permitted call on a thread that may block. There is no other way to one than a permit.
#[derive(Debug)]
struct FileCall<Args> {
    args: Args,
    precondition: Option<Precondition>,
    stop: CancellationToken,
}

/// Says on a thread that may block what a call would do.
async fn preflight_blocking<Args: Send + 'static>(
    root: &Arc<WorkspaceRoot>,
    args: Args,
    preflight: fn(&WorkspaceRoot, &Args) -> Result<OwnVerdict, Fault>,
) -> Result<OwnVerdict, Fault> {
    let root = Arc::clone(root);
    let done = spawn_blocking(move || preflight(&root, &args)).await;
    done.unwrap_or_else(|crash| Err(failure::preflight_crashed(&crash)))
}

/// Does what a call is for on a thread that may block. Dropping the future stops work that consists of many steps at its
/// next step. `effect` is how far the work may have got if it crashes.
async fn run_blocking<Args: Send + 'static, Output: Send + 'static>(
    root: &Arc<WorkspaceRoot>,
    call: PermittedCall<'_, Args>,
    effect: EffectState,
    run: fn(&WorkspaceRoot, &FileCall<Args>) -> Result<Output, Fault>,
) -> Result<Output, Fault> {
    let root = Arc::clone(root);
    let stop = call.cancel().child_token();
    let _stops_when_dropped = stop.clone().drop_guard();
    let precondition = call.precondition().map(Precondition::parse).transpose()?;
    let call = FileCall { args: call.args, precondition, stop };
    let done =
        spawn_blocking(
            move || {
                if call.stop.is_cancelled() { Err(failure::canceled()) } else { run(&root, &call) }
            },
        );
    done.await.unwrap_or_else(|crash| Err(failure::crashed(&crash, effect)))
}

/// What was at the target when the call was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Precondition {
    Absent,
    /// Something with this fingerprint.
    Unchanged(String),
}

impl Precondition {
    const ABSENT: &str = "absent";
    const UNCHANGED: &str = "unchanged:";

    fn parse(text: &str) -> Result<Self, Fault> {
        match text.strip_prefix(Self::UNCHANGED) {
            Some(fingerprint) => Ok(Self::Unchanged(fingerprint.to_owned())),
            None if text == Self::ABSENT => Ok(Self::Absent),
            None => Err(failure::unknown_precondition(text)),
        }
    }

    fn to_text(&self) -> Arc<str> {
        match self {
            Self::Absent => Self::ABSENT.into(),
            Self::Unchanged(fingerprint) => format!("{}{fingerprint}", Self::UNCHANGED).into(),
        }
    }
}

#[cfg(test)]
mod tests;

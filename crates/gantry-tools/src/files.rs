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
use crate::options::FilePolicy;
use crate::tool;
use crate::toolbox::{PermittedCall, ToolBox};
use crate::workspace::allow::Allowed;
use crate::workspace::root::WorkspaceRoot;
use crate::workspace::{Error, ProtectedPaths};
use delete_file::DeleteFile;
use gantry_core::policy::Preflight;
use gantry_core::{EffectState, Fault};
use list_directory::ListDirectory;
use move_file::MoveFile;
use read_file::ReadFile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use write_file::WriteFile;

/// What an agent should know before it uses any of them.
const INSTRUCTIONS: &str = "Files are named by paths relative to the workspace root, with forward \
slashes (\"src/main.rs\"); \".\" is the root. Absolute paths and paths that lead outside are refused. Overwriting \
and deleting wait for a person's approval; creating, reading, listing and moving to a free name do not.";

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
    tools: FsTools,
    policy: &FilePolicy,
) -> Result<ToolBox, Error> {
    let opened = WorkspaceRoot::open(root, protected)?;
    Ok(some_tools(&Arc::new(opened.confined(Allowed::new(id, root, &policy.allowed_paths)?)), tools))
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

/// Says on a thread that may block what a call would do.
async fn preflight_blocking<Args: Send + 'static>(
    root: &Arc<WorkspaceRoot>,
    args: Args,
    preflight: fn(&WorkspaceRoot, &Args) -> Result<Preflight, Fault>,
) -> Result<Preflight, Fault> {
    let root = Arc::clone(root);
    tool::run_blocking(EffectState::None, move || preflight(&root, &args)).await?
}

/// Does what a call is for on a thread that may block. Dropping the future stops work that consists of many steps at its
/// next step. `effect` is how far the work may have got if it crashes.
async fn run_blocking<Args: Send + 'static, Output: Send + 'static>(
    root: &Arc<WorkspaceRoot>,
    call: PermittedCall<Args>,
    effect: EffectState,
    run: fn(&WorkspaceRoot, &PermittedCall<Args>) -> Result<Output, Fault>,
) -> Result<Output, Fault> {
    let root = Arc::clone(root);
    let work =
        move || if call.cancel().is_cancelled() { Err(failure::canceled()) } else { run(&root, &call) };
    tool::run_blocking(effect, work).await?
}

/// The precondition of a call whose target did not exist when it was judged.
const ABSENT: &str = "absent";

/// The precondition of a call whose target had this fingerprint when it was judged.
fn unchanged(fingerprint: &str) -> String {
    format!("unchanged:{fingerprint}")
}

/// The answer of a preflight check.
fn verdict(ask: Option<String>, precondition: impl Into<Arc<str>>) -> Preflight {
    Preflight { ask, precondition: Some(precondition.into()) }
}

#[cfg(test)]
mod tests;

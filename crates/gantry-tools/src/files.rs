//! The file tools, confined to the workspace.
//!
//! **Invariant:** nothing is overwritten that was not looked at. A preflight check says what is there, the permit
//! carries it as a precondition, and running the tool compares it with what is there by then.

mod delete_file;
mod list_directory;
mod move_file;
mod read_file;
mod write_file;

use crate::options::FilePolicy;
use crate::tool::prelude::*;
use crate::tool::run_blocking;
use crate::toolbox::ToolBox;
use crate::workspace::allow::Allowed;
use crate::workspace::root::WorkspaceRoot;
use crate::workspace::{Error, ProtectedPaths};
use delete_file::DeleteFile;
use gantry_core::EffectState;
use list_directory::ListDirectory;
use move_file::MoveFile;
use read_file::ReadFile;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::path::Path;
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
    let allowed = Allowed::new(id, root, &policy.allowed_paths)?;
    let scope = allowed.as_ref().map_or("Works in the whole workspace.".to_owned(), |allowed| {
        let paths = allowed.description();
        format!("Works only at these paths of the workspace and below them: {paths}; others are refused.")
    });
    let root = Arc::new(opened.confined(allowed));
    let tools = match tools {
        FsTools::Read => reading(ToolBox::new(), &root),
        FsTools::Write => writing(ToolBox::new(), &root),
    };
    Ok(tools
        .with_instructions(format!("Files are named by paths relative to the workspace root. {scope}"))
        .with_note(&scope))
}

fn all_tools(root: &Arc<WorkspaceRoot>) -> ToolBox {
    writing(reading(ToolBox::new(), root), root).with_instructions(INSTRUCTIONS)
}

fn reading(tools: ToolBox, root: &Arc<WorkspaceRoot>) -> ToolBox {
    tools.with(on::<ListDirectory>(root)).with(on::<ReadFile>(root))
}

fn writing(tools: ToolBox, root: &Arc<WorkspaceRoot>) -> ToolBox {
    tools.with(on::<WriteFile>(root)).with(on::<DeleteFile>(root)).with(on::<MoveFile>(root))
}

fn on<T: FileTool>(root: &Arc<WorkspaceRoot>) -> OnWorkspace<T> {
    OnWorkspace(Arc::clone(root), PhantomData)
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

/// A tool that works on files: what a [`Tool`] says of itself, and plain functions, which may block.
trait FileTool: Debug + Send + Sync + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    const HINTS: Annotations;
    const APPROVAL: ApprovalRule = ApprovalRule::Never;
    type Args: DeserializeOwned + JsonSchema + Send + 'static;
    type Output: Serialize + JsonSchema + Send + 'static;

    fn preflight(_root: &WorkspaceRoot, _args: &Self::Args) -> Result<Preflight> {
        Err(failure::missing_precondition())
    }

    /// Does what a call is for. Work that consists of many steps stops when the call is cancelled.
    fn run(root: &WorkspaceRoot, call: &PermittedCall<Self::Args>) -> Result<Self::Output>;
}

#[derive(Debug)]
struct OnWorkspace<T>(Arc<WorkspaceRoot>, PhantomData<T>);

impl<T: FileTool> Tool for OnWorkspace<T> {
    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const HINTS: Annotations = T::HINTS;
    const APPROVAL: ApprovalRule = T::APPROVAL;
    type Args = T::Args;
    type Output = T::Output;

    async fn preflight(&self, args: T::Args) -> Result<Preflight> {
        let root = Arc::clone(&self.0);
        run_blocking(EffectState::None, move || T::preflight(&root, &args)).await?
    }

    async fn run(&self, call: PermittedCall<T::Args>) -> Result<T::Output> {
        let root = Arc::clone(&self.0);
        let reads = T::HINTS.read_only_hint == Some(true);
        let effect = if reads { EffectState::None } else { EffectState::Possible };
        let work = move || {
            if call.cancel().is_cancelled() { Err(failure::canceled()) } else { T::run(&root, &call) }
        };
        run_blocking(effect, work).await?
    }
}

/// The precondition of a call whose target did not exist when it was judged.
const ABSENT: &str = "absent";

/// The precondition of a call whose target had this fingerprint when it was judged.
fn unchanged(fingerprint: &str) -> String {
    format!("unchanged:{fingerprint}")
}

fn verdict(ask: Option<String>, precondition: impl Into<Arc<str>>) -> Preflight {
    Preflight { ask, precondition: Some(precondition.into()) }
}

#[cfg(test)]
mod tests;

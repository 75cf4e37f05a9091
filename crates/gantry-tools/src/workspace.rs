//! The workspace provider: Gantry's own file tools, confined to one folder.
//!
//! The folder is opened once, at the start. A path is resolved beneath that handle by the kernel, down to the
//! directory that holds its last name; everything after that happens on the opened directory with that single name.
//! So no path is ever checked as text and then used as text, and a folder that is swapped for a link in between
//! leads nowhere.
//!
//! **Invariant:** nothing is overwritten that was not looked at. `inspect` says what is there, the permit carries it
//! as a precondition, and `execute` compares it with what is there by then.

mod act;
mod allow;
mod definitions;
mod fault;
mod list;
mod path;
mod place;
mod protect;
mod read;
mod remove;
mod rename;
mod spec;
mod state;
pub(super) mod within;
mod write;

use crate::own::Part;
use act::{Act, Job};
use allow::Allowed;
use gantry_core::policy::OwnVerdict;
use gantry_core::tool::ToolSpec;
use gantry_core::{ErrorCode, Fault, Permit, Refusal, ResolvedCall};
use gantry_provider::BoxFuture;
use gantry_provider::CallContext;
use place::Root;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// The id and the namespace of this provider.
pub const NAMESPACE: &str = "workspace";

/// The file tools of one folder.
#[derive(Debug)]
pub struct Workspace {
    tools: Vec<ToolSpec>,
    instructions: String,
    root: Arc<Root>,
}

/// What no tool may touch, although it may lie in the workspace: absolute paths, wherever they are and whether or
/// not they exist yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fenced {
    /// Neither read nor changed.
    pub hidden: Vec<PathBuf>,
    /// Read, but not changed.
    pub sealed: Vec<PathBuf>,
    /// Folders with definitions of agents and tools: `agents/*.md`, `agents/*/agent.json` and `tools/*/tool.json` in
    /// them and in each folder of their `projects`, and `gantry.*.lock` in them, are sealed, whenever they appear.
    /// Everything else in there is not.
    pub catalogues: Vec<PathBuf>,
}

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

impl Workspace {
    /// Opens the folder that the tools work in.
    ///
    /// # Errors
    /// There is no such folder, it cannot be opened, or it lies inside a hidden one.
    pub fn open(root: &Path, fenced: Fenced) -> Result<Self, Error> {
        Ok(Self {
            tools: spec::tools(),
            instructions: spec::INSTRUCTIONS.to_owned(),
            root: Arc::new(Root::open(root, fenced)?),
        })
    }

    /// The file tools of an entry of the tool catalogue, under the entry's id: the same tools on the same folder, but
    /// only some of them, and only where the entry allows.
    ///
    /// # Errors
    /// As for [`Workspace::open`]; or an allowed path is not inside the folder.
    pub fn catalogue(id: &str, root: &Path, fenced: Fenced, policy: &FilePolicy) -> Result<Self, Error> {
        let opened = Root::open(root, fenced)?;
        let root = opened.confined(Allowed::new(id, root, &policy.allowed)?);
        Ok(Self {
            tools: spec::catalogue_tools(policy.tools, root.allowed()),
            instructions: spec::catalogue_instructions(root.allowed()),
            root: Arc::new(root),
        })
    }

    /// Says what a tool's own rule comes to. The call's file system work happens on a thread that may block.
    async fn look(&self, tool: &str, arguments: &str) -> Result<OwnVerdict, Refusal> {
        let act = Act::parse(tool, arguments)?;
        let root = Arc::clone(&self.root);
        match spawn_blocking(move || act.inspect(&root)).await {
            Ok(verdict) => verdict.map_err(|fault| Refusal::from(fault.error)),
            Err(crash) => Err(Refusal::new(
                ErrorCode::InternalError,
                format!("looking at the files failed: {crash}. Nothing was changed."),
            )),
        }
    }

    /// Does what the permit is for. Dropping the future stops work that consists of many steps at its next step.
    async fn run(&self, cancel: &CancellationToken, permit: &Permit) -> Result<String, Fault> {
        let job = Job::of(permit).map_err(Fault::without_effect)?;
        let changes = job.changes();
        let root = Arc::clone(&self.root);
        let stop = cancel.child_token();
        let _stops_when_dropped = stop.clone().drop_guard();
        match spawn_blocking(move || job.run(&root, &stop)).await {
            Ok(result) => result,
            Err(crash) => Err(fault::crashed(&crash, changes)),
        }
    }
}

impl Part for Workspace {
    fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    fn inspect<'a>(&'a self, call: &'a ResolvedCall) -> BoxFuture<'a, Result<OwnVerdict, Refusal>> {
        Box::pin(self.look(&call.tool().spec.name, call.arguments()))
    }

    fn execute<'a>(
        &'a self,
        cx: &'a CallContext,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<String, Fault>> {
        Box::pin(self.run(&cx.cancel, permit))
    }

    fn instructions(&self) -> Option<&str> {
        Some(&self.instructions)
    }
}

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing at the path.
    #[error("the workspace folder {} does not exist; create it or set `workspace` to another one", path.display())]
    Missing { path: PathBuf },
    /// There is something else at the path.
    #[error("the workspace {} is not a folder; set `workspace` to a folder", path.display())]
    NotAFolder { path: PathBuf },
    /// It cannot be opened.
    #[error("the workspace folder {} cannot be opened; check its permissions", path.display())]
    Unusable { path: PathBuf, source: std::io::Error },
    /// No tool could ever touch anything in it.
    #[error(
        "the workspace folder {} lies inside {}, which no tool may touch; set `workspace` to a folder outside of it",
        path.display(), protected.display()
    )]
    Protected { path: PathBuf, protected: PathBuf },
    /// An entry of the catalogue allows what is not in it.
    #[error(
        "{entry} allows {}, which is not inside the workspace {}; name paths in the workspace in its `allowedPaths`",
        path.display(), workspace.display()
    )]
    NotInWorkspace { entry: String, path: PathBuf, workspace: PathBuf },
    /// An entry of the catalogue allows more paths than are looked for in each call.
    #[error(
        "{entry} allows {given} paths and at most {} are taken; name folders in its `allowedPaths`",
        allow::ALLOWED_PATHS
    )]
    TooManyAllowed { entry: String, given: usize },
}

#[cfg(test)]
mod tests;

//! The workspace: the one folder that Gantry's own tools work in, and what in it they leave alone.
//!
//! [`root::WorkspaceRoot`] is the handle on it, opened once. A path is resolved beneath that handle by the kernel, down to
//! the directory that holds its last name; everything after that happens on the opened directory with that single name.
//! So no path is ever checked as text and then used as text, and a folder that is swapped for a link in between
//! leads nowhere. What the tools use of it:
//!
//! * [`path::RelPath`]: a path of a caller, parsed.
//! * `WorkspaceRoot::{resolve, resolve_directory}`: what is at such a path, for tools that work on one entry. An [`root::Entry`] says what may be done with it (`may_change`) and what it is now (`describe_target`).
//! * `WorkspaceRoot::reader`, a [`reader::WorkspaceReader`] for tools that read many files in one call: `resolve`,
//!   `kind`, `list`, `open_directory`, `open_file`, `read_bounded`, `digest`. It follows no link, except that `resolve`
//!   follows those of a caller's path, and it leaves out what is hidden.
//! * [`entry`]: the functions on a single name in an opened directory that both are made of.
//!
//! What is protected is decided by [`protected`], where a catalogue entry may work by [`allow`].

pub(crate) mod allow;
pub(crate) mod entry;
pub(crate) mod path;
pub(crate) mod protected;
pub(crate) mod reader;
pub(crate) mod root;

pub use gantry_sandbox::protected::ProtectedPaths;
use std::path::PathBuf;

/// Why a workspace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the workspace folder {} does not exist; create it or set `workspace` to another one", path.display())]
    Missing { path: PathBuf },
    #[error("the workspace {} is not a folder; set `workspace` to a folder", path.display())]
    NotAFolder { path: PathBuf },
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

//! `search_code` and what it is made of.
//!
//! **Invariant:** nothing outside the workspace and nothing that is hidden from tools is read, and no link is followed:
//! every directory and file is opened by single names from the opened root.
//!
//! Every search lists the files (`walk`) and reads them: literal and regex until enough is found (`grep`), ranked all
//! of them (`scan`, `ranked`). Nothing is kept between two searches.

mod embed;
mod grep;
mod matches;
mod opener;
mod ranked;
mod rules;
mod scan;
mod search_code;
mod symbols;
mod walk;
mod words;

use crate::options::SearchOptions;
use crate::toolbox::ToolBox;
use crate::workspace::root::WorkspaceRoot;
use crate::workspace::{Error, ProtectedPaths};
use search_code::SearchCode;
use std::path::Path;

/// The tool that searches a folder.
///
/// # Errors
/// There is no such folder, it cannot be opened, or it lies inside a hidden one.
pub fn search_tools(
    workspace: &Path,
    protected: ProtectedPaths,
    options: SearchOptions,
) -> Result<ToolBox, Error> {
    let root = WorkspaceRoot::open(workspace, protected)?;
    Ok(ToolBox::new().with(SearchCode::new(root, options)))
}

#[cfg(test)]
mod tests;

//! The git tools: look at a repository of the workspace, commit to it, push it.
//!
//! A repository can name programs that git runs: hooks, filters, helpers, monitors. So git itself runs in the jail, every
//! time, and what only looks gets the workspace read-only and no network.
//!
//! **Invariant:** what an approver said yes to is what happens. A commit is bound to the commit below it and to the exact
//! tree, a push to the exact commit, branch and address. After any change in between, a new yes is needed.

mod arguments;
mod changes;
mod commit;
mod diff;
mod log;
mod push;
mod remote;
mod script;
mod status;

use crate::command::runner::CommandRunner;
use crate::options::GitOptions;
use crate::toolbox::ToolBox;
use commit::GitCommit;
use diff::GitDiff;
use log::GitLog;
use push::GitPush;
use status::GitStatus;
use std::sync::Arc;

/// What an agent should know before it uses any of them.
const INSTRUCTIONS: &str = "The git tools work on the repository that path is in (the workspace itself by \
default). Paths in their arguments and results are relative to the workspace root. git_commit and git_push always wait \
for a person's approval, and are bound to what that person saw.";

/// The tools for repositories in the workspace of a runner.
#[must_use]
pub fn git_tools(runner: Arc<CommandRunner>, options: GitOptions) -> ToolBox {
    let git = Arc::new(GitContext { runner, options });
    ToolBox::new()
        .with(GitStatus(Arc::clone(&git)))
        .with(GitDiff(Arc::clone(&git)))
        .with(GitLog(Arc::clone(&git)))
        .with(GitCommit(Arc::clone(&git)))
        .with(GitPush(git))
        .with_instructions(INSTRUCTIONS)
        .unavailable_if(CommandRunner::unavailable_reason)
}

#[derive(Debug)]
struct GitContext {
    runner: Arc<CommandRunner>,
    options: GitOptions,
}

#[cfg(test)]
mod tests;

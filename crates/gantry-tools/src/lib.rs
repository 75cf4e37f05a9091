//! Gantry's own tools: files, code, shell, web, git, search and development.

pub mod builtin;
pub mod command;
pub mod develop;
mod failure;
pub mod files;
pub mod git;
pub mod own;
mod schema;
pub mod search;
#[cfg(test)]
mod testing;
mod text;
mod tool;
pub mod toolbox;
pub mod web;
/// The old names of what runs commands, which git and the tools for developers still have.
pub mod workshop {
    mod toolchains;

    pub use crate::command::runner::{
        CommandRunner as Workshop, CommandSpec as Task, NetworkAccess as Reach, ResourceLimits as Quota,
        RunnerOptions as WorkshopOptions, exit_code, in_jail, limit_fault, millis, outputs,
    };
    pub use toolchains::Toolchains;
}
pub mod workspace;

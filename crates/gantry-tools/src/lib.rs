//! Gantry's own tools: files, code, shell, web, git, search and development.

pub mod builtin;
pub mod command;
pub mod dev;
mod failure;
pub mod files;
pub mod git;
pub mod options;
pub mod search;
#[cfg(test)]
mod testing;
mod text;
mod tool;
pub mod toolbox;
pub mod web;
pub mod workspace;

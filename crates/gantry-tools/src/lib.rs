//! Gantry's own tools: files, code, shell, web, git, search and development.

pub mod code;
pub mod develop;
pub mod git;
pub mod own;
mod schema;
pub mod search;
pub mod shell;
pub mod web;
pub mod workshop;
pub mod workspace;

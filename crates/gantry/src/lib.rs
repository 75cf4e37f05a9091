//! Placeholder.
pub mod config;

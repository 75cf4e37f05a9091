//! `gantry config` as the person types it.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the configuration and report the problems, each with its file, line and key
    Check,
    /// Show every value that applies, and the file and line it comes from; variables and secrets are masked
    Show,
    /// Print the JSON Schema of the configuration, for editors
    Schema,
}

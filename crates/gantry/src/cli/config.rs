//! `gantry config` as the person types it.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the configuration and report every problem with its file, line and key
    Check,
    /// Show what applies after defaults, and the file and line each value came from; variables and secrets are masked
    Show,
    /// Print the JSON Schema of the configuration, for editors
    Schema,
}

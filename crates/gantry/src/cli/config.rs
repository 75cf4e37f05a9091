//! `gantry config` as the person types it.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check the configuration and report every problem with its file, line and key
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what applies after defaults, and the file and line each value came from; variables and secrets are masked
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the configuration, for editors
    Schema,
}

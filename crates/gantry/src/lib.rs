//! The program: command line, configuration, start-up, exit codes.
//!
//! It is a library, so that a Gantry for tests is the same program with one more provider.

mod cli;
mod client;
mod commands;
pub mod config;
mod data_dir;
mod exit;
mod log;
mod signals;
mod startup;
mod term;
mod watch_config;

pub use cli::reference as cli_reference;
pub use startup::own_tool_specs;

use gantry_provider::Provider;
use gantry_runtime::options::ProviderOptions;
use std::collections::HashMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

/// Reads and checks the configuration in a folder, as `gantry config check` does. The error has every problem.
pub fn check_configuration(folder: &std::path::Path) -> Result<(), config::Error> {
    startup::check(&config::Source::new(folder), &config::Env::from([])).map(drop)
}

/// What a program built on this one adds to it, in every project.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// Providers besides those that are built in.
    pub providers: Vec<Arc<dyn Provider>>,
    /// How the tools of those providers are run, by the provider's id.
    pub options: HashMap<Arc<str>, ProviderOptions>,
}

#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>, extra: Extra) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    // The process guard of programs is this executable too; it must start before any thread exists.
    if let Some(code) = gantry_sandbox::guard_main(args.iter().cloned()) {
        return code;
    }
    let cli = match cli::parse(args) {
        Ok(cli) => cli,
        // Help and version are for standard output, mistakes for standard error.
        Err(error) => {
            error.print().ok();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    log::start(&cli);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::code(Err(anyhow::Error::new(error).context("cannot start"))),
    };
    let done = runtime.block_on(async {
        let done = commands::dispatch(cli, extra).await;
        // The last job removes what jobs have left in the workspace.
        gantry_sandbox::jail::wait_idle().await;
        done
    });
    // A thread that reads standard input cannot be stopped; do not wait for it.
    runtime.shutdown_background();
    exit::code(done)
}

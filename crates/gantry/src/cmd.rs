//! The commands, one file each.

mod absent;
mod audit;
mod call;
mod doctor;
mod events;
mod lock;
mod mcp;
mod runs;
mod serve;
mod servers;
mod tools;

use crate::Extra;
use crate::cli::{Cli, Command};
use crate::desk::Setup;
use crate::exit::{Done, Usage};

pub(crate) async fn dispatch(cli: Cli, extra: Extra) -> anyhow::Result<Done> {
    // Looking into a broken set-up is what `doctor` is for, so it reads the configuration itself.
    if let Command::Doctor(asked) = &cli.command {
        return doctor::run(&cli, extra, asked).await;
    }
    let setup = Setup::new(&cli, extra)?;
    match cli.command {
        Command::Serve { bind } => serve::run(setup, bind).await,
        Command::Mcp { who } => mcp::run(setup, &who).await,
        Command::Call(call) => call::run(setup, call).await,
        Command::Tools { who, format, json } => tools::run(setup, &who, format, json).await,
        Command::Servers { action, json } => servers::run(setup, action, json).await,
        Command::Lock { look, json } => lock::run(setup, look, json).await,
        Command::Events(events) => events::run(setup, &events).await,
        Command::Audit { verify, filter } => audit::run(setup, verify, &filter).await,
        Command::Runs(runs) => runs::run(setup, &runs).await,
        Command::Doctor(_) => Ok(Done::Well),
    }
}

/// There is one project in this version.
pub(crate) fn known_project(project: &str) -> Result<(), Usage> {
    if project == "default" {
        Ok(())
    } else {
        Err(Usage(format!("there is no project {project:?}; there is \"default\"")))
    }
}

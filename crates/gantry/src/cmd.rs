//! The commands, one file each.

mod absent;
mod agents;
mod approvals;
mod arguments;
mod audit;
mod call;
mod config;
mod doctor;
mod events;
mod keys;
mod lock;
mod mcp;
mod openapi;
mod policy;
mod reply;
mod runs;
mod serve;
mod servers;
mod tools;

use crate::Extra;
use crate::cli::{Cli, Command};
use crate::config::MAIN_PROJECT;
use crate::desk::Setup;
use crate::exit::Done;
use crate::output;

pub(crate) async fn dispatch(cli: Cli, extra: Extra) -> anyhow::Result<Done> {
    // Looking into a broken set-up is what `doctor` is for, so it reads the configuration itself.
    if let Command::Doctor(asked) = &cli.command {
        return Box::pin(doctor::run(&cli, extra, asked)).await;
    }
    // So do those who judge a configuration that may not hold yet.
    if let Command::Policy { action } = &cli.command {
        return policy::run(&cli, extra, action).await;
    }
    if let Command::Config { action } = &cli.command {
        return config::run(&cli, action);
    }
    // A document is looked at without anything being started.
    if let Command::Openapi { action } = &cli.command {
        return Box::pin(openapi::run(&cli, action)).await;
    }
    let setup = Setup::new(&cli, extra)?;
    match cli.command {
        Command::Serve { bind } => serve::run(setup, bind).await,
        Command::Mcp { who } => mcp::run(setup, &who).await,
        Command::Call(call) => call::run(setup, call).await,
        Command::Tools { who, format, json } => tools::run(setup, &who, format, json).await,
        Command::Approvals { action, list } => approvals::run(setup, action, &list).await,
        Command::Servers { action, of, json } => Box::pin(servers::run(setup, action, &of, json)).await,
        Command::Agents { action, of, json } => agents::run(setup, action, &of, json).await,
        Command::Lock { look, place, json } => lock::run(setup, look, &place, json).await,
        Command::Events(events) => events::run(setup, &events).await,
        Command::Audit { verify, filter } => audit::run(setup, verify, &filter).await,
        Command::Keys { action, list } => keys::run(setup, action, &list).await,
        Command::Runs(runs) => runs::run(setup, &runs).await,
        Command::Doctor(_) | Command::Config { .. } | Command::Policy { .. } | Command::Openapi { .. } => {
            Ok(Done::Well)
        }
    }
}

/// The name of something in a project, as a command takes it.
fn typed(name: &str, project: &str) -> String {
    format!("{}{}", output::shell_word(name), in_project(project))
}

/// What commands take to work in a project; nothing for the one that they work in anyway.
fn in_project(project: &str) -> String {
    match project {
        "" | MAIN_PROJECT => String::new(),
        project => format!(" --project {}", output::shell_word(project)),
    }
}

//! The commands, one file each.

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
mod unavailable_servers;

use crate::Extra;
use crate::cli::{Cli, Command};
use crate::client::{CommandContext, Scope};
use crate::config::MAIN_PROJECT;
use crate::exit::Outcome;
use crate::term;

pub(crate) async fn dispatch(cli: Cli, extra: Extra) -> anyhow::Result<Outcome> {
    let Cli { global, command } = cli;
    let context = || CommandContext::new(&global, extra.clone());
    match command {
        Command::Serve { bind } => serve::run(context()?, bind).await,
        Command::Mcp { caller } => mcp::run(context()?, &caller).await,
        Command::Call(call) => call::run(context()?, call).await,
        Command::Tools { caller, format } => tools::run(context()?, &caller, format).await,
        Command::Approvals { action, list } => approvals::run(context()?, action, list).await,
        Command::Servers { action, list } => Box::pin(servers::run(context()?, action, list)).await,
        Command::Agents { action, list } => agents::run(context()?, action, list).await,
        Command::Lock { action, project } => lock::run(context()?, action, &project).await,
        Command::Events(events) => events::run(context()?, &events).await,
        Command::Audit { action, filter } => {
            context()?.with_client(Scope::LedgerOnly, async |it| audit::run(it, action, &filter).await).await
        }
        Command::Keys { action, list } => {
            context()?.with_client(Scope::LedgerOnly, async |it| keys::run(it, action, list).await).await
        }
        Command::Runs(runs) => {
            context()?.with_client(Scope::LedgerOnly, async |it| runs::run(it, &runs).await).await
        }
        // A broken configuration is one of the findings.
        Command::Doctor(doctor) => Box::pin(doctor::run(context(), &doctor, global.json)).await,
        // These read the configuration on the disk, or another one.
        Command::Policy { action } => policy::run(&global, extra, &action).await,
        Command::Config { action } => Box::pin(config::run(&global, &action)).await,
        Command::Openapi { action } => Box::pin(openapi::run(&global, &action)).await,
    }
}

/// A name as a command takes it, with the option of its project.
fn typed(name: &str, project: &str) -> String {
    format!("{}{}", term::shell_word(name), in_project(project))
}

/// The option that selects a project; empty for the default project.
fn in_project(project: &str) -> String {
    match project {
        "" | MAIN_PROJECT => String::new(),
        project => format!(" --project {}", term::shell_word(project)),
    }
}

/// A key of a YAML map: bare where every reader takes it for the same text, else in quotes.
fn yaml_key(key: &str) -> String {
    let is_bare = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&key.to_lowercase().as_str());
    if is_bare { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

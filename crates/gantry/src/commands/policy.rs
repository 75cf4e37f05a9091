//! `gantry policy`: rules against their examples, against one call, and against what is on record.

mod call;
mod examples;
mod replay;

use crate::Extra;
use crate::cli::{Cli, PolicyAction};
use crate::client::CommandContext;
use crate::config::{Config, Loaded, ProcessEnv, Source};
use crate::exit::Outcome;
use anyhow::Context as _;

pub(super) async fn run(cli: &Cli, extra: Extra, action: &PolicyAction) -> anyhow::Result<Outcome> {
    match action {
        PolicyAction::Test(test) => match &test.tool {
            Some(tool) => call::run(CommandContext::new(cli, extra)?, tool, test).await,
            None => examples::run(&configuration(cli)?, test, cli.json),
        },
        PolicyAction::Replay(replay) => replay::run(cli, extra, replay).await,
    }
}

/// The configuration as it is on the disk. Where that is refused, a Gantry that still goes by another one is no help.
pub(super) fn configuration(cli: &Cli) -> anyhow::Result<Loaded> {
    let folder = std::env::current_dir().context("the working folder is gone; change to another one")?;
    read(&Source { folder, config: cli.config.clone(), data: cli.data.clone() })
}

fn read(source: &Source) -> anyhow::Result<Loaded> {
    let loaded = Config::load(source, &ProcessEnv)?;
    loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(loaded)
}

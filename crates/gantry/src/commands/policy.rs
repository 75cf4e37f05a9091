//! `gantry policy`: rules against their examples, against one call, and against what is on record.

mod replay;
mod test;

use crate::Extra;
use crate::cli::{GlobalOptions, PolicyAction};
use crate::client::{CommandContext, load, source};
use crate::exit::Outcome;

pub(super) async fn run(
    options: &GlobalOptions,
    extra: Extra,
    action: &PolicyAction,
) -> anyhow::Result<Outcome> {
    match action {
        PolicyAction::Test(args) => match &args.tool {
            Some(tool) => test::predict(CommandContext::new(options, extra)?, tool, args).await,
            None => test::run_examples(&load(&source(options)?)?, args, options.json),
        },
        PolicyAction::Replay(replay) => replay::run(options, extra, replay).await,
    }
}

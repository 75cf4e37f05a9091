//! `gantry policy`: rules against their examples, against one call, and against what is on record.

mod call;
mod examples;
mod replay;

use crate::Extra;
use crate::cli::{Cli, PolicyAction};
use crate::config::{Config, Loaded, ProcessEnv, Source};
use crate::desk::Setup;
use crate::exit::Done;
use anyhow::Context as _;

pub(super) async fn run(cli: &Cli, extra: Extra, action: &PolicyAction) -> anyhow::Result<Done> {
    match action {
        PolicyAction::Test(test) => match &test.tool {
            Some(tool) => call::run(Setup::new(cli, extra)?, tool, test).await,
            None => examples::run(&configuration(cli)?, test),
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

/// A number as people read it: 2,310.
pub(super) fn counted(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something, in words.
pub(super) fn several(number: usize, one: &str, many: &str) -> String {
    format!("{} {}", counted(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (2310, "2,310"), (1_234_567, "1,234,567")]
        {
            assert_eq!(counted(number), text);
        }
        assert_eq!(
            (several(1, "rule", "rules"), several(2, "rule", "rules")),
            ("1 rule".into(), "2 rules".into())
        );
    }
}

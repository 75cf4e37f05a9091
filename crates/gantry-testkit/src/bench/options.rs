//! The command line of the bench.

use super::Section;
use super::upstream::Kind;
use anyhow::{Context as _, Result, bail};
use std::path::PathBuf;
use std::time::Duration;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench [options]

Options:
  --seconds S     Seconds per measurement and round, 0.1 to 60; 3 unless told
  --only SECTION  Run one section: pipeline, mcp, toolset, projects, approvals, list,
                  upstream, sandbox, search or idle
  --json FILE     Write the figures to this file too

Tables go to standard output, progress to standard error.
";

/// What was typed.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Print how it is used.
    Help,
    /// Be the server that Gantry is compared with; answers to `tools/list` have this many bytes.
    Echo {
        /// Bytes of such an answer.
        list_bytes: usize,
    },
    /// Be an MCP server that Gantry is put in front of.
    Thin(Kind),
    /// Measure.
    Measure(Options),
}

/// What to measure.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub(super) time: Duration,
    pub(super) only: Option<Section>,
    pub(super) json: Option<PathBuf>,
}

impl Command {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// Names the argument that makes no sense.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut args = args.into_iter().peekable();
        if args.next_if_eq("echo").is_some() {
            let list_bytes = args.next().unwrap_or_else(|| "0".into());
            return Ok(Self::Echo {
                list_bytes: list_bytes.parse().context("echo takes a number of bytes")?,
            });
        }
        if args.next_if_eq("thin").is_some() {
            let kind = args.next().as_deref().and_then(Kind::parse);
            return Ok(Self::Thin(kind.context("thin takes http or stdio")?));
        }
        let mut options = Options { time: Duration::from_secs(3), only: None, json: None };
        while let Some(arg) = args.next() {
            if matches!(arg.as_str(), "--help" | "-h") {
                return Ok(Self::Help);
            }
            let value = args.next().with_context(|| format!("{arg} is unknown or lacks its value"))?;
            match arg.as_str() {
                "--seconds" => options.time = time(&value)?,
                "--only" => options.only = Some(section(&value)?),
                "--json" => options.json = Some(value.into()),
                _ => bail!("there is no option {arg}"),
            }
        }
        Ok(Self::Measure(options))
    }
}

fn time(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().with_context(|| format!("--seconds takes a number, not {text:?}"))?;
    if !(0.1..=60.0).contains(&seconds) {
        bail!("--seconds takes a number from 0.1 to 60, not {text}");
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn section(text: &str) -> Result<Section> {
    let found = Section::ALL.into_iter().find(|section| section.name() == text);
    found.with_context(|| {
        format!("there is no section {text:?}; there are {}", Section::ALL.map(Section::name).join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split_whitespace().map(str::to_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_and_nonsense_is_named() {
        let options = Options {
            time: Duration::from_millis(500),
            only: Some(Section::List),
            json: Some("out.json".into()),
        };
        assert_eq!(parse("--seconds 0.5 --only list --json out.json"), Ok(Command::Measure(options)));
        assert_eq!(parse("echo 12"), Ok(Command::Echo { list_bytes: 12 }));
        assert_eq!(parse("--seconds 1 -h"), Ok(Command::Help));
        for bad in [
            "--seconds",
            "--seconds 0",
            "--seconds nan",
            "--seconds x",
            "--only all",
            "--what 1",
            "1",
            "echo x",
            "thin x",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

//! `cargo xtask`: everything this repository automates, as one small program.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod dist;
mod lines;
mod reference;
mod shell;
mod source;
mod test;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use shell::{Program, target_dir};

/// Builds, runs, checks and measures Gantry
///
/// Exit codes: 0 done, 1 something failed or was found, 2 wrong usage.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Build Gantry and run `gantry serve`, with the arguments passed on
    #[command(disable_help_flag = true)]
    Up(PassedOn),
    /// Check and test everything
    Test(test::Options),
    /// Check the rules of this repository: dependencies, licences, file lengths, words
    Tidy,
    /// Count the lines of the product, crate by crate, without tests
    Lines,
    /// Write the generated pages in docs/reference
    Reference {
        /// Fail where a page differs, instead of writing it
        #[arg(long)]
        check: bool,
    },
    /// Build the program as it is released, stripped, with its symbols in a file beside it
    Dist,
    /// Build for speed and run the benchmarks, with the arguments passed on
    #[command(disable_help_flag = true)]
    Bench(PassedOn),
}

#[derive(Debug, clap::Args)]
struct PassedOn {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

fn main() -> ExitCode {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    run(Command::parse(), manifest.parent().unwrap_or(manifest)).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(command: Command, root: &Path) -> Result<ExitCode> {
    let is_good = match command {
        Command::Up(PassedOn { args }) => {
            let serve = ["run", "--profile", "up", "-p", "gantry", "--", "serve"];
            return Program::cargo(root).args(serve).args(args).replace();
        }
        Command::Bench(PassedOn { args }) => {
            let build = ["build", "--release", "-p", "gantry", "-p", "gantry-testkit", "--bins"];
            Program::cargo(root).args(build).run()?;
            return Program::new(target_dir(root).join("release").join("bench"), root).args(args).replace();
        }
        Command::Dist => dist::run(root).map(|()| true)?,
        Command::Test(options) => test::run(root, &options),
        Command::Tidy => tidy::run(root)?,
        Command::Lines => lines::run(root).map(|()| true)?,
        Command::Reference { check } => reference::run(root, check).map(|()| true)?,
    };
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Command::command().debug_assert();
    }

    #[test]
    fn other_programs_get_their_arguments_unread() {
        let command = Command::try_parse_from(["xtask", "up", "--help", "--data", "d", "--", "x"]).unwrap();
        assert!(
            matches!(command, Command::Up(PassedOn { args }) if args == ["--help", "--data", "d", "--", "x"])
        );
    }
}

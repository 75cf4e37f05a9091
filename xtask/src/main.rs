//! `cargo xtask`: everything this repository automates, as one small program.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]

mod build;
mod lines;
mod reference;
mod shell;
mod specs;
mod test;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use shell::{Program, target_dir};

const USAGE: &str = "\
Usage: cargo xtask <command> [arguments]

Commands:
  up [args]            Build Gantry and run `gantry serve`, with the arguments passed on
  test [options]       Check and test everything; `cargo xtask test --help` lists the steps
  tidy                 Check the rules of this repository: crate edges, sizes, headers, words
  lines                Count the lines of the product, crate by crate, without tests
  reference [--check]  Write the generated pages in docs/reference, or check that they are fresh
  bench [args]         Build for speed and run the bench, with the arguments passed on
  specs [options]      Import public OpenAPI documents and print what became of them, as a table;
                       --long imports all of them, --program PATH does it with a Gantry that is built
  help                 Print this text

Exit codes: 0 done, 1 something failed or was found, 2 wrong usage.
";

/// The exit code for a command line that makes no sense.
const WRONG_USAGE: u8 = 2;

/// What the user typed after `cargo xtask`.
enum Command {
    Up(Vec<String>),
    Test(test::Options),
    Tidy,
    Lines,
    WriteReference,
    CheckReference,
    Bench(Vec<String>),
    Specs(specs::Options),
    Help(String),
}

fn main() -> ExitCode {
    let command = match parse(env::args().skip(1).collect()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {error}; `cargo xtask --help` shows what there is");
            return ExitCode::from(WRONG_USAGE);
        }
    };
    run(command, &root()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn parse(args: Vec<String>) -> Result<Command, String> {
    let mut args = args.into_iter();
    let Some(name) = args.next() else { return Err("name a command".to_owned()) };
    let rest: Vec<String> = args.collect();
    let words: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (name.as_str(), words.as_slice()) {
        ("up", _) => Ok(Command::Up(rest)),
        ("bench", _) => Ok(Command::Bench(rest)),
        ("test", _) if words.iter().take_while(|word| **word != "--").any(is_help) => {
            Ok(Command::Help(test::usage()))
        }
        ("test", _) => test::Options::parse(rest).map(Command::Test),
        ("help" | "--help" | "-h", _) => Ok(Command::Help(USAGE.to_owned())),
        (_, [word]) if is_help(word) => Ok(Command::Help(USAGE.to_owned())),
        ("tidy", []) => Ok(Command::Tidy),
        ("lines", []) => Ok(Command::Lines),
        ("reference", []) => Ok(Command::WriteReference),
        ("reference", ["--check"]) => Ok(Command::CheckReference),
        ("specs", _) => specs::Options::parse(&words).map(Command::Specs),
        ("tidy" | "lines" | "reference", [word, ..]) => Err(format!("`{name}` does not know `{word}`")),
        _ => Err(format!("there is no command `{name}`")),
    }
}

fn is_help(word: &&str) -> bool {
    matches!(*word, "--help" | "-h")
}

fn run(command: Command, root: &Path) -> Result<ExitCode> {
    match command {
        Command::Up(args) => Program::cargo(root)
            .args(["run", "--release", "-p", "gantry", "--", "serve"])
            .args(args)
            .replace(),
        Command::Bench(args) => {
            Program::cargo(root)
                .args(["build", "--release", "-p", "gantry", "-p", "gantry-testkit", "--bins"])
                .run()?;
            Program::new(target_dir(root).join("release").join("bench"), root).args(args).replace()
        }
        Command::Specs(options) => specs::run(root, &options).map(|()| ExitCode::SUCCESS),
        Command::Test(options) => Ok(exit_code(test::run(root, &options))),
        Command::Tidy => Ok(exit_code(tidy::run(root)?)),
        Command::Lines => lines::run(root).map(|()| ExitCode::SUCCESS),
        Command::WriteReference => reference::write(root).map(|()| ExitCode::SUCCESS),
        Command::CheckReference => reference::check(root).map(|()| ExitCode::SUCCESS),
        Command::Help(text) => {
            print!("{text}");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The root of the repository: the folder above this crate.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

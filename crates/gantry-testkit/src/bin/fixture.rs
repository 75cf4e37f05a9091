//! The conformance fixture as a program.

#![expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]

use gantry_testkit::fixture::{self, Options, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprint!("error: {error:#}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match fixture::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

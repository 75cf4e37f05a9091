//! `cargo xtask bench`: measures Gantry and prints the figures. `bench echo` is the server that it compares it with.

#![expect(clippy::print_stderr, reason = "a command-line tool talks to its user")]

use gantry_testkit::bench::alloc::Counting;
use gantry_testkit::bench::{self, Command, USAGE};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let command = match Command::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprint!("error: {error:#}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match bench::run(command, &mut std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

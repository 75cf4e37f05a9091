//! The program `gantry`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gantry::run(std::env::args_os(), gantry::Extra::default())
}

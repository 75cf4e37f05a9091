//! The conformance fixture as a program.

use clap::Parser as _;
use gantry_testkit::fixture::{Options, run};

fn main() -> anyhow::Result<()> {
    run(&Options::parse())
}

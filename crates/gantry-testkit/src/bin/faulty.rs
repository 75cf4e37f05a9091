//! The misbehaving MCP server as a program; `faulty --help` lists its transports, eras and faults.

use clap::Parser as _;
use gantry_testkit::faulty::{Options, run};

fn main() -> anyhow::Result<()> {
    run(Options::parse())
}

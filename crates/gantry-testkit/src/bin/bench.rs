//! `cargo xtask bench`: measures Gantry and prints the figures.

use clap::Parser as _;
use gantry_testkit::bench::alloc::Counting;
use gantry_testkit::bench::{Options, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> anyhow::Result<()> {
    run(&Options::parse(), &mut std::io::stdout())
}

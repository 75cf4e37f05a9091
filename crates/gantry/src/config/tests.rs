//! Whole files: what is accepted, and what is said about what is not.

mod accepted;
mod bounds;
mod files;
mod refused;
mod servers;

use std::path::Path;

use super::build::Base;
use super::env::Variables;
use super::tree::Format;
use super::{Config, Error, FixedEnv, parse};

fn env() -> FixedEnv {
    FixedEnv::from([("MS", "250"), ("YES", "true"), ("SECRET", "hunter2"), ("QUEUE", "disk")])
}

fn load(format: Format, text: &str) -> Result<Config, Error> {
    let name = match format {
        Format::Yaml => "gantry.yaml",
        Format::Json => "gantry.json",
        Format::Toml => "gantry.toml",
    };
    let base = Base { folder: "/home/project".into(), data: "/home/project/.gantry".into() };
    parse(text, format, Path::new(name), &base, &Variables::new(&env())).map(|parsed| parsed.config)
}

#[track_caller]
fn yaml(text: &str) -> Config {
    load(Format::Yaml, text).unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"))
}

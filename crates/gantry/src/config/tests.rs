//! Whole files: what is accepted, and what is said about what is not.

mod accepted;
mod agents;
mod approvals;
mod bounds;
mod catalogue;
mod files;
mod markdown;
mod own;
mod projects;
mod refused;
mod rest;
mod servers;
mod show;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::document::Format;
use super::dotenv::Variables;
use super::load::parse;
use super::resolve::Base;
use super::{Config, Env, Error, Loaded, MAIN_PROJECT, Project, Source};
use gantry_core::pattern::Pattern;
use gantry_core::toolset::{Selection, ToolSelector};

fn env() -> Env {
    Env::from([("MS", "250"), ("YES", "true"), ("SECRET", "hunter2"), ("QUEUE", "disk")])
}

fn load(format: Format, text: &str) -> Result<Config, Error> {
    let name = match format {
        Format::Yaml => "gantry.yaml",
        Format::Json => "gantry.json",
        Format::Toml => "gantry.toml",
    };
    let base = Base { folder: "/home/project".into(), data: "/home/project/.gantry".into(), accepted: None };
    parse(text, format, Path::new(name), &base, &Variables::new(&env())).map(|parsed| parsed.config)
}

#[track_caller]
fn yaml(text: &str) -> Config {
    load(Format::Yaml, text).unwrap_or_else(|error| panic!("{text}\nis refused:\n{error}"))
}

fn values(list: &[Pattern]) -> Vec<&str> {
    list.iter().map(Pattern::as_str).collect()
}

/// The tools that an agent has.
fn uses(selection: &Selection) -> Vec<&str> {
    selection.include.iter().map(ToolSelector::as_str).collect()
}

impl Config {
    /// The project that is the file itself.
    fn main(&self) -> &Project {
        self.project(MAIN_PROJECT).unwrap()
    }
}

/// A working folder with files in it.
struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self(TempDir::new().unwrap());
        files.iter().for_each(|(name, text)| folder.write(name, text));
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn source(&self) -> Source {
        Source::new(self.0.path())
    }

    #[track_caller]
    fn load(&self) -> Loaded {
        Config::load(&self.source(), &Env::from([])).unwrap_or_else(|error| panic!("{error}"))
    }

    #[track_caller]
    fn refused(&self) -> String {
        refused(&self.source(), &Env::from([]))
    }
}

#[track_caller]
fn refused(source: &Source, env: &Env) -> String {
    match Config::load(source, env) {
        Ok(loaded) => panic!("accepted: {loaded:?}"),
        Err(error) => error.to_string(),
    }
}

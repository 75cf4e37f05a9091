//! What kind of project a folder holds.

use super::project_dir::{ProjectDir, has_extension};
use crate::failure::{self, Result};
use crate::text::display_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the names of sources end that make a folder a project on their own. A lone file of Rust or Go does not: their
/// tools would not take it.
const SOURCES: [(Ecosystem, &[&str]); 2] = [
    (Ecosystem::Node, &["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"]),
    (Ecosystem::Python, &["py", "pyi"]),
];

/// A language with its own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ecosystem {
    Cargo,
    Node,
    Python,
    Go,
}

impl Ecosystem {
    const ALL: [Self; 4] = [Self::Cargo, Self::Node, Self::Python, Self::Go];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Node => "node",
            Self::Python => "python",
            Self::Go => "go",
        }
    }

    /// The files of which one makes a folder such a project.
    fn manifests(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["Cargo.toml"],
            Self::Node => &["package.json"],
            Self::Python => {
                &["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"]
            }
            Self::Go => &["go.mod"],
        }
    }

    /// What a folder holds, or what was chosen of it.
    pub(super) fn detect(project: &ProjectDir, chosen: Option<Self>) -> Result<Self> {
        if let Some(file) = &project.file {
            let file = display_text(file);
            return Err(failure::invalid(format!("{file} is a file; name the folder of a project")));
        }
        if let Some(chosen) = chosen {
            return Ok(chosen);
        }
        let has_manifest = |ecosystem: &Self| ecosystem.manifests().iter().any(|name| project.has(name));
        let mut found: Vec<Self> = Self::ALL.into_iter().filter(has_manifest).collect();
        if found.is_empty() {
            found = Self::by_sources(project);
        }
        let folder = project.shown();
        match found[..] {
            [one] => Ok(one),
            [] => Err(failure::invalid(format!(
                "{folder} holds no project that is known: there is none of Cargo.toml, package.json, pyproject.toml, go.mod; \
                 name the folder of one as path, or choose an ecosystem"
            ))),
            _ => Err(failure::invalid(format!(
                "{folder} holds several projects: {}; choose one of them as ecosystem",
                found.iter().map(|known| known.name()).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// What the sources in a folder are of, where it has no manifest; its `tests` count too.
    fn by_sources(project: &ProjectDir) -> Vec<Self> {
        let has_source = |(_, extensions): &(Self, &[&str])| {
            let is_source = |folder: &&str| project.has_file(folder, |name| has_extension(name, extensions));
            ["", "tests", "test"].iter().any(is_source)
        };
        SOURCES.into_iter().filter(has_source).map(|(ecosystem, _)| ecosystem).collect()
    }
}

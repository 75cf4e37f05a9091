//! What kind of project a folder holds.

use super::fault;
use super::site::{Kind, Site};
use gantry_core::Fault;
use serde::Deserialize;
use std::path::Path;

/// Entries of a folder that are looked at for tests and sources.
const ENTRIES: usize = 1000;

/// A language with its own tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ecosystem {
    Cargo,
    Node,
    Python,
    Go,
}

impl Ecosystem {
    pub(super) const ALL: [Self; 4] = [Self::Cargo, Self::Node, Self::Python, Self::Go];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Node => "node",
            Self::Python => "python",
            Self::Go => "go",
        }
    }

    /// The files that make a folder such a project.
    fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["Cargo.toml"],
            Self::Node => &["package.json"],
            Self::Python => {
                &["pyproject.toml", "requirements.txt", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"]
            }
            Self::Go => &["go.mod"],
        }
    }

    /// How the names of its sources end.
    pub(super) fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["rs"],
            Self::Node => &["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"],
            Self::Python => &["py", "pyi"],
            Self::Go => &["go"],
        }
    }

    /// What a folder holds, or what was chosen of it.
    pub(super) fn detect(site: &Site, chosen: Option<Self>) -> Result<Self, Fault> {
        if let Some(chosen) = chosen {
            return Ok(chosen);
        }
        let marked = |ecosystem: &Self| ecosystem.marks().iter().any(|mark| site.has(mark));
        let mut found: Vec<Self> = Self::ALL.into_iter().filter(marked).collect();
        if found.is_empty() {
            found = Self::by_sources(site);
        }
        match found[..] {
            [one] => Ok(one),
            [] => Err(fault::invalid(format!(
                "{} holds no project that is known: there is none of {}; name the folder of one as path, or choose an \
                 ecosystem",
                shown(&site.folder),
                Self::ALL.map(|known| known.marks().first().copied().unwrap_or_default()).join(", ")
            ))),
            _ => Err(fault::invalid(format!(
                "{} holds several projects: {}; choose one of them as ecosystem",
                shown(&site.folder),
                found.iter().map(|known| known.name()).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// What the sources beside each other in a folder are of, where nothing else says it; its `tests` count too.
    fn by_sources(site: &Site) -> Vec<Self> {
        let folders = ["", "tests", "test"].map(|name| site.folder.join(name));
        let entries: Vec<_> = folders.iter().flat_map(|folder| site.entries(folder, ENTRIES)).collect();
        let has = |ecosystem: &Self| {
            entries.iter().any(|(name, kind)| {
                let extension = name.extension().and_then(|extension| extension.to_str());
                *kind == Kind::File && extension.is_some_and(|end| ecosystem.extensions().contains(&end))
            })
        };
        // A file of Rust or Go alone is no project that its tools would take.
        [Self::Node, Self::Python].into_iter().filter(has).collect()
    }
}

/// A folder as messages have it.
pub(super) fn shown(folder: &Path) -> String {
    if folder.as_os_str().is_empty() { "the workspace".to_owned() } else { folder.display().to_string() }
}

//! Cargo manifests, reduced to which package depends on which, and on which line it says so.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Finding;

/// A manifest; `path` is relative to the root.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) path: String,
    pub(super) package: Option<String>,
    pub(super) dependencies: Vec<Dependency>,
}

/// A package that a manifest asks for, by its real name even where the manifest renames it.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Build,
    Dev,
}

const TABLES: [(&str, Kind); 3] =
    [("dependencies", Kind::Normal), ("build-dependencies", Kind::Build), ("dev-dependencies", Kind::Dev)];

/// The root manifest's `[workspace.dependencies]`.
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) entries: Vec<WorkspaceEntry>,
}

#[derive(Debug)]
pub(super) struct WorkspaceEntry {
    /// What the crates write.
    pub(super) key: String,
    /// What it is called where it is published.
    pub(super) name: String,
    pub(super) line: usize,
    /// It lives in this repository.
    pub(super) is_local: bool,
}

impl Workspace {
    pub(super) fn read(root: &Path, findings: &mut Vec<Finding>) -> Result<Self> {
        let text = read(root, "Cargo.toml")?;
        let entries = match DeTable::parse(&text) {
            Ok(document) => {
                let workspace = table(document.get_ref(), "workspace");
                let dependencies = workspace.and_then(|workspace| table(workspace, "dependencies"));
                dependencies.into_iter().flat_map(|entries| workspace_entries(&text, entries)).collect()
            }
            Err(error) => {
                findings.push(unparsable("Cargo.toml", &text, &error));
                Vec::new()
            }
        };
        Ok(Self { entries })
    }

    fn names(&self) -> BTreeMap<&str, &str> {
        self.entries.iter().map(|entry| (entry.key.as_str(), entry.name.as_str())).collect()
    }
}

impl Manifest {
    /// Reads the manifest at `path`; one that is not TOML is a finding and comes back as `None`.
    pub(super) fn read(
        root: &Path,
        path: &str,
        workspace: &Workspace,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Self>> {
        let text = read(root, path)?;
        let document = match DeTable::parse(&text) {
            Ok(document) => document,
            Err(error) => {
                findings.push(unparsable(path, &text, &error));
                return Ok(None);
            }
        };
        let document = document.get_ref();
        let package = table(document, "package").and_then(|package| string(package, "name"));

        let by_target = table(document, "target").into_iter().flat_map(|targets| targets.values());
        let scopes = by_target.filter_map(|scope| scope.get_ref().as_table()).chain([document]);
        let names = workspace.names();
        let mut dependencies = Vec::new();
        for scope in scopes {
            for (section, kind) in TABLES {
                for (key, value) in table(scope, section).into_iter().flatten() {
                    let line = line_at(&text, key.span().start);
                    dependencies.push(Dependency {
                        name: real_name(key.get_ref(), value, &names),
                        kind,
                        line,
                    });
                }
            }
        }
        Ok(Some(Self { path: path.to_owned(), package, dependencies }))
    }
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

fn workspace_entries(text: &str, entries: &DeTable<'_>) -> Vec<WorkspaceEntry> {
    entries
        .iter()
        .map(|(key, value)| WorkspaceEntry {
            key: key.get_ref().to_string(),
            name: real_name(key.get_ref(), value, &BTreeMap::new()),
            line: line_at(text, key.span().start),
            is_local: value.get_ref().get("path").is_some(),
        })
        .collect()
}

fn real_name(key: &str, value: &Spanned<DeValue<'_>>, workspace: &BTreeMap<&str, &str>) -> String {
    let renamed = value.get_ref().as_table().and_then(|entry| string(entry, "package"));
    renamed.unwrap_or_else(|| (*workspace.get(key).unwrap_or(&key)).to_owned())
}

fn table<'a, 'i>(parent: &'a DeTable<'i>, key: &str) -> Option<&'a DeTable<'i>> {
    parent.get(key)?.get_ref().as_table()
}

fn string(parent: &DeTable<'_>, key: &str) -> Option<String> {
    parent.get(key)?.get_ref().as_str().map(str::to_owned)
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn unparsable(path: &str, text: &str, error: &toml::de::Error) -> Finding {
    let line = error.span().map_or(1, |span| line_at(text, span.start));
    Finding::new(
        path,
        line,
        format!("this is not valid TOML, so nothing in it was checked: {}", error.message()),
    )
}

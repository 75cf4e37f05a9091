//! The `specs` step: OpenAPI documents that others wrote, for the tests to import.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::install;
use crate::shell::{Program, target_dir};

const SPECS: &str = "crates/gantry-testkit/specs";

/// Documents that belong together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Corpus {
    pub(crate) name: String,
    /// The package that they come from.
    pub(crate) source: String,
    pub(crate) documents: Vec<PathBuf>,
}

/// Where the documents are; paths in `corpora.json` begin here.
pub(crate) fn folder(root: &Path) -> PathBuf {
    target_dir(root).join("specs")
}

/// Installs the packages, and unpacks what is compressed in them.
pub(crate) fn ensure(root: &Path) -> Result<()> {
    let home = folder(root);
    install::npm(&root.join(SPECS), &home, root)?;
    // It takes a moment, so it is done whether or not anything was installed.
    Program::new("node", &home).args(["unpack.mjs"]).run()
}

/// The corpora, with all of their documents or the usual choice of them.
pub(crate) fn corpora(root: &Path, long: bool) -> Result<Vec<Corpus>> {
    let list: Value = serde_json::from_str(&install::read(&root.join(SPECS).join("corpora.json"))?)?;
    let entries = list.as_array().context("corpora.json is no list")?;
    entries.iter().map(|entry| corpus(&folder(root), entry, long)).collect()
}

fn corpus(home: &Path, entry: &Value, long: bool) -> Result<Corpus> {
    let text =
        |key: &str| entry[key].as_str().map(str::to_owned).with_context(|| format!("a corpus needs `{key}`"));
    let mut documents = Vec::new();
    for key in ["files", "more"].iter().take(if long { 2 } else { 1 }) {
        for path in entry[*key].as_array().into_iter().flatten().filter_map(Value::as_str) {
            collect(&home.join(path), &mut documents)?;
        }
    }
    documents.sort();
    documents.dedup();
    Ok(Corpus { name: text("name")?, source: text("source")?, documents })
}

/// The document at this path, or all below it.
fn collect(path: &Path, documents: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))? {
            let path = entry?.path();
            if path.is_dir() || is_document(&path) {
                collect(&path, documents)?;
            }
        }
    } else {
        documents.push(path.to_path_buf());
    }
    Ok(())
}

fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["json", "yaml", "yml"].iter().any(|known| extension == *known))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_folder_stands_for_the_documents_in_it() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a/b.yaml", "a/c/d.json", "a/e.md", "f.json", "g.json"] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let entry =
            json!({ "name": "n", "source": "s", "files": ["a", "f.json"], "more": ["a/c", "g.json"] });
        let found = |long| {
            let documents = corpus(home.path(), &entry, long).unwrap().documents;
            let names =
                documents.iter().map(|path| path.strip_prefix(home.path()).unwrap().display().to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(found(false), ["a/b.yaml", "a/c/d.json", "f.json"]);
        assert_eq!(found(true), ["a/b.yaml", "a/c/d.json", "f.json", "g.json"]);
    }
}

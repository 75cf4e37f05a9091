//! Every third-party crate of the workspace is described in the catalogue of dependencies.

use std::fs;
use std::path::Path;

use super::Finding;
use super::manifest::Workspace;

const CATALOGUE: &str = "docs/dependencies.md";

pub(super) fn check(root: &Path, workspace: &Workspace, findings: &mut Vec<Finding>) {
    let Ok(catalogue) = fs::read_to_string(root.join(CATALOGUE)) else {
        findings.push(Finding::new(
            CATALOGUE,
            1,
            "this page is missing; name every dependency and why it is here",
        ));
        return;
    };
    for entry in workspace.entries.iter().filter(|entry| !entry.is_local) {
        let key = &entry.key;
        if !catalogue.contains(&format!("`{key}`")) {
            let what =
                format!("`{key}` is not in {CATALOGUE}; say there what it is for and what was rejected");
            findings.push(Finding::new("Cargo.toml", entry.line, what));
        }
    }
}

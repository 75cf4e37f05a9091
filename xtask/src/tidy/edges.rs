//! Which crate may depend on which: the shape of the house, and the sole owners of third-party crates.
//!
//! Cargo accepts any edge that is not a cycle, so without these tables the layers would erode one line at a time.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;
use super::manifest::{Dependency, Kind, Manifest, Workspace};

/// Every crate, with the siblings it may use.
const HOUSE: &[(&str, &[&str])] = &[
    ("gantry-core", &[]),
    ("gantry-provider", &["gantry-core"]),
    ("gantry-egress", &["gantry-core"]),
    ("gantry-store", &["gantry-core"]),
    ("gantry-sandbox", &["gantry-core"]),
    ("gantry-mcp", &["gantry-core", "gantry-egress", "gantry-provider"]),
    ("gantry-tools", &["gantry-core", "gantry-egress", "gantry-provider", "gantry-sandbox"]),
    ("gantry-rest", &["gantry-core", "gantry-egress", "gantry-provider"]),
    ("gantry-upstream", &["gantry-core", "gantry-egress", "gantry-mcp", "gantry-provider", "gantry-sandbox"]),
    // The engine names no provider.
    ("gantry-runtime", &["gantry-core", "gantry-egress", "gantry-provider", "gantry-store"]),
    ("gantry-agent", &["gantry-core", "gantry-runtime", "gantry-egress"]),
    ("gantry-server", &["gantry-core", "gantry-provider", "gantry-runtime", "gantry-agent", "gantry-mcp"]),
    ("gantry", PRODUCT),
    (TESTKIT, PRODUCT),
    ("xtask", &[]),
];

const PRODUCT: &[&str] = &[
    "gantry-core",
    "gantry-provider",
    "gantry-egress",
    "gantry-store",
    "gantry-sandbox",
    "gantry-mcp",
    "gantry-tools",
    "gantry-rest",
    "gantry-upstream",
    "gantry-runtime",
    "gantry-agent",
    "gantry-server",
    "gantry",
];

/// Any crate may use it in its tests.
const TESTKIT: &str = "gantry-testkit";

/// What tests of a crate may use besides: the engine is tested with servers that answer on sockets.
const IN_TESTS: &[(&str, &str)] = &[("gantry-runtime", "gantry-upstream")];

/// Third-party crates that only these may use outside their tests.
const OWNERS: &[(&str, &[&str])] = &[
    ("anyhow", &["gantry", TESTKIT, "xtask"]),
    ("axum", &["gantry-server", TESTKIT]),
    ("clap", &["gantry", TESTKIT, "xtask"]),
    ("hyper", &["gantry-egress", "gantry-server"]),
    ("reqwest", &["gantry-egress"]),
    ("rmcp", &["gantry-mcp", TESTKIT]),
    ("rusqlite", &["gantry-store"]),
    ("tokio-postgres", &["gantry-store"]),
];

/// The core decides and computes; what does I/O stays out of it.
const NOT_IN_CORE: [&str; 7] = ["axum", "cap-std", "hyper", "reqwest", "rusqlite", "rustix", "tokio"];

pub(super) fn check(root: &Path, workspace: &Workspace, findings: &mut Vec<Finding>) -> Result<()> {
    for folder in crate_folders(root)? {
        let path = format!("{folder}/Cargo.toml");
        if !root.join(&path).is_file() {
            findings.push(Finding::new(
                &path,
                1,
                format!("{folder} has no manifest; add it or remove the folder"),
            ));
            continue;
        }
        let Some(manifest) = Manifest::read(root, &path, workspace, findings)? else { continue };
        let name = folder.rsplit('/').next().unwrap_or(&folder);
        check_manifest(name, &manifest, findings);
    }
    Ok(())
}

fn crate_folders(root: &Path) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join("crates")).context("cannot list crates/")? {
        let entry = entry.context("cannot list crates/")?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.starts_with('.') {
            folders.push(format!("crates/{name}"));
        }
    }
    if root.join("xtask").is_dir() {
        folders.push("xtask".to_owned());
    }
    Ok(folders)
}

fn check_manifest(name: &str, manifest: &Manifest, findings: &mut Vec<Finding>) {
    let mut report = |line, what| findings.push(Finding::new(&manifest.path, line, what));

    let Some((_, siblings)) = HOUSE.iter().find(|(crate_name, _)| *crate_name == name) else {
        report(1, format!("`{name}` is not in the table of crates; add it in xtask/src/tidy/edges.rs"));
        return;
    };
    if manifest.package.as_deref() != Some(name) {
        report(1, format!("the package must have the name of its folder, `{name}`"));
    }
    for dependency in &manifest.dependencies {
        if let Some(what) = complaint(name, siblings, dependency) {
            report(dependency.line, what);
        }
    }
}

fn complaint(name: &str, siblings: &[&str], dependency: &Dependency) -> Option<String> {
    let wanted = dependency.name.as_str();
    let is_sibling = HOUSE.iter().any(|(crate_name, _)| *crate_name == wanted);
    let in_tests = dependency.kind == Kind::Dev;
    if is_sibling {
        let for_tests = (wanted == TESTKIT && name != "xtask") || IN_TESTS.contains(&(name, wanted));
        let allowed = siblings.contains(&wanted) || (in_tests && for_tests);
        return (!allowed).then(|| {
            format!("`{name}` may not depend on `{wanted}`; move the code to a crate that may, or pass the value in")
        });
    }
    if in_tests {
        return None;
    }
    if name == "gantry-core" && NOT_IN_CORE.contains(&wanted) {
        return Some(format!("the core does no I/O, so it may not depend on `{wanted}`; move the code up"));
    }
    let (_, owners) = OWNERS.iter().find(|(third_party, _)| *third_party == wanted)?;
    (!owners.contains(&name)).then(|| {
        format!(
            "`{name}` may not depend on `{wanted}`, which belongs to {}; ask that crate for it",
            owners.join(", ")
        )
    })
}

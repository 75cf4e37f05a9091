//! Dependencies: which crate may use which, their licences, sources and versions, from `cargo metadata`.
//!
//! Cargo accepts any edge that is not a cycle, so without these tables the layers would erode one line at a time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::Finding;
use crate::shell::Program;

/// Every crate of the workspace, with those of them that it may use: the map of ARCHITECTURE.md.
const ALLOWED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("gantry-core", &[]),
    ("gantry-provider", &["gantry-core"]),
    ("gantry-egress", &[]),
    ("gantry-store", &["gantry-core"]),
    ("gantry-sandbox", &[]),
    ("gantry-mcp", &["gantry-core", "gantry-egress", "gantry-provider"]),
    ("gantry-tools", &["gantry-core", "gantry-egress", "gantry-provider", "gantry-sandbox"]),
    ("gantry-rest", &["gantry-core", "gantry-egress", "gantry-provider"]),
    ("gantry-upstream", &["gantry-core", "gantry-egress", "gantry-mcp", "gantry-provider", "gantry-sandbox"]),
    // The engine names no provider.
    ("gantry-runtime", &["gantry-core", "gantry-egress", "gantry-provider", "gantry-store"]),
    ("gantry-server", &["gantry-core", "gantry-mcp", "gantry-provider", "gantry-runtime"]),
    ("gantry", ALL),
    (TESTKIT, ALL),
    ("xtask", &[]),
];

/// Any but the testkit and xtask.
const ALL: &[&str] = &["*"];

/// Every crate but xtask may use it in its tests.
const TESTKIT: &str = "gantry-testkit";

/// What the tests of a crate may use besides: the engine is tested with servers that answer on sockets.
const ALLOWED_IN_TESTS: &[(&str, &str)] = &[("gantry-runtime", "gantry-upstream")];

/// Third-party crates that only these crates may use outside their tests.
const OWNERS: &[(&str, &[&str])] = &[
    ("anyhow", &["gantry", TESTKIT, "xtask"]),
    ("axum", &["gantry-server", TESTKIT]),
    ("clap", &["gantry", TESTKIT, "xtask"]),
    ("hyper", &["gantry-egress", "gantry-server", TESTKIT]),
    ("reqwest", &["gantry-egress"]),
    ("rmcp", &["gantry-mcp", TESTKIT]),
    ("rusqlite", &["gantry-store"]),
    ("tokio-postgres", &["gantry-store"]),
];

/// The core decides and computes; crates that do I/O stay out of it.
const NOT_IN_CORE: &[&str] = &["axum", "cap-std", "hyper", "reqwest", "rusqlite", "rustix", "tokio"];

/// TLS is rustls: another implementation would have rules of its own about certificates.
const BANNED: &[&str] = &["native-tls", "openssl-sys"];

/// Permissive licences, each compatible with our Apache-2.0: a decision, not an inventory of today's packages.
/// CDLA-Permissive-2.0 is for data alone, the list of root certificates.
const LICENCES: &str =
    "Apache-2.0 BSD-2-Clause BSD-3-Clause CC0-1.0 CDLA-Permissive-2.0 ISC MIT MIT-0 Unicode-3.0 Zlib";

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
const CATALOGUE: &str = "docs/dependencies.md";

/// A package of the lock file.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// Where it comes from; nothing for a crate of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    /// The real name, also where the manifest renames it.
    name: String,
    /// `dev`, `build` or nothing.
    kind: Option<String>,
    features: BTreeSet<String>,
}

pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let metadata = Program::cargo(root).args(["metadata", "--locked", "--format-version", "1"]).output()?;
    let mut metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    let packages: Vec<Package> = serde_json::from_value(metadata["packages"].take())?;
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for package in &packages {
        if package.source.is_some() {
            findings.extend(check_third_party(package).map(|what| Finding::new("Cargo.lock", what)));
            continue;
        }
        let path =
            package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path).display().to_string();
        let manifest = read(root, &path)?;
        let complaints = check_edges(package).into_iter().chain(check_manifest(&manifest));
        findings.extend(complaints.map(|what| Finding::new(&path, what)));
        used.extend(package.dependencies.iter().map(|dependency| dependency.name.as_str()));
    }
    let catalogue =
        fs::read_to_string(root.join(CATALOGUE)).with_context(|| format!("cannot read {CATALOGUE}"))?;
    let complaints = check_versions(&read(root, "Cargo.toml")?, &used, &catalogue);
    findings.extend(complaints.into_iter().map(|what| Finding::new("Cargo.toml", what)));
    Ok(findings)
}

fn read(root: &Path, path: &str) -> Result<toml::Table> {
    let text = fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))?;
    text.parse().with_context(|| format!("cannot read {path}"))
}

/// What is wrong with the dependencies of a crate of the workspace.
fn check_edges(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ALLOWED_DEPENDENCIES.iter().find(|(other, _)| *other == name) else {
        return vec![format!("`{name}` is not in the table of xtask/src/tidy/dependencies.rs; add it there")];
    };
    package.dependencies.iter().filter_map(|dependency| complaint(package, allowed, dependency)).collect()
}

fn complaint(package: &Package, allowed: &[&str], dependency: &Dependency) -> Option<String> {
    let (name, wanted) = (package.name.as_str(), dependency.name.as_str());
    let is_dev = |dependency: &Dependency| dependency.kind.as_deref() == Some("dev");
    let in_tests = is_dev(dependency);
    let repeats = |other: &Dependency| {
        other.name == wanted && !is_dev(other) && other.features.is_superset(&dependency.features)
    };
    if in_tests && package.dependencies.iter().any(repeats) {
        return Some(format!("`{wanted}` is a dependency already; remove it from the dev-dependencies"));
    }
    if ALLOWED_DEPENDENCIES.iter().any(|(other, _)| *other == wanted) {
        let for_tests = (wanted == TESTKIT && name != "xtask") || ALLOWED_IN_TESTS.contains(&(name, wanted));
        let is_product = ![TESTKIT, "xtask"].contains(&wanted);
        let is_allowed =
            allowed.contains(&wanted) || (allowed == ALL && is_product) || (in_tests && for_tests);
        return (!is_allowed).then(|| {
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

/// Versions are in the table of the workspace, so a manifest names none.
fn check_manifest(manifest: &toml::Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
    let scopes = targets.filter_map(|(_, scope)| scope.as_table()).chain([manifest]);
    let sections = scopes.flat_map(|scope| {
        ["dependencies", "build-dependencies", "dev-dependencies"].map(|section| scope.get(section))
    });
    let entries = sections.flatten().filter_map(toml::Value::as_table).flatten();
    let from_table = |entry: &toml::Value| entry.get("workspace").is_some() || entry.get("path").is_some();
    let own = entries.filter(|(_, entry)| !from_table(entry));
    own.map(|(name, _)| {
        format!("`{name}` has a version of its own; write `{name}.workspace = true` and add it to Cargo.toml")
    })
    .collect()
}

/// Every entry of the workspace's table is used and described, under its own name; nothing else is described.
fn check_versions(manifest: &toml::Table, used: &BTreeSet<&str>, catalogue: &str) -> Vec<String> {
    let table = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let table = table.and_then(toml::Value::as_table);
    let entries = || table.into_iter().flatten().map(|(name, entry)| (name.as_str(), entry));
    let known: BTreeSet<&str> =
        entries().filter(|(_, entry)| entry.get("path").is_none()).map(|(name, _)| name).collect();
    let described: BTreeSet<&str> = catalogue
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| line.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();

    let is_wildcard = |version: Option<&toml::Value>| version.and_then(toml::Value::as_str) == Some("*");
    let mut complaints = Vec::new();
    let mut report = |name: &str, what: &str| complaints.push(format!("`{name}` {what}"));
    for (name, entry) in entries() {
        if !used.contains(name) {
            report(name, "is not used; remove it from the table");
        }
        if is_wildcard(Some(entry)) || is_wildcard(entry.get("version")) {
            report(name, "has no version; name the one that is used");
        }
        if entry.get("package").is_some() {
            report(name, "renames a package; use the package's name");
        }
    }
    known.difference(&described).for_each(|name| report(name, "is not in docs/dependencies.md; describe it"));
    described.difference(&known).for_each(|name| report(name, "is described, but not in the table"));
    complaints
}

/// What is wrong with a package that others wrote.
fn check_third_party(package: &Package) -> impl Iterator<Item = String> {
    let name = format!("{} {}", package.name, package.version);
    let licence = package.license.as_deref().unwrap_or("none");
    let source = package.source.as_deref().unwrap_or_default();
    let complaints = [
        (!is_accepted(licence))
            .then(|| format!("{name} has the licence `{licence}`, which is not in the list")),
        (source != CRATES_IO).then(|| format!("{name} comes from {source}; only crates.io is a source")),
        BANNED
            .contains(&package.name.as_str())
            .then(|| format!("{name} may not be used; rustls takes its place")),
    ];
    complaints.into_iter().flatten()
}

/// Whether a licence expression leaves a choice that the list has: alternatives of conjunctions, as SPDX binds them.
fn is_accepted(expression: &str) -> bool {
    if let Some((start, end)) = innermost_parentheses(expression) {
        let part = |range| expression.get(range).unwrap_or_default();
        let inner = if is_accepted(part(start + 1..end)) { "MIT" } else { "refused" };
        let rest = expression.get(end + 1..).unwrap_or_default();
        return is_accepted(&format!("{}{inner}{rest}", part(0..start)));
    }
    // An exception to a licence only permits more.
    let is_listed = |licence: &str| {
        let licence = licence.split(" WITH ").next().unwrap_or_default().trim();
        LICENCES.split_whitespace().any(|listed| listed == licence)
    };
    // Before SPDX, alternatives were written with a slash.
    expression.replace('/', " OR ").split(" OR ").any(|choice| choice.split(" AND ").all(is_listed))
}

fn innermost_parentheses(expression: &str) -> Option<(usize, usize)> {
    let end = expression.find(')')?;
    Some((expression.get(..end)?.rfind('(')?, end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str, dependencies: &[Value]) -> Package {
        serde_json::from_value(json!({
            "name": name, "version": "1.0.0", "manifest_path": "Cargo.toml", "dependencies": dependencies,
        }))
        .unwrap()
    }

    fn dependency(name: &str, kind: Option<&str>) -> Value {
        json!({ "name": name, "kind": kind, "features": [] })
    }

    #[track_caller]
    fn check_edge(name: &str, wanted: &str, kind: Option<&str>, expected: Option<&str>) {
        let found = check_edges(&package(name, &[dependency(wanted, kind)]));
        match expected {
            None => assert_eq!(found, [""; 0], "{name} → {wanted}"),
            Some(part) => {
                assert!(matches!(&*found, [one] if one.contains(part)), "{name} → {wanted}: {found:?}")
            }
        }
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_found() {
        check_edge("gantry-store", "gantry-core", None, None);
        for kind in [None, Some("build"), Some("dev")] {
            check_edge("gantry-core", "gantry-store", kind, Some("`gantry-store`"));
        }
        check_edge("gantry-utils", "gantry-core", None, Some("not in the table"));
        check_edge("gantry-core", TESTKIT, Some("dev"), None);
        check_edge("gantry-core", TESTKIT, None, Some(TESTKIT));
        check_edge("gantry-runtime", "gantry-upstream", Some("dev"), None);
        check_edge("gantry-runtime", "gantry-upstream", None, Some("gantry-upstream"));
    }

    #[test]
    fn a_third_party_crate_stays_with_its_owner() {
        for (name, _) in OWNERS {
            check_edge("gantry-runtime", name, None, Some(name));
            check_edge("gantry-runtime", name, Some("dev"), None);
        }
        for name in NOT_IN_CORE {
            check_edge("gantry-core", name, None, Some("no I/O"));
        }
    }

    #[test]
    fn a_dev_dependency_that_adds_nothing_is_found() {
        let mut dev = dependency("tokio", Some("dev"));
        let found =
            |dev: &Value| check_edges(&package("gantry", &[dependency("tokio", None), dev.clone()])).len();
        assert_eq!(found(&dev), 1);
        dev["features"] = json!(["test-util"]);
        assert_eq!(found(&dev), 0);
    }

    #[test]
    fn versions_are_in_the_table_of_the_workspace_alone() {
        let text = "[dependencies]\na.workspace = true\nb = '1'\nc = { path = '../c' }\n\
                    [target.'cfg(unix)'.dev-dependencies]\nd = { version = '1' }\n";
        let found = check_manifest(&text.parse().unwrap());
        assert!(matches!(&*found, [d, b] if d.contains("`d`") && b.contains("`b`")), "{found:?}");
    }

    #[test]
    fn the_table_and_the_catalogue_name_the_same_crates() {
        let table = "[workspace.dependencies]\na = '1'\nb = '1'\nc = { package = 'd', version = '*' }\n\
                     gantry = { path = 'g' }\nunused = '1'\n";
        let catalogue = "| `a`, `c` | for `x` |\n| `gone` | y |\n| `unused` | z |\n";
        let found = check_versions(&table.parse().unwrap(), &["a", "b", "c", "gantry"].into(), catalogue);
        let expected = [
            "`c` has no version",
            "`c` renames",
            "`unused` is not",
            "`b` is not in docs",
            "`gone` is described",
        ];
        let fits = |(one, part): (&String, &str)| one.contains(part);
        assert!(found.len() == 5 && found.iter().zip(expected).all(fits), "{found:?}");
    }

    #[test]
    fn packages_come_from_crates_io_with_a_licence_of_the_list() {
        let mut package = package("openssl-sys", &[]);
        package.source = Some("git+https://example.com/a".to_owned());
        let found: Vec<String> = check_third_party(&package).collect();
        assert!(
            matches!(&*found, [licence, source, banned]
            if licence.contains("`none`") && source.contains("crates.io") && banned.contains("rustls")),
            "{found:?}"
        );
    }

    #[test]
    fn a_licence_is_accepted_if_the_list_has_one_of_its_choices() {
        for good in [
            "MIT",
            "MIT/GPL-3.0",
            "GPL-3.0 OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "(GPL-3.0 OR MIT) AND ISC",
        ] {
            assert!(is_accepted(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND GPL-3.0",
            "((GPL-2.0) OR GPL-3.0)",
            "MIT-Modern",
        ] {
            assert!(!is_accepted(bad), "{bad}");
        }
    }
}

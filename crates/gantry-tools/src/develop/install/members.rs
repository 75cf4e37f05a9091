//! The manifests of a project's members, which are installed along with it: packages of a workspace of npm, pnpm, yarn or
//! cargo, modules of one of go, folders that requirements name.
//!
//! Which folders are members is for each program to say, in ways of its own; so every manifest below the project counts.

use super::basis::{MANIFESTS, SETTINGS};
use crate::develop::ecosystem::{Ecosystem, shown};
use crate::develop::fault;
use crate::develop::site::{Bounds, MANIFEST_BYTES, Site};
use gantry_core::Fault;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// How far manifests are looked for. What was built or installed has many that nobody reads again.
const BOUNDS: Bounds =
    Bounds { entries: 200_000, levels: 32, skipped: &[".git", "node_modules", "target", ".venv", "venv"] };

/// The manifests of all members and of the project itself, relative to the workspace.
///
/// # Errors
/// There is more below the project than is looked at.
pub(super) fn manifests(site: &Site, ecosystem: Ecosystem) -> Result<BTreeSet<PathBuf>, Fault> {
    within(site, top(site, ecosystem), &BOUNDS)
}

fn within(site: &Site, top: &Path, bounds: &Bounds) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    let all_seen = site.walk(top, bounds, |path, _| {
        let is_manifest = |name: &str| path.file_name().is_some_and(|own| own == name);
        if MANIFESTS.into_iter().chain(SETTINGS).any(is_manifest) {
            found.insert(path.to_owned());
        }
        ControlFlow::Continue(())
    });
    if all_seen { Ok(found) } else { Err(too_much(site, top, bounds)) }
}

fn too_much(site: &Site, top: &Path, bounds: &Bounds) -> Fault {
    let Bounds { entries, levels, .. } = bounds;
    // Members of a workspace that is declared further up are installed with the others from anywhere.
    let advice = if top == site.folder { "name the member's own folder as path, or " } else { "" };
    fault::failed(format!(
        "{} has more than {entries} files and folders in it, or more than {levels} folders within each other, so that \
         not every manifest there can be looked at; nothing was installed: {advice}take away what does not belong to \
         the project",
        shown(top)
    ))
}

/// The manifests together are more than is read.
pub(super) fn too_large() -> Fault {
    fault::failed(
        "the manifests of the project and its members are too large to be looked at; nothing was installed: take away \
         those that do not belong to the project",
    )
}

/// The topmost folder that declares members, or the project's own: wherever in a workspace they are run, programs
/// install for all of it.
fn top(site: &Site, ecosystem: Ecosystem) -> &Path {
    let declares = |folder: &&Path| {
        let content = |name: &str| site.read_at(&folder.join(name), MANIFEST_BYTES).ok();
        match ecosystem {
            Ecosystem::Node => {
                content("pnpm-workspace.yaml").is_some()
                    || content("package.json").is_some_and(|manifest| declares_in_json(&manifest))
            }
            Ecosystem::Cargo => content("Cargo.toml").is_some_and(|manifest| declares_in_toml(&manifest)),
            Ecosystem::Go => content("go.work").is_some(),
            Ecosystem::Python => false,
        }
    };
    site.folder.ancestors().filter(declares).last().unwrap_or(&site.folder)
}

/// Whether a manifest of npm declares members. One that cannot be read may.
fn declares_in_json(manifest: &[u8]) -> bool {
    let manifest = manifest.strip_prefix("\u{feff}".as_bytes()).unwrap_or(manifest);
    let manifest = serde_json::from_slice::<serde_json::Value>(manifest);
    manifest.map_or(true, |manifest| manifest.get("workspaces").is_some())
}

/// The same for one of cargo.
fn declares_in_toml(manifest: &[u8]) -> bool {
    let manifest = toml::from_slice::<toml::Table>(manifest);
    manifest.map_or(true, |manifest| manifest.contains_key("workspace"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::develop::tests::Bench;

    #[test]
    fn members_beyond_the_bounds_are_refused_with_what_to_do() {
        let bench =
            Bench::new().put("p/package.json", "{}").put("p/m/a/package.json", "{}").put("p/b.js", "");
        let site = bench.site("p").unwrap();
        let within = |entries, levels| {
            let found = within(&site, Path::new("p"), &Bounds { entries, levels, ..BOUNDS });
            found.map(|found| found.len()).map_err(|fault| fault.error.message)
        };
        assert_eq!(within(5, 2), Ok(2));
        for refused in [within(4, 2), within(5, 1)] {
            let said = refused.unwrap_err();
            assert!(
                said.starts_with("p has more than") && said.contains("the member's own folder as path"),
                "{said}"
            );
        }
        // Where a workspace is declared above, the member's folder is no way out.
        let said = too_much(&site, Path::new(""), &BOUNDS).error.message;
        assert!(said.starts_with("the workspace has") && !said.contains("as path"), "{said}");
    }

    #[test]
    fn members_are_looked_for_from_where_they_are_declared() {
        let check = |files: &[(&str, &str)], ecosystem, expected: &str| {
            let bench = files.iter().fold(Bench::new(), |bench, (path, content)| bench.put(path, content));
            std::fs::create_dir_all(bench.ws("a/b")).unwrap();
            let site = bench.site("a/b").unwrap();
            assert_eq!(top(&site, ecosystem), Path::new(expected), "{files:?}");
        };
        let json = r#"{"workspaces":["b"]}"#;
        check(&[("package.json", "{}"), ("a/package.json", json)], Ecosystem::Node, "a");
        check(&[("package.json", json), ("a/package.json", json)], Ecosystem::Node, "");
        check(&[("package.json", "{}"), ("a/b/package.json", "{}")], Ecosystem::Node, "a/b");
        check(&[("package.json", "\u{feff}{\"\\u0077orkspaces\":[]}")], Ecosystem::Node, "");
        check(&[("package.json", "no json")], Ecosystem::Node, "");
        check(&[("a/pnpm-workspace.yaml", "")], Ecosystem::Node, "a");
        check(&[("a/Cargo.toml", "workspace.members = [\"b\"]")], Ecosystem::Cargo, "a");
        check(&[("a/Cargo.toml", "[package]\nname = \"a\"")], Ecosystem::Cargo, "a/b");
        check(&[("go.work", "")], Ecosystem::Go, "");
        check(&[("package.json", json), ("go.work", "")], Ecosystem::Python, "a/b");
    }
}

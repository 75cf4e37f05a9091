//! Which packages a project has, by what lies in its folder.

use crate::develop::ecosystem::Ecosystem;
use crate::develop::site::{MANIFEST_BYTES, Site};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Packages that are looked at.
const PACKAGES: usize = 5000;
/// What one of them says about itself. There may be thousands, so this is less than for a project.
const PACKAGE_BYTES: u64 = 1024 * 1024;

/// Names and versions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Packages(BTreeSet<(String, String)>);

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    version: String,
    /// Where a package of cargo is from; a member of the project has none.
    source: Option<String>,
}

impl Packages {
    pub(super) fn of(site: &Site, ecosystem: Ecosystem) -> Self {
        match ecosystem {
            Ecosystem::Node => node(site),
            Ecosystem::Python => python(site),
            Ecosystem::Cargo => cargo(site),
            Ecosystem::Go => go(site),
        }
    }

    /// Those that others do not have, or have in another version.
    pub(super) fn besides<'a>(&'a self, others: &'a Self) -> impl Iterator<Item = &'a (String, String)> {
        self.0.difference(&others.0)
    }
}

/// What lies in `node_modules`, whoever put it there. Packages within packages are left out.
fn node(site: &Site) -> Packages {
    let modules = site.folder.join("node_modules");
    let visible = |folder: &Path| {
        let entries = site.entries(folder, PACKAGES).into_iter().map(|(name, _)| name);
        entries.filter(|name| !name.to_string_lossy().starts_with('.')).collect::<Vec<PathBuf>>()
    };
    let folders = visible(&modules).into_iter().flat_map(|name| {
        let folder = modules.join(&name);
        let is_scope = name.to_string_lossy().starts_with('@');
        if is_scope {
            visible(&folder).into_iter().map(|inner| folder.join(inner)).collect()
        } else {
            vec![folder]
        }
    });
    let named = folders.take(PACKAGES).filter_map(|folder| {
        let manifest = site.read_at(&folder.join("package.json"), PACKAGE_BYTES).ok()?;
        serde_json::from_slice::<Named>(&manifest).ok()
    });
    Packages(named.map(|package| (package.name, package.version)).collect())
}

/// What lies in the environment of the folder. The folders are called as the standard says: `name-version.dist-info`.
fn python(site: &Site) -> Packages {
    let libraries = [".venv", "venv"].into_iter().flat_map(|environment| {
        let lib = site.folder.join(environment).join("lib");
        site.entries(&lib, PACKAGES).into_iter().map(move |(name, _)| lib.join(name).join("site-packages"))
    });
    let entries = libraries.flat_map(|folder| site.entries(&folder, PACKAGES));
    let named = entries.filter_map(|(name, _)| {
        let (name, version) = name.to_str()?.strip_suffix(".dist-info")?.split_once('-')?;
        Some((name.replace('_', "-"), version.to_owned()))
    });
    Packages(named.collect())
}

/// What the lock file names, of the folder or of the workspace of cargo around it.
fn cargo(site: &Site) -> Packages {
    #[derive(Deserialize)]
    struct Lock {
        #[serde(default)]
        package: Vec<Named>,
    }
    let lock = site
        .above("Cargo.lock")
        .and_then(|folder| site.read_at(&folder.join("Cargo.lock"), MANIFEST_BYTES).ok());
    let lock = lock
        .and_then(|content| String::from_utf8(content).ok())
        .and_then(|text| toml::from_str::<Lock>(&text).ok());
    let packages = lock.into_iter().flat_map(|lock| lock.package).filter(|package| package.source.is_some());
    Packages(packages.map(|package| (package.name, package.version)).collect())
}

/// What `go.mod` requires.
fn go(site: &Site) -> Packages {
    let text = site.text("go.mod").unwrap_or_default();
    let mut within = false;
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        let required = match line {
            "require (" => {
                within = true;
                continue;
            }
            ")" => {
                within = false;
                continue;
            }
            line if within => Some(line),
            line => line.strip_prefix("require "),
        };
        let mut words = required.unwrap_or_default().split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            found.insert((name.to_owned(), version.to_owned()));
        }
    }
    Packages(found)
}

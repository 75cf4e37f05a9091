//! Names of packages as the registries have them, with versions: nothing that a program would take for an option, a
//! file, an address or a repository.

use crate::dev::ecosystem::Ecosystem;
use crate::failure::{self, Result};
use crate::text::display_text;
use regex::Regex;

const PACKAGES: usize = 50;
/// A package with its version; npm takes names of 214 characters.
const PACKAGE_BYTES: usize = 256;
/// Endings by which package managers take a name for that of a file.
const ARCHIVES: [&str; 13] =
    [".tgz", ".tar", ".gz", ".zip", ".whl", ".bz2", ".tbz", ".xz", ".txz", ".lz", ".tlz", ".lzma", ".egg"];

/// What packages of an ecosystem look like. The first group is the name without extras and version.
fn form(ecosystem: Ecosystem) -> &'static str {
    match ecosystem {
        Ecosystem::Node => "((?:@PART/)?PART)(?:@VERSION)?",
        // The comparison belongs to the version.
        Ecosystem::Python => r"(PART)(?:\[PART(?:,PART)*\])?(?:[=<>~!]CHARACTER*)?",
        Ecosystem::Cargo => "(PART)(?:@VERSION)?",
        // A module begins with a host.
        Ecosystem::Go => r"(\w[\w-]*\.[\w.-]*(?:/PART)*)(?:@VERSION)?",
    }
}

/// Refuses what is not the name of a package, perhaps with a version.
pub(super) fn check(ecosystem: Ecosystem, packages: &[String]) -> Result<()> {
    if packages.len() > PACKAGES {
        return Err(failure::invalid(format!(
            "{} packages are given; at most {PACKAGES} are taken",
            packages.len()
        )));
    }
    let form = form(ecosystem).replace("VERSION", "[0-9A-Za-z*^~<>=!]CHARACTER*");
    let form = form.replace("PART", r"\w[\w.-]*").replace("CHARACTER", "[0-9A-Za-z.*^~<>=!,+_|-]");
    // Without Unicode, \w is a letter of ASCII, a digit or an underscore.
    let form =
        Regex::new(&format!("^(?-u:{form})$")).map_err(|error| failure::internal(error.to_string()))?;
    match packages.iter().find(|package| !is_package(&form, package)) {
        None => Ok(()),
        Some(other) => Err(failure::invalid(format!(
            "{} is not the name of a package for {}; give names from the registry, with a version if need be, as \
             react@^18, requests>=2, serde@1 or golang.org/x/text@v0.21.0; paths, addresses, repositories and options \
             are not taken",
            display_text(other),
            ecosystem.name(),
        ))),
    }
}

fn is_package(form: &Regex, package: &str) -> bool {
    let Some(name) = form.captures(package).and_then(|groups| groups.get(1)) else { return false };
    // pip takes a name that ends like an archive for a file, also with extras behind it.
    let is_archive = |text: &str| {
        let text = text.to_ascii_lowercase();
        ARCHIVES.iter().any(|archive| text.ends_with(archive))
    };
    package.len() <= PACKAGE_BYTES && !is_archive(package) && !is_archive(name.as_str())
}

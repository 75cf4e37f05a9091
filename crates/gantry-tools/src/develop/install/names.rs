//! Names of packages as the registries have them, with versions: nothing that a program would take for an option, a
//! file, an address or a repository.

use crate::develop::ecosystem::Ecosystem;
use crate::develop::fault;
use crate::own;
use gantry_core::Fault;

/// Packages of one call.
const PACKAGES: usize = 50;
/// A package with its version; npm takes names of 214 characters.
const PACKAGE_BYTES: usize = 256;
/// Endings by which package managers take a name for that of a file.
const ARCHIVES: [&str; 13] =
    [".tgz", ".tar", ".gz", ".zip", ".whl", ".bz2", ".tbz", ".xz", ".txz", ".lz", ".tlz", ".lzma", ".egg"];

/// Refuses what is not the name of a package, perhaps with a version.
pub(super) fn check(ecosystem: Ecosystem, packages: &[String]) -> Result<(), Fault> {
    if packages.len() > PACKAGES {
        return Err(fault::invalid(format!(
            "{} packages are given; at most {PACKAGES} are taken",
            packages.len()
        )));
    }
    match packages.iter().find(|package| !is_package(ecosystem, package)) {
        None => Ok(()),
        Some(other) => Err(fault::invalid(format!(
            "{} is not the name of a package for {}; give names from the registry, with a version if need be, as {}; \
             paths, addresses, repositories and options are not taken",
            own::shown(other),
            ecosystem.name(),
            example(ecosystem)
        ))),
    }
}

fn example(ecosystem: Ecosystem) -> &'static str {
    match ecosystem {
        Ecosystem::Node => "left-pad, @types/node or react@^18.2.0",
        Ecosystem::Python => "requests, uvicorn[standard] or django>=5,<6",
        Ecosystem::Cargo => "serde or rand@0.9",
        Ecosystem::Go => "golang.org/x/text or github.com/google/uuid@v1.6.0",
    }
}

/// Whether a text is a name, alone or with a version of plain characters. Slashes are for scopes of npm and for modules
/// of go, which begin with a host.
fn is_package(ecosystem: Ecosystem, package: &str) -> bool {
    let (name, version) = split(ecosystem, package);
    let name = match (ecosystem, name.strip_suffix(']').and_then(|name| name.split_once('['))) {
        (Ecosystem::Python, Some((name, extras))) if extras.split(',').all(is_part) => name,
        _ => name,
    };
    let is_name = match (ecosystem, name.split_once('/')) {
        (Ecosystem::Go, None) => is_part(name) && name.contains('.'),
        (_, None) => is_part(name),
        (Ecosystem::Node, Some((scope, name))) => {
            scope.strip_prefix('@').is_some_and(is_part) && is_part(name)
        }
        (Ecosystem::Go, Some((host, path))) => {
            is_part(host) && host.contains('.') && path.split('/').all(is_part)
        }
        (Ecosystem::Python | Ecosystem::Cargo, Some(_)) => false,
    };
    // pip takes a name that ends like an archive for a file, also with extras behind it.
    let is_archive = |text: &str| {
        let text = text.to_ascii_lowercase();
        ARCHIVES.iter().any(|archive| text.ends_with(archive))
    };
    is_name
        && version.is_none_or(is_version)
        && package.len() <= PACKAGE_BYTES
        && !is_archive(package)
        && !is_archive(name)
}

/// The name, and what follows the `@` or, for pip, begins with a comparison.
fn split(ecosystem: Ecosystem, package: &str) -> (&str, Option<&str>) {
    let at = match ecosystem {
        Ecosystem::Python => package.find(['=', '<', '>', '~', '!']),
        // The first character may begin a scope.
        Ecosystem::Node | Ecosystem::Cargo | Ecosystem::Go => package.rfind('@').filter(|at| *at > 0),
    };
    match at.and_then(|at| package.split_at_checked(at)) {
        Some((name, version)) => (name, Some(version.strip_prefix('@').unwrap_or(version))),
        None => (package, None),
    }
}

fn is_part(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn is_version(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_alphanumeric() || "*^~<>=!".contains(c))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".*^~<>=!,+_-|".contains(c))
}

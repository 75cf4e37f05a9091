//! Names of packages as the registries have them, with versions: nothing that a program would take for an option, a
//! file, an address or a repository.

use crate::develop::ecosystem::Ecosystem;
use crate::develop::fault;
use crate::own;
use gantry_core::Fault;
use regex::Regex;
use std::sync::LazyLock;

/// Packages of one call.
const PACKAGES: usize = 50;
/// A package with its version; npm takes names of 214 characters.
const PACKAGE_BYTES: usize = 256;
/// What package managers take for a file of that name, if it ends like this.
const ARCHIVES: [&str; 13] = [
    ".tgz",
    ".tar",
    ".tar.gz",
    ".zip",
    ".whl",
    ".tar.bz2",
    ".tbz",
    ".tar.xz",
    ".txz",
    ".tlz",
    ".tar.lz",
    ".tar.lzma",
    ".egg",
];

/// What a package looks like, by ecosystem.
struct Form {
    ecosystem: Ecosystem,
    form: &'static str,
    example: &'static str,
}

const FORMS: [Form; 4] = [
    Form {
        ecosystem: Ecosystem::Node,
        form: r"^(?:@[A-Za-z0-9~_][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_][A-Za-z0-9._~-]*(?:@[A-Za-z0-9*^~<>=][A-Za-z0-9.*^~<>=|+-]*)?$",
        example: "left-pad, @types/node or react@^18.2.0",
    },
    Form {
        ecosystem: Ecosystem::Python,
        form: r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9][A-Za-z0-9._,-]*\])?(?:(?:===|==|>=|<=|~=|!=|>|<)[A-Za-z0-9][A-Za-z0-9.*+!_-]*(?:,(?:===|==|>=|<=|~=|!=|>|<)[A-Za-z0-9][A-Za-z0-9.*+!_-]*)*)?$",
        example: "requests, uvicorn[standard] or django>=5,<6",
    },
    Form {
        ecosystem: Ecosystem::Cargo,
        form: r"^[A-Za-z][A-Za-z0-9_-]*(?:@[0-9A-Za-z*^~<>=][0-9A-Za-z.*^~<>=+,-]*)?$",
        example: "serde or rand@0.9",
    },
    Form {
        ecosystem: Ecosystem::Go,
        form: r"^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9-]+)+(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*(?:@[A-Za-z0-9][A-Za-z0-9.+_-]*)?$",
        example: "golang.org/x/text or github.com/google/uuid@v1.6.0",
    },
];

static COMPILED: LazyLock<Vec<Option<Regex>>> =
    LazyLock::new(|| FORMS.iter().map(|form| Regex::new(form.form).ok()).collect());

/// Refuses whatever is not the name of a package, perhaps with a version.
pub(super) fn check(ecosystem: Ecosystem, packages: &[String]) -> Result<(), Fault> {
    if packages.len() > PACKAGES {
        return Err(fault::invalid(format!(
            "{} packages are given; at most {PACKAGES} are taken",
            packages.len()
        )));
    }
    let forms = FORMS.iter().zip(COMPILED.iter()).find(|(form, _)| form.ecosystem == ecosystem);
    let Some((form, Some(regex))) = forms else {
        return Err(fault::failed("package names cannot be checked"));
    };
    let is_fine = |package: &&String| {
        package.len() <= PACKAGE_BYTES
            && regex.is_match(package)
            && !ARCHIVES.iter().any(|end| package.to_ascii_lowercase().ends_with(end))
    };
    match packages.iter().find(|package| !is_fine(package)) {
        None => Ok(()),
        Some(odd) => Err(fault::invalid(format!(
            "{} is not the name of a package for {}; give names from the registry, with a version if need be, as {}; \
             paths, addresses, repositories and options are not taken",
            own::shown(odd),
            ecosystem.name(),
            form.example
        ))),
    }
}

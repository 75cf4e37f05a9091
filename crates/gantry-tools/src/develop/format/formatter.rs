//! The formatters that are known: which one is for a file or a project, how it is called, how its check is read.

use super::PATHS;
use crate::develop::ecosystem::{Ecosystem, shown};
use crate::develop::fault;
use crate::develop::site::Site;
use crate::workshop::{Toolchains, in_jail};
use gantry_core::Fault;
use gantry_sandbox::jail::WORKSPACE;
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What prettier formats.
const WEB: [&str; 22] = [
    "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "json", "jsonc", "json5", "css", "scss", "less",
    "html", "vue", "md", "mdx", "yaml", "yml", "graphql", "hbs",
];
const SHELL: [&str; 2] = ["sh", "bash"];
const C: [&str; 8] = ["c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx"];

/// Names that are looked for in the workspace; other lines than names may look like some.
const NAMED: usize = 10_000;

/// A formatter and what it is to work on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Formatter {
    pub(super) name: &'static str,
    /// A name, or a path in the jail.
    pub(super) program: String,
    /// Where it runs, relative to the workspace. What it changes lies in there.
    pub(super) folder: PathBuf,
    /// How the names of the files end that it changes.
    pub(super) extensions: &'static [&'static str],
    fix: Vec<String>,
    check: Vec<String>,
    target: Option<String>,
    names: Names,
}

/// How the answer of a check names files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// `Diff in PATH:LINE:`
    Rust,
    /// The second line of a difference: `+++ PATH`.
    Diff,
    /// A path on each line.
    Lines,
    /// `PATH:LINE:COLUMN: …`
    Places,
}

/// One way to format something.
#[derive(Debug, Clone, Copy)]
struct Way {
    name: &'static str,
    program: &'static str,
    fix: &'static [&'static str],
    check: &'static [&'static str],
    names: Names,
}

const CARGO: Way = Way {
    name: "cargo fmt",
    program: "cargo",
    fix: &["fmt"],
    check: &["fmt", "--", "--check"],
    names: Names::Rust,
};
const RUSTFMT: Way =
    Way { name: "rustfmt", program: "rustfmt", fix: &[], check: &["--check"], names: Names::Rust };
const PRETTIER: Way = Way {
    name: "prettier",
    program: "prettier",
    fix: &["--write", "--log-level=warn"],
    check: &["--list-different"],
    names: Names::Lines,
};
const RUFF: Way = Way {
    name: "ruff",
    program: "ruff",
    fix: &["format", "--no-cache"],
    check: &["format", "--no-cache", "--diff"],
    names: Names::Diff,
};
const BLACK: Way = Way {
    name: "black",
    program: "black",
    fix: &["--quiet"],
    check: &["--quiet", "--diff"],
    names: Names::Diff,
};
const GOFMT: Way = Way { name: "gofmt", program: "gofmt", fix: &["-w"], check: &["-d"], names: Names::Diff };
const SHFMT: Way = Way { name: "shfmt", program: "shfmt", fix: &["-w"], check: &["-d"], names: Names::Diff };
const CLANG: Way = Way {
    name: "clang-format",
    program: "clang-format",
    fix: &["-i"],
    check: &["--dry-run"],
    names: Names::Places,
};

/// What there is to format, and with what.
struct Choice {
    extensions: &'static [&'static str],
    ways: Vec<Way>,
    install: &'static str,
}

impl Formatter {
    /// The first formatter that is there for a file, or for the project in a folder.
    pub(super) fn choose(
        site: &Site,
        chosen: Option<Ecosystem>,
        toolchains: &Toolchains,
    ) -> Result<Self, Fault> {
        let (choice, folder) = match &site.file {
            Some(file) => (Choice::of_file(file, chosen)?, site.folder.clone()),
            None => Choice::of_project(site, Ecosystem::detect(site, chosen)?)?,
        };
        let found = choice.ways.iter().find_map(|way| Some((*way, program(site, way.program, toolchains)?)));
        let Some((way, program)) = found else {
            let names: Vec<&str> = choice.ways.iter().map(|way| way.name).collect();
            return Err(fault::no_program(&names.join("` or `"), choice.install));
        };
        let target = match &site.file {
            Some(file) => Some(file.display().to_string()),
            None => (way.program != CARGO.program).then(|| ".".to_owned()),
        };
        let owned = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>();
        let (mut fix, mut check) = (owned(way.fix), owned(way.check));
        if way.program == RUSTFMT.program {
            let edition = format!("--edition={}", edition(site));
            fix.push(edition.clone());
            check.push(edition);
        }
        let Way { name, names, .. } = way;
        Ok(Self { name, program, folder, extensions: choice.extensions, fix, check, target, names })
    }

    pub(super) fn args(&self, check: bool) -> Vec<String> {
        let mut args = if check { self.check.clone() } else { self.fix.clone() };
        if let Some(target) = &self.target {
            // No file is taken for an option.
            let dashes = !matches!(self.name, "gofmt" | "shfmt");
            args.extend(dashes.then(|| "--".to_owned()));
            args.push(if dashes { target.clone() } else { format!("./{target}") });
        }
        args
    }

    /// Whether what a check writes is a difference for people.
    pub(super) fn shows_difference(&self) -> bool {
        matches!(self.names, Names::Rust | Names::Diff)
    }

    /// The files that a check would change, relative to the workspace and sorted; one more than a result has, if so
    /// many are named.
    pub(super) fn named(&self, site: &Site, said: &str) -> Vec<String> {
        let form = match self.names {
            Names::Rust => r"(?m)^Diff in (.+?)(?::\d+:?| at line \d+:)$",
            Names::Diff => r"(?m)^\+\+\+ ([^\t\n]+)",
            Names::Lines => r"(?m)^(.+)$",
            Names::Places => r"(?m)^(.+?):\d+:\d+: ",
        };
        let Ok(form) = Regex::new(form) else { return Vec::new() };
        let mut named = BTreeSet::new();
        for found in form.captures_iter(said).filter_map(|found| found.get(1)) {
            named.insert(found.as_str());
            if named.len() == NAMED {
                break;
            }
        }
        // A file may be named in two ways.
        let paths: BTreeSet<String> = named.into_iter().map(|path| self.relative(path)).collect();
        paths.into_iter().filter(|path| site.is_file(Path::new(path))).take(PATHS + 1).collect()
    }

    /// A path that it names, as the workspace has it.
    fn relative(&self, path: &str) -> String {
        let inside = path.strip_prefix(WORKSPACE).and_then(|inside| inside.strip_prefix('/'));
        let path = inside.map_or_else(|| self.folder.join(path), PathBuf::from);
        path.components().filter(|part| part.as_os_str() != ".").collect::<PathBuf>().display().to_string()
    }
}

impl Choice {
    fn of_file(file: &Path, chosen: Option<Ecosystem>) -> Result<Self, Fault> {
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let by_extension = match extension {
            "rs" => Some(Ecosystem::Cargo),
            "py" | "pyi" => Some(Ecosystem::Python),
            "go" => Some(Ecosystem::Go),
            _ if WEB.contains(&extension) => Some(Ecosystem::Node),
            _ => None,
        };
        match chosen.or(by_extension) {
            Some(Ecosystem::Cargo) => {
                Ok(Self { extensions: &["rs"], ways: vec![RUSTFMT], install: "Rust with rustfmt" })
            }
            Some(ecosystem) => Ok(Self::of(ecosystem)),
            None if SHELL.contains(&extension) => {
                Ok(Self { extensions: &SHELL, ways: vec![SHFMT], install: "shfmt" })
            }
            None if C.contains(&extension) => {
                Ok(Self { extensions: &C, ways: vec![CLANG], install: "clang-format" })
            }
            None => Err(fault::invalid(format!(
                "no formatter is known for {}; name a file of another kind or the folder of a project",
                file.display()
            ))),
        }
    }

    /// What there is for a project, and the folder of it. cargo formats the whole package around a folder.
    fn of_project(site: &Site, ecosystem: Ecosystem) -> Result<(Self, PathBuf), Fault> {
        let folder = match ecosystem {
            Ecosystem::Cargo => site.above("Cargo.toml"),
            Ecosystem::Node | Ecosystem::Python | Ecosystem::Go => Some(site.folder.clone()),
        };
        let Some(folder) = folder else {
            let message = format!("{} has no Cargo.toml; name a file of Rust instead", shown(&site.folder));
            return Err(fault::invalid(message));
        };
        Ok((Self::of(ecosystem), folder))
    }

    fn of(ecosystem: Ecosystem) -> Self {
        match ecosystem {
            Ecosystem::Cargo => Self { extensions: &["rs"], ways: vec![CARGO], install: "Rust with rustfmt" },
            Ecosystem::Node => Self {
                extensions: &WEB,
                ways: vec![PRETTIER],
                install: "prettier (install_package does it in a project)",
            },
            Ecosystem::Python => Self {
                extensions: &["py", "pyi", "ipynb"],
                ways: vec![RUFF, BLACK],
                install: "ruff or black (install_package does it in a project)",
            },
            Ecosystem::Go => Self { extensions: &["go"], ways: vec![GOFMT], install: "Go" },
        }
    }
}

/// Where a program is: among the packages of the project, or on the machine.
fn program(site: &Site, name: &str, toolchains: &Toolchains) -> Option<String> {
    let own = ["node_modules/.bin", ".venv/bin", "venv/bin"].map(|folder| format!("{folder}/{name}"));
    let found = own.into_iter().find_map(|path| Some(site.above(&path)?.join(path)));
    let in_project = found.filter(|_| !matches!(name, "cargo" | "rustfmt" | "gofmt"));
    let in_project = in_project.map(|path| in_jail(&path).display().to_string());
    in_project.or_else(|| toolchains.program(name).map(|_| name.to_owned()))
}

/// The edition that a lone file of Rust is of: that of the package around it, or the newest.
fn edition(site: &Site) -> String {
    const NEWEST: &str = "2024";
    let manifest = site.above("Cargo.toml").map(|folder| folder.join("Cargo.toml"));
    let text = manifest.and_then(|path| site.read_at(&path, super::super::site::MANIFEST_BYTES).ok());
    let text = text.and_then(|content| String::from_utf8(content).ok()).unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let edition =
        manifest.get("package").and_then(|package| package.get("edition")).and_then(toml::Value::as_str);
    edition.filter(|edition| edition.len() == NEWEST.len()).unwrap_or(NEWEST).to_owned()
}

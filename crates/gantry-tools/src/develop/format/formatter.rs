//! The formatters that are known: which one is for a file or a project, and how it is called.

use crate::command::runner::in_jail;
use crate::command::toolchains::Toolchains;
use crate::develop::ecosystem::{Ecosystem, shown};
use crate::develop::fault;
use crate::develop::site::{MANIFEST_BYTES, Site};
use gantry_core::Fault;
use std::path::{Path, PathBuf};

/// A program that formats code.
#[derive(Debug, PartialEq, Eq)]
struct Program {
    /// For people.
    name: &'static str,
    program: &'static str,
    /// Arguments to change files.
    fix: &'static [&'static str],
    /// Arguments to say by output and exit code what would change.
    check: &'static [&'static str],
}

const CARGO: Program =
    Program { name: "cargo fmt", program: "cargo", fix: &["fmt"], check: &["fmt", "--", "--check"] };
const RUSTFMT: Program = Program { name: "rustfmt", program: "rustfmt", fix: &[], check: &["--check"] };
const PRETTIER: Program = Program {
    name: "prettier",
    program: "prettier",
    fix: &["--write", "--log-level=warn"],
    check: &["--list-different"],
};
const RUFF: Program = Program {
    name: "ruff",
    program: "ruff",
    fix: &["format", "--no-cache"],
    check: &["format", "--no-cache", "--diff"],
};
const BLACK: Program =
    Program { name: "black", program: "black", fix: &["--quiet"], check: &["--quiet", "--check", "--diff"] };
const GOFMT: Program = Program { name: "gofmt", program: "gofmt", fix: &["-w"], check: &["-d"] };
const SHFMT: Program = Program { name: "shfmt", program: "shfmt", fix: &["-w"], check: &["-d"] };
const CLANG: Program = Program {
    name: "clang-format",
    program: "clang-format",
    fix: &["-i"],
    check: &["--dry-run", "--Werror"],
};

/// Code of one kind, and what formats it. The first program that is there is taken.
struct Language {
    /// None is formatted by files only.
    ecosystem: Option<Ecosystem>,
    /// How the names of its files end.
    extensions: &'static [&'static str],
    file: &'static [Program],
    project: &'static [Program],
    /// What has to be installed if no program is there.
    install: &'static str,
}

const LANGUAGES: [Language; 6] = [
    Language {
        ecosystem: Some(Ecosystem::Cargo),
        extensions: &["rs"],
        file: &[RUSTFMT],
        project: &[CARGO],
        install: "Rust with rustfmt",
    },
    Language {
        ecosystem: Some(Ecosystem::Node),
        extensions: &[
            "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "json", "jsonc", "json5", "css", "scss",
            "less", "html", "vue", "md", "mdx", "yaml", "yml", "graphql", "hbs",
        ],
        file: &[PRETTIER],
        project: &[PRETTIER],
        install: "prettier (install_package does it in a project)",
    },
    Language {
        ecosystem: Some(Ecosystem::Python),
        extensions: &["py", "pyi", "ipynb"],
        file: &[RUFF, BLACK],
        project: &[RUFF, BLACK],
        install: "ruff or black (install_package does it in a project)",
    },
    Language {
        ecosystem: Some(Ecosystem::Go),
        extensions: &["go"],
        file: &[GOFMT],
        project: &[GOFMT],
        install: "Go",
    },
    Language { ecosystem: None, extensions: &["sh", "bash"], file: &[SHFMT], project: &[], install: "shfmt" },
    Language {
        ecosystem: None,
        extensions: &["c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx"],
        file: &[CLANG],
        project: &[],
        install: "clang-format",
    },
];

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
    fix: &'static [&'static str],
    check: &'static [&'static str],
    edition: Option<String>,
    target: Option<String>,
}

impl Formatter {
    /// The first formatter that is there for a file, or for the project in a folder.
    pub(super) fn choose(
        site: &Site,
        chosen: Option<Ecosystem>,
        toolchains: &Toolchains,
    ) -> Result<Self, Fault> {
        let (language, programs, folder) = match &site.file {
            Some(file) => {
                let language = language_of(file, chosen)?;
                (language, language.file, site.folder.clone())
            }
            None => project(site, Ecosystem::detect(site, chosen)?)?,
        };
        let there = |known: &'static Program| Some((known, program(site, known.program, toolchains)?));
        let Some((known, program)) = programs.iter().find_map(there) else {
            let names: Vec<&str> = programs.iter().map(|known| known.name).collect();
            return Err(fault::no_program(&names.join("` or `"), language.install));
        };
        let target = match &site.file {
            Some(file) => Some(file.display().to_string()),
            None => (*known != CARGO).then(|| ".".to_owned()),
        };
        Ok(Self {
            name: known.name,
            program,
            folder,
            extensions: language.extensions,
            fix: known.fix,
            check: known.check,
            edition: (*known == RUSTFMT).then(|| format!("--edition={}", edition(site))),
            target,
        })
    }

    pub(super) fn args(&self, check: bool) -> Vec<String> {
        let own = if check { self.check } else { self.fix };
        let mut args: Vec<String> =
            own.iter().map(|&arg| arg.to_owned()).chain(self.edition.clone()).collect();
        if let Some(target) = &self.target {
            // No file is taken for an option.
            let dashes = !matches!(self.name, "gofmt" | "shfmt");
            args.extend(dashes.then(|| "--".to_owned()));
            args.push(if dashes { target.clone() } else { format!("./{target}") });
        }
        args
    }
}

/// The language of a file: the chosen one, or the one that its name says.
fn language_of(file: &Path, chosen: Option<Ecosystem>) -> Result<&'static Language, Fault> {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let found = LANGUAGES.iter().find(|language| match chosen {
        Some(_) => language.ecosystem == chosen,
        None => language.extensions.contains(&extension),
    });
    found.ok_or_else(|| {
        fault::invalid(format!(
            "no formatter is known for {}; name a file of another kind or the folder of a project",
            file.display()
        ))
    })
}

/// What formats a project, and its folder: cargo formats the whole package around a folder.
fn project(
    site: &Site,
    ecosystem: Ecosystem,
) -> Result<(&'static Language, &'static [Program], PathBuf), Fault> {
    let folder = match ecosystem {
        Ecosystem::Cargo => site.above("Cargo.toml"),
        Ecosystem::Node | Ecosystem::Python | Ecosystem::Go => Some(site.folder.clone()),
    };
    let language = LANGUAGES.iter().find(|language| language.ecosystem == Some(ecosystem));
    match (language, folder) {
        (Some(language), Some(folder)) => Ok((language, language.project, folder)),
        _ => {
            let message = format!("{} has no Cargo.toml; name a file of Rust instead", shown(&site.folder));
            Err(fault::invalid(message))
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
    let text = manifest.and_then(|path| site.read_at(&path, MANIFEST_BYTES).ok());
    let text = text.and_then(|content| String::from_utf8(content).ok()).unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let edition =
        manifest.get("package").and_then(|package| package.get("edition")).and_then(toml::Value::as_str);
    edition.filter(|edition| edition.len() == NEWEST.len()).unwrap_or(NEWEST).to_owned()
}

//! The formatters that are known: which one is for a file or a project, and how it is called.

use crate::command::runner::{CommandSpec, in_jail};
use crate::command::toolchains::Toolchains;
use crate::dev::ecosystem::Ecosystem;
use crate::dev::project_dir::{ProjectDir, has_extension};
use crate::dev::{missing_program, project_command};
use crate::failure::{self, Result};
use gantry_core::CallFailure;
use gantry_sandbox::jail::Access;
use std::path::{Path, PathBuf};

struct Program {
    /// The program, perhaps with the command of it that formats, for people.
    name: &'static str,
    /// Arguments to change files. [`TARGET`] stands for the file or folder, [`EDITION`] is completed.
    fix: &'static str,
    /// Arguments to say by output and exit code what would change.
    check: &'static str,
}

/// The file or folder, in the arguments of a [`Program`]. It stands where no file is taken for an option.
const TARGET: &str = "TARGET";
const EDITION: &str = "--edition=";

const CARGO_FMT: Program = Program { name: "cargo fmt", fix: "fmt", check: "fmt -- --check" };
const RUSTFMT: Program =
    Program { name: "rustfmt", fix: "--edition= -- TARGET", check: "--check --edition= -- TARGET" };
const PRETTIER: Program = Program {
    name: "prettier",
    fix: "--write --log-level=warn -- TARGET",
    check: "--list-different -- TARGET",
};
const RUFF: Program =
    Program { name: "ruff", fix: "format --no-cache -- TARGET", check: "format --no-cache --diff -- TARGET" };
const BLACK: Program =
    Program { name: "black", fix: "--quiet -- TARGET", check: "--quiet --check --diff -- TARGET" };
const GOFMT: Program = Program { name: "gofmt", fix: "-w ./TARGET", check: "-d ./TARGET" };
const SHFMT: Program = Program { name: "shfmt", fix: "-w ./TARGET", check: "-d ./TARGET" };
const CLANG: Program =
    Program { name: "clang-format", fix: "-i -- TARGET", check: "--dry-run --Werror -- TARGET" };

struct Language {
    /// None is formatted by files only.
    ecosystem: Option<Ecosystem>,
    extensions: &'static [&'static str],
    /// The first one that is there is taken.
    programs: &'static [Program],
}

const LANGUAGES: [Language; 6] = [
    Language { ecosystem: Some(Ecosystem::Cargo), extensions: &["rs"], programs: &[RUSTFMT] },
    Language {
        ecosystem: Some(Ecosystem::Node),
        extensions: &[
            "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "json", "jsonc", "json5", "css", "scss",
            "less", "html", "vue", "md", "mdx", "yaml", "yml", "graphql", "hbs",
        ],
        programs: &[PRETTIER],
    },
    Language {
        ecosystem: Some(Ecosystem::Python),
        extensions: &["py", "pyi", "ipynb"],
        programs: &[RUFF, BLACK],
    },
    Language { ecosystem: Some(Ecosystem::Go), extensions: &["go"], programs: &[GOFMT] },
    Language { ecosystem: None, extensions: &["sh", "bash"], programs: &[SHFMT] },
    Language {
        ecosystem: None,
        extensions: &["c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx"],
        programs: &[CLANG],
    },
];

#[derive(Debug)]
pub(super) struct Formatter {
    pub(super) name: &'static str,
    pub(super) run: CommandSpec,
    /// Where it runs, relative to the workspace. What it changes lies in there.
    pub(super) folder: PathBuf,
    /// How the names of the files end that it changes.
    pub(super) extensions: &'static [&'static str],
}

impl Formatter {
    /// The first formatter that is there for a file, or for the project in a folder; with `check`, to change nothing.
    pub(super) fn choose(
        project: &ProjectDir,
        chosen: Option<Ecosystem>,
        toolchains: &Toolchains,
        check: bool,
    ) -> Result<Self> {
        let language = find_language(project, chosen)?;
        let is_package = project.file.is_none() && language.ecosystem == Some(Ecosystem::Cargo);
        let (programs, folder) = if is_package {
            // cargo formats the whole package around a folder.
            ([CARGO_FMT].as_slice(), project.find_above("Cargo.toml").ok_or_else(|| no_package(project))?)
        } else {
            (language.programs, project.folder.clone())
        };
        let there = |known: &'static Program| Some((known, find_program(project, known, toolchains)?));
        let Some((known, program)) = programs.iter().find_map(there) else {
            let names: Vec<&str> = programs.iter().map(|known| known.name).collect();
            return Err(missing_program(&names.join("` or `")));
        };
        let target = project.file.as_deref().unwrap_or(".");
        let to_arg = |word: &str| match word {
            EDITION => format!("{EDITION}{}", edition(project)),
            _ => word.replace(TARGET, target),
        };
        let (args, access) = if check { (known.check, Access::Read) } else { (known.fix, Access::Write) };
        let run = CommandSpec { access, ..project_command(program).args(args.split(' ').map(to_arg)) };
        Ok(Self { name: known.name, run, folder, extensions: language.extensions })
    }
}

/// The language of a file or of the project in a folder: the chosen one, or the one that its name or its files say.
fn find_language(project: &ProjectDir, chosen: Option<Ecosystem>) -> Result<&'static Language> {
    let (ecosystem, name) = match &project.file {
        Some(file) => (chosen, file.as_str()),
        None => (Some(Ecosystem::detect(project, chosen)?), ""),
    };
    let found = LANGUAGES.iter().find(|language| match ecosystem {
        Some(_) => language.ecosystem == ecosystem,
        None => has_extension(Path::new(name), language.extensions),
    });
    found.ok_or_else(|| {
        failure::invalid(format!(
            "no formatter is known for {name}; name a file of another kind or the folder of a project"
        ))
    })
}

fn no_package(project: &ProjectDir) -> CallFailure {
    failure::invalid(format!("{} has no Cargo.toml; name a file of Rust instead", project.shown()))
}

/// Where a program is: among the packages of the project, or on the machine. Those of Rust and Go are no packages.
fn find_program(project: &ProjectDir, known: &Program, toolchains: &Toolchains) -> Option<String> {
    let name = known.name.split(' ').next()?;
    let packaged = ["node_modules/.bin", ".venv/bin", "venv/bin"].map(|folder| format!("{folder}/{name}"));
    let found = packaged.into_iter().find_map(|path| Some(project.find_above(&path)?.join(path)));
    let in_project = found.filter(|_| !matches!(name, "cargo" | "rustfmt" | "gofmt"));
    let in_project = in_project.map(|path| in_jail(&path).display().to_string());
    in_project.or_else(|| toolchains.program(name).map(|_| name.to_owned()))
}

/// The edition that a lone file of Rust is of: that of the package around it, or the newest.
fn edition(project: &ProjectDir) -> String {
    const NEWEST: &str = "2024";
    let manifest = project.find_above("Cargo.toml").map(|folder| folder.join("Cargo.toml"));
    let text = manifest.and_then(|path| project.text(&path)).unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let edition =
        manifest.get("package").and_then(|package| package.get("edition")).and_then(toml::Value::as_str);
    edition.filter(|edition| edition.len() == NEWEST.len()).unwrap_or(NEWEST).to_owned()
}

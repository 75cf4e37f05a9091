//! From a program to the installation that it belongs to.

use super::{is_system, real};
use std::path::{Path, PathBuf};

/// What is taken of an installation. Its settings, as `etc/npmrc`, are not: they may hold secrets.
const PARTS: [&str; 14] = [
    "bin",
    "lib",
    "lib64",
    "libexec",
    "include",
    "share",
    "pkg",
    "src",
    "misc",
    "jmods",
    "conf",
    "pyvenv.cfg",
    "go.env",
    "VERSION",
];
/// Folders above a program that are looked at.
const LEVELS: usize = 8;
/// Entries of a `lib` that are looked at for a library of Python.
const LIB_ENTRIES: usize = 1000;
/// All that is in here may be read by everybody, and its programs need each other.
const NIX: &str = "/nix/store";

/// What jobs need for a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// The folder that has the program under its name.
    pub(super) folder: PathBuf,
    /// The installation that it is of; the program itself, if it is of none.
    pub(super) prefix: PathBuf,
    /// What has to be mounted.
    pub(super) parts: Vec<PathBuf>,
}

/// What to take for the program of this name that is found at this path; nothing if it cannot be run elsewhere.
pub(super) fn of(path: &Path, name: &str, home: Option<&Path>) -> Option<Taken> {
    let program = std::fs::canonicalize(path).ok().filter(|program| !is_system(program))?;
    let beside = real(path.parent()?);
    if let Some(prefix) = prefix(&program, home) {
        let parts = parts(&prefix);
        let holds = |folder: &Path| parts.iter().any(|part| folder.starts_with(part));
        let folder = if holds(&beside) { beside } else { named(&program, name)? };
        return Some(Taken { folder, prefix, parts });
    }
    // A program of its own. A script would look for its parts, which are unknown.
    is_binary(&program).then(|| named(&program, name)).flatten().map(|folder| Taken {
        folder,
        prefix: program.clone(),
        parts: vec![program.clone()],
    })
}

/// The folder of a program, if it has this name there.
fn named(program: &Path, name: &str) -> Option<PathBuf> {
    (program.file_name()? == name).then(|| program.parent().map(Path::to_owned)).flatten()
}

/// The installation that a file is of. A home folder and what is above it are none, whatever they look like.
fn prefix(program: &Path, home: Option<&Path>) -> Option<PathBuf> {
    if program.starts_with(NIX) {
        return Some(NIX.into());
    }
    let is_cellar = |folder: &&Path| folder.file_name().is_some_and(|name| name == "Cellar");
    if let Some(brew) = program.ancestors().find(is_cellar).and_then(Path::parent) {
        return Some(brew.to_owned());
    }
    let is_above =
        |folder: &&Path| folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder));
    let mut folders = program.ancestors().skip(1).take(LEVELS).take_while(|folder| !is_above(folder));
    folders.find(|folder| is_installation(folder)).map(Path::to_owned)
}

/// Whether a folder is by its contents an installation of a language, and not any folder that has a `bin`.
fn is_installation(folder: &Path) -> bool {
    let marks = [
        "lib/rustlib",
        "include/node/node.h",
        "conda-meta",
        "pyvenv.cfg",
        "src/runtime/runtime.go",
        "lib/jrt-fs.jar",
    ];
    marks.iter().any(|mark| folder.join(mark).exists()) || has_python(folder)
}

/// Whether a folder has Python's own library; packages of a user lie in a `lib/python3.x` too, without it.
fn has_python(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten().take(LIB_ENTRIES);
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python"))
        .any(|entry| entry.path().join("os.py").exists())
}

fn parts(prefix: &Path) -> Vec<PathBuf> {
    if prefix == Path::new(NIX) {
        return vec![prefix.to_owned()];
    }
    let cellar = prefix.join("Cellar");
    let brew = cellar.exists().then(|| [cellar, prefix.join("opt")]).into_iter().flatten();
    let mut parts: Vec<PathBuf> =
        PARTS.iter().map(|part| prefix.join(part)).chain(brew).filter(|part| part.exists()).collect();
    // A virtual environment runs the interpreter that it was made from.
    if prefix.join("pyvenv.cfg").exists()
        && let Ok(base) = std::fs::canonicalize(prefix.join("bin/python"))
        && !is_system(&base)
        && !base.starts_with(prefix)
        && let Some(base) = base.ancestors().skip(1).take(LEVELS).find(|folder| has_python(folder))
    {
        parts.extend(PARTS.iter().map(|part| base.join(part)).filter(|part| part.exists()));
    }
    parts
}

fn is_binary(program: &Path) -> bool {
    use std::io::Read;
    let mut magic = [0; 4];
    let read = std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"\x7fELF"
}

//! Finds the configuration file and the data folder, and reads files within a limit.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::accepted::{Accepted, objection};
use super::document::Format;
use super::dotenv::Env;
use super::error::{Location, Problem};

/// Largest file that is read as a configuration.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Names that are looked for in the working folder.
pub(super) const NAMES: [&str; 4] = ["gantry.yaml", "gantry.yml", "gantry.json", "gantry.toml"];

/// The variables beside a configuration.
pub(super) const DOTENV: &str = ".env";
/// The data folder beside it.
pub(super) const DATA: &str = ".gantry";

/// What the command line says about where the configuration is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The working folder.
    pub folder: PathBuf,
    pub config: Option<PathBuf>,
    pub data: Option<PathBuf>,
}

impl Source {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), config: None, data: None }
    }
}

#[derive(Debug)]
pub(super) struct Found {
    /// As the user named it; messages use this one.
    pub(super) name: PathBuf,
    pub(super) path: PathBuf,
    pub(super) format: Format,
    /// Files of the other names beside it that do not count.
    pub(super) ignored: Vec<PathBuf>,
}

/// The file by flag, by variable, or by name in the working folder, in this order.
pub(super) fn file(source: &Source, folder: &Path, env: &Env) -> Result<Option<Found>, Problem> {
    if let Some(name) = &source.config {
        return named(folder, name.clone(), "").map(Some);
    }
    if let Some(name) = set(env, "GANTRY_CONFIG") {
        return named(folder, name.into(), " ($GANTRY_CONFIG)").map(Some);
    }
    let mut found: Vec<&str> = NAMES.into_iter().filter(|name| exists(&folder.join(name))).collect();
    let mut ignored = Vec::new();
    // One that a tool may have put beside the one in use neither replaces nor blocks it.
    if found.len() > 1
        && let Some(accepted) = Accepted::read(&data(source, folder, folder, env))?
    {
        let is_suspect = |name: &&str| accepted.suspects(&folder.join(name));
        let (suspect, known): (Vec<&str>, Vec<&str>) = found.iter().partition(|name| is_suspect(name));
        if !known.is_empty() {
            (found, ignored) = (known, suspect.into_iter().map(PathBuf::from).collect());
        }
    }
    match *found {
        [] => Ok(None),
        [name] => Ok(Some(Found { ignored, ..named(folder, name.into(), "")? })),
        [one, two, ..] => Err(Problem::general(format!(
            "both {one} and {two} are in {}; keep one, or name the one to use with --config",
            folder.display()
        ))),
    }
}

impl Found {
    /// What is said about the files that do not count.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let ignored = |name: &PathBuf| format!("{}: {}", name.display(), objection("ignored"));
        self.ignored.iter().map(ignored)
    }
}

/// Whether something of this name is there. A folder (which some container tools put where a mounted file is missing)
/// or a dangling link counts, so that it is reported: to run on defaults instead would drop every rule of the file.
/// A socket does not count: no configuration can be written into one, and earlier versions of Gantry left some.
fn exists(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(metadata) => !metadata.file_type().is_socket(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn named(folder: &Path, name: PathBuf, origin: &str) -> Result<Found, Problem> {
    let path = absolute(folder, &name);
    let wrong = match path.metadata() {
        Ok(metadata) if metadata.is_file() => None,
        Ok(_) => Some(format!("this is not a file{origin}; remove it or name another")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(format!("there is no such file{origin}; check the path"))
        }
        Err(error) => Some(format!("cannot be read{origin}: {error}")),
    };
    if let Some(message) = wrong {
        return Err(Problem::in_file(&name, message));
    }
    let Some(format) = Format::of(&name) else {
        let message = "the name of a configuration must end in .yaml, .yml, .json or .toml";
        return Err(Problem::in_file(&name, message));
    };
    Ok(Found { name, path, format, ignored: Vec::new() })
}

/// The data folder by flag, by variable, or `.gantry` beside the configuration.
pub(super) fn data(source: &Source, folder: &Path, beside: &Path, env: &Env) -> PathBuf {
    match source.data.clone().or_else(|| set(env, "GANTRY_DATA").map(PathBuf::from)) {
        Some(data) => absolute(folder, data),
        None => absolute(beside, DATA),
    }
}

/// A variable that is set to something.
fn set(env: &Env, name: &str) -> Option<OsString> {
    env.var(name).filter(|value| !value.is_empty())
}

/// A path without `.` in it, from an absolute folder.
pub(super) fn absolute(folder: &Path, path: impl AsRef<Path>) -> PathBuf {
    folder.join(path).components().collect()
}

/// The text of a file, without its byte order mark. `name` is for messages.
pub(super) fn read(path: &Path, name: &Path) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let done = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    done.map_err(|error| Problem::in_file(name, format!("cannot be read: {error}")))?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Problem::in_file(name, "the file is larger than 1 MiB, which no configuration needs"));
    }
    decode(bytes, name)
}

pub(super) fn decode(bytes: Vec<u8>, name: &Path) -> Result<String, Problem> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let (good, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        Problem::at(&Location { file: name.into(), line }, "not UTF-8 text; save the file as UTF-8")
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

/// The files that configure Gantry, or would if they came to be: what is found by name in the working folder and
/// beside the loaded file, that file, and the variables beside it.
pub(super) fn config_files(file: Option<&Path>, folder: &Path) -> Vec<PathBuf> {
    let beside = file.and_then(Path::parent);
    let mut files: Vec<PathBuf> = [Some(folder), beside]
        .into_iter()
        .flatten()
        .flat_map(|f| NAMES.iter().map(|name| f.join(name)))
        .collect();
    files.extend(file.map(Path::to_owned));
    files.extend(beside.map(|beside| beside.join(DOTENV)));
    files.sort();
    files.dedup();
    files
}

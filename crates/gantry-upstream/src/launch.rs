//! What a stdio server is started from. Its program runs outside of the sandbox, so nothing that tools and jobs can write may
//! become a part of it.
//!
//! Relative paths are resolved when the configuration is read, never at the start of a process. What lies in a workspace
//! is listed: folders of programs and the files beside which programs look for more, which tools and jobs must not change;
//! and names that have to be missing, because programs would look there. A program beside files that agents write is
//! refused. What a program loads from elsewhere in a workspace, of its own accord, is not known here.

mod arguments;

use crate::options::ServerOptions;
use arguments::{Part, Parts, absolute_paths};
use gantry_provider::options::Secret;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// Links on the way to one file.
const MAX_LINKS: usize = 40;

/// Where programs for Node look for modules, in every folder above them, and how the names of their files end.
const MODULES: &str = "node_modules";
const NODE_CODE: &str = "js mjs cjs jsx ts mts cts tsx node";

/// How much of a file is read for the program that its first line names.
const FIRST_LINE: u64 = 256;

/// A folder with one of these is a package: its programs load what lies in it.
const MARKERS: [&str; 4] = ["package.json", "pyproject.toml", "pyvenv.cfg", "node_modules"];

/// What programs look for in the folders above them.
const LOOKED_UP: [&str; 6] = ["node_modules", "package.json", ".npmrc", "pyproject.toml", "uv.toml", ".venv"];

/// How the names of files end that programs run or load.
const CODE: &str = "js mjs cjs jsx ts mts cts tsx py pyc pyw pyz sh bash zsh fish rb pl php lua r R jl tcl ps1 jar war class \
    exe dll so dylib node wasm whl tgz";

/// Where servers are started.
#[derive(Debug)]
pub struct LaunchSite<'a> {
    /// Where relative paths of the configuration start.
    pub folder: &'a Path,
    /// The folder that a server without `cwd` starts in, or why there is none.
    pub own_folder: Result<PathBuf, String>,
    /// The real paths of all workspaces.
    pub workspaces: &'a [PathBuf],
    /// Variables that servers have from Gantry's own environment.
    pub inherited: &'a [(&'static str, OsString)],
}

/// What a stdio server is started from, as far as it lies in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Whether it starts in a folder of its own, which is made at the start.
    pub has_own_folder: bool,
    /// Files and folders that decide what runs. Nothing in them may be changed by a tool or a job.
    pub code: Vec<PathBuf>,
    /// Other files that its arguments name.
    pub data: Vec<PathBuf>,
    /// What is not there, and would decide what runs if it were.
    pub must_be_missing: Vec<PathBuf>,
    /// Why it cannot be started.
    pub refusal: Option<String>,
}

impl Launch {
    /// Resolves the relative paths of a server, and finds what it is started from.
    #[must_use]
    pub fn resolve(options: &mut ServerOptions, site: &LaunchSite<'_>) -> Self {
        let mut search = Search { launch: Self::default(), is_node: false, workspaces: site.workspaces };
        match search.server(options, site) {
            Ok(()) => search.finished(),
            Err(refusal) => Self { refusal: Some(refusal), ..Self::default() },
        }
    }

    /// What tools and jobs may not change.
    pub fn read_only(&self) -> impl Iterator<Item = &PathBuf> {
        self.code.iter().chain(&self.data)
    }

    /// Makes the folder that the server starts in, and checks that nothing has appeared that would decide what runs.
    pub(crate) async fn prepare(&self, folder: Option<&Path>) -> Result<(), String> {
        for path in &self.must_be_missing {
            if tokio::fs::symlink_metadata(path).await.is_ok() {
                return Err(format!(
                    "{} was not there when the configuration was read, and would decide what runs; look at it, then remove \
                     it or start Gantry anew",
                    path.display()
                ));
            }
        }
        let Some(folder) = folder.filter(|_| self.has_own_folder) else { return Ok(()) };
        let made = tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).await;
        made.map_err(|error| format!("its folder {} cannot be made: {error}; write `cwd`", folder.display()))
    }
}

/// A path without links, as far as it exists.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    follow(path).map_or_else(|_| path.to_owned(), |(_, real)| real)
}

/// The links on the way to a path, each without links before its own name, and where the path leads.
fn follow(path: &Path) -> Result<(Vec<PathBuf>, PathBuf), String> {
    let parts = |path: &Path| -> Vec<OsString> { path.iter().rev().map(OsStr::to_owned).collect() };
    let (mut links, mut real, mut rest) = (Vec::new(), PathBuf::from("/"), parts(path));
    while let Some(part) = rest.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => drop(real.pop()),
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::Normal(name)) => match fs::read_link(real.join(name)) {
                Ok(target) => {
                    links.push(real.join(name));
                    rest.extend(parts(&target));
                }
                Err(_) => real.push(name),
            },
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
        if links.len() > MAX_LINKS {
            return Err(format!("{} has too many links on its way; name what they lead to", path.display()));
        }
    }
    Ok((links, real))
}

struct Search<'a> {
    launch: Launch,
    /// Whether a program for Node or the like runs, which looks for modules in the folders above it at any time.
    is_node: bool,
    workspaces: &'a [PathBuf],
}

impl<'a> Search<'a> {
    fn server(&mut self, options: &mut ServerOptions, site: &LaunchSite<'_>) -> Result<(), String> {
        if let Some(folder) = &options.cwd {
            self.code(folder, "its `cwd` is", true)?;
        }
        let start = options.cwd.clone().unwrap_or_else(|| site.folder.to_owned());
        let search_path = self.variables(&options.env, site.inherited)?;
        let command = options.command.clone().unwrap_or_default();
        let words = options.args.iter().map(Secret::expose).chain([&*command]);
        self.is_node |=
            words.filter_map(|word| Path::new(word).file_name()?.to_str()).any(arguments::is_node);
        let program = if command.contains('/') {
            let path = absolute(&start, &command);
            options.command = Some(path.to_str().ok_or_else(|| not_text(&path))?.to_owned());
            Some(path)
        } else {
            let folders = std::env::split_paths(&search_path).filter(|folder| folder.is_absolute());
            folders.map(|folder| folder.join(&command)).find(|path| path.is_file())
        };
        if let Some(program) = program {
            self.program(&program, "it is started from")?;
        }
        let (mut parts, has_cwd) = (Parts::of(&command), options.cwd.is_some());
        for argument in &mut options.args {
            let part = parts.next(argument.expose());
            let resolved = self.argument(argument.expose(), &start, part, parts.are_names)?;
            if let Some(resolved) = resolved.filter(|_| !has_cwd) {
                *argument = Secret::from(resolved);
            }
        }
        if !has_cwd {
            options.cwd = Some(site.own_folder.clone()?);
            self.launch.has_own_folder = true;
        }
        Ok(())
    }

    /// The variables that lead programs to code. Returns the search path.
    fn variables(
        &mut self,
        own: &BTreeMap<String, Secret>,
        inherited: &[(&'static str, OsString)],
    ) -> Result<OsString, String> {
        let inherited = inherited.iter().filter(|(name, _)| !own.contains_key(*name));
        let inherited = inherited.map(|(name, value)| (*name, value.clone()));
        let own = own.iter().map(|(name, value)| (name.as_str(), value.expose().into()));
        let mut search_path = OsString::new();
        for (name, value) in inherited.chain(own) {
            let why = format!("its variable {name} has");
            if !arguments::leads_to_code(name) {
                let file = Some(Path::new(&value)).filter(|path| path.is_absolute() && is_code(path));
                file.map_or(Ok(()), |file| self.program(file, &why))?;
                continue;
            }
            // Beside what is found by these two, programs look for nothing.
            let looks_up = !["PATH", "HOME"].contains(&name);
            for entry in std::env::split_paths(&value) {
                if entry.is_absolute() {
                    self.code(&entry, &why, looks_up)?;
                }
                if !exists(&entry) {
                    self.text(&entry.to_string_lossy(), &why, looks_up)?;
                }
            }
            if name == "PATH" {
                search_path = value;
            }
        }
        Ok(search_path)
    }

    /// Looks at one argument. Returns it with its relative path resolved.
    fn argument(
        &mut self,
        argument: &str,
        start: &Path,
        part: Part,
        is_name: bool,
    ) -> Result<Option<String>, String> {
        const WHY: &str = "it is started from";
        if part != Part::Data {
            self.text(argument, WHY, true)?;
        }
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) if argument.starts_with('-') => (Some(option), value),
            _ => (None, argument),
        };
        if value.is_empty() || value.starts_with('-') {
            return Ok(None);
        }
        let path = absolute(start, value);
        let is_relative =
            [".", ".."].iter().any(|dots| value == *dots || value.starts_with(&format!("{dots}/")));
        let is_bare = !is_relative && !Path::new(value).is_absolute();
        let is_no_path = is_bare && (is_name || part == Part::Text);
        if is_no_path || (is_bare || part == Part::Text) && !path.is_file() {
            return Ok(None);
        }
        if part != Part::Data || is_code(&path) {
            self.program(&path, WHY)?;
        } else if path.is_file() {
            // If nothing but its presence makes a word of the arguments a path, it decides what runs.
            let inside = self.inside(&path)?;
            if is_bare { &mut self.launch.code } else { &mut self.launch.data }.extend(inside);
        }
        if Path::new(value).is_absolute() {
            return Ok(None);
        }
        let path = path.to_str().ok_or_else(|| not_text(&path))?;
        Ok(Some(option.map_or_else(|| path.to_owned(), |option| format!("{option}={path}"))))
    }

    /// A file or folder that is run, and the program that its first line names.
    fn program(&mut self, path: &Path, why: &str) -> Result<(), String> {
        self.code(path, why, true)?;
        let first_line = first_line(path).filter(|line| line.starts_with("#!")).unwrap_or_default();
        self.is_node |= first_line.split([' ', '/']).any(arguments::is_node);
        self.text(&first_line, why, true)
    }

    /// The paths in a text. One with blanks cannot be told from the words around it.
    fn text(&mut self, text: &str, why: &str, looks_up: bool) -> Result<(), String> {
        let is_torn = |path: &&str| text.contains(*path) && absolute_paths(path).all(|word| word != *path);
        if let Some(path) = self.workspaces.iter().filter_map(|path| path.to_str()).find(is_torn) {
            return Err(format!("{why} a text that names {path}; write each path as an argument of its own"));
        }
        absolute_paths(text).try_for_each(|path| self.code(Path::new(path), why, looks_up))
    }

    /// What is run or loaded, with every link that leads to it.
    fn code(&mut self, path: &Path, why: &str, looks_up: bool) -> Result<(), String> {
        self.is_node |=
            path.extension().and_then(OsStr::to_str).is_some_and(|end| arguments::has(NODE_CODE, end));
        let (links, real) = follow(path)?;
        for link in &links {
            self.seal(link, link.parent(), why, looks_up)?;
        }
        if self.top(&real).is_none() {
            return Ok(());
        }
        match real.symlink_metadata() {
            Ok(found) if found.is_dir() => self.seal(&real, Some(&real), why, looks_up),
            Ok(_) => self.seal(&real, real.parent(), why, looks_up),
            Err(_) => {
                self.launch.must_be_missing.push(real);
                Ok(())
            }
        }
    }

    /// Lists the package that something in a workspace belongs to, and what programs look for above it.
    fn seal(&mut self, path: &Path, own: Option<&Path>, why: &str, looks_up: bool) -> Result<(), String> {
        let (Some(top), Some(own)) = (self.top(path), own) else { return Ok(()) };
        let below = || own.ancestors().take_while(|folder| !self.holds_workspace(folder));
        let is_package = |folder: &&Path| MARKERS.iter().any(|name| exists(&folder.join(name)));
        let Some(package) = below().find(is_package).or_else(|| below().next()) else {
            return Err(format!(
                "{why} {}, beside files that agents write; move it into a folder of its own, such as {}, which Gantry then \
                 keeps read-only, or out of the workspace",
                path.display(),
                top.join("mcp").display()
            ));
        };
        self.launch.code.push(package.to_owned());
        let above = package.ancestors().skip(1).take_while(|folder| looks_up && folder.starts_with(top));
        for path in above.flat_map(|folder| LOOKED_UP.map(|name| folder.join(name))) {
            if exists(&path) {
                let inside = self.inside(&path)?;
                self.launch.code.extend(inside);
            } else {
                self.launch.must_be_missing.push(path);
            }
        }
        Ok(())
    }

    /// A path, and the links on the way to it, as far as they lie in a workspace.
    fn inside(&self, path: &Path) -> Result<Vec<PathBuf>, String> {
        let (links, real) = follow(path)?;
        Ok(links.into_iter().chain([real]).filter(|path| self.top(path).is_some()).collect())
    }

    /// The outermost workspace that a path lies in.
    fn top(&self, path: &Path) -> Option<&'a Path> {
        let holding = self.workspaces.iter().filter(|workspace| path.starts_with(workspace));
        holding.min_by_key(|workspace| workspace.as_os_str().len()).map(PathBuf::as_path)
    }

    fn holds_workspace(&self, folder: &Path) -> bool {
        self.workspaces.iter().any(|workspace| workspace.starts_with(folder))
    }

    fn finished(self) -> Launch {
        let mut launch = self.launch;
        let missing = launch.must_be_missing.iter().filter(|path| self.is_node && path.ends_with(MODULES));
        let missing: BTreeSet<_> = missing.map(|path| path.display().to_string()).collect();
        if !missing.is_empty() {
            let missing: Vec<_> = missing.into_iter().collect();
            launch.refusal = Some(format!(
                "its program looks for modules at any time in {}, which agents could make; make that folder yourself and run \
                 `gantry config apply`, so that Gantry keeps it read-only, or move the server out of the workspace",
                missing.join(" and in ")
            ));
        }
        for list in [&mut launch.code, &mut launch.data, &mut launch.must_be_missing] {
            list.sort();
            list.dedup();
        }
        launch
    }
}

/// A path without `.` in it, from an absolute folder.
fn absolute(folder: &Path, path: &str) -> PathBuf {
    folder.join(path).components().collect()
}

fn not_text(path: &Path) -> String {
    format!("the path {} is not UTF-8 text; rename its folders", path.display())
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Whether a file is one that programs run or load. One that is missing can only be judged by its name.
fn is_code(path: &Path) -> bool {
    let by_name = path.extension().and_then(OsStr::to_str).is_some_and(|end| arguments::has(CODE, end));
    match path.metadata() {
        Ok(found) if !found.is_file() => false,
        Ok(found) if found.permissions().mode() & 0o111 != 0 => true,
        Ok(_) => by_name || first_line(path).is_some_and(|line| line.starts_with("#!")),
        Err(_) => by_name,
    }
}

/// The beginning of the first line of a file; none if it cannot be read.
fn first_line(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    path.is_file().then_some(())?;
    File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut bytes).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests;

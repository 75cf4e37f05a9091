//! What is wrong with a configuration, and where: every problem of a file in one error, one line each.

use gantry_core::yaml;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Problems kept of one load; the rest are only counted, so that a broken file cannot flood a terminal.
const MAX_PROBLEMS: usize = 100;

/// Warnings of one load that are said; the rest are only counted. A folder of other people's files may hold many.
const MAX_WARNINGS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file as its user named it.
    pub file: Arc<Path>,
    /// Counted from 1.
    pub line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// One thing that is wrong: `gantry.yaml:14: unknown key …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    file: Option<Arc<Path>>,
    line: Option<usize>,
    column: Option<usize>,
    message: String,
}

impl Problem {
    pub fn at(location: &Location, message: impl Into<String>) -> Self {
        let Location { file, line } = location.clone();
        Self { file: Some(file), line: Some(line), column: None, message: message.into() }
    }

    pub fn in_file(file: &Path, message: impl Into<String>) -> Self {
        Self { file: Some(file.into()), line: None, column: None, message: message.into() }
    }

    /// Where a file could not be read as its format.
    pub(super) fn syntax(file: &Arc<Path>, error: yaml::Error) -> Self {
        let location = Location { file: Arc::clone(file), line: error.place.line };
        Self { column: Some(error.place.column), ..Self::at(&location, error.message) }
    }

    /// A problem that belongs to no file.
    pub fn general(message: impl Into<String>) -> Self {
        Self { file: None, line: None, column: None, message: message.into() }
    }

    /// The sentence without its place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is in no file has a nameless one.
        if let Some(file) = self.file.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            write!(f, "{}:", file.display())?;
            for number in [self.line, self.column].into_iter().flatten() {
                write!(f, "{number}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

/// Why a configuration was refused. Displays all problems, one per line.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(.problems, *.more))]
pub struct Error {
    problems: Vec<Problem>,
    more: usize,
}

impl Error {
    /// All problems as one error, unless there are none.
    pub fn all(problems: impl IntoIterator<Item = Problem>) -> Result<(), Self> {
        let mut all = Self::default();
        problems.into_iter().for_each(|problem| all.push(problem));
        all.into_result()
    }

    /// A problem that is known already is not added again.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.problems.contains(&problem) {
            return;
        }
        if self.is_full() {
            self.more += 1;
        } else {
            self.problems.push(problem);
        }
    }

    /// Whether problems are only counted from now on.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(super) fn count(&self) -> usize {
        self.problems.len() + self.more
    }

    /// Adds those of another file, or of a part of this one.
    pub(crate) fn extend(&mut self, other: Self) {
        other.problems.into_iter().for_each(|problem| self.push(problem));
        self.more += other.more;
    }

    /// In the order of the lines, if anything is wrong.
    pub(crate) fn into_result(mut self) -> Result<(), Self> {
        self.problems.sort_by(|a, b| a.file.cmp(&b.file).then(a.line.cmp(&b.line)));
        if self.problems.is_empty() { Ok(()) } else { Err(self) }
    }

    /// The same as a warning that what it is about is left out; the first problem says enough.
    pub(super) fn left_out(mut self) -> Option<Problem> {
        let others = self.count().saturating_sub(1);
        self.problems.truncate(1);
        let mut problem = self.problems.pop()?;
        let others = if others == 0 { String::new() } else { format!(" (and {others} more)") };
        problem.message = format!("left out: {}{others}", problem.message);
        Some(problem)
    }

    /// What is wrong, in the order of the lines.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem], more: 0 }
    }
}

pub(super) fn lines(warnings: &[Problem]) -> Vec<String> {
    let mut lines: Vec<String> = warnings.iter().take(MAX_WARNINGS).map(Problem::to_string).collect();
    let more = warnings.len() - lines.len();
    if more > 0 {
        lines.push(format!("and {more} more warnings about the configuration"));
    }
    lines
}

fn render(problems: &[Problem], more: usize) -> String {
    let mut lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

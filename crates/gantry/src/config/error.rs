//! What is wrong with a configuration, and where: every problem of a file in one error, one line each.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Problems kept of one load; the rest are only counted, so that a broken file cannot flood a terminal.
const MAX_PROBLEMS: usize = 100;

/// Warnings of one load that are said; the rest are only counted. A folder of other people's files may hold many.
const MAX_WARNINGS: usize = 100;

/// A place in a configuration file.
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
    /// A problem at a line.
    pub fn at(location: &Location, message: impl Into<String>) -> Self {
        let Location { file, line } = location.clone();
        Self { file: Some(file), line: Some(line), column: None, message: message.into() }
    }

    /// A problem with a file as a whole.
    pub fn in_file(file: &Path, message: impl Into<String>) -> Self {
        Self { file: Some(file.into()), line: None, column: None, message: message.into() }
    }

    /// A problem that belongs to no file.
    pub fn general(message: impl Into<String>) -> Self {
        Self { file: None, line: None, column: None, message: message.into() }
    }

    /// The same problem with the column where reading stopped, counted from 1.
    #[must_use]
    pub fn with_column(self, column: usize) -> Self {
        Self { column: Some(column), ..self }
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", render(.problems, *.more))]
pub struct Error {
    problems: Vec<Problem>,
    more: usize,
}

impl Error {
    /// One problem at a line, for checks that are made after loading.
    pub fn at(location: &Location, message: impl Into<String>) -> Self {
        Problem::at(location, message).into()
    }

    /// Several problems as one error; none when the list is empty.
    pub fn all(problems: impl IntoIterator<Item = Problem>) -> Option<Self> {
        let mut list = Problems::default();
        problems.into_iter().for_each(|problem| list.push(problem));
        list.into_error()
    }

    /// The same as a warning that what it is about is left out; the first problem says enough.
    pub(super) fn left_out(mut self) -> Option<Problem> {
        let others = self.more + self.problems.len().saturating_sub(1);
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

/// Warnings as lines.
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

/// Collects the problems of one load.
#[derive(Debug, Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
    more: usize,
}

impl Problems {
    /// A problem that is known already is not added again.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.list.contains(&problem) {
            return;
        }
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Whether problems are only counted from now on.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MAX_PROBLEMS
    }

    pub(super) fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// Adds those of another file, or of a part of this one.
    pub(super) fn extend(&mut self, other: Self) {
        other.list.into_iter().for_each(|problem| self.push(problem));
        self.more += other.more;
    }

    /// `None` when nothing was wrong.
    pub(super) fn into_error(mut self) -> Option<Error> {
        self.list.sort_by(|a, b| a.file.cmp(&b.file).then(a.line.cmp(&b.line)));
        (!self.list.is_empty()).then_some(Error { problems: self.list, more: self.more })
    }
}

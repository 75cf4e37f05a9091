//! Ceilings on the length of files and functions and on the number of parameters.
//!
//! A ceiling, not an average: a codebase becomes hard to read through its longest files.

use std::fmt;

use super::Finding;
use super::source::Source;

const MAX_FILE_LINES: usize = 500;
const MAX_TEST_FILE_LINES: usize = 1000;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_PARAMETERS: usize = 6;

/// Which limit was passed; an exception names one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ceiling {
    FileLines,
    FunctionLines,
    Parameters,
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FileLines => "file length",
            Self::FunctionLines => "function length",
            Self::Parameters => "parameters",
        })
    }
}

/// A finding that an exception may excuse.
#[derive(Debug)]
pub(super) struct Excess {
    pub(super) ceiling: Ceiling,
    pub(super) finding: Finding,
}

pub(super) fn check(source: &Source, excess: &mut Vec<Excess>) {
    let mut report = |ceiling, line, what: String| {
        excess.push(Excess { ceiling, finding: Finding::new(&source.path, line, what) });
    };

    let n_lines = source.lines_outside_tests();
    let (limit, what) = match source.is_test {
        true => (MAX_TEST_FILE_LINES, "test file"),
        false => (MAX_FILE_LINES, "file without its test module"),
    };
    if n_lines > limit {
        let what = format!("this {what} has {n_lines} lines, more than {limit}; split it by subject");
        report(Ceiling::FileLines, limit + 1, what);
    }

    if source.is_test {
        return;
    }
    for function in &source.functions {
        let name = &function.name;
        if function.n_lines > MAX_FUNCTION_LINES {
            let n = function.n_lines;
            let what = format!(
                "`{name}` has {n} lines, more than {MAX_FUNCTION_LINES}; move a part into a function"
            );
            report(Ceiling::FunctionLines, function.line, what);
        }
        if function.n_parameters > MAX_PARAMETERS {
            let n = function.n_parameters;
            let what =
                format!("`{name}` takes {n} parameters, more than {MAX_PARAMETERS}; group them in a struct");
            report(Ceiling::Parameters, function.line, what);
        }
    }
}

//! Literal and regular-expression search, line by line, with the engine of ripgrep.
//!
//! Its expressions take time linear in what they look at and in their compiled size. Files are read in pieces, with a look at
//! whether to stop before each; what a thread keeps in memory has a limit, lower for a large expression, and a file with a line
//! beyond it is skipped.
//!
//! Files are listed first and searched in the order of their paths. Once enough is found, later files are not opened, so
//! a search for something common ends early and always gives the same answer.

use super::matches::{Match, display_line};
use super::opener::Opener;
use super::search_code::{Mode, Output, Query};
use super::walk::{list, search_files};
use crate::failure::{self, Result};
use crate::workspace::path::printable;
use crate::workspace::reader::WorkspaceReader;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// What a thread keeps of a file at a time, and so the longest line.
const HEAP_BYTES: usize = 8 * 1024 * 1024;
/// The size of a compiled expression, and this size times a line: each part of it can take a step at each byte, which is about
/// 5 s for all this.
const REGEX_BYTES: usize = 256 * 1024;
const REGEX_WORK: usize = 1 << 35;
/// The tables that an expression makes while it runs.
const TABLE_BYTES: usize = 8 * 1024 * 1024;
/// How deep groups in an expression are nested.
const REGEX_NESTING: u32 = 100;

/// Finds the first lines, by path and number, that have what is looked for.
pub(super) fn run(reader: &WorkspaceReader, query: &Query, stop: &CancellationToken) -> Result<Output> {
    let (matcher, heap) = matcher(query)?;
    let (files, skipped) = list(reader, query, stop)?;
    // One more than asked for tells whether there is more.
    let enough = query.most + 1;
    let searched = search_files(reader, &files, enough, stop, || {
        let (mut searcher, matcher) = (searcher(query, heap), matcher.clone());
        move |opener: &mut Opener<'_>, path: &Path| {
            let Some((file, _)) = opener.open(path)? else { return Ok(None) };
            let mut lines = Lines { matcher: &matcher, lines: Vec::new(), binary: false };
            searcher.search_reader(&matcher, Stoppable { file, stop }, &mut lines)?;
            Ok(Some(lines.into_matches(&printable(path.as_os_str().as_bytes()), query.context as u64)))
        }
    });
    let mut output = Output::new(query.mode, searched.found);
    // How many files were opened before enough was found is an accident, and not said.
    if output.matches.len() < enough {
        output.files_searched = Some(searched.n_files);
        output.skipped = searched.skipped + skipped;
    }
    Ok(output)
}

/// The compiled query, and the longest line that it may look at without a pause.
fn matcher(query: &Query) -> Result<(RegexMatcher, usize)> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .line_terminator(Some(b'\n'))
        .fixed_strings(query.mode == Mode::Literal)
        .multi_line(true)
        .dfa_size_limit(TABLE_BYTES)
        .nest_limit(REGEX_NESTING);
    match query.case_sensitive {
        None => builder.case_smart(true),
        Some(differs) => builder.case_insensitive(!differs),
    };
    // A literal has few states. How large an expression is, only compiling tells.
    let mut bytes = if query.mode == Mode::Literal { REGEX_BYTES } else { REGEX_WORK / HEAP_BYTES };
    loop {
        match builder.size_limit(bytes).build(&query.text) {
            Ok(matcher) if query.mode == Mode::Literal => return Ok((matcher, HEAP_BYTES)),
            Ok(matcher) => return Ok((matcher, REGEX_WORK / bytes)),
            Err(_too_large) if bytes < REGEX_BYTES => bytes *= 4,
            Err(error) => {
                let what = if query.mode == Mode::Literal { "text" } else { "regular expression" };
                return Err(failure::invalid(format!(
                    "the query cannot be searched for as a {what}, line by line: {error}"
                )));
            }
        }
    }
}

fn searcher(query: &Query, heap: usize) -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(heap))
        .max_matches(Some(query.most as u64 + 1))
        .before_context(query.context)
        .after_context(query.context)
        .build()
}

/// A file that ends with an error once the search is to stop.
struct Stoppable<'a> {
    file: std::fs::File,
    stop: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("the search was cancelled"));
        }
        self.file.read(buffer)
    }
}

/// The lines of one file that match, and those around them.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    lines: Vec<Line>,
    binary: bool,
}

struct Line {
    number: u64,
    text: String,
    /// Where the match is, if the line is one.
    column: Option<usize>,
}

impl Lines<'_> {
    /// The matches, each with the lines around it.
    fn into_matches(self, path: &str, context: u64) -> Vec<Match> {
        let is_near = |a: &Line, b: &Line| a.number.abs_diff(b.number) <= context;
        let texts = |lines: &[Line]| lines.iter().map(|line| line.text.clone()).collect();
        let to_match = |(n, line): (usize, &Line)| {
            let (before, after) = (self.lines.get(..n)?, self.lines.get(n + 1..)?);
            let n_before = before.iter().rev().take_while(|other| is_near(other, line)).count();
            let n_after = after.iter().take_while(|other| is_near(other, line)).count();
            Some(Match {
                path: path.to_owned(),
                line: line.number,
                column: Some(line.column?),
                text: line.text.clone(),
                before: texts(before.get(n - n_before..)?),
                after: texts(after.get(..n_after)?),
                ..Match::default()
            })
        };
        if self.binary { Vec::new() } else { self.lines.iter().enumerate().filter_map(to_match).collect() }
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |at| at.start());
        let (text, column) = display_line(found.bytes(), at);
        self.lines.push(Line { number: found.line_number().unwrap_or(0), text, column: Some(column) });
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let (text, _) = display_line(line.bytes(), 0);
        self.lines.push(Line { number: line.line_number().unwrap_or(0), text, column: None });
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.binary |= end.binary_byte_offset().is_some();
        Ok(())
    }
}

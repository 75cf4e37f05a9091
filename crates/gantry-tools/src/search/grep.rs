//! Literal and regular-expression search, line by line, with the engine of ripgrep.
//!
//! Its expressions take time linear in what they look at, so no pattern can hold a search up. Files are read in pieces;
//! what a thread keeps in memory has a limit, and a file with a line beyond it is skipped.
//!
//! Files are listed first and searched in the order of their paths. Once enough is found, later files are not opened, so
//! a search for something common ends early and always gives the same answer.

use super::answer::{Answer, Match, shown};
use super::open::Opener;
use super::query::{Mode, Query};
use super::walk::{Start, list, work_through};
use super::{Folder, fault};
use crate::workspace::within::shown_path;
use gantry_core::Fault;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What a thread keeps of a file at a time, and so the longest line.
const HEAP_BYTES: usize = 8 * 1024 * 1024;
/// The size of a compiled expression, and of the tables it makes while it runs.
const REGEX_BYTES: usize = 8 * 1024 * 1024;
/// How deep groups in an expression are nested.
const REGEX_NESTING: u32 = 100;

/// Finds the first lines, by path and number, that have what is looked for.
pub(super) fn run(folder: &Folder, query: &Query, stop: &CancellationToken) -> Result<Answer, Fault> {
    let matcher = matcher(query)?;
    let beneath = folder.enter()?;
    let start = Start::find(&beneath, &query.way)?;
    let listed = list((&folder.path, &beneath), start, |path| query.takes(path), stop);
    // One more than asked for tells whether there is more.
    let (enough, found) = (query.most + 1, Mutex::new(Found::default()));
    work_through(&listed.files, stop, || {
        let mut worker = Worker::new(query, &matcher, Opener::new(&beneath), stop);
        let found = &found;
        move |first, paths: &[Vec<u8>]| {
            let portion = worker.search(paths, enough);
            found.lock().unwrap_or_else(PoisonError::into_inner).add(first, portion) < enough
        }
    });
    if stop.is_cancelled() {
        return Err(fault::canceled());
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (searched, skipped) = (found.searched, found.skipped + listed.skipped);
    let mut answer = Answer::new(query.mode, found.into_matches());
    // How many files were opened before enough was found is an accident, and not said.
    if answer.matches.len() < enough {
        answer.files_searched = Some(searched);
        answer.skipped = skipped;
    }
    Ok(answer)
}

/// What all threads found.
#[derive(Default)]
struct Found {
    /// Matches of each portion, by the index of its first file.
    portions: Vec<(usize, Vec<Match>)>,
    n_matches: usize,
    searched: usize,
    skipped: usize,
}

/// What one thread found in a portion of the files.
#[derive(Default)]
struct Portion {
    matches: Vec<Match>,
    searched: usize,
    skipped: usize,
}

impl Found {
    /// Takes a portion, and returns how many matches there are now.
    fn add(&mut self, first: usize, portion: Portion) -> usize {
        self.n_matches += portion.matches.len();
        self.searched += portion.searched;
        self.skipped += portion.skipped;
        if !portion.matches.is_empty() {
            self.portions.push((first, portion.matches));
        }
        self.n_matches
    }

    fn into_matches(mut self) -> Vec<Match> {
        self.portions.sort_unstable_by_key(|(first, _)| *first);
        self.portions.into_iter().flat_map(|(_, matches)| matches).collect()
    }
}

fn matcher(query: &Query) -> Result<RegexMatcher, Fault> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .line_terminator(Some(b'\n'))
        .fixed_strings(query.mode == Mode::Literal)
        .multi_line(true)
        .size_limit(REGEX_BYTES)
        .dfa_size_limit(REGEX_BYTES)
        .nest_limit(REGEX_NESTING);
    match query.case {
        None => builder.case_smart(true),
        Some(differs) => builder.case_insensitive(!differs),
    };
    builder.build(&query.text).map_err(|error| {
        let what = if query.mode == Mode::Literal { "text" } else { "regular expression" };
        fault::invalid(format!("the query cannot be searched for as a {what}, line by line: {error}"))
    })
}

/// What a thread searches with.
struct Worker<'a> {
    context: usize,
    searcher: Searcher,
    matcher: RegexMatcher,
    opener: Opener<'a>,
    stop: &'a CancellationToken,
}

impl<'a> Worker<'a> {
    fn new(query: &Query, matcher: &RegexMatcher, opener: Opener<'a>, stop: &'a CancellationToken) -> Self {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES))
            .before_context(query.context)
            .after_context(query.context)
            .build();
        Self { context: query.context, searcher, matcher: matcher.clone(), opener, stop }
    }

    /// Searches files in their order until there are enough matches.
    fn search(&mut self, paths: &[Vec<u8>], enough: usize) -> Portion {
        let mut portion = Portion::default();
        for path in paths {
            if self.stop.is_cancelled() || portion.matches.len() >= enough {
                break;
            }
            self.search_file(path, enough, &mut portion);
        }
        portion
    }

    fn search_file(&mut self, path: &[u8], enough: usize, portion: &mut Portion) {
        let file = match self.opener.open(path) {
            Ok((file, _)) => file,
            // It is gone, hidden, or no file any more.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP | Errno::NXIO) => return,
            Err(_) => {
                portion.skipped += 1;
                return;
            }
        };
        let mut lines = Lines::new(&self.matcher, self.context, enough);
        let reader = Stoppable { file, stop: self.stop };
        if self.searcher.search_reader(&self.matcher, reader, &mut lines).is_err() {
            portion.skipped += 1;
            return;
        }
        portion.searched += 1;
        if !lines.binary {
            let shown = shown_path(path);
            portion
                .matches
                .extend(lines.matches.into_iter().map(|found| Match { path: shown.clone(), ..found }));
        }
    }
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

/// The matches of one file, with the lines around them.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    context: usize,
    enough: usize,
    matches: Vec<Match>,
    /// The newest lines, for the match that comes next.
    recent: VecDeque<(u64, String)>,
    binary: bool,
}

impl<'a> Lines<'a> {
    fn new(matcher: &'a RegexMatcher, context: usize, enough: usize) -> Self {
        Self { matcher, context, enough, matches: Vec::new(), recent: VecDeque::new(), binary: false }
    }

    /// Notes a line for the matches before it and for the one that may come.
    fn pass(&mut self, number: u64, line: String) {
        if self.context == 0 {
            return;
        }
        let reach = self.context as u64;
        for found in self.matches.iter_mut().rev().take_while(|found| found.line + reach >= number) {
            found.after.push(line.clone());
        }
        if self.recent.len() == self.context {
            self.recent.pop_front();
        }
        self.recent.push_back((number, line));
    }

    fn before(&self, number: u64) -> Vec<String> {
        let reach = self.context as u64;
        let near = self.recent.iter().filter(|(earlier, _)| earlier + reach >= number);
        near.map(|(_, line)| line.clone()).collect()
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let number = found.line_number().unwrap_or(0);
        let at = self.matcher.find(found.bytes()).ok().flatten().map_or(0, |at| at.start());
        let (text, column) = shown(found.bytes(), at);
        let before = self.before(number);
        self.pass(number, text.clone());
        if self.matches.len() < self.enough {
            let column = Some(column);
            self.matches.push(Match { line: number, column, text, before, ..Match::default() });
        }
        // The last match that counts still gets the lines after it.
        let reach = self.context as u64;
        let is_last_near = self.matches.last().is_some_and(|last| number < last.line + reach);
        Ok(self.matches.len() < self.enough || is_last_near)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.pass(line.line_number().unwrap_or(0), shown(line.bytes(), 0).0);
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

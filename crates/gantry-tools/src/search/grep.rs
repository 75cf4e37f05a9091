//! Literal and regular-expression search, line by line, with the engine of ripgrep.
//!
//! Its expressions take time linear in what they look at, so no pattern can hold a search up. Files are read in pieces;
//! what a thread keeps in memory has a limit, and a file with a line beyond it is skipped.

use super::answer::{Answer, Match, shown};
use super::fault;
use super::first::First;
use super::query::{Mode, Query};
use super::walk::{Spot, Start, Visit, walk};
use crate::workspace::within::{Within, shown_path};
use gantry_core::Fault;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

/// What a thread keeps of a file at a time, and so the longest line.
const HEAP_BYTES: usize = 8 * 1024 * 1024;
/// The size of a compiled expression, and of the tables it makes while it runs.
const REGEX_BYTES: usize = 8 * 1024 * 1024;
/// How deep groups in an expression are nested.
const REGEX_NESTING: u32 = 100;

/// Finds the first lines, by path and number, that have what is looked for.
pub(super) fn run(within: &Within, query: &Query, stop: &CancellationToken) -> Result<Answer, Fault> {
    let matcher = matcher(query)?;
    let start = Start::find(within, &query.way)?;
    // One more than asked for tells whether there is more.
    let grep = Grep {
        query,
        matcher: &matcher,
        stop,
        first: First::new(query.most + 1),
        searched: AtomicUsize::new(0),
        skipped: AtomicUsize::new(0),
    };
    let walked = walk(start, &grep, stop);
    if stop.is_cancelled() {
        return Err(fault::canceled());
    }
    let mut answer = Answer::new(query.mode, grep.first.into_matches());
    if answer.matches.len() > query.most {
        answer.matches.truncate(query.most);
        answer.truncated = true;
    } else {
        // How many files were opened before enough was found is an accident, and not said.
        answer.files_searched = Some(grep.searched.into_inner());
        answer.skipped = grep.skipped.into_inner() + walked.skipped;
    }
    Ok(answer.bounded())
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

struct Grep<'a> {
    query: &'a Query,
    matcher: &'a RegexMatcher,
    stop: &'a CancellationToken,
    first: First,
    searched: AtomicUsize,
    skipped: AtomicUsize,
}

impl Grep<'_> {
    fn skip(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a thread searches with.
struct Hand {
    searcher: Searcher,
    matcher: RegexMatcher,
}

impl Visit for Grep<'_> {
    type Hand = Hand;

    fn hand(&self) -> Hand {
        let searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES))
            .before_context(self.query.context)
            .after_context(self.query.context)
            .build();
        Hand { searcher, matcher: self.matcher.clone() }
    }

    fn wants(&self, path: &[u8]) -> bool {
        self.first.wants(path) && (path.ends_with(b"/") || self.query.takes(path))
    }

    fn file(&self, hand: &mut Hand, spot: &Spot<'_>) {
        let file = match spot.open() {
            Ok(file) => file,
            // It is gone, or no file any more.
            Err(Errno::NOENT | Errno::INVAL | Errno::LOOP | Errno::NXIO) => return,
            Err(_) => return self.skip(),
        };
        let mut found = Found::new(&hand.matcher, self.query.context, self.first.enough());
        let reader = Stoppable { file, stop: self.stop };
        if hand.searcher.search_reader(&hand.matcher, reader, &mut found).is_err() {
            return self.skip();
        }
        self.searched.fetch_add(1, Ordering::Relaxed);
        if !found.binary && !found.matches.is_empty() {
            let shown = shown_path(spot.path);
            found.matches.iter_mut().for_each(|found| found.path.clone_from(&shown));
            self.first.add(spot.path, found.matches);
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
struct Found<'a> {
    matcher: &'a RegexMatcher,
    context: usize,
    enough: usize,
    matches: Vec<Match>,
    /// The newest lines, for the match that comes next.
    recent: VecDeque<(u64, String)>,
    binary: bool,
}

impl<'a> Found<'a> {
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

impl Sink for Found<'_> {
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

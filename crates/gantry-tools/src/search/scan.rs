//! One pass over all files that counts the words of a question in each, and ranks the files.
//!
//! The score of a file is BM25 over its words, its symbols and its path, raised by how much of the question stands on
//! one line or in the path.
//!
//! A file is not taken apart into its words: one regular expression finds the lines that may have a word of the
//! question, and only these are looked at closely. So the length of a file is its bytes, not its words.

use super::opener::Opener;
use super::symbols::Language;
use super::walk::{Searched, search_files};
use super::words::{self, Term};
use crate::failure::{self, Result};
use crate::workspace::path::printable;
use crate::workspace::reader::WorkspaceReader;
use regex::bytes::{Regex, RegexBuilder};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Files that are ranked.
pub(super) const FILES: usize = 200_000;
/// The size of a file that is ranked.
pub(super) const FILE_BYTES: u64 = 1024 * 1024;
/// How often a word counts in one file. More often says no more.
const REPEATS: u8 = 3;
/// Lines with a word of the question that count in one file.
const LINES: usize = 2000;
/// The shortest word that stands for those that begin with it.
const PREFIX_CHARS: usize = 4;
/// Where a word can be, and how much it counts there.
const TEXT: usize = 0;
const SYMBOLS: usize = 1;
const PATH: usize = 2;
const WEIGHTS: [f64; 3] = [1.0, 2.5, 1.5];
/// The usual constants of BM25: how soon a word that is repeated counts no more, and how much long files count less.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// How much more a line counts that defines something, in percent of a word.
const DEFINES: u32 = 75;

/// Finds the words of one question in texts.
#[derive(Debug, Clone)]
pub(super) struct Finder<'a> {
    terms: &'a [Term],
    /// Finds every place that may have one of the words. A plural may end otherwise than its singular, but it begins
    /// alike; an identifier in one piece is found by its parts.
    quick: Regex,
}

/// What a file has of the question.
#[derive(Debug)]
pub(super) struct Counted {
    n_bytes: u64,
    words: Box<[Counts]>,
    /// How much of the question is on one line or in the path, from 0 to 1.
    coverage: f64,
    /// Where the line with most of it begins, if a line has any.
    pub(super) best_line: Option<usize>,
}

/// How often one word is in a file, for each place of [`WEIGHTS`]: itself, and words that begin with it.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    exact: [u8; 3],
    prefix: [u8; 3],
}

impl Counts {
    fn weight(&self, exact: bool) -> f64 {
        let counts = if exact { self.exact } else { self.prefix };
        counts.into_iter().zip(WEIGHTS).map(|(count, weight)| f64::from(count) * weight).sum()
    }
}

impl<'a> Finder<'a> {
    pub(super) fn new(terms: &'a [Term]) -> Result<Self> {
        let stems: Vec<String> = terms.iter().map(|term| regex::escape(stem(term))).collect();
        let is_ascii = terms.iter().all(|term| term.word.is_ascii());
        let quick = RegexBuilder::new(&stems.join("|")).case_insensitive(true).unicode(!is_ascii).build();
        let quick =
            quick.map_err(|error| failure::failed(format!("the words cannot be looked for: {error}")))?;
        Ok(Self { terms, quick })
    }

    /// Counts the words in a file; nothing if it has none of them.
    pub(super) fn count(&self, path: &str, text: &[u8]) -> Option<Counted> {
        let mut counts = vec![Counts::default(); self.terms.len()];
        let language = Language::of_file(path);
        let (mut at, mut n_lines, mut best) = (0, 0, (0, None));
        while n_lines < LINES
            && let Some(hit) = self.quick.find_at(text, at)
        {
            let Range { start, end } = line_around(text, hit.start());
            at = end;
            let line = String::from_utf8_lossy(text.get(start..end).unwrap_or_default());
            let mut worth = self.add(self.identifiers(&line), TEXT, &mut counts);
            // Many lines have the letters of a short word within others; those do not count.
            n_lines += usize::from(worth > 0);
            let defined = language.filter(|_| worth > 0).and_then(|language| language.defined_by(&line));
            if let Some(name) = defined {
                self.add([name], SYMBOLS, &mut counts);
                worth += DEFINES;
            }
            if worth > best.0 {
                best = (worth, Some(start));
            }
        }
        let worth = self.add([path], PATH, &mut counts).max(best.0);
        let total: u32 = self.terms.iter().map(|term| term.percent).sum();
        let coverage = (f64::from(worth) / f64::from(total.max(1))).min(1.0);
        let n_bytes = text.len() as u64;
        (worth > 0).then(|| Counted { n_bytes, words: counts.into(), coverage, best_line: best.1 })
    }

    /// The words and identifiers of a line that may have a word of the question; most have none, and are not taken apart.
    fn identifiers<'t>(&self, line: &'t str) -> impl Iterator<Item = &'t str> {
        let mut rest = line;
        std::iter::from_fn(move || {
            let (before, after) = rest.split_at_checked(self.quick.find(rest.as_bytes())?.start())?;
            let start = before.trim_end_matches(words::is_part).len();
            let after = after.trim_start_matches(words::is_part);
            let identifier = rest.get(start..rest.len() - after.len());
            rest = after;
            identifier
        })
    }

    /// Counts the words in some texts, and returns how much of the question they are. A word that only begins like one of
    /// the question counts half.
    fn add<'t>(&self, texts: impl IntoIterator<Item = &'t str>, place: usize, counts: &mut [Counts]) -> u32 {
        let mut worth = [0; words::TERMS];
        let mut count = |word: &str, _| {
            let terms = self.terms.iter().zip(&mut *counts).zip(&mut worth);
            for ((term, counts), worth) in terms.filter(|((term, _), _)| word.starts_with(&term.word)) {
                let is_exact = word.len() == term.word.len();
                let counts = if is_exact { &mut counts.exact } else { &mut counts.prefix };
                if let Some(count) = counts.get_mut(place) {
                    *count = (*count + 1).min(REPEATS);
                }
                *worth = (*worth).max(if is_exact { term.percent } else { term.percent / 2 });
            }
        };
        texts.into_iter().for_each(|text| words::for_each_word(text, &mut count));
        worth.into_iter().sum()
    }
}

/// How a word begins in its singular and its plural.
fn stem(term: &Term) -> &str {
    term.word.strip_suffix('y').unwrap_or(&term.word)
}

/// The line that a place in a text is on.
fn line_around(text: &[u8], at: usize) -> Range<usize> {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, &[]));
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = after.iter().position(|byte| *byte == b'\n').map_or(text.len(), |n| at + n);
    start..end
}

/// Reads every file of a list and counts the words in it.
pub(super) fn scan<'f>(
    reader: &WorkspaceReader,
    files: &'f [PathBuf],
    finder: &Finder<'_>,
    stop: &CancellationToken,
) -> Searched<(&'f Path, Counted)> {
    search_files(reader, files, usize::MAX, stop, || {
        // Threads that share an expression wait for each other.
        let (finder, mut buffer) = (finder.clone(), Vec::new());
        move |opener: &mut Opener<'_>, path: &'f Path| {
            let Some(text) = opener.read(path, FILE_BYTES, &mut buffer)? else { return Ok(None) };
            let counted = finder.count(&printable(path.as_os_str().as_bytes()), text);
            Ok(Some(counted.map(|counted| (path, counted)).into_iter().collect()))
        }
    })
}

/// The best files of a scan by their score, at most so many: the path of each, what it has, and its score.
pub(super) fn rank<'f>(
    scanned: Searched<(&'f Path, Counted)>,
    terms: &[Term],
    most: usize,
) -> Vec<(&'f Path, Counted, f64)> {
    let Searched { found, n_files, .. } = scanned;
    let weigh = |(n, term)| weigh(&found, n_files, n, term);
    let weights: Vec<_> = terms.iter().enumerate().map(weigh).collect();
    // Files without any of the words say nothing about how long a file with them should be.
    let mean =
        found.iter().map(|(_, counted)| counted.n_bytes as f64).sum::<f64>() / found.len().max(1) as f64;
    let score = |(path, counted): (&'f Path, Counted)| {
        let relative = 1.0 - LENGTH + LENGTH * counted.n_bytes as f64 / mean.max(1.0);
        let parts = weights.iter().zip(&counted.words).map(|((exact, worth), counts)| {
            let often = counts.weight(*exact);
            worth * often * (SATURATION + 1.0) / (often + SATURATION * relative)
        });
        let score = parts.sum::<f64>() * (1.0 + counted.coverage);
        (path, counted, score)
    };
    let mut ranked: Vec<_> = found.into_iter().map(score).filter(|(_, _, score)| *score > 0.0).collect();
    ranked.sort_by(|a, b| b.2.total_cmp(&a.2));
    ranked.truncate(most);
    ranked
}

/// Whether a word of the question counts itself, and how much it is worth. One that no file has stands for those that
/// begin with it.
fn weigh(found: &[(&Path, Counted)], n_files: usize, n: usize, Term { word, percent }: &Term) -> (bool, f64) {
    let n_with = |exact: bool| {
        let has = |counts: &&Counts| counts.weight(exact) > 0.0;
        found.iter().filter_map(|(_, counted)| counted.words.get(n)).filter(has).count()
    };
    let n_exact = n_with(true);
    let (exact, n_with, percent) = if n_exact > 0 {
        (true, n_exact, *percent)
    } else if word.chars().count() >= PREFIX_CHARS {
        (false, n_with(false), percent / 2)
    } else {
        (true, 0, 0)
    };
    let (n_with, n_all) = (n_with as f64, n_files as f64);
    let rareness = (1.0 + (n_all - n_with + 0.5) / (n_with + 0.5)).ln();
    (exact, rareness * f64::from(percent) / 100.0)
}

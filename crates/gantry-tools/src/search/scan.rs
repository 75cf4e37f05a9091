//! One pass over all files that counts the words of a question in each, and ranks the files by BM25.
//!
//! A file is not taken apart into its words: one regular expression finds the places that may have a word of the
//! question, and only these are looked at closely. So the length of a file is its bytes, not its words.

use super::fault;
use super::open::{Beneath, Opener};
use super::symbols::Language;
use super::walk::work_through;
use super::words::{self, Term};
use crate::workspace::within::shown_path;
use gantry_core::Fault;
use regex::bytes::{Regex, RegexBuilder};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Files that are ranked.
pub(super) const FILES: usize = 200_000;
/// The size of a file that is ranked.
pub(super) const FILE_BYTES: u64 = 1024 * 1024;
/// How often a word counts in one file. More often says no more.
const REPEATS: u8 = 3;
/// Places in one file that are looked at closely.
const PLACES: usize = 2_000;
/// The shortest word that stands for those that begin with it.
const PREFIX_CHARS: usize = 4;
/// How much more a word counts in a path, and among the symbols, than in the text.
const WEIGHTS: (f64, f64) = (1.5, 2.5);
/// The usual constants of BM25: how soon a word that is repeated counts no more, and how much long files count less.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Finds the words of one question in texts.
#[derive(Debug, Clone)]
pub(super) struct Finder<'a> {
    pub(super) terms: &'a [Term],
    /// Finds every place that may have one of the words. A plural may end otherwise than its singular, but it begins
    /// alike; an identifier in one piece is found by its parts.
    quick: Regex,
}

/// What a scan has found.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// Files with a word of the question.
    found: Vec<Counted>,
    /// Files that were searched, and their length together.
    pub(super) n_files: usize,
    n_bytes: u64,
    /// Files that could not be read.
    pub(super) skipped: usize,
}

/// How often a file has each word of the question.
#[derive(Debug)]
struct Counted {
    /// Its index in the list.
    file: usize,
    n_bytes: u64,
    words: Box<[Counts]>,
}

/// How often one word is in a file: itself, and words that begin with it.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    exact: Count,
    prefix: Count,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    text: u8,
    symbols: u8,
    path: u8,
}

impl Count {
    fn weight(self) -> f64 {
        let (path, symbols) = WEIGHTS;
        f64::from(self.text) + f64::from(self.symbols) * symbols + f64::from(self.path) * path
    }
}

impl<'a> Finder<'a> {
    pub(super) fn new(terms: &'a [Term]) -> Result<Self, Fault> {
        let stems: Vec<String> = terms.iter().map(|term| regex::escape(stem(term))).collect();
        let is_ascii = terms.iter().all(|term| term.word.is_ascii());
        let quick = RegexBuilder::new(&stems.join("|")).case_insensitive(true).unicode(!is_ascii).build();
        let quick =
            quick.map_err(|error| fault::failed(format!("the words cannot be looked for: {error}")))?;
        Ok(Self { terms, quick })
    }

    /// Whether a text may have one of the words.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        self.quick.is_match(text)
    }

    /// Counts the words in a file.
    fn count(&self, path: &str, text: &[u8]) -> Option<Box<[Counts]>> {
        let mut counts = vec![Counts::default(); self.terms.len()];
        let language = Language::of(path);
        let (mut at, mut known_line, mut n_places) = (0, 0, 0);
        while let Some(hit) = self.quick.find_at(text, at).filter(|_| n_places < PLACES) {
            if is_inside_word(text, hit.start()) {
                at = hit.start() + 1;
                continue;
            }
            n_places += 1;
            let has = if self.is_settled(text.get(hit.start()..).unwrap_or_default(), &counts) {
                at = hit.end();
                true
            } else {
                let run = around(text, hit.range(), is_word_byte);
                at = run.end;
                self.add(text.get(run).unwrap_or_default(), &mut counts, |count| &mut count.text)
            };
            if let Some(language) = language.filter(|_| has && hit.start() >= known_line) {
                let line = around(text, hit.range(), |byte| byte != b'\n');
                known_line = line.end;
                let line = String::from_utf8_lossy(text.get(line).unwrap_or_default());
                if let Some(name) = language.defined_by(&line) {
                    self.add(name.as_bytes(), &mut counts, |count| &mut count.symbols);
                }
            }
        }
        if self.may_be_in(path.as_bytes()) {
            self.add(path.as_bytes(), &mut counts, |count| &mut count.path);
        }
        let has_any = |counts: &Counts| counts.exact.weight() + counts.prefix.weight() > 0.0;
        counts.iter().any(has_any).then(|| counts.into())
    }

    /// Whether every word that may begin here was found often enough. Then only definitions still matter.
    fn is_settled(&self, text: &[u8], counts: &[Counts]) -> bool {
        let begins = |term: &Term| {
            let stem = stem(term).as_bytes();
            text.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem))
        };
        let mut here = self.terms.iter().zip(counts).filter(|(term, _)| begins(term)).peekable();
        here.peek().is_some() && here.all(|(_, counts)| counts.exact.text == REPEATS)
    }

    /// Counts the words in a text, and returns whether there is any.
    fn add(&self, text: &[u8], counts: &mut [Counts], field: impl Fn(&mut Count) -> &mut u8) -> bool {
        let mut has_any = false;
        words::each(&String::from_utf8_lossy(text), |word, _| {
            for (term, counts) in self.terms.iter().zip(&mut *counts) {
                let count = if word == term.word {
                    &mut counts.exact
                } else if word.starts_with(&term.word) {
                    &mut counts.prefix
                } else {
                    continue;
                };
                let count = field(count);
                *count = (*count + 1).min(REPEATS);
                has_any = true;
            }
        });
        has_any
    }
}

/// How a word begins in its singular and its plural.
fn stem(term: &Term) -> &str {
    term.word.strip_suffix('y').unwrap_or(&term.word)
}

/// The longest part of a text around a range in it that has only such bytes.
fn around(text: &[u8], inner: Range<usize>, takes: impl Fn(u8) -> bool) -> Range<usize> {
    let before = text.get(..inner.start).unwrap_or_default();
    let after = text.get(inner.end..).unwrap_or_default();
    let start = before.iter().rposition(|byte| !takes(*byte)).map_or(0, |at| at + 1);
    let end = after.iter().position(|byte| !takes(*byte)).map_or(text.len(), |at| inner.end + at);
    start..end
}

/// Whether no word can begin at this place: it would need a capital, or something other than a letter before it.
fn is_inside_word(text: &[u8], at: usize) -> bool {
    let is_small = |at: usize| text.get(at).is_some_and(u8::is_ascii_lowercase);
    is_small(at) && at.checked_sub(1).is_some_and(is_small)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Reads every file of a list and counts the words in it.
pub(super) fn scan(
    beneath: &Beneath,
    files: &[Vec<u8>],
    finder: &Finder<'_>,
    stop: &CancellationToken,
) -> Scanned {
    let all = Mutex::new(Scanned::default());
    work_through(files, stop, || {
        let (mut opener, mut buffer) = (Opener::new(beneath), Vec::new());
        // Threads that share an expression wait for each other.
        let (finder, all) = (finder.clone(), &all);
        move |first, paths: &[Vec<u8>]| {
            let mut scanned = Scanned::default();
            for (n, path) in paths.iter().enumerate() {
                match opener.read(path, FILE_BYTES, &mut buffer) {
                    Ok(Some(text)) => scanned.add(first + n, &finder, path, text),
                    // It is binary or too large, gone, hidden, or no file any more.
                    Ok(None)
                    | Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP | Errno::NXIO) => {}
                    Err(_) => scanned.skipped += 1,
                }
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).merge(scanned);
            true
        }
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Scanned {
    fn add(&mut self, file: usize, finder: &Finder<'_>, path: &[u8], text: &[u8]) {
        let n_bytes = text.len() as u64;
        self.n_files += 1;
        self.n_bytes += n_bytes;
        let words = finder.count(&shown_path(path), text);
        self.found.extend(words.map(|words| Counted { file, n_bytes, words }));
    }

    fn merge(&mut self, other: Self) {
        self.found.extend(other.found);
        self.n_files += other.n_files;
        self.n_bytes += other.n_bytes;
        self.skipped += other.skipped;
    }

    /// The files by their score, the best first, by their index in the list.
    pub(super) fn rank(&self, terms: &[Term]) -> Vec<(usize, f64)> {
        let kinds: Vec<Kind> = (0..terms.len()).map(|n| self.kind(n, terms)).collect();
        let mean = self.n_bytes as f64 / (self.n_files.max(1) as f64);
        let score = |counted: &Counted| {
            let relative = 1.0 - LENGTH + LENGTH * counted.n_bytes as f64 / mean.max(1.0);
            let parts = kinds.iter().zip(&counted.words).map(|(kind, counts)| {
                let often = kind.of(counts).weight();
                kind.worth * often * (SATURATION + 1.0) / (often + SATURATION * relative)
            });
            (counted.file, parts.sum())
        };
        let mut ranked: Vec<(usize, f64)> =
            self.found.iter().map(score).filter(|(_, score)| *score > 0.0).collect();
        ranked.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
    }

    /// How a word of the question counts. One that no file has stands for those that begin with it.
    fn kind(&self, n: usize, terms: &[Term]) -> Kind {
        let n_with = |exact: bool| {
            let kind = Kind { exact, worth: 1.0 };
            let has = |counted: &&Counted| {
                counted.words.get(n).is_some_and(|counts| kind.of(counts).weight() > 0.0)
            };
            self.found.iter().filter(has).count()
        };
        let Some(Term { word, percent }) = terms.get(n) else { return Kind { exact: true, worth: 0.0 } };
        let n_exact = n_with(true);
        let (exact, n_files, percent) = if n_exact > 0 {
            (true, n_exact, *percent)
        } else if word.chars().count() >= PREFIX_CHARS {
            (false, n_with(false), percent / 2)
        } else {
            (true, 0, 0)
        };
        let (n_files, n_all) = (n_files as f64, self.n_files as f64);
        let rareness = (1.0 + (n_all - n_files + 0.5) / (n_files + 0.5)).ln();
        Kind { exact, worth: rareness * f64::from(percent) / 100.0 }
    }
}

/// How one word of the question counts.
struct Kind {
    /// Itself, or words that begin with it.
    exact: bool,
    worth: f64,
}

impl Kind {
    fn of(&self, counts: &Counts) -> Count {
        if self.exact { counts.exact } else { counts.prefix }
    }
}

//! Ranked search: one scan says which files, and the best line of each of the first ones says how well it fits.
//!
//! The score of a file is BM25 over its words, its symbols and its path, raised by how much of the question stands on
//! one line or in the path. With a model, the first files are put in a new order by their meaning (`embed`).

use super::answer::{Answer, Match};
use super::open::{Beneath, Opener};
use super::query::Query;
use super::scan::{FILE_BYTES, FILES, Finder, scan};
use super::walk::{Listed, Start, list, work_through};
use super::words::{self, Term};
use super::{Folder, embed, fault};
use crate::workspace::within::shown_path;
use gantry_core::Fault;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Files that are looked at beyond those that are asked for, because their lines may change the order.
const BEYOND: usize = 20;

/// The words of a question.
pub(super) fn terms(query: &Query) -> Result<Vec<Term>, Fault> {
    let terms = words::terms(&query.text);
    if terms.is_empty() {
        return Err(fault::invalid(
            "query has no word to rank by; use mode literal to search for characters",
        ));
    }
    Ok(terms)
}

/// Finds the best files by their words, the best first: at least those that are asked for and one more, if there are
/// so many, and as many as a model puts in order.
pub(super) fn run(folder: &Folder, query: &Query, stop: &CancellationToken) -> Result<Answer, Fault> {
    let terms = terms(query)?;
    let finder = Finder::new(&terms)?;
    let beneath = folder.enter()?;
    let start = Start::find(&beneath, &query.way)?;
    let Listed { mut files, skipped } = list((&folder.path, &beneath), start, |path| query.takes(path), stop);
    let is_cut = files.len() > FILES;
    files.truncate(FILES);
    let scanned = scan(&beneath, &files, &finder, stop);
    let mut ranked = scanned.rank(&terms);
    ranked.truncate((query.most + BEYOND).max(embed::CANDIDATES));
    let candidates: Vec<Candidate<'_>> = ranked
        .into_iter()
        .filter_map(|(file, score)| files.get(file).map(|path| Candidate { path, score }))
        .collect();
    let mut matches = look(&beneath, &finder, (&candidates, query.context), stop);
    if stop.is_cancelled() {
        return Err(fault::canceled());
    }
    matches.sort_by(|a, b| {
        let score = |found: &Match| found.score.unwrap_or_default();
        score(b).total_cmp(&score(a)).then_with(|| a.path.cmp(&b.path))
    });
    let mut answer = Answer::new(query.mode, matches);
    answer.files_searched = Some(scanned.n_files);
    answer.skipped = skipped + scanned.skipped;
    answer.note = is_cut.then(|| format!("only the first {FILES} files, by path, are ranked"));
    Ok(answer)
}

/// A file that may be in the answer.
struct Candidate<'a> {
    path: &'a [u8],
    score: f64,
}

/// Finds the best line of each file as it is now. One that is gone or has lost the words has none.
fn look(
    beneath: &Beneath,
    finder: &Finder<'_>,
    (candidates, context): (&[Candidate<'_>], usize),
    stop: &CancellationToken,
) -> Vec<Match> {
    let found = Mutex::new(Vec::new());
    work_through(candidates, stop, || {
        let (mut opener, mut buffer) = (Opener::new(beneath), Vec::new());
        let found = &found;
        move |_, portion: &[Candidate<'_>]| {
            let matches: Vec<Match> = portion
                .iter()
                .filter_map(|Candidate { path, score }| {
                    let text = opener.read(path, FILE_BYTES, &mut buffer).ok()??;
                    let (path, text) = (shown_path(path), String::from_utf8_lossy(text));
                    let snippet = finder.best(&path, &text, context);
                    let part = snippet.coverage.into_iter().chain(finder.in_path(&path)).reduce(f64::max)?;
                    let score = Some((score * (1.0 + part) * 1e6).round() / 1e6);
                    Some(Match { score, ..snippet.found })
                })
                .collect();
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(matches);
            true
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

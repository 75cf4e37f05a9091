//! Which files say what is asked for, the best first.
//!
//! BM25 over a word that most files have costs as much as looking at all of them, and tells little: so the rarest
//! words are used first, and the others only while together they stay within [`POSTINGS`] entries. Where all are
//! common, files that have all of them come in without an order among them.

use super::{SearchIndex, cached};
use crate::error::Error;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{BTreeMap, HashMap};

/// Limit: entries of the full-text tables that one query ranks, in each of the two.
const POSTINGS: usize = 12_000;
/// Limit: files that come in without an order, where every word is common.
const UNRANKED: usize = 1_000;
/// The shortest word that stands for those that begin with it.
const PREFIX_CHARS: usize = 4;
/// How much more a word counts in a path, and among the symbols, than in the text.
const WEIGHTS: (f64, f64) = (1.5, 2.5);

/// A word that is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Term {
    /// The word as documents have it: letters and digits only.
    pub word: String,
    /// How much it counts, in percent.
    pub percent: u32,
}

/// A file that has some of the words.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its path relative to the workspace root.
    pub path: String,
    /// The greater, the better.
    pub score: f64,
    /// Its number in the index.
    pub id: i64,
}

impl SearchIndex {
    /// The best files for the words among those whose path is accepted, at most `limit`, the best first.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn rank(
        &self,
        terms: &[Term],
        limit: usize,
        mut accept: impl FnMut(&str) -> bool,
    ) -> Result<Vec<Hit>, Error> {
        let reader = self.reader();
        // One look at the index, whatever is written to it meanwhile.
        let tx = reader.unchecked_transaction().map_err(Error::sqlite)?;
        let mut scores = HashMap::new();
        let (path, symbols) = WEIGHTS;
        add(&tx, "names", &format!("bm25(names, {path}, {symbols})"), terms, &mut scores)?;
        add(&tx, "body", "bm25(body)", terms, &mut scores)?;
        let mut ranked: Vec<(i64, f64)> = scores.into_iter().collect();
        // The older file first among equals, so that the order is always the same.
        ranked.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut hits = Vec::new();
        for (id, score) in ranked {
            if hits.len() == limit {
                break;
            }
            if let Some(path) = path_of(&tx, id)?.filter(|path| accept(path)) {
                hits.push(Hit { path, score, id });
            }
        }
        Ok(hits)
    }

    /// The path of a file by its number.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn path(&self, id: i64) -> Result<Option<String>, Error> {
        path_of(&self.reader(), id)
    }
}

fn path_of(conn: &Connection, id: i64) -> Result<Option<String>, Error> {
    let mut query = cached(conn, "SELECT path FROM files WHERE id = ?1")?;
    query.query_row([id], |row| row.get(0)).optional().map_err(Error::sqlite)
}

/// A word as one of the tables is asked for it.
struct Wanted {
    pattern: String,
    percent: u32,
}

/// Adds what a table has to say.
fn add(
    conn: &Connection,
    table: &str,
    score: &str,
    terms: &[Term],
    scores: &mut HashMap<i64, f64>,
) -> Result<(), Error> {
    let (rare, common) = split(conn, table, terms)?;
    if rare.is_empty() {
        let all: Vec<String> = common.into_iter().map(|wanted| wanted.pattern).collect();
        return add_unranked(conn, table, &all.join(" AND "), scores);
    }
    let sql = format!("SELECT rowid, {score} FROM {table} WHERE {table} MATCH ?1");
    let mut query = cached(conn, &sql)?;
    // Words that count alike share a query, because each query pays for its start.
    let mut groups: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for Wanted { pattern, percent } in rare {
        groups.entry(percent).or_default().push(pattern);
    }
    for (percent, patterns) in groups {
        let mut rows = query.query([patterns.join(" OR ")]).map_err(Error::sqlite)?;
        while let Some(row) = rows.next().map_err(Error::sqlite)? {
            let (id, score): (i64, f64) = row.try_into().map_err(Error::sqlite)?;
            // SQLite gives the best the smallest number.
            *scores.entry(id).or_default() -= score * f64::from(percent) / 100.0;
        }
    }
    Ok(())
}

fn add_unranked(
    conn: &Connection,
    table: &str,
    all: &str,
    scores: &mut HashMap<i64, f64>,
) -> Result<(), Error> {
    if all.is_empty() {
        return Ok(());
    }
    let sql = format!("SELECT rowid FROM {table} WHERE {table} MATCH ?1 LIMIT {UNRANKED}");
    let mut query = cached(conn, &sql)?;
    let ids = query.query_map([all], |row| row.get::<_, i64>(0)).map_err(Error::sqlite)?;
    for id in ids {
        *scores.entry(id.map_err(Error::sqlite)?).or_default() += f64::EPSILON;
    }
    Ok(())
}

/// The words that are worth ranking by, and those that are too common for it. A word that no file has stands for those
/// that begin with it.
fn split(conn: &Connection, table: &str, terms: &[Term]) -> Result<(Vec<Wanted>, Vec<Wanted>), Error> {
    let most = POSTINGS + 1;
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ?1 LIMIT {most})");
    let mut query = cached(conn, &sql)?;
    let mut count = |pattern: &str| -> Result<usize, Error> {
        let n_files: i64 = query.query_row([pattern], |row| row.get(0)).map_err(Error::sqlite)?;
        Ok(usize::try_from(n_files).unwrap_or(0))
    };
    let mut counted = Vec::new();
    for Term { word, percent } in terms {
        let pattern = quoted(word);
        let n_files = count(&pattern)?;
        if n_files > 0 {
            counted.push((n_files, Wanted { pattern, percent: *percent }));
        } else if word.chars().count() >= PREFIX_CHARS {
            let pattern = format!("{pattern} *");
            counted.push((count(&pattern)?, Wanted { pattern, percent: percent / 2 }));
        }
    }
    counted.retain(|(n_files, _)| *n_files > 0);
    counted.sort_by_key(|(n_files, _)| *n_files);
    let mut left = POSTINGS;
    let (mut rare, mut common) = (Vec::new(), Vec::new());
    for (n_files, wanted) in counted {
        match left.checked_sub(n_files) {
            Some(rest) => {
                left = rest;
                rare.push(wanted);
            }
            None => common.push(wanted),
        }
    }
    Ok((rare, common))
}

/// The word as the query language has it, of which it can be no part by itself.
fn quoted(word: &str) -> String {
    let word: String = word.chars().filter(|c| *c != '"' && *c != '\0').collect();
    format!("\"{word}\"")
}

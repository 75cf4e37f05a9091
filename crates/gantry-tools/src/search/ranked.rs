//! Ranked search: one scan says which files, and the line of each that has most of the question shows why.
//!
//! With a model, the first files are put in a new order by their meaning (`embed`).

use super::embed;
use super::matches::{Match, display_line};
use super::opener::Opener;
use super::scan::{Counted, FILE_BYTES, FILES, Finder, rank, scan};
use super::search_code::{Output, Query};
use super::symbols::Language;
use super::walk::list;
use super::words;
use crate::failure::{self, Result};
use crate::workspace::path::printable;
use crate::workspace::reader::WorkspaceReader;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Lines above the best one that are looked at for what it belongs to.
const ABOVE: usize = 400;

/// Finds the best files by their words, the best first: at least those that are asked for and one more, if there are
/// so many, and as many as a model puts in order.
pub(super) fn run(reader: &WorkspaceReader, query: &Query, stop: &CancellationToken) -> Result<Output> {
    let terms = words::terms(&query.text);
    if terms.is_empty() {
        return Err(failure::invalid(
            "query has no word to rank by; use mode literal to search for characters",
        ));
    }
    let finder = Finder::new(&terms)?;
    let (mut files, skipped) = list(reader, query, stop)?;
    let is_cut = files.len() > FILES;
    files.truncate(FILES);
    let scanned = scan(reader, &files, &finder, stop);
    let (n_files, skipped) = (scanned.n_files, skipped + scanned.skipped);
    let (mut opener, mut buffer) = (Opener::new(reader), Vec::new());
    let ranked = rank(scanned, &terms, (query.most + 1).max(embed::CANDIDATES));
    let to_match = |(path, counted, score): (&Path, Counted, f64)| {
        // A file that is gone by now is left out.
        let text = opener.read(path, FILE_BYTES, &mut buffer).ok()??;
        let found =
            show_line(&printable(path.as_os_str().as_bytes()), text, counted.best_line, query.context);
        Some(Match { score: Some((score * 1e6).round() / 1e6), ..found })
    };
    let ranked = ranked.into_iter().take_while(|_| !stop.is_cancelled());
    let mut output = Output::new(query.mode, ranked.filter_map(to_match).collect());
    output.files_searched = Some(n_files);
    output.skipped = skipped;
    output.note = is_cut.then(|| format!("only the first {FILES} files, by path, are ranked"));
    Ok(output)
}

/// The line that begins at a place in a text, with the lines around it; without a place, the first that is not empty.
fn show_line(path: &str, text: &[u8], best_line: Option<usize>, context: usize) -> Match {
    let above = best_line.and_then(|at| text.get(..at));
    let best = above.map(|above| above.iter().filter(|byte| **byte == b'\n').count());
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    let best = best.or_else(|| lines.iter().position(|line| !line.trim().is_empty())).unwrap_or(0);
    let show = |n: usize| lines.get(n).map_or_else(String::new, |line| display_line(line.as_bytes(), 0).0);
    // What the line defines, or else what the definition nearest above it does.
    let above = lines.get(best.saturating_sub(ABOVE)..=best).unwrap_or_default();
    let language = Language::of_file(path);
    let symbol = above.iter().rev().find_map(|line| language?.defined_by(line));
    Match {
        path: path.to_owned(),
        line: best as u64 + 1,
        text: show(best),
        before: (best.saturating_sub(context)..best).map(show).collect(),
        after: (best + 1..(best + 1 + context).min(lines.len())).map(show).collect(),
        symbol: symbol.map(|name| display_line(name.as_bytes(), 0).0),
        ..Match::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
// Everything about users.
use std::fmt;

struct Other;

fn load_user_profile(id: u32) {
    let profile = 1;
    let user_profile = profile;
}
";

    fn best(question: &str, context: usize) -> Option<Match> {
        let terms = words::terms(question);
        let counted = Finder::new(&terms).unwrap().count("a.rs", TEXT.as_bytes())?;
        Some(show_line("a.rs", TEXT.as_bytes(), counted.best_line, context))
    }

    #[track_caller]
    fn check(question: &str, line: u64, symbol: Option<&str>) {
        let found = best(question, 1).unwrap();
        assert_eq!((found.line, found.symbol.as_deref()), (line, symbol), "{found:?}");
    }

    #[test]
    fn the_line_with_most_of_the_question_is_shown() {
        check("user profile", 6, Some("load_user_profile"));
        check("loadUserProfile", 6, Some("load_user_profile"));
        check("userProfile", 8, Some("load_user_profile"));
        check("fmt", 2, None);
        assert_eq!(best("nothing", 1), None);
        let long = format!("{}struct id_token;\n", "void valid;\n".repeat(5000));
        let terms = words::terms("id token");
        let counted = Finder::new(&terms).unwrap().count("a.c", long.as_bytes()).unwrap();
        assert_eq!(show_line("a.c", long.as_bytes(), counted.best_line, 0).line, 5001);
        let found = best("other", 2).unwrap();
        assert_eq!(found.before, ["use std::fmt;", ""]);
        assert_eq!(found.after, ["", "fn load_user_profile(id: u32) {"]);
        let empty = show_line("a.rs", b"", None, 2);
        assert_eq!((empty.line, empty.text.as_str()), (1, ""));
    }
}

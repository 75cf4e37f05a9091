//! Which line of a file shows best why it was found.

use super::answer::{Match, shown};
use super::scan::Finder;
use super::symbols::Language;
use super::words;

/// Lines with a word of the question that are compared.
const LINES: usize = 2_000;
/// Lines above the best one that are looked at for what it belongs to.
const ABOVE: usize = 400;
/// How much more a line counts that defines something, in percent of a word.
const DEFINES: u32 = 75;

/// The best line of a file.
#[derive(Debug)]
pub(super) struct Snippet {
    pub(super) found: Match,
    /// How much of the question is on the line, from 0 to 1; nothing if none of it is in the file.
    pub(super) coverage: Option<f64>,
}

impl Finder<'_> {
    /// How much of the question is in a path, in the same way.
    pub(super) fn in_path(&self, path: &str) -> Option<f64> {
        self.part(self.worth(path))
    }

    fn part(&self, worth: u32) -> Option<f64> {
        let total: u32 = self.terms.iter().map(|term| term.percent).sum();
        (worth > 0).then(|| (f64::from(worth) / f64::from(total.max(1))).min(1.0))
    }

    /// The best line, with `context` lines around it.
    pub(super) fn best(&self, path: &str, text: &str, context: usize) -> Snippet {
        let lines: Vec<&str> = text.lines().collect();
        let language = Language::of(path);
        let (worth, best) = self.best_line(&lines, language);
        let line = |n: usize| lines.get(n).map_or_else(String::new, |line| shown(line.as_bytes(), 0).0);
        let end = (best + 1 + context).min(lines.len());
        let found = Match {
            path: path.to_owned(),
            line: best as u64 + 1,
            text: line(best),
            before: (best.saturating_sub(context)..best).map(line).collect(),
            after: (best + 1..end).map(line).collect(),
            symbol: language.and_then(|language| enclosing(language, &lines, best)),
            ..Match::default()
        };
        Snippet { found, coverage: self.part(worth) }
    }

    /// The most that a line is worth, and the first that is worth it. Without any, the first line that is not empty.
    fn best_line(&self, lines: &[&str], language: Option<Language>) -> (u32, usize) {
        let mut best = (0, lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0));
        let may_have = |(_, line): &(usize, &&str)| self.may_be_in(line.as_bytes());
        for (n, line) in lines.iter().enumerate().filter(may_have).take(LINES) {
            let mut worth = self.worth(line);
            if worth > 0 && language.is_some_and(|language| language.defined_by(line).is_some()) {
                worth += DEFINES;
            }
            if worth > best.0 {
                best = (worth, n);
            }
        }
        best
    }

    /// How much of the question is in a text. A word that only begins like one of the question counts half.
    fn worth(&self, text: &str) -> u32 {
        let mut worth = vec![0; self.terms.len()];
        words::each(text, |word, _| {
            for (worth, term) in worth.iter_mut().zip(self.terms) {
                if word == term.word {
                    *worth = term.percent;
                } else if *worth == 0 && word.starts_with(&term.word) {
                    *worth = term.percent / 2;
                }
            }
        });
        worth.into_iter().sum()
    }
}

/// What a line defines, or else what the definition nearest above it does.
fn enclosing(language: Language, lines: &[&str], line: usize) -> Option<String> {
    let above = lines.get(line.saturating_sub(ABOVE)..=line)?;
    above.iter().rev().find_map(|line| language.defined_by(line)).map(|name| shown(name.as_bytes(), 0).0)
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

    #[track_caller]
    fn check(question: &str, line: u64, symbol: Option<&str>, coverage: bool) {
        let terms = words::terms(question);
        let snippet = Finder::new(&terms).unwrap().best("a.rs", TEXT, 1);
        assert_eq!(snippet.found.line, line, "{snippet:?}");
        assert_eq!(snippet.found.symbol.as_deref(), symbol);
        assert_eq!(snippet.coverage.is_some(), coverage);
    }

    #[test]
    fn the_line_with_most_of_the_question_is_shown() {
        check("user profile", 6, Some("load_user_profile"), true);
        check("loadUserProfile", 6, Some("load_user_profile"), true);
        check("userProfile", 8, Some("load_user_profile"), true);
        check("fmt", 2, None, true);
        check("nothing", 1, None, false);
        let snippet = Finder::new(&words::terms("other")).unwrap().best("a.rs", TEXT, 2);
        assert_eq!(snippet.found.before, ["use std::fmt;", ""]);
        assert_eq!(snippet.found.after, ["", "fn load_user_profile(id: u32) {"]);
        let empty = Finder::new(&words::terms("other")).unwrap().best("a.rs", "", 2);
        assert_eq!((empty.found.line, empty.found.text.as_str()), (1, ""));
    }
}

//! Texts of a repository as people and models get them: bounded, and with nothing in them that misleads.

use crate::own::shown;

/// Lines of what git said that a message shows, counted from the end, and their characters.
const SAID: (usize, usize) = (12, 2000);

/// The end of what git said, without its hints.
pub(super) fn last_lines(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with("hint:"))
        .collect();
    let last = lines.get(lines.len().saturating_sub(SAID.0)..).unwrap_or_default();
    let text = last.iter().map(|line| shown(line)).collect::<Vec<_>>().join("\n");
    match text.char_indices().nth(SAID.1) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}

/// The beginning of a commit's id.
pub(super) fn short(hash: &str) -> &str {
    hash.get(..SHORT).unwrap_or(hash)
}

const SHORT: usize = 10;

/// `1 commit`, `2 commits`.
pub(super) fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

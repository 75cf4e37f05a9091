//! "Did you mean": the known word nearest to one that is not known.

/// The nearest word, if one is near enough to be what was meant. Case, `_` and `-` do not count.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = folded(word);
    // A third of the letters may be wrong, but never all of them.
    let allowed = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&word, &folded(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Longest word that is compared; a longer one is no slip of the finger.
const MAX_WORD_CHARS: usize = 64;

fn folded(word: &str) -> String {
    word.chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .take(MAX_WORD_CHARS)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Words that a message lists at most.
const MAX_LISTED: usize = 30;

/// Words in a row: `a, b, c`.
pub(super) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut words = words.into_iter();
    let mut listed: Vec<&str> = words.by_ref().take(MAX_LISTED).collect();
    if words.next().is_some() {
        listed.push("…");
    }
    listed.join(", ")
}

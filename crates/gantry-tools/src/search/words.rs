//! The words of code and of questions about it: identifiers are taken apart, and also kept in one piece.
//!
//! `getUserProfile`, `get_user_profile` and "get user profiles" have the words get, user and profile in common; the
//! first two also `getuserprofile`.

/// Characters of a word; longer runs are data, not words.
const WORD_CHARS: usize = 40;
/// Digits of a number that is still a word.
const DIGITS: usize = 6;
/// Words of one question.
pub(super) const TERMS: usize = 16;
/// How much a whole identifier counts, when a question has one, in percent of a word.
const WHOLE: u32 = 200;

/// Words that questions have and that say nothing about code.
const EMPTY: [&str; 38] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "code", "do", "doe", "find", "for", "from",
    "how", "i", "in", "into", "is", "it", "me", "of", "on", "or", "show", "that", "the", "thi", "this", "to",
    "we", "what", "when", "where", "which", "with", "you",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// Letters and digits only, in lower case.
    pub(super) word: String,
    /// How much it counts, in percent.
    pub(super) percent: u32,
}

/// The words of a question, each once.
pub(super) fn terms(question: &str) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for_each_word(question, |word, whole| {
        let percent = if whole { WHOLE } else { 100 };
        if terms.len() < TERMS && !terms.iter().any(|known| known.word == word) {
            terms.push(Term { word: word.to_owned(), percent });
        }
    });
    let says = |term: &Term| !EMPTY.contains(&term.word.as_str());
    if terms.iter().any(says) {
        terms.retain(says);
    }
    terms
}

/// Goes through the words of a text; `true` goes with an identifier in one piece.
pub(super) fn for_each_word(text: &str, mut take: impl FnMut(&str, bool)) {
    let (mut part, mut whole) = (String::new(), String::new());
    for run in text.split(|c: char| !is_part(c)) {
        if run.is_empty() || run.len() > 4 * WORD_CHARS {
            continue;
        }
        whole.clear();
        let mut n_parts = 0;
        let mut previous = ' ';
        let mut chars = run.chars().peekable();
        while let Some(c) = chars.next() {
            let ends = c == '_' || is_ideograph(c) || starts_part(previous, c, chars.peek().copied());
            if ends && !part.is_empty() {
                n_parts += 1;
                give(&mut part, false, &mut take);
            }
            if c != '_' {
                part.extend(c.to_lowercase());
                whole.extend(c.to_lowercase());
            }
            previous = c;
        }
        if !part.is_empty() {
            n_parts += 1;
            give(&mut part, false, &mut take);
        }
        if n_parts > 1 {
            give(&mut whole, true, &mut take);
        }
    }
}

/// Whether a character can be part of an identifier.
pub(super) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a new part begins: `userName` before the N, `HTTPServer` before the S.
fn starts_part(previous: char, c: char, next: Option<char>) -> bool {
    c.is_uppercase()
        && (previous.is_lowercase()
            || previous.is_ascii_digit()
            || (previous.is_uppercase() && next.is_some_and(char::is_lowercase)))
        || is_ideograph(previous)
}

/// Such writing has no blanks between words, so every character is one.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{2fa1f}')
}

fn give(word: &mut String, whole: bool, take: &mut impl FnMut(&str, bool)) {
    let n_chars = word.chars().count();
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    let counts = n_chars <= WORD_CHARS
        && (n_chars > 1 || word.starts_with(is_ideograph))
        && (!is_number || n_chars <= DIGITS);
    if counts {
        stem(word);
        take(word, whole);
    }
    word.clear();
}

/// Makes a plural a singular, roughly.
fn stem(word: &mut String) {
    if word.len() < 4 || !word.ends_with('s') {
        return;
    }
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    let cut = if ends(&["sses", "xes", "ches", "shes", "zes"]) {
        2
    } else if ends(&["ies"]) && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
        return;
    } else if ends(&["us", "ss", "is"]) {
        0
    } else {
        1
    };
    word.truncate(word.len() - cut);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut words = Vec::new();
        for_each_word(text, |word, whole| {
            words.push(if whole { format!("[{word}]") } else { word.to_owned() })
        });
        assert_eq!(words.join(" "), expected, "{text}");
    }

    #[test]
    fn identifiers_are_taken_apart_and_kept_in_one_piece() {
        check("getUserProfile", "get user profile [getuserprofile]");
        check("get_user_profiles()", "get user profile [getuserprofile]");
        check("HTTPServer2Go parseJSON", "http server2 go [httpserver2go] parse json [parsejson]");
        check("__init__ utf8 sha256", "init utf8 sha256");
        check("a::b.c -> Vec<T>", "vec");
        check("12345678 2024", "2024");
        check("Größe naïve", "größe naïve");
        check("用户登录", "用 户 登 录 [用户登录]");
        check("", "");
    }

    #[test]
    fn plurals_are_singulars() {
        check("queries classes boxes users status process this", "query class box user status process this");
    }

    #[test]
    fn data_and_empty_words_do_not_count() {
        check(&"f0".repeat(500), "");
        let words = |question: &str| terms(question).into_iter().map(|term| term.word).collect::<Vec<_>>();
        assert_eq!(words("where is the user parsed"), ["user", "parsed"]);
        assert_eq!(words("how to"), ["how", "to"]);
        assert_eq!(words("!!"), Vec::<String>::new());
    }
}

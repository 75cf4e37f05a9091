//! `cargo xtask tidy`: the rules of this repository that neither rustc nor clippy checks.
//!
//! Dependencies are in [`dependencies`]; this file has the rules about sources.

mod dependencies;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use crate::source::{self, Source, is_word};

const MAX_FILE_LINES: usize = 500;
const MAX_TEST_FILE_LINES: usize = 1000;

/// Calls that only named files may make outside tests, so that what ARCHITECTURE.md says about them holds.
struct Rule {
    /// The calls, as rustfmt writes them.
    calls: &'static [&'static str],
    /// Where the rule holds: beginnings of paths.
    within: &'static [&'static str],
    /// The files that may make the calls: beginnings of paths.
    allowed: &'static [&'static str],
    what: &'static str,
}

/// The crates of the engine and the providers.
const ENGINE: &[&str] = &[
    "crates/gantry-egress/",
    "crates/gantry-provider/",
    "crates/gantry-rest/",
    "crates/gantry-runtime/",
    "crates/gantry-tools/",
    "crates/gantry-upstream/",
];
const CORE: &str = "crates/gantry-core/src/";
const AUTHORISE: &str = "crates/gantry-runtime/src/pipeline/authorise.rs";
const APPROVE: &str = "crates/gantry-runtime/src/pipeline/approve.rs";

const RULES: &[Rule] = &[
    Rule {
        calls: &["Permit::new("],
        within: &["crates/"],
        allowed: &["crates/gantry-core/src/policy.rs", "crates/gantry-core/src/approval.rs"],
        what: PERMIT,
    },
    Rule {
        calls: &[".into_verdict(", "redeem_grant("],
        within: &["crates/"],
        allowed: &[AUTHORISE, APPROVE, CORE],
        what: PERMIT,
    },
    Rule { calls: &[".redeem(", "::redeem("], within: ENGINE, allowed: &[APPROVE], what: PERMIT },
    Rule {
        calls: &["SystemTime::now(", "Timestamp::now("],
        within: ENGINE,
        allowed: &["crates/gantry-provider/src/clock.rs"],
        what: "the wall clock is read in clock.rs of gantry-provider; take the time from there",
    },
    Rule {
        calls: &["tokio::spawn("],
        within: ENGINE,
        // A connection of the proxy is driven by a task that ends with the body it carries.
        allowed: &["crates/gantry-provider/src/task.rs", "crates/gantry-egress/src/proxy/relay.rs"],
        what: "tasks are spawned by gantry_provider::task::spawn or a TaskTracker, so that each has an owner",
    },
];

/// Attributes of tests that prove nothing, and why.
const BAD_TESTS: [(&str, &str); 2] = [
    ("#[ignore", "an ignored test proves nothing; make it pass, or assert what happens today and say why"),
    ("#[should_panic", "`should_panic` accepts any panic; assert on the error instead"),
];

const PERMIT: &str = "permits are made by the verdict of pipeline/authorise.rs and by the redemption in \
                      pipeline/approve.rs, nowhere else; let the call go through the pipeline";

/// Names of earlier versions, replaced because they had to be explained: docs/glossary.md has the words that are used.
const RETIRED_NAMES: &str = "clerk commons crew desk doubt ear errand foresee foresight glance ground hearing heir hub \
                             keeper ladder lane meant moot nobody odd outlet patience rung sameness seat seated shelf \
                             somebody standin telling told trail untold vigil wish workshop";

/// Crates that are not part of the product.
const TOOLS: [&str; 2] = ["crates/gantry-testkit/", "xtask/"];

/// Words that hide who acts.
const VAGUE_WORDS: &[&str] = &["anybody", "everybody", "nobody", "somebody", "whatever", "whoever"];
const MARKERS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// One thing that is wrong: where it is, what it is, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1; nothing where the whole file is at fault.
    line: Option<usize>,
    what: String,
}

impl Finding {
    fn new(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into() }
    }

    fn at(source: &Source, line: usize, what: impl Into<String>) -> Self {
        Self { path: source.path.clone(), line: Some(line), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.what),
            None => write!(f, "{}: {}", self.path, self.what),
        }
    }
}

/// Checks the repository, prints what is wrong on standard output, and returns whether nothing is.
pub(crate) fn run(root: &Path) -> Result<bool> {
    let mut findings = dependencies::check(root)?;
    for source in source::read_all(root)? {
        findings.extend(check(&source));
        findings.extend(check_words(&source));
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("tidy: {} findings", findings.len());
    Ok(findings.is_empty())
}

/// What is wrong with a file, words apart.
fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(Finding::at(
            source,
            1,
            "the first line must start with `//!` and say what the file is for",
        ));
    }
    let (n_lines, limit) = match source.is_test {
        true => (source.text.lines().count(), MAX_TEST_FILE_LINES),
        false => (source.product_lines(), MAX_FILE_LINES),
    };
    if n_lines > limit {
        let what = format!("this file has {n_lines} lines, more than {limit}; split it by subject");
        findings.push(Finding::at(source, limit + 1, what));
    }
    for (attribute, what) in BAD_TESTS {
        findings.extend(source.lines_with(attribute).map(|line| Finding::at(source, line, what)));
    }
    let starts = |places: &[&str]| places.iter().any(|place| source.path.starts_with(place));
    for rule in RULES.iter().filter(|rule| starts(rule.within) && !starts(rule.allowed)) {
        let calls = rule.calls.iter().flat_map(|call| source.lines_with(call));
        findings.extend(
            calls.filter(|line| !source.is_test_line(*line)).map(|line| Finding::at(source, line, rule.what)),
        );
    }
    findings
}

/// Names and comments that have to be said otherwise.
fn check_words(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |line, what: String| findings.push(Finding::at(source, line, what));
    let file_name = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    for (line, name) in [(1, file_name)].into_iter().chain(words(&source.code)) {
        if let Some(retired) = retired_name(name) {
            report(
                line,
                format!("`{name}` uses the retired name `{retired}`; docs/glossary.md has the words in use"),
            );
        }
    }
    let is_product = !TOOLS.iter().any(|tool| source.path.starts_with(tool));
    for (line, word) in words(&source.comments) {
        if MARKERS.contains(&word) {
            report(line, format!("`{word}` is not a plan; do it now, or open an issue"));
        }
        if is_product && !source.is_test_line(line) && VAGUE_WORDS.contains(&&*word.to_lowercase()) {
            report(
                line,
                format!("`{word}` hides who acts; name the client, caller, approver, operator or process"),
            );
        }
    }
    findings
}

/// The words of a text, each with its line.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let words = line.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        words.map(move |word| (index + 1, word))
    })
}

/// The retired name that is a whole word of a snake or camel name.
fn retired_name(name: &str) -> Option<&'static str> {
    let is_camel = name.contains(|c: char| c.is_ascii_lowercase());
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c == '_' || (is_camel && c.is_ascii_uppercase()) {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut().filter(|_| c != '_') {
            last.push(c.to_ascii_lowercase());
        }
    }
    let pairs = parts.windows(2).map(|pair| pair.concat()).filter(|pair| pair == "standin");
    let mut candidates = parts.iter().cloned().chain(pairs);
    candidates.find_map(|part| RETIRED_NAMES.split_whitespace().find(|retired| *retired == part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE_FILE: &str = "crates/gantry-core/src/lib.rs";

    /// Expects findings on these lines, each with a part of its text.
    #[track_caller]
    fn finds(path: &str, text: &str, expected: &[(usize, &str)]) {
        let source = Source::new(path, text.to_owned());
        let mut found = check(&source);
        found.extend(check_words(&source));
        found.sort();
        let fits = |(one, (line, part)): (&Finding, &(usize, &str))| {
            one.line == Some(*line) && one.what.contains(part)
        };
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(fits), "{path}: {found:#?}");
    }

    fn lines(n: usize) -> String {
        "//! Long.\n".to_owned() + &"// Line.\n".repeat(n - 1)
    }

    #[test]
    fn every_file_says_what_it_is_for() {
        finds(CORE_FILE, "//! The core.\n", &[]);
        for text in ["// The core.\n", "\n//! The core.\n", ""] {
            finds(CORE_FILE, text, &[(1, "`//!`")]);
        }
    }

    #[test]
    fn files_have_a_limit_in_which_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// Line.\n".repeat(300));
        finds(CORE_FILE, &(lines(500) + &tests), &[]);
        finds(CORE_FILE, &(lines(501) + &tests), &[(501, "501 lines")]);
        finds("crates/gantry-core/tests/it/main.rs", &lines(1000), &[]);
        finds("crates/gantry-core/src/policy/tests.rs", &lines(1001), &[(1001, "1001 lines")]);
    }

    #[test]
    fn only_named_places_make_permits() {
        let text = "//! A.\nfn yes(judged: Judged) -> Verdict {\n    judged.into_verdict(caller, own)\n}\n";
        finds("crates/gantry-runtime/src/pipeline/authorise.rs", text, &[]);
        finds("crates/gantry-runtime/src/other.rs", text, &[(3, "permits are made")]);
    }

    #[test]
    fn the_engine_reads_the_clock_and_spawns_tasks_in_one_place() {
        let text = "//! A.\nfn go() {\n    let now = std::time::SystemTime::now();\n    tokio::spawn(async {});\n}\n\
                    // tokio::spawn(\n#[cfg(test)]\nmod tests {\n    fn t() {\n        tokio::spawn(async {});\n    }\n}\n";
        finds("crates/gantry-runtime/src/other.rs", text, &[(3, "wall clock"), (4, "owner")]);
        finds("crates/gantry-server/src/other.rs", text, &[]);
    }

    #[test]
    fn tests_that_prove_nothing_are_found() {
        let text = "//! A.\n#[test]\n#[ignore = \"slow\"]\nfn f() {}\n#[test]\n#[should_panic]\nfn g() {}\n";
        finds(CORE_FILE, text, &[(3, "ignored"), (6, "should_panic")]);
    }

    #[test]
    fn retired_names_are_found_as_whole_words_of_names() {
        for name in
            ["desk", "open_desk", "DeskKey", "OpenDesk", "a_stand_in", "StandIn", "ODD_RESULT", "HTTPDesk"]
        {
            finds(CORE_FILE, &format!("//! A.\n#[test]\nfn {name}() {{}}\n"), &[(3, "retired")]);
        }
        finds(CORE_FILE, "//! A.\nfn desktop_background(stand: Github) { \"desk\"; } // desk\n", &[]);
        finds("crates/gantry-core/src/stand_in.rs", "//! A.\n", &[(1, "`standin`")]);
    }

    #[test]
    fn comments_name_who_acts_and_promise_nothing() {
        let text = "//! Nobody.\n// TODO(why): later, FIXMEs\nfn f() { \"nobody\"; }\n";
        finds(CORE_FILE, text, &[(1, "hides who acts"), (2, "not a plan")]);
        finds("crates/gantry-core/tests/a.rs", text, &[(2, "not a plan")]);
    }
}

//! Reads what test runners of JavaScript say: the JSON of jest, vitest and mocha, and the last lines of any of them.

use super::{Failure, Tally};
use regex::Regex;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::sync::LazyLock;

/// Places in a text at which its JSON may begin.
const BEGINNINGS: usize = 50;
/// Bytes that are read from all these places together.
const CANDIDATE_BYTES: usize = 128 * 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Jest {
    num_passed_tests: u64,
    num_failed_tests: u64,
    #[serde(default)]
    num_pending_tests: u64,
    #[serde(default)]
    num_todo_tests: u64,
    test_results: Vec<JestFile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestFile {
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
    assertion_results: Vec<JestTest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct JestTest {
    full_name: String,
    status: String,
    #[serde(default)]
    failure_messages: Vec<String>,
    location: Option<JestPlace>,
}

#[derive(Debug, Deserialize)]
struct JestPlace {
    line: u64,
}

#[derive(Debug, Deserialize)]
struct Mocha {
    stats: MochaStats,
    failures: Vec<MochaTest>,
}

#[derive(Debug, Deserialize)]
struct MochaStats {
    passes: u64,
    failures: u64,
    #[serde(default)]
    pending: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MochaTest {
    full_title: String,
    file: Option<String>,
    #[serde(default)]
    err: MochaError,
}

/// An error has whatever properties it was thrown with.
#[derive(Debug, Default, Deserialize)]
struct MochaError {
    stack: Option<Said>,
    message: Option<Said>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Said {
    Text(String),
    Other(IgnoredAny),
}

impl Said {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }
}

/// What a report in JSON says, wherever it stands in the text.
pub(super) fn json(text: &str) -> Option<Tally> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let at = start;
        start += line.len();
        (at, line)
    });
    let mut left = CANDIDATE_BYTES;
    let beginnings = lines.filter(|(_, line)| line.starts_with('{')).take(BEGINNINGS);
    let mut candidates = beginnings.map_while(|(at, _)| {
        let rest = text.get(at..)?;
        left = left.checked_sub(rest.len())?;
        Some(rest)
    });
    candidates.find_map(|text| first(text).map(jest).or_else(|| first(text).map(mocha)))
}

/// What a text begins with, if it is of this form.
fn first<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

fn jest(report: Jest) -> Tally {
    let mut tally = Tally::default();
    tally.count([report.num_passed_tests, report.num_failed_tests, report.num_pending_tests]);
    tally.count([0, 0, report.num_todo_tests]);
    for file in report.test_results {
        if file.status == "failed" && file.assertion_results.is_empty() {
            tally.count([0, 1, 0]);
            tally.note(|| {
                let failure =
                    Failure { name: file.name.clone(), message: file.message, ..Failure::default() };
                failure.at(Some(&file.name))
            });
        }
        for test in file.assertion_results.iter().filter(|test| test.status == "failed") {
            tally.note(|| {
                let message = test.failure_messages.join("\n");
                let line =
                    line_in(&message, &file.name).or_else(|| test.location.as_ref().map(|place| place.line));
                let name = test.full_name.trim().to_owned();
                Failure { name, message, file: Some(file.name.clone()), line }
            });
        }
    }
    tally
}

fn mocha(Mocha { stats, failures }: Mocha) -> Tally {
    let mut tally = Tally::default();
    tally.count([stats.passes, stats.failures, stats.pending]);
    for MochaTest { full_title: name, file, err } in failures {
        tally.note(|| {
            let message = err.stack.and_then(Said::text).or_else(|| err.message.and_then(Said::text));
            let message = message.unwrap_or_default();
            let line = file.as_deref().and_then(|file| line_in(&message, file));
            Failure { name, message, file, line }
        });
    }
    tally
}

/// The line of a file that a stack in a message names first, by its whole path or from some folder.
fn line_in(message: &str, file: &str) -> Option<u64> {
    let name = file.rsplit('/').next().filter(|name| !name.is_empty())?;
    let number = |place: &str| -> Option<u64> {
        let (_, rest) = message.split_once(place)?;
        let digits: String = rest.strip_prefix(':')?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    number(file).or_else(|| number(name))
}

/// A form of the lines with which runners close.
struct Closing {
    passed: Regex,
    failed: Regex,
    skipped: Regex,
}

/// Node's own, jest's, vitest's, mocha's.
static CLOSINGS: LazyLock<Vec<Closing>> = LazyLock::new(|| {
    let forms = [
        (r"(?m)^(?:ℹ|#) pass (\d+)$", r"(?m)^(?:ℹ|#) fail (\d+)$", r"(?m)^(?:ℹ|#) skipped (\d+)$"),
        (r"(?m)^Tests: .*?(\d+) passed", r"(?m)^Tests: .*?(\d+) failed", r"(?m)^Tests: .*?(\d+) skipped"),
        (
            r"(?m)^ *Tests  .*?(\d+) passed",
            r"(?m)^ *Tests  .*?(\d+) failed",
            r"(?m)^ *Tests  .*?(\d+) skipped",
        ),
        (r"(?m)^ +(\d+) passing\b", r"(?m)^ +(\d+) failing\b", r"(?m)^ +(\d+) pending\b"),
    ];
    let compiled = forms.into_iter().filter_map(|(passed, failed, skipped)| {
        let [passed, failed, skipped] = [passed, failed, skipped].map(|form| Regex::new(form).ok());
        Some(Closing { passed: passed?, failed: failed?, skipped: skipped? })
    });
    compiled.collect()
});

/// The counts with which a runner closes, if it is one that is known. It does not say what failed.
pub(super) fn summary(text: &str) -> Option<Tally> {
    CLOSINGS.iter().find_map(|closing| {
        let count = |form: &Regex| form.captures_iter(text).last()?.get(1)?.as_str().parse::<u64>().ok();
        let (passed, failed) = (count(&closing.passed), count(&closing.failed));
        (passed.is_some() || failed.is_some()).then(|| Tally {
            passed: passed.unwrap_or(0),
            failed: failed.unwrap_or(0),
            skipped: count(&closing.skipped).unwrap_or(0),
            ..Tally::default()
        })
    })
}

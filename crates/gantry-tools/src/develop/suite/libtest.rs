//! Reads what `cargo test` says: the text of Rust's test harness, over several test programs and documentation tests.

use super::{Failure, Tally};
use regex::Regex;
use std::sync::LazyLock;

/// Where a test panicked: in the words of today's Rust, of older ones, and of tests that should have panicked.
static PLACE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:panicked at|as expected at) (?:'.*', )?(\S+?:\d+):\d+").ok());

/// One test program's part of the text.
#[derive(Debug, Default)]
struct Section {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// A test that began and of which no end is known.
    open: Option<String>,
}

/// What the text says; none if no test program was run.
pub(super) fn parse(stdout: &str, stderr: &str) -> Option<Tally> {
    let mut crashes =
        stderr.lines().map(str::trim).filter(|line| line.starts_with("process didn't exit successfully"));
    let mut tally = Tally::default();
    let mut section: Option<Section> = None;
    let mut failure: Option<Failure> = None;
    let mut seen = false;
    for line in stdout.lines() {
        if is_start(line) {
            seen = true;
            end_failure(&mut tally, failure.take());
            crash(&mut tally, section.replace(Section::default()), &mut crashes);
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            end_failure(&mut tally, failure.take());
            section = None;
            tally.count(["passed", "failed", "ignored"].map(|word| counted(counts, word)));
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            end_failure(&mut tally, failure.replace(Failure { name: name.to_owned(), ..Failure::default() }));
        } else if line == "failures:" {
            end_failure(&mut tally, failure.take());
        } else if let Some(failure) = &mut failure {
            failure.message.push_str(line);
            failure.message.push('\n');
        } else if let (Some(section), Some(test)) = (&mut section, line.strip_prefix("test ")) {
            section.add(test);
        }
    }
    end_failure(&mut tally, failure);
    crash(&mut tally, section, &mut crashes);
    seen.then_some(tally)
}

impl Section {
    fn add(&mut self, test: &str) {
        let Some((name, end)) = test.rsplit_once(" ... ") else { return };
        match end {
            "ok" => self.passed += 1,
            "FAILED" => self.failed += 1,
            end if end.starts_with("ignored") => self.skipped += 1,
            _ => self.open = Some(name.to_owned()),
        }
    }
}

fn is_start(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|count| count.parse::<u64>().is_ok())
}

fn counted(counts: &str, word: &str) -> u64 {
    let mut parts = counts.split([';', '.']).map(str::trim);
    parts.find_map(|part| part.strip_suffix(word)?.trim().parse().ok()).unwrap_or(0)
}

fn end_failure(tally: &mut Tally, failure: Option<Failure>) {
    let Some(mut failure) = failure else { return };
    tally.note(|| {
        failure.message = failure
            .message
            .replace("note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "");
        let place =
            PLACE.as_ref().and_then(|place| place.captures(&failure.message)).and_then(|found| found.get(1));
        let place = place.map(|place| place.as_str().to_owned());
        failure.at(place.as_deref())
    });
}

/// Adds a test program that ended before it said what came of it.
fn crash<'a>(tally: &mut Tally, section: Option<Section>, how: &mut impl Iterator<Item = &'a str>) {
    let Some(Section { passed, failed, skipped, open }) = section else { return };
    tally.count([passed, failed.saturating_add(1), skipped]);
    let message = how.next().unwrap_or("the test program ended before it said what came of its tests");
    tally.note(|| {
        let name = open.unwrap_or_else(|| "a test program".to_owned());
        Failure { name, message: message.to_owned(), ..Failure::default() }
    });
}

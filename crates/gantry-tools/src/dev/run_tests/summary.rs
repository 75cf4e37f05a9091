//! Counts of tests, from the lines with which test runners close.

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::LazyLock;

/// The lines with which the known runners say how many tests passed and failed.
const CLOSING_LINES: [&str; 8] = [
    // cargo test, once for each test program.
    r"(?m)^test result: .*$",
    // node --test, one line for each count.
    r"(?m)^(?:ℹ|#) (?:pass|fail|cancelled|skipped|todo) \d+$",
    // jest.
    r"(?m)^Tests: .*$",
    // vitest.
    r"(?m)^ *Tests  .*$",
    // mocha, one line for each count.
    r"(?m)^ +\d+ (?:passing|failing|pending)\b",
    // pytest.
    r"(?m)^(?:=+ )?\d+ [a-z]+(?:, \d+ [a-z]+)* in [\d.]+s\b.*$",
    // unittest: all tests, then those that did not pass.
    r"(?m)^(?:Ran \d+ tests? in .*|FAILED \(.*\)|OK \(.*\))$",
    // go test -v: one line for each test, and for each package that cannot be tested.
    r"(?m)^(?:--- (?:PASS|FAIL|SKIP): .*|FAIL\t\S+ \[(?:build|setup) failed\])$",
];
/// A count in such a line: `3 passed`, `fail 1` or `skipped=2`. A line of go is about one test.
const COUNT: &str = r"\b(\d+) ([a-z]+)|\b((?:expected )?[a-z]+)[ =](\d+)|^(?:--- )?(PASS|FAIL|SKIP)\b";
/// Lines that only say that a test began, passed or was skipped.
const PASSED_LINES: &str = r"(?m)^(?:test .* \.\.\. (?:ok|ignored.*)|=== (?:RUN|PAUSE|CONT|NAME)\b.*|\s*--- (?:PASS|SKIP): .*|\s*[✔✓] .*|\S+ PASSED\b.*)\n?";

static CLOSING_FORMS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| CLOSING_LINES.iter().filter_map(|form| Regex::new(form).ok()).collect());
static COUNT_FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(COUNT).ok());
static PASSED_FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PASSED_LINES).ok());

/// How many tests had which outcome.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct TestSummary {
    /// Tests that passed.
    pub(super) passed: u64,
    /// Tests that failed, as far as the runner counted them; exitCode tells of a runner that died.
    pub(super) failed: u64,
    /// Tests that were left out.
    pub(super) skipped: u64,
}

impl TestSummary {
    /// The counts in the output of a runner, summed up where it closes several times; none if no closing line is known.
    /// Where lines of several runners are in the output, those of the last one count.
    pub(super) fn read(output: &str) -> Option<Self> {
        let last = |form: &&Regex| form.find_iter(output).last().map_or(0, |line| line.end());
        let form = CLOSING_FORMS.iter().max_by_key(last)?;
        let (mut summary, mut total, mut is_known) = (Self::default(), 0_u64, false);
        for line in form.find_iter(output) {
            is_known = true;
            for (word, count) in counts(line.as_str()) {
                if matches!(word, "test" | "tests") {
                    total = total.saturating_add(count);
                } else if let Some(field) = summary.field(word) {
                    *field = field.saturating_add(count);
                }
            }
        }
        if total > 0 {
            summary.passed = total.saturating_sub(summary.failed).saturating_sub(summary.skipped);
        }
        is_known.then_some(summary)
    }

    /// The count that a runner's word stands for.
    fn field(&mut self, word: &str) -> Option<&mut u64> {
        match word {
            "passed" | "pass" | "passing" | "xpassed" | "PASS" => Some(&mut self.passed),
            "failed" | "fail" | "failing" | "failures" | "error" | "errors" | "cancelled" | "successes"
            | "FAIL" => Some(&mut self.failed),
            "skipped" | "ignored" | "pending" | "todo" | "xfailed" | "expected failures" | "SKIP" => {
                Some(&mut self.skipped)
            }
            _ => None,
        }
    }
}

/// The counts in a closing line, each with its word.
fn counts(line: &str) -> impl Iterator<Item = (&str, u64)> {
    let found = COUNT_FORM.iter().flat_map(move |form| form.captures_iter(line));
    found.filter_map(|found| {
        let word = found.get(2).or(found.get(3)).or(found.get(5))?;
        // Programs print what they like, so a count may be of any size.
        let count = found.get(1).or(found.get(4)).map_or(1, |it| it.as_str().parse().unwrap_or(u64::MAX));
        Some((word.as_str(), count))
    })
}

/// The output of a runner without the lines about tests that began, passed or were skipped.
pub(super) fn without_passed(output: &str) -> String {
    let form = PASSED_FORM.as_ref();
    form.map_or_else(|| output.to_owned(), |form| form.replace_all(output, "").into_owned())
}

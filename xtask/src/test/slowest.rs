//! The slowest tests of a run, from the report that nextest leaves.

use std::fs;
use std::path::Path;

const SHOWN: usize = 20;
/// The report, which `.config/nextest.toml` asks for. Nextest puts it here wherever cargo builds.
const REPORT: &str = "target/nextest/default/junit.xml";

/// Forgets the report of an earlier run, so that a run that does not get far shows none.
pub(super) fn forget(root: &Path) {
    // Without an earlier run there is none.
    fs::remove_file(root.join(REPORT)).ok();
}

/// Prints the slowest tests on standard error.
pub(super) fn print(root: &Path) {
    if let Ok(text) = fs::read_to_string(root.join(REPORT)) {
        eprint!("{}", table(&text));
    }
}

fn table(report: &str) -> String {
    let mut tests: Vec<(f64, &str)> = report.split("<testcase ").skip(1).filter_map(test).collect();
    let sum: f64 = tests.iter().map(|(seconds, _)| seconds).sum();
    tests.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut text = format!("\nslowest of {} tests, which took {sum:.0} s one after another:\n", tests.len());
    for (seconds, name) in tests.iter().take(SHOWN) {
        text.push_str(&format!("{seconds:>8.1} s  {name}\n"));
    }
    text
}

/// The time and the name of a test. Names hold nothing that XML escapes.
fn test(tag: &str) -> Option<(f64, &str)> {
    let attributes = tag.split_once('>')?.0;
    let value = |key: &str| {
        let (_, rest) = attributes.split_once(&format!("{key}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    };
    Some((value(" time")?.parse().ok()?, value("name")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_come_first() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" time="9.000">
    <testsuite name="gantry::it" tests="2">
        <testcase name="a::quick" classname="gantry::it" timestamp="2026-11-18T01:02:03.004+00:00" time="0.300">
        </testcase>
        <testcase name="b::slow" classname="gantry::it" timestamp="2026-11-18T01:02:03.004+00:00" time="8.500">
            <failure type="test failure">said &lt;testcase name="x" time="99.0"&gt;</failure>
        </testcase>
    </testsuite>
</testsuites>"#;
        let expected = "
slowest of 2 tests, which took 9 s one after another:
     8.5 s  b::slow
     0.3 s  a::quick
";
        assert_eq!(table(report), expected);
    }

    #[test]
    fn only_so_many_are_shown() {
        let report: String = (0..50).map(|n| format!("<testcase name=\"t{n}\" time=\"{n}.0\"/>")).collect();
        let table = table(&report);
        assert_eq!(table.lines().filter(|line| line.contains(" s  t")).count(), SHOWN);
        assert!(table.contains("t49") && !table.contains("t29\n"), "{table}");
    }
}

//! What runners really print, and which counts are read from it. The samples are of small suites made for these tests.

use super::*;
use crate::dev::{TAIL_BYTES, output_of, project_command};
use gantry_sandbox::jail::Captured;
use serde_json::{Value, json};

/// Passed, failed and skipped.
#[track_caller]
fn check(output: &str, expected: [u64; 3]) {
    let TestSummary { passed, failed, skipped } = TestSummary::read(output).unwrap();
    assert_eq!([passed, failed, skipped], expected, "{output}");
}

fn ran(stdout: &str, stderr: &str) -> JobOutput {
    JobOutput {
        stdout: Captured { bytes: stdout.into(), total: stdout.len() as u64 },
        stderr: Captured { bytes: stderr.into(), total: stderr.len() as u64 },
        end: ExitReason::Exited(1),
        duration: Duration::ZERO,
    }
}

#[test]
fn the_last_lines_of_runners_give_counts() {
    // Rust's harness closes once for each test program.
    check(
        "running 3 tests\ntest a ... ok\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 7 filtered out; \
         finished in 0.00s\n\n   Doc-tests demo\n\ntest result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered \
         out; finished in 0.12s\n",
        [5, 1, 1],
    );
    check("ℹ tests 4\nℹ suites 1\nℹ pass 2\nℹ fail 1\nℹ cancelled 1\nℹ skipped 3\nℹ todo 1\n", [2, 2, 4]);
    check("TAP version 13\n1..2\n# tests 2\n# pass 1\n# fail 1\n# duration_ms 40.5\n", [1, 1, 0]);
    check(
        "Test Suites: 2 failed, 2 total\nTests:       1 failed, 4 skipped, 1 todo, 7 passed, 13 total\nSnapshots:   0 total\n",
        [7, 1, 5],
    );
    check(" Test Files  1 failed (1)\n      Tests  1 failed | 1 passed | 2 skipped (4)\n", [1, 1, 2]);
    check("  ✔ adds\n\n  12 passing (4ms)\n  1 pending\n  3 failing\n\n  1) group is wrong:\n", [12, 3, 1]);
    check(
        "==== short test summary info ====\nFAILED t.py::a\n==== 1 failed, 2 passed, 1 skipped, 1 xfailed, 3 warnings, 1 error \
         in 0.12s ====\n",
        [2, 2, 2],
    );
    check("3 passed, 1 deselected in 61.23s (0:01:01)\n", [3, 0, 0]);
    check(
        "Ran 9 tests in 0.001s\n\nFAILED (failures=1, errors=2, skipped=1, expected failures=1)\n",
        [4, 3, 2],
    );
    check("Ran 3 tests in 0.000s\n\nOK (skipped=1)\n", [2, 0, 1]);
    check("Ran 1 test in 0.000s\n\nOK\n", [1, 0, 0]);
    check("Ran 2 tests in 0.000s\n\nFAILED (unexpected successes=1)\n", [1, 1, 0]);
    check(
        "=== RUN   TestAdd\n--- PASS: TestAdd (0.00s)\n=== RUN   TestTable\n    --- FAIL: TestTable/two (0.00s)\n--- FAIL: \
         TestTable (0.00s)\n--- SKIP: TestLater (0.00s)\nFAIL\nFAIL\tdemo\t0.1s\nFAIL\tdemo/broken [build failed]\nFAIL\n",
        [1, 2, 1],
    );
}

#[test]
fn output_without_closing_lines_has_no_counts() {
    for output in [
        "",
        "all good",
        "error: could not compile `demo` (lib test) due to 1 previous error\n",
        "===== no tests ran in 0.01s =====\n",
        "ok then, 3 passed\n",
        "go: no such tool\n",
    ] {
        assert_eq!(TestSummary::read(output), None, "{output}");
    }
}

#[test]
fn the_runner_that_closes_last_is_the_one_that_counts() {
    check("Tests: 5 passed\ntest result: ok. 1 passed; 0 failed\n", [1, 0, 0]);
    check("test result: ok. 1 passed; 0 failed\nTests: 5 passed\n", [5, 0, 0]);
}

#[test]
fn counts_of_any_size_are_taken() {
    let most = u64::MAX;
    let line = format!("test result: FAILED. {most} passed; {most}0 failed; {most} ignored\n");
    check(&line.repeat(2), [most, most, most]);
    check("Ran 1 test in 0.0s\n\nFAILED (failures=9)\n", [0, 9, 0]);
}

#[test]
fn tests_that_failed_stay_in_the_output_where_many_passed() {
    let passed: String = (0..2000).map(|number| format!("test number_{number} ... ok\n")).collect();
    let stdout = format!(
        "test wrong ... FAILED\n---- wrong stdout ----\nthe sum is off\n{passed}test result: FAILED. 1 failed\n"
    );
    let run = project_command("cargo");
    let plan = TestPlan { ecosystem: Ecosystem::Cargo, runner: "cargo test", run, unittest: None };
    let result = json!(report(&plan, &ran(&stdout, "")));
    let output = result["output"].as_str().unwrap();
    assert_eq!(
        output,
        "test wrong ... FAILED\n---- wrong stdout ----\nthe sum is off\ntest result: FAILED. 1 failed\n"
    );
    assert_eq!((&result["truncated"], &result["failed"]), (&json!(true), &json!(1)));
    // A short output is whole.
    let result = json!(report(&plan, &ran("test a ... ok\n", "")));
    assert_eq!((&result["output"], &result["truncated"]), (&json!("test a ... ok\n"), &Value::Null));
}

#[test]
fn what_both_outputs_say_last_is_kept() {
    assert_eq!(output_of(&ran("out", "err")), ("out\nerr".to_owned(), false));
    assert_eq!(output_of(&ran("\u{1b}[31mred\u{1b}[0m\n", "")), ("red\n".to_owned(), false));
    let (said, cut) = output_of(&ran(&"o".repeat(50_000), &"e".repeat(50_000)));
    assert!(cut && said.len() <= 2 * TAIL_BYTES + 1 && said.starts_with('o') && said.ends_with('e'));
    let (said, cut) = output_of(&ran(&"é".repeat(50_000), "err"));
    assert!(cut && said.len() <= TAIL_BYTES + 4 && said.ends_with("err"));
}

#[test]
fn an_interpreter_without_pytest_is_distinguished_from_tests_that_lack_a_module() {
    assert!(lacks_pytest(&ran("", "/usr/bin/python3: No module named pytest\n")));
    assert!(!lacks_pytest(&ran("", "ModuleNotFoundError: No module named 'pytest'\n")));
    assert!(!lacks_pytest(&ran("/usr/bin/python3: No module named pytest\n", "")));
    assert!(!lacks_pytest(&ran("1 failed in 0.01s\n", "/usr/bin/python3: No module named pytest\n")));
    assert!(!lacks_pytest(&ran("", "1 failed\n/usr/bin/python3: No module named pytest\n")));
}

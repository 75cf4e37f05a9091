//! What runners really say, and what is read from it. The samples are of small suites made for these tests.

use super::*;
use gantry_sandbox::jail::Captured;

/// A tally in a form that is easy to compare: counts, then each failure with its place.
fn lines(tally: Option<Tally>) -> Vec<String> {
    let Some(Tally { passed, failed, skipped, failures, .. }) = tally else {
        return vec!["not understood".into()];
    };
    let mut lines = vec![format!("{passed} passed, {failed} failed, {skipped} skipped")];
    lines.extend(failures.into_iter().map(|Failure { name, message, file, line }| {
        let place = format!("{}:{}", file.unwrap_or_default(), line.unwrap_or_default());
        format!("{name} @ {place} | {}", message.replace('\n', "/"))
    }));
    lines
}

#[test]
fn the_text_of_rusts_harness_is_read_over_several_programs_one_of_which_crashes() {
    let tally = libtest::parse(include_str!("samples/libtest.out"), include_str!("samples/libtest.err"));
    let lines = lines(tally);
    assert_eq!(lines.len(), 6, "{lines:#?}");
    assert_eq!(lines[0], "2 passed, 5 failed, 1 skipped");
    assert_eq!(lines[1], "tests::errs @ :0 | Error: \"no\"");
    assert_eq!(
        lines[2],
        "tests::should @ src/lib.rs:11 | note: test did not panic as expected at src/lib.rs:11:32"
    );
    assert!(
        lines[3].starts_with("tests::wrong @ src/lib.rs:9 | printed//thread 'tests::wrong'"),
        "{}",
        lines[3]
    );
    assert!(
        lines[3].ends_with("assertion `left == right` failed: sum is off/  left: 2/ right: 3"),
        "{}",
        lines[3]
    );
    assert!(
        lines[4].starts_with("zdies @ :0 | process didn't exit successfully: `/workspace/target"),
        "{}",
        lines[4]
    );
    assert!(lines[4].contains("SIGABRT"));
    assert!(
        lines[5].starts_with("src/lib.rs - add (line 2) @ src/lib.rs:5 | Test executable failed"),
        "{}",
        lines[5]
    );
}

#[test]
fn a_program_that_does_not_compile_has_no_tests() {
    let stderr = "error: could not compile `demo` (lib test) due to 1 previous error\n";
    assert_eq!(lines(libtest::parse("", stderr)), ["not understood"]);
    let older = "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nthread 'a' panicked at 'no', \
                 src/lib.rs:3:5\n\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; \
                 2 filtered out; finished in 0.00s\n";
    let expected =
        ["0 passed, 1 failed, 0 skipped", "a @ src/lib.rs:3 | thread 'a' panicked at 'no', src/lib.rs:3:5"];
    assert_eq!(lines(libtest::parse(older, "")), expected);
}

#[test]
fn what_node_says_counts_the_tests_that_hold_no_others() {
    let expected = [
        "2 passed, 4 failed, 2 skipped",
        "adds # wrongly @ /workspace/a.test.js:4 | 2 == 3",
        "suite > inner bad @ /workspace/a.test.js:7 | boom/second",
        "parent > child @ /workspace/a.test.js:8 | Expected values to be loosely deep-equal://{/  a: 1/}//should loosely \
         deep-equal//{/  a: 2/}",
        "/workspace/b.test.js @ /workspace/b.test.js:1 | test failed",
    ];
    assert_eq!(lines(tap::parse(include_str!("samples/node.tap"))), expected);
}

#[test]
fn tests_that_were_not_chosen_are_not_counted() {
    let text = "noise\nTAP version 13\nok 1 - a # SKIP test name does not match pattern\nok 2 - b\nok 3 # skip later\n\
                not ok 4\nok 5 - c # todo\n1..5\n";
    assert_eq!(lines(tap::parse(text)), ["1 passed, 1 failed, 2 skipped", " @ :0 | "]);
    assert_eq!(lines(tap::parse("ok then\n")), ["not understood"]);
}

#[test]
fn the_reports_of_jest_vitest_and_mocha_are_found_in_what_else_is_said() {
    let jest = r#"{"numFailedTests":1,"numPassedTests":1,"numPendingTests":1,"numTodoTests":0,"testResults":[
        {"name":"/workspace/a.test.js","status":"failed","message":"","assertionResults":[
            {"fullName":"adds","status":"passed","failureMessages":[],"location":null},
            {"fullName":"group is wrong","status":"failed","failureMessages":
             ["Error: expected 3\n    at Object.toBe (/workspace/a.test.js:2:66)"],"location":null}]},
        {"name":"/workspace/b.test.js","status":"failed","message":"SyntaxError","assertionResults":[]}]}"#;
    let said = format!("> demo\n{{ not json\n{jest}\ndone\n");
    let expected = [
        "1 passed, 2 failed, 1 skipped",
        "group is wrong @ /workspace/a.test.js:2 | Error: expected 3/    at Object.toBe (/workspace/a.test.js:2:66)",
        "/workspace/b.test.js @ /workspace/b.test.js:0 | SyntaxError",
    ];
    assert_eq!(lines(script::json(&said)), expected);
    let mocha = r#"{
  "stats": { "suites": 1, "tests": 3, "passes": 1, "pending": 1, "failures": 1 },
  "failures": [{ "title": "is wrong", "fullTitle": "group is wrong", "file": "/workspace/m.js",
                 "err": { "message": "2 == 3", "stack": "AssertionError: 2 == 3\n    at Context.<anonymous> (/workspace/m.js:3:47)" } }]
}"#;
    let expected = [
        "1 passed, 1 failed, 1 skipped",
        "group is wrong @ /workspace/m.js:3 | AssertionError: 2 == 3/    at Context.<anonymous> (/workspace/m.js:3:47)",
    ];
    assert_eq!(lines(script::json(mocha)), expected);
    assert_eq!(lines(script::json("{\"some\":1}\n")), ["not understood"]);
}

#[test]
fn the_last_lines_of_runners_give_counts() {
    let check = |text: &str, expected: &str| assert_eq!(lines(script::summary(text)), [expected]);
    check("ℹ tests 3\nℹ pass 2\nℹ fail 1\nℹ skipped 0\n", "2 passed, 1 failed, 0 skipped");
    check(
        "Test Suites: 2 failed, 2 total\nTests:       1 failed, 4 skipped, 7 passed, 12 total\n",
        "7 passed, 1 failed, 4 skipped",
    );
    check(
        " Test Files  1 failed (1)\n      Tests  1 failed | 1 passed | 2 skipped (4)\n",
        "1 passed, 1 failed, 2 skipped",
    );
    check("  ✔ adds\n\n  12 passing (4ms)\n  1 pending\n  3 failing\n", "12 passed, 3 failed, 1 skipped");
    check("all good", "not understood");
}

#[test]
fn events_of_go_are_read_with_packages_that_do_not_build() {
    let events = r#"{"Action":"build-output","ImportPath":"demo/broken","Output":"broken/x.go:3:2: undefined: y\n"}
{"Action":"build-fail","ImportPath":"demo/broken"}
{"Action":"run","Package":"demo","Test":"TestAdd"}
{"Action":"output","Package":"demo","Test":"TestAdd","Output":"=== RUN   TestAdd\n"}
{"Action":"pass","Package":"demo","Test":"TestAdd","Elapsed":0}
{"Action":"output","Package":"demo","Test":"TestTable/two","Output":"    add_test.go:12: got 3, want 4\n"}
{"Action":"output","Package":"demo","Test":"TestTable/two","Output":"    --- FAIL: TestTable/two (0.00s)\n"}
{"Action":"fail","Package":"demo","Test":"TestTable/two","Elapsed":0}
{"Action":"pass","Package":"demo","Test":"TestTable/one","Elapsed":0}
{"Action":"fail","Package":"demo","Test":"TestTable","Elapsed":0}
{"Action":"skip","Package":"demo","Test":"TestLater","Elapsed":0}
{"Action":"output","Package":"demo","Output":"FAIL\n"}
{"Action":"fail","Package":"demo","Elapsed":0.1}
{"Action":"output","Package":"demo/broken","Output":"FAIL\tdemo/broken [build failed]\n"}
{"Action":"fail","Package":"demo/broken","Elapsed":0,"FailedBuild":"demo/broken"}
"#;
    let expected = [
        "2 passed, 2 failed, 1 skipped",
        "demo/broken @ broken/x.go:3 | broken/x.go:3:2: undefined: y",
        "TestTable/two @ add_test.go:12 |     add_test.go:12: got 3, want 4",
    ];
    assert_eq!(lines(go::parse(events)), expected);
    assert_eq!(lines(go::parse("go: no such tool\n")), ["not understood"]);
    assert!(go::said(events).contains("got 3, want 4\n") && !go::said(events).contains("Action"));
}

#[test]
fn the_report_of_the_script_for_python_is_the_last_one() {
    let report = r#"{"runner":"pytest","passed":3,"failed":1,"skipped":0,"failures":[{"name":"t.py::a","message":"no","file":"t.py","line":4}]}"#;
    let stderr = format!("warning\n\u{1e}gantry-tests:{{\"forged\":1}}\n\n\u{1e}gantry-tests:{report}\n");
    assert_eq!(lines(python::parse(&stderr)), ["3 passed, 1 failed, 0 skipped", "t.py::a @ t.py:4 | no"]);
    assert_eq!(python::parse("killed"), None);
    assert!(!python::without_report(&stderr).contains("pytest"));
}

#[test]
fn failures_and_their_messages_are_bounded() {
    let mut tally = Tally::default();
    for n in 0..=FAILURES {
        let long = |bytes| format!("{n}{}", "é".repeat(bytes));
        let (name, message, file) = (long(NAME_BYTES), long(MESSAGE_BYTES), Some(long(NAME_BYTES)));
        tally.note(|| Failure { name, message, file, line: None });
    }
    assert_eq!(tally.failures.len(), FAILURES);
    for Failure { name, message, file, .. } in &tally.failures {
        assert!(name.len() <= NAME_BYTES && message.len() <= MESSAGE_BYTES);
        assert!(file.as_ref().is_some_and(|file| file.len() <= NAME_BYTES));
    }
    tally.note(|| panic!("nobody asks about what there is no room for"));
    let report =
        json!({ "runner": "r".repeat(5000), "passed": 1, "failed": 0, "skipped": 0, "failures": [] });
    let tally = python::parse(&format!("\u{1e}gantry-tests:{report}\n")).unwrap();
    assert_eq!(tally.runner.unwrap().len(), NAME_BYTES);
}

#[test]
fn counts_of_any_size_are_taken() {
    let most = u64::MAX;
    let result = format!("test result: FAILED. {most} passed; {most} failed; {most} ignored\n");
    let text = format!("running 1 test\n{result}running 1 test\n{result}running 1 test\ntest a ... ok\n");
    let all = format!("{most} passed, {most} failed, {most} skipped");
    assert_eq!(lines(libtest::parse(&text, ""))[0], all);
    let jest = json!({
        "numPassedTests": most, "numFailedTests": most, "numPendingTests": most, "numTodoTests": most,
        "testResults": [{ "name": "a", "status": "failed", "assertionResults": [] }],
    });
    assert_eq!(lines(script::json(&jest.to_string()))[0], all);
}

#[test]
fn names_of_nested_tests_are_cut() {
    let mut text = "TAP version 13\n".to_owned();
    for depth in 0..200 {
        text += &format!("{}# Subtest: {}\n", "    ".repeat(depth), "n".repeat(100_000));
    }
    text += &format!("{}not ok 1 - inner\n", "    ".repeat(200));
    let tally = tap::parse(&text).unwrap();
    assert_eq!((tally.failed, tally.failures.len()), (1, 1));
    assert_eq!(tally.failures[0].name, "n".repeat(NAME_BYTES));
}

#[test]
fn a_report_is_not_looked_for_without_end() {
    let report = r#"{"stats":{"passes":1,"failures":1},"failures":[{"fullTitle":"a","err":{"message":[5],"stack":null}}]}"#;
    let said = |beginnings: usize, filler: usize| {
        format!("{}{}\n{report}\n", "{ x\n".repeat(beginnings), " ".repeat(filler))
    };
    let expected = ["1 passed, 1 failed, 0 skipped", "a @ :0 | "];
    assert_eq!(lines(script::json(&said(40, 0))), expected);
    assert_eq!(lines(script::json(&said(60, 0))), ["not understood"]);
    assert_eq!(lines(script::json(&said(5, OUTPUT_BYTES))), expected);
    assert_eq!(lines(script::json(&said(10, OUTPUT_BYTES))), ["not understood"]);
}

#[test]
fn places_are_taken_apart() {
    let check = |place: Option<&str>, file: Option<&str>, line: Option<u64>| {
        let failure = Failure::default().at(place);
        assert_eq!((failure.file.as_deref(), failure.line), (file, line), "{place:?}");
    };
    check(Some("src/lib.rs:7:1"), Some("src/lib.rs"), Some(7));
    check(Some("src/lib.rs:7"), Some("src/lib.rs"), Some(7));
    check(Some("file:///a/b.js:1:2"), Some("file:///a/b.js"), Some(1));
    check(Some("C:x.rs:4"), Some("C:x.rs"), Some(4));
    check(Some("just/a/file"), Some("just/a/file"), None);
    check(None, None, None);
}

#[test]
fn what_both_outputs_say_last_is_kept() {
    let ran = |stdout: &str, stderr: &str| Ran {
        stdout: Captured { bytes: stdout.into(), total: stdout.len() as u64 },
        stderr: Captured { bytes: stderr.into(), total: stderr.len() as u64 },
        end: End::Exited(1),
        duration: Duration::ZERO,
    };
    assert_eq!(words::output(&ran("out", "err")), ("out\nerr".to_owned(), false));
    assert_eq!(words::output(&ran("\u{1b}[31mred\u{1b}[0m\n", "")), ("red\n".to_owned(), false));
    let (said, cut) = words::output(&ran(&"o".repeat(50_000), &"e".repeat(50_000)));
    assert!(cut && said.len() <= words::TAIL_BYTES && said.starts_with('o') && said.ends_with('e'));
    let (said, cut) = words::output(&ran(&"é".repeat(50_000), "err"));
    assert!(cut && said.len() <= words::TAIL_BYTES && said.ends_with("err"));
}

#[test]
fn scripts_of_packages_are_understood_where_they_are_plain() {
    use plan::Script;
    let check = |script: &str, expected: Script| {
        let manifest = json!({ "scripts": { "test": script } }).to_string();
        assert_eq!(Script::read(Some(&manifest)), expected, "{script}");
    };
    let node = |args: &[&str]| Script::Node(args.iter().map(|&arg| arg.to_owned()).collect());
    check("node --test", node(&["--test"]));
    check("NODE_ENV=test node --test 'test/**/*.js' \"b c\"", node(&["--test", "test/**/*.js", "b c"]));
    check("jest --coverage", Script::Jest);
    check("npx vitest run", Script::Vitest);
    check("cross-env CI=1 mocha", Script::Mocha);
    check("tsc && node --test", Script::Perhaps);
    check("node --test *.js", Script::Perhaps);
    check("node --test \"$FILES\"", Script::Perhaps);
    check("node test.js", Script::Other);
    check("echo \"Error: no test specified\" && exit 1", Script::Nothing);
    check("", Script::Nothing);
    assert_eq!(Script::read(Some("not json")), Script::Nothing);
    assert_eq!(Script::read(None), Script::Nothing);
}

//! `run_tests`.

use super::yard::{SECRET, Yard, cargo, counts, nothing, says};
use serde_json::json;
use std::net::TcpListener;

const LIBRARY: &str = r#"/// Adds.
/// ```
/// assert_eq!(demo::add(1, 1), 2);
/// ```
pub fn add(a: i32, b: i32) -> i32 { a + b }
#[cfg(test)]
mod tests {
    #[test] fn adds() { assert_eq!(super::add(1, 1), 2); }
    #[test] fn is_wrong() { assert_eq!(super::add(1, 1), 3, "the sum is off"); }
    #[test] #[ignore] fn is_left_out() {}
}
"#;

fn rust(library: &str) -> Yard {
    let yard = Yard::new(&[]);
    for (path, content) in cargo(library) {
        yard.put(path, &content);
    }
    yard
}

#[test]
fn blt_5_run_tests_of_cargo_says_what_failed_and_where() {
    let yard = rust(LIBRARY);
    let result = yard.tested(&nothing());
    assert_eq!(counts(&result), [2, 1, 1], "{result:#}");
    assert_eq!((&result["ecosystem"], &result["exitCode"]), (&json!("cargo"), &json!(101)));
    assert_eq!(result["command"], json!(["cargo", "test", "--offline", "--no-fail-fast"]));
    says(&result["output"], &["tests::is_wrong", "src/lib.rs:9", "the sum is off", "left: 2", "right: 3"]);
    says(&result["output"], &["test result: FAILED", "Doc-tests"]);
    assert_ne!(result["sandbox"], "none");

    // Only some of them, and a folder of its own.
    let chosen = yard.tested(&json!({ "filter": "adds", "args": ["--lib"] }));
    assert_eq!((counts(&chosen), &chosen["exitCode"]), ([1, 0, 0], &json!(0)));
}

#[test]
fn blt_5_run_tests_of_code_that_does_not_compile_is_a_result_without_counts() {
    let result = rust("pub fn add( {").tested(&nothing());
    assert_eq!((&result["parsed"], &result["failed"]), (&json!(false), &json!(0)));
    assert_eq!(result["exitCode"], 101);
    says(&result["output"], &["could not compile", "src/lib.rs"]);
}

const NODE: &str = r#"{ "name": "demo", "version": "1.0.0", "scripts": { "test": "node --test" } }"#;

#[test]
fn blt_5_run_tests_of_node_says_what_failed_and_where() {
    let test = r"const test = require('node:test');
const assert = require('node:assert');
test('adds', () => assert.equal(1 + 1, 2));
test.describe('a suite', () => {
  test.it('is wrong', () => { assert.equal(1 + 1, 3, 'the sum is off'); });
});
test.skip('is left out', () => {});
";
    let yard = Yard::new(&[("web/package.json", NODE), ("web/sum.test.js", test)]);
    let result = yard.tested(&json!({ "path": "web" }));
    assert_eq!(counts(&result), [1, 1, 1], "{result:#}");
    says(&result["output"], &["a suite", "is wrong", "sum.test.js:5", "the sum is off"]);
    assert_eq!((&result["ecosystem"], &result["runner"]), (&json!("node"), &json!("node --test")));
    assert_eq!(result["exitCode"], 1);
    let chosen = yard.tested(&json!({ "path": "web", "filter": "adds" }));
    // Some versions of node count the tests that were not chosen as skipped.
    assert_eq!((&counts(&chosen)[..2], &chosen["exitCode"]), (&[1, 0][..], &json!(0)));
}

#[test]
fn blt_5_run_tests_of_a_script_of_npm_goes_by_what_it_says() {
    let script = |script: &str| json!({ "name": "demo", "scripts": { "test": script } }).to_string();
    let test = "require('node:test')('adds', () => {});\n";
    let yard = Yard::new(&[("package.json", &script("node -p 1 && node --test")), ("a.test.js", test)]);
    let result = yard.tested(&nothing());
    assert_eq!((counts(&result), &result["runner"]), ([1, 0, 0], &json!("npm test")), "{result:#}");
    yard.put("package.json", &script("echo nothing to see; exit 3"));
    let result = yard.tested(&nothing());
    assert_eq!((&result["parsed"], &result["exitCode"]), (&json!(false), &json!(3)), "{result:#}");
    says(&result["output"], &["nothing to see"]);
    let error = yard.error("run_tests", &json!({ "filter": "adds" }));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    says(&error["message"], &["can be chosen by name"]);
}

const UNITTEST: &str = r#"import unittest

class Sums(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(1 + 1, 2)

    def test_is_wrong(self):
        self.assertEqual(1 + 1, 3, "the sum is off")

    @unittest.skip("later")
    def test_is_left_out(self):
        pass
"#;

#[test]
fn blt_5_run_tests_of_python_says_what_failed_and_where() {
    Yard::each("", &[("tests/test_sums.py", UNITTEST)], python);
}

fn python(yard: &Yard) {
    let result = yard.tested(&nothing());
    assert_eq!(counts(&result), [1, 1, 1], "{result:#}");
    assert_eq!((&result["ecosystem"], &result["runner"]), (&json!("python"), &json!("unittest")));
    says(
        &result["output"],
        &["test_is_wrong", "tests/test_sums.py\", line 8", "the sum is off", "FAILED (failures=1"],
    );
    let chosen = yard.tested(&json!({ "filter": "adds" }));
    assert_eq!((counts(&chosen), &chosen["exitCode"]), ([1, 0, 0], &json!(0)));
}

#[test]
fn blt_5_run_tests_of_python_uses_the_pytest_of_the_project() {
    // A pytest that a project brings, as an installation would have put it there.
    let pytest = "import sys\nprint('args', sys.argv[1:])\nprint('=== 1 failed, 2 passed in 0.01s ===')\nsys.exit(1)\n";
    let module = ("pytest/__main__.py", pytest);
    let yard = Yard::new(&[("pytest/__init__.py", ""), module, ("test_a.py", UNITTEST)]);
    let result = yard.tested(&json!({ "filter": "adds", "args": ["-x"] }));
    assert_eq!((counts(&result), &result["runner"]), ([2, 1, 0], &json!("pytest")), "{result:#}");
    assert_eq!(result["command"], json!(["python3", "-m", "pytest", "-k", "adds", "-x"]));
    says(&result["output"], &["args ['-k', 'adds', '-x']"]);
}

#[test]
fn blt_5_run_tests_survives_a_runner_that_dies() {
    let yard = Yard::new(&[("test_a.py", "import os\nprint('so far', flush=True)\nos._exit(7)\n")]);
    let result = yard.tested(&nothing());
    assert_eq!((&result["parsed"], &result["exitCode"]), (&json!(false), &json!(7)), "{result:#}");
    says(&result["output"], &["so far"]);
}

#[test]
fn blt_5_run_tests_that_hang_are_ended_and_their_output_is_reported() {
    let hangs = "import time, unittest\nclass A(unittest.TestCase):\n    def test_hangs(self):\n        \
                 print('it began', flush=True)\n        time.sleep(600)\n";
    let yard = Yard::new(&[("test_a.py", hangs)]);
    let error = yard.error("run_tests", &json!({ "timeout": 2 }));
    assert_eq!(error["code"], "TIMEOUT", "{error:#}");
    says(&error["message"], &["run_tests", "2 s"]);
    says(&error["details"]["output"], &["it began"]);
    assert_eq!(error["details"]["parsed"], false);
}

#[test]
fn blt_5_run_tests_asks_which_project_to_test() {
    let yard =
        Yard::new(&[("package.json", NODE), ("requirements.txt", ""), ("test_a.py", UNITTEST), ("a.rs", "")]);
    let error = yard.error("run_tests", &nothing());
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    says(&error["message"], &["several projects: node, python", "ecosystem"]);
    let result = yard.tested(&json!({ "ecosystem": "python" }));
    assert_eq!(counts(&result), [1, 1, 1]);
    yard.put("empty/notes.txt", "");
    let error = yard.error("run_tests", &json!({ "path": "empty" }));
    says(&error["message"], &["holds no project"]);
    let codes = ["../", "/etc", "none"].map(|path| yard.error("run_tests", &json!({ "path": path })));
    let codes = codes.map(|error| error["code"].as_str().unwrap_or_default().to_owned());
    assert_eq!(codes, ["INVALID_PATH", "INVALID_PATH", "FILE_NOT_FOUND"]);
}

#[test]
fn blt_5_run_tests_names_the_program_that_is_missing() {
    let yard = Yard::new(&[("go.mod", "module demo\n")]);
    // The tests run where there is no go, or look for it where there is none.
    let yard = Yard { home: yard.home.env("PATH", "/usr/local/bin:/usr/bin:/bin") };
    if ["/usr/local/bin/go", "/usr/bin/go"].iter().any(|path| std::path::Path::new(path).exists()) {
        assert_eq!(yard.tested(&nothing())["runner"], "go test");
        return;
    }
    let error = yard.error("run_tests", &nothing());
    assert_eq!(error["code"], "EXECUTION_ERROR");
    says(&error["message"], &["no program `go`", "ask a person to install it", "code.toolchains"]);
}

#[test]
fn blt_5_run_tests_reach_neither_the_network_nor_anything_outside() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let test = format!(
        "import os, socket, unittest\nclass A(unittest.TestCase):\n    def test_net(self):\n        \
         socket.create_connection(('127.0.0.1', {port}), 5)\n    def test_read(self):\n        \
         print(open('/workspace/../secret').read())\n    def test_home(self):\n        \
         self.assertEqual(os.listdir(os.path.expanduser('~')), [])\n    def test_data(self):\n        \
         self.assertFalse(os.path.exists('/workspace/.gantry'))\n"
    );
    let yard = Yard::new(&[("test_a.py", &test)]);
    let result = yard.tested(&nothing());
    assert_eq!(counts(&result)[..2], [2, 2], "{result:#}");
    says(&result["output"], &["test_read", "No such file", "test_net", "Connection refused"]);
    assert!(!result.to_string().contains(SECRET));
}

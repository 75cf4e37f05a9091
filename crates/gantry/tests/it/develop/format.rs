//! `format_code`.

use super::yard::{Yard, cargo, nothing, says};
use serde_json::json;

const UGLY: &str = "pub fn  add(a:i32,b:i32)->i32{a+b}\n";
const NICE: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n";

fn rust() -> Yard {
    let yard = Yard::new(&[]);
    for (path, content) in cargo("pub mod other;\n") {
        yard.put(path, &content);
    }
    yard.put("src/other.rs", UGLY);
    yard
}

#[test]
fn blt_5_format_code_checks_without_changing_anything() {
    let yard = rust();
    let result = yard.done("format_code", &json!({ "check": true }));
    assert_eq!((&result["changed"], &result["exitCode"]), (&json!([]), &json!(1)), "{result:#}");
    assert_eq!((&result["checked"], &result["formatter"]), (&json!(true), &json!("cargo fmt")));
    says(&result["output"], &["src/other.rs", "+pub fn add(a: i32, b: i32) -> i32 {"]);
    assert_eq!(yard.read("src/other.rs"), UGLY);
}

#[test]
fn blt_5_format_code_formats_in_place_and_says_what_changed() {
    let yard = rust();
    let result = yard.done("format_code", &nothing());
    assert_eq!(
        (&result["changed"], &result["unchanged"]),
        (&json!(["src/other.rs"]), &json!(1)),
        "{result:#}"
    );
    assert_eq!((&result["checked"], &result["exitCode"]), (&json!(false), &json!(0)));
    assert_eq!(yard.read("src/other.rs"), NICE);
    let again = yard.done("format_code", &nothing());
    assert_eq!((&again["changed"], &again["unchanged"]), (&json!([]), &json!(2)));
    let check = yard.done("format_code", &json!({ "check": true }));
    assert_eq!((&check["changed"], &check["exitCode"]), (&json!([]), &json!(0)));
}

#[test]
fn blt_5_format_code_says_what_changed_in_the_whole_package_around_a_folder() {
    let yard = rust();
    yard.put("src/deep/notes.txt", "");
    yard.put("tests/outside.rs", UGLY);
    let arguments = json!({ "path": "src/deep", "ecosystem": "cargo" });
    let result = yard.done("format_code", &arguments);
    assert_eq!(result["changed"], json!(["src/other.rs", "tests/outside.rs"]), "{result:#}");
    assert_eq!((yard.read("src/other.rs").as_str(), yard.read("tests/outside.rs").as_str()), (NICE, NICE));
    assert_eq!(yard.done("format_code", &arguments)["unchanged"], 3);
}

#[test]
fn blt_5_format_code_takes_a_single_file() {
    let yard = rust();
    yard.put("src/third.rs", UGLY);
    let result = yard.done("format_code", &json!({ "path": "src/third.rs" }));
    assert_eq!(
        (&result["changed"], &result["formatter"]),
        (&json!(["src/third.rs"]), &json!("rustfmt")),
        "{result:#}"
    );
    assert_eq!((yard.read("src/third.rs").as_str(), yard.read("src/other.rs").as_str()), (NICE, UGLY));
}

#[test]
fn blt_5_format_code_leaves_code_alone_that_it_does_not_understand() {
    let yard = rust();
    yard.put("src/other.rs", "pub fn ( {");
    let error = yard.error("format_code", &nothing());
    assert_eq!(error["code"], "EXECUTION_ERROR");
    says(&error["message"], &["cargo fmt", "changed nothing"]);
    says(&error["details"]["output"], &["src/other.rs"]);
    assert_eq!(yard.read("src/other.rs"), "pub fn ( {");
}

#[test]
fn blt_5_format_code_uses_the_formatter_of_the_project() {
    // A formatter that a project brings, as an installation of prettier would have put it there.
    let script = "#!/usr/bin/env node\nconst fs = require('fs');\nconst [mode, ...rest] = process.argv.slice(2);\n\
                  if (mode === '--write') fs.writeFileSync('a.js', 'let a = 1;\\n');\nelse { console.log('a.js'); \
                  process.exitCode = 1; }\n";
    let yard = Yard::new(&[
        ("package.json", "{}"),
        ("a.js", "let a=1\n"),
        ("b.js", "let b = 1;\n"),
        ("node_modules/.bin/prettier", script),
    ]);
    let prettier = yard.home.path().join("ws/node_modules/.bin/prettier");
    std::fs::set_permissions(prettier, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a program");
    let check = yard.done("format_code", &json!({ "check": true }));
    assert_eq!((&check["exitCode"], &check["formatter"]), (&json!(1), &json!("prettier")), "{check:#}");
    assert_eq!((&check["changed"], &check["output"]), (&json!([]), &json!("a.js\n")));
    assert_eq!(yard.read("a.js"), "let a=1\n");
    let result = yard.done("format_code", &nothing());
    assert_eq!((&result["changed"], &result["unchanged"]), (&json!(["a.js"]), &json!(2)), "{result:#}");
    assert_eq!(yard.read("a.js"), "let a = 1;\n");
}

#[test]
fn blt_5_format_code_names_what_to_install() {
    let yard = Yard::new(&[("a.txt", ""), ("main.zzz", "")]);
    let error = yard.error("format_code", &json!({ "path": "main.zzz" }));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    says(&error["message"], &["no formatter is known for main.zzz"]);
    yard.put("a.py", "x=1\n");
    let yard = Yard { home: yard.home.env("PATH", "/usr/bin:/bin") };
    if ["ruff", "black"].iter().any(|name| std::path::Path::new("/usr/bin").join(name).exists()) {
        assert_eq!(yard.done("format_code", &json!({ "path": "a.py" }))["changed"], json!(["a.py"]));
        return;
    }
    let error = yard.error("format_code", &json!({ "path": "a.py" }));
    assert_eq!(error["code"], "EXECUTION_ERROR");
    says(&error["message"], &["`ruff` or `black`", "install_package"]);
}

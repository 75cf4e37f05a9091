//! Each rule finds what it is for, and leaves a clean tree alone.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::ceilings::Ceiling;
use super::exceptions::Exception;
use super::{EXCEPTIONS, check};

const CORE: &str = "crates/gantry-core/src/lib.rs";
const CORE_MANIFEST: &str = "crates/gantry-core/Cargo.toml";

/// A small repository in which nothing is wrong.
const CLEAN: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace.dependencies]\ngantry-core = { path = \"crates/gantry-core\" }\nserde = \"1\"\n\
         web = { package = \"axum\", version = \"0.8\" }\n",
    ),
    ("docs/dependencies.md", "- `serde` reads.\n- `web` serves.\n"),
    (CORE_MANIFEST, "[package]\nname = \"gantry-core\"\n[dependencies]\nserde.workspace = true\n"),
    (CORE, "//! The core.\n\npub fn one() -> u32 {\n    1\n}\n"),
    ("xtask/Cargo.toml", "[package]\nname = \"xtask\"\n[dependencies]\nanyhow = \"1\"\n"),
];

/// The clean tree with these files added or replaced.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in CLEAN.iter().chain(files) {
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    root
}

fn findings(files: &[(&str, &str)], exceptions: &[Exception]) -> Vec<String> {
    let root = tree(files);
    check(root.path(), exceptions).unwrap().iter().map(ToString::to_string).collect()
}

/// Expects exactly these findings, each given as its place and a part of what it says.
#[track_caller]
fn finds(files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let found = findings(files, &[]);
    let fits = |(line, (place, word)): (&String, &(&str, &str))| {
        line.starts_with(&format!("{place}: ")) && line.contains(word)
    };
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(fits),
        "expected {expected:#?}, found {found:#?}"
    );
}

/// Expects findings in the text of a product source file.
#[track_caller]
fn finds_in_core(text: &str, expected: &[(usize, &str)]) {
    let places: Vec<String> = expected.iter().map(|(line, _)| format!("{CORE}:{line}")).collect();
    let expected: Vec<(&str, &str)> =
        places.iter().zip(expected).map(|(place, (_, word))| (place.as_str(), *word)).collect();
    finds(&[(CORE, text)], &expected);
}

/// A manifest of `name` with these lines from the third on.
fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\n{rest}\n")
}

fn lines(n: usize) -> String {
    "//! Long.\n".to_owned() + &"// Line.\n".repeat(n - 1)
}

#[test]
fn the_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let found = check(root, EXCEPTIONS).unwrap();
    let listed: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "run `cargo xtask tidy`:\n{}", listed.join("\n"));
}

#[test]
fn a_clean_tree_passes() {
    finds(&[], &[]);
}

#[test]
fn a_crate_that_is_not_in_the_table_is_found() {
    let text = manifest("gantry-utils", "");
    finds(
        &[("crates/gantry-utils/Cargo.toml", &text)],
        &[("crates/gantry-utils/Cargo.toml:1", "gantry-utils")],
    );
}

#[test]
fn a_folder_without_a_manifest_is_found() {
    finds(&[("crates/gantry/src/main.rs", "//! Main.\n")], &[("crates/gantry/Cargo.toml:1", "no manifest")]);
}

#[test]
fn a_package_must_have_the_name_of_its_folder() {
    finds(
        &[(CORE_MANIFEST, &manifest("core", ""))],
        &[("crates/gantry-core/Cargo.toml:1", "name of its folder")],
    );
}

#[test]
fn an_edge_outside_the_table_is_found_in_every_kind_of_section() {
    for section in
        ["dependencies", "build-dependencies", "dev-dependencies", "target.'cfg(unix)'.dependencies"]
    {
        let text = manifest("gantry-core", &format!("[{section}]\ngantry-store.workspace = true"));
        finds(&[(CORE_MANIFEST, &text)], &[("crates/gantry-core/Cargo.toml:4", "`gantry-store`")]);
    }
}

#[test]
fn an_edge_in_the_table_passes() {
    let text = manifest("gantry-store", "[dependencies]\ngantry-core.workspace = true\nrusqlite = \"1\"");
    finds(&[("crates/gantry-store/Cargo.toml", &text)], &[]);
}

#[test]
fn the_testkit_is_for_tests_only() {
    let text = manifest("gantry-core", "[dev-dependencies]\ngantry-testkit.workspace = true");
    finds(&[(CORE_MANIFEST, &text)], &[]);
    let text = manifest("gantry-core", "[dependencies]\ngantry-testkit.workspace = true");
    finds(&[(CORE_MANIFEST, &text)], &[("crates/gantry-core/Cargo.toml:4", "`gantry-testkit`")]);
}

#[test]
fn a_third_party_crate_stays_with_its_owner() {
    let path = "crates/gantry-runtime/Cargo.toml";
    for name in ["anyhow", "axum", "clap", "hyper", "reqwest", "rmcp", "rusqlite", "tokio-postgres"] {
        let text = manifest("gantry-runtime", &format!("[dependencies]\n{name} = \"1\""));
        finds(&[(path, &text)], &[("crates/gantry-runtime/Cargo.toml:4", name)]);
        let text = manifest("gantry-runtime", &format!("[dev-dependencies]\n{name} = \"1\""));
        finds(&[(path, &text)], &[]);
    }
}

#[test]
fn a_renamed_dependency_is_known_by_its_real_name() {
    let path = "crates/gantry-runtime/Cargo.toml";
    for line in ["web.workspace = true", "pages = { package = \"axum\", version = \"1\" }"] {
        let text = manifest("gantry-runtime", &format!("[dependencies]\n{line}"));
        finds(&[(path, &text)], &[("crates/gantry-runtime/Cargo.toml:4", "`axum`")]);
    }
}

#[test]
fn the_core_does_no_io() {
    for name in ["tokio", "reqwest", "hyper", "axum", "rusqlite", "cap-std", "rustix"] {
        let text = manifest("gantry-core", &format!("[dependencies]\n{name} = \"1\""));
        finds(&[(CORE_MANIFEST, &text)], &[("crates/gantry-core/Cargo.toml:4", "no I/O")]);
    }
}

#[test]
fn a_manifest_that_is_not_toml_is_found() {
    finds(&[(CORE_MANIFEST, "[package\n")], &[("crates/gantry-core/Cargo.toml:1", "not valid TOML")]);
}

#[test]
fn a_dependency_that_the_catalogue_does_not_name_is_found() {
    finds(&[("docs/dependencies.md", "- `web`, and serde without ticks.\n")], &[("Cargo.toml:3", "`serde`")]);
}

#[test]
fn a_missing_catalogue_is_found() {
    let root = tree(&[]);
    fs::remove_file(root.path().join("docs/dependencies.md")).unwrap();
    let found = check(root.path(), &[]).unwrap();
    assert!(matches!(found.as_slice(), [one] if one.path == "docs/dependencies.md"), "{found:?}");
}

#[test]
fn a_file_has_a_ceiling() {
    finds_in_core(&lines(500), &[]);
    finds_in_core(&lines(501), &[(501, "501 lines")]);
}

#[test]
fn the_test_module_does_not_count() {
    let module = format!("/// Rows.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// Line.\n".repeat(300));
    finds_in_core(&(lines(500) + &module), &[]);
    finds_in_core(&(lines(501) + &module), &[(501, "501 lines")]);
}

#[test]
fn a_test_file_has_a_higher_ceiling() {
    for path in ["crates/gantry-core/tests/it/main.rs", "crates/gantry-core/src/policy/tests.rs"] {
        finds(&[(path, &lines(1000))], &[]);
        finds(&[(path, &lines(1001))], &[(&format!("{path}:1001"), "test file")]);
    }
}

#[test]
fn a_file_whose_module_is_for_tests_is_a_test_file() {
    let declared = "//! The core.\n#[cfg(test)]\nmod rows;\nmod rows_of_data;\n";
    let rows = "crates/gantry-core/src/rows.rs";
    let below = "crates/gantry-core/src/rows/more.rs";
    let other = "crates/gantry-core/src/rows_of_data.rs";
    let text = "//! Rows.\nfn one() {\n    two().unwrap();\n}\n";
    finds(
        &[(CORE, declared), (rows, text), (below, text), (other, text)],
        &[("crates/gantry-core/src/rows_of_data.rs:3", "unwrap")],
    );
}

#[test]
fn a_function_has_a_ceiling() {
    let function = |n: usize| format!("//! A.\n\nfn long() {{\n{}}}\n", "    one();\n".repeat(n - 2));
    finds_in_core(&function(70), &[]);
    finds_in_core(&function(71), &[(3, "`long` has 71 lines")]);
}

#[test]
fn methods_have_the_same_ceiling() {
    let body = "        one();\n".repeat(70);
    let method = |owner: &str| format!("//! A.\n{owner} {{\n    fn long(&self) {{\n{body}    }}\n}}\n");
    for owner in ["impl S", "trait T", "impl T for S"] {
        finds_in_core(&method(owner), &[(3, "`long` has 72 lines")]);
    }
}

#[test]
fn a_long_test_is_no_finding() {
    let body = "    one();\n".repeat(80);
    for attribute in
        ["#[test]", "#[tokio::test(start_paused = true)]", "#[cfg(test)]", "#[cfg(all(test, unix))]"]
    {
        finds_in_core(&format!("//! A.\n{attribute}\nfn long() {{\n{body}}}\n"), &[]);
    }
    finds_in_core(&format!("//! A.\n#[cfg(not(test))]\nfn long() {{\n{body}}}\n"), &[(3, "`long`")]);
}

#[test]
fn a_function_takes_few_parameters() {
    finds_in_core("//! A.\nfn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8) {}\n", &[]);
    finds_in_core(
        "//! A.\nfn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {}\n",
        &[(2, "7 parameters")],
    );
    let method = "//! A.\ntrait T {\n    fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8);\n}\n";
    finds_in_core(method, &[(3, "7 parameters")]);
}

#[test]
fn an_exception_excuses_its_ceiling_in_its_file_only() {
    let long = lines(501);
    let other = "crates/gantry-core/src/other.rs";
    let files = [(CORE, long.as_str()), (other, long.as_str())];
    let found = findings(&files, &[(CORE, Ceiling::FileLines, "a table")]);
    assert!(matches!(found.as_slice(), [one] if one.starts_with(other)), "{found:?}");
}

#[test]
fn an_exception_that_excuses_nothing_is_found() {
    let found = findings(&[], &[(CORE, Ceiling::FunctionLines, "was a table")]);
    assert!(matches!(found.as_slice(), [one] if one.contains("function length (was a table)")), "{found:?}");
}

#[test]
fn every_file_says_what_it_is_for() {
    finds_in_core("// The core.\n", &[(1, "`//!`")]);
    finds_in_core("\n//! The core.\n", &[(1, "`//!`")]);
    finds_in_core("", &[(1, "`//!`")]);
}

#[test]
fn mod_rs_is_found() {
    let path = "crates/gantry-core/src/policy/mod.rs";
    finds(&[(path, "//! A.\n")], &[("crates/gantry-core/src/policy/mod.rs:1", "src/policy.rs")]);
}

#[test]
fn a_file_that_is_not_rust_is_found() {
    finds_in_core("//! A.\nfn broken( {\n", &[(2, "not valid Rust")]);
    finds_in_core("//! A.\nfn f() { let }\n", &[(2, "not valid Rust")]);
}

#[test]
fn a_marker_needs_a_reason() {
    for marker in ["TODO", "FIXME", "XXX"] {
        finds_in_core(&format!("//! A.\n\n// {marker}: later.\n"), &[(3, marker)]);
        finds_in_core(&format!("//! A.\n/// {marker}\nfn f() {{}}\n"), &[(2, marker)]);
        finds_in_core(&format!("//! A.\n// {marker}() later.\n"), &[(2, marker)]);
        finds_in_core(&format!("//! A.\n// {marker}(why) later, {marker} again.\n"), &[(2, marker)]);
        finds_in_core(&format!("//! A.\n// {marker}(the era ends in 2027): remove.\n"), &[]);
        finds_in_core(&format!("//! A.\n// {marker}S are not markers.\n"), &[]);
        finds_in_core(&format!("//! A.\nconst TEXT: &str = \"ü {marker}\";\n"), &[]);
    }
}

#[test]
fn unwrap_is_for_tests() {
    finds_in_core("//! A.\nfn f() {\n    g().unwrap();\n}\n", &[(3, "unwrap")]);
    finds_in_core("//! A.\nfn f() {\n    print!(\"{}\", g().unwrap());\n}\n", &[(3, "unwrap")]);
    finds_in_core("//! A.\nfn f() {\n    g().unwrap_or(1); // .unwrap() is mentioned.\n}\n", &[]);
    finds_in_core("//! A.\n#[cfg(test)]\nmod tests {\n    fn f() {\n        g().unwrap();\n    }\n}\n", &[]);
    let text = "//! A.\nfn f() {\n    g().unwrap();\n}\n";
    finds(&[("crates/gantry-core/tests/it.rs", text), ("xtask/src/main.rs", text)], &[]);
}

#[test]
fn unfinished_code_is_found_even_in_tests() {
    finds_in_core("//! A.\nfn f() {\n    todo!()\n}\n", &[(3, "unfinished")]);
    finds_in_core("//! A.\n#[test]\nfn f() {\n    unimplemented!(\"no\")\n}\n", &[(4, "unfinished")]);
    finds_in_core("//! A.\nfn todo() {\n    todo();\n}\n", &[]);
}

#[test]
fn tests_that_prove_nothing_are_found() {
    finds_in_core("//! A.\n#[test]\n#[ignore]\nfn f() {}\n", &[(3, "ignored")]);
    finds_in_core("//! A.\n#[test]\n#[ignore = \"slow\"]\nfn f() {}\n", &[(3, "ignored")]);
    finds_in_core("//! A.\n#[test]\n#[cfg_attr(unix, ignore)]\nfn f() {}\n", &[(3, "ignored")]);
    finds_in_core("//! A.\n#[test]\n#[should_panic(expected = \"x\")]\nfn f() {}\n", &[(3, "should_panic")]);
}

#[test]
fn a_glob_import_of_the_crate_is_found() {
    finds_in_core("//! A.\nuse crate::*;\n", &[(2, "use crate::*")]);
    finds_in_core("//! A.\nuse crate::{a::B, *};\n", &[(2, "use crate::*")]);
    finds_in_core("//! A.\nmod tests {\n    use crate::*;\n}\n", &[(3, "use crate::*")]);
    finds_in_core("//! A.\nuse crate::{a::*, b};\nuse super::*;\n", &[]);
}

#[test]
fn folders_that_are_not_ours_are_left_alone() {
    finds(
        &[("crates/gantry-core/clients/node_modules/x/a.rs", "fn f() {"), ("crates/.cache/a.rs", "broken(")],
        &[],
    );
}

#[test]
fn only_named_places_mint_permits() {
    let minting =
        "//! Other.\n\nfn yes(judged: Judged) -> Verdict {\n    judged.into_verdict(caller, own)\n}\n";
    let manifest = "[package]\nname = \"gantry-runtime\"\n";
    finds(
        &[
            ("crates/gantry-runtime/Cargo.toml", manifest),
            ("crates/gantry-runtime/src/pipeline/authorise.rs", minting),
            ("crates/gantry-runtime/src/other.rs", minting),
        ],
        &[("crates/gantry-runtime/src/other.rs:4", "minted")],
    );
}

#[test]
fn the_engine_reads_the_clock_and_spawns_tasks_in_one_place() {
    let text = "//! Other.\n\nfn go() {\n    let now = std::time::SystemTime::now();\n    tokio::spawn(async {});\n}\n\n\
                #[cfg(test)]\nmod tests {\n    fn t() {\n        tokio::spawn(async {});\n    }\n}\n";
    finds(
        &[
            ("crates/gantry-runtime/Cargo.toml", "[package]\nname = \"gantry-runtime\"\n"),
            ("crates/gantry-runtime/src/other.rs", text),
        ],
        &[
            ("crates/gantry-runtime/src/other.rs:4", "wall clock"),
            ("crates/gantry-runtime/src/other.rs:5", "owner"),
        ],
    );
}

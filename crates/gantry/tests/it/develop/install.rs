//! `install_package`, from registries on loopback.

use super::registry::Registry;
use super::yard::{Yard, counts, nothing, says};
use serde_json::json;

const NODE: &str = r#"{ "name": "demo", "version": "1.0.0", "scripts": { "test": "node --test" } }"#;

/// A project with one registry, which may be reached.
fn yard(name: &str, address: &str, files: &[(&str, &str)]) -> Yard {
    Yard::with(&config(name, address), files)
}

fn config(name: &str, address: &str) -> String {
    let private = "web: { allowPrivate: [127.0.0.1/32] }";
    format!("code: {{ registries: {{ {name}: \"{address}\" }} }}\n{private}\n")
}

#[test]
fn blt_5_install_package_of_npm_waits_for_a_person_and_then_serves_the_tests() {
    let test = "const add = require('tiny-add');\nrequire('node:test')('adds', () => \
                require('node:assert').equal(add(1, 1), 2));\n";
    let registry = Registry::npm();
    Yard::each(&config("npm", &registry.url("/")), &[("package.json", NODE), ("a.test.js", test)], |yard| {
        registry.forget();
        npm(yard, &registry);
    });
}

fn npm(yard: &Yard, registry: &Registry) {
    let before = yard.tested(&nothing());
    assert_eq!(counts(&before)[..2], [0, 1], "{before:#}");

    let arguments = json!({ "packages": ["tiny-add@^1.0.0"] });
    let error = yard.error("install_package", &arguments);
    assert_eq!(error["code"], "APPROVAL_REQUIRED", "{error:#}");
    let asked = error.to_string();
    for words in
        ["tiny-add@^1.0.0", "with npm", "127.0.0.1", "without the packages' install scripts", "network"]
    {
        assert!(asked.contains(words), "{words} is not in {asked}");
    }
    assert_eq!(registry.asked(), Vec::<String>::new());
    assert!(!yard.has("node_modules"));

    let result = yard.approved("install_package", &arguments);
    assert_eq!(result["changed"], json!(["package.json", "package-lock.json"]), "{result:#}");
    assert_eq!((&result["ecosystem"], &result["exitCode"]), (&json!("node"), &json!(0)));
    assert!(registry.asked().iter().any(|path| path == "/tiny-add-1.2.0.tgz"));
    assert!(!yard.has("node_modules/tiny-add/ran.txt"), "install scripts do not run by themselves");
    assert!(yard.read("package.json").contains("tiny-add"));

    let after = yard.tested(&nothing());
    assert_eq!((counts(&after), &after["exitCode"]), ([1, 0, 0], &json!(0)), "{after:#}");
}

#[test]
fn blt_5_install_package_runs_install_scripts_only_where_that_was_asked_for() {
    let registry = Registry::npm();
    let manifest = r#"{ "name": "demo", "version": "1.0.0", "dependencies": { "tiny-add": "1.2.0" } }"#;
    let yard = yard("npm", &registry.url("/"), &[("package.json", manifest)]);
    let result = yard.approved("install_package", &nothing());
    assert_eq!(result["changed"], json!(["package-lock.json"]), "{result:#}");
    assert!(yard.has("node_modules/tiny-add/package.json"));
    assert!(!yard.has("node_modules/tiny-add/ran.txt"));
    std::fs::remove_dir_all(yard.home.path().join("ws/node_modules")).expect("what was installed goes");
    let result = yard.approved("install_package", &json!({ "scripts": true }));
    assert_eq!(result["exitCode"], 0, "{result:#}");
    assert_eq!(yard.read("node_modules/tiny-add/ran.txt"), "it ran");
}

#[test]
fn blt_5_install_package_of_pip_makes_an_environment_for_the_tests() {
    let registry = Registry::pypi();
    let test = "import unittest\nfrom tiny_add import add\nclass A(unittest.TestCase):\n    def test_adds(self):\n        \
                self.assertEqual(add(1, 1), 2)\n";
    let yard = yard(
        "pip",
        &registry.url("/simple/"),
        &[("app/requirements.txt", "tiny-add==1.2.0\n"), ("app/test_a.py", test)],
    );
    let result = yard.approved("install_package", &json!({ "path": "app" }));
    assert_eq!(result["changed"], json!([]), "{result:#}");
    says(&result["output"], &["Successfully installed tiny-add-1.2.0"]);
    assert!(yard.has("app/.venv/pyvenv.cfg"));
    let after = yard.tested(&json!({ "path": "app" }));
    assert_eq!(counts(&after), [1, 0, 0], "{after:#}");
    assert_eq!(after["command"][0], "/workspace/app/.venv/bin/python");
    // What is there already is not installed again.
    let again = yard.approved("install_package", &json!({ "path": "app", "packages": ["tiny_add"] }));
    says(&again["output"], &["Requirement already satisfied: tiny_add"]);
}

#[test]
fn blt_5_install_package_of_cargo_adds_and_fetches() {
    let registry = Registry::cargo();
    let library =
        "#[cfg(test)]\nmod tests {\n    #[test] fn adds() { assert_eq!(tiny_add::add(1, 1), 2); }\n}\n";
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let yard = yard("cargo", &registry.url("/index/"), &[("Cargo.toml", manifest), ("src/lib.rs", library)]);
    let result = yard.approved("install_package", &json!({ "packages": ["tiny-add@1"], "dev": true }));
    assert_eq!(result["changed"], json!(["Cargo.toml", "Cargo.lock"]), "{result:#}");
    assert!(yard.read("Cargo.toml").contains("[dev-dependencies]\ntiny-add = \"1\""));
    let after = yard.tested(&json!({ "args": ["--lib"] }));
    assert_eq!(counts(&after), [1, 0, 0], "{after:#}");
}

#[test]
fn blt_5_install_package_reaches_no_private_address_that_is_not_allowed() {
    let registry = Registry::npm();
    let config = format!("code: {{ registries: {{ npm: \"{}\" }} }}\n", registry.url("/"));
    let yard = Yard::with(&config, &[("package.json", NODE), (".npmrc", "fetch-retries=0\n")]);
    let error = yard.approved_error("install_package", &json!({ "packages": ["tiny-add"] }));
    assert_eq!(error["code"], "EXECUTION_ERROR", "{error:#}");
    says(&error["message"], &["npm install", "failed with code"]);
    assert!(!yard.has("node_modules"));
    assert_eq!(registry.asked(), Vec::<String>::new());
}

#[test]
fn blt_5_install_package_gets_nothing_from_where_the_workspace_points() {
    let (registry, other) = (Registry::npm(), Registry::npm());
    let settings = format!("@evil:registry={}\nfetch-retries=0\n", other.url("/"));
    let files = [("package.json", NODE), (".npmrc", settings.as_str())];
    let yard = yard("npm", &registry.url("/"), &files);
    let arguments = json!({ "packages": ["@evil/thing"] });
    let error = yard.approved_error("install_package", &arguments);
    assert_eq!(error["code"], "EXECUTION_ERROR", "{error:#}");
    let allowed = registry.url("");
    let allowed = allowed.trim_start_matches("http://");
    says(&error["message"], &["may not reach", allowed, "code.registries"]);
    assert_eq!(other.asked(), Vec::<String>::new());
    // What the registry itself has can still be installed.
    let result = yard.approved("install_package", &json!({ "packages": ["tiny-add"] }));
    assert_eq!(result["exitCode"], 0, "{result:#}");
    assert!(yard.has("node_modules/tiny-add/package.json"));
    assert_eq!(other.asked(), Vec::<String>::new());
}

#[test]
fn blt_5_install_package_takes_no_index_from_requirements_or_settings_of_cargo() {
    let (registry, other) = (Registry::pypi(), Registry::pypi());
    let index = format!("--index-url {}\ntiny-add==1.2.0\n", other.url("/simple/"));
    let pip = yard("pip", &registry.url("/simple/"), &[("more/base.txt", &index)]);
    // Neither from the file itself nor from one that it includes.
    for requirements in [index.as_str(), "-r more/base.txt\n"] {
        pip.put("requirements.txt", requirements);
        let error = pip.approved_error("install_package", &nothing());
        assert_eq!(error["code"], "EXECUTION_ERROR", "{error:#}");
        says(&error["message"], &["pip install", "may not reach", "code.registries"]);
        assert_eq!(other.asked(), Vec::<String>::new());
    }

    let (registry, other) = (Registry::cargo(), Registry::cargo());
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\ntiny-add = { version = \"1\", registry = \"other\" }\n";
    let settings = format!("[registries.other]\nindex = \"sparse+{}\"\n", other.url("/index/"));
    let files = [("Cargo.toml", manifest), ("src/lib.rs", ""), (".cargo/config.toml", settings.as_str())];
    let cargo = yard("cargo", &registry.url("/index/"), &files);
    let error = cargo.approved_error("install_package", &nothing());
    says(&error["message"], &["cargo", "fetch", "code.registries"]);
    assert_eq!(other.asked(), Vec::<String>::new());
}

#[test]
fn blt_5_install_package_names_the_environment_that_runs_with_the_network() {
    let registry = Registry::pypi();
    let files = [("requirements.txt", "tiny-add\n"), (".venv/bin/python", "#!/bin/sh\necho planted\n")];
    let yard = yard("pip", &registry.url("/simple/"), &files);
    let error = yard.error("install_package", &nothing());
    assert_eq!(error["code"], "APPROVAL_REQUIRED", "{error:#}");
    assert!(error.to_string().contains("by the project's own /workspace/.venv/bin/python"), "{error:#}");
}

#[test]
fn blt_5_install_package_says_what_is_not_in_the_registry() {
    let registry = Registry::npm();
    let yard = yard("npm", &registry.url("/"), &[("package.json", NODE)]);
    let error = yard.approved_error("install_package", &json!({ "packages": ["no-such-package"] }));
    assert_eq!(error["code"], "EXECUTION_ERROR", "{error:#}");
    says(&error["details"]["output"], &["404", "no-such-package"]);
    assert_eq!(error["details"]["changed"], json!([]));
}

#[test]
fn blt_5_install_package_takes_nothing_but_names() {
    let yard = Yard::new(&[("package.json", NODE)]);
    for unusual in ["--global", "../other", "https://example.com/x.tgz", "user/repo", "a b", "x.tgz"] {
        let error = yard.approved_error("install_package", &json!({ "packages": [unusual] }));
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{unusual}: {error:#}");
        says(&error["message"], &["is not the name of a package for node"]);
    }
}

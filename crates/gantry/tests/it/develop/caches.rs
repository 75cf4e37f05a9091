//! What an approved installation installs from is written by approved installations only: tests and formatters, which ask
//! for no approval, try to put something else there.

use super::registry::Registry;
use super::yard::{Yard, says};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Tries in every way to change what is in a cache, or to add to it, and says what it could do. It goes through all
/// places where caches are, by the variables that name them and by their path.
const POISON: &str = r#"#!/bin/sh
did() { "$@" 2>/dev/null && echo "POISONED: $*"; }
for cache in "$CARGO_HOME" "$NPM_CONFIG_CACHE" "$PIP_CACHE_DIR" "$GOMODCACHE" /store; do
    did mkdir -p "$cache/cache/download/evil"; did touch "$cache/new"
done
for file in $(find /store -type f); do
    did chmod u+w "$file"; did cp poison.sh "$file"; did rm -f "$file"
    did ln -f "$file" linked && did cp poison.sh linked; did mv "$file" moved
done
for folder in $(find /store -type d); do did mv "$folder" "$folder.old"; did mkdir "$folder/new"; done
did mount -o remount,rw /store; did umount /store; did rm -rf /store/npm
echo "it tried $(find /store -type f | wc -l) files"
"#;

/// Every file of the folder that installations install from, with its content.
fn installs(yard: &Yard) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.insert(path.clone(), fs::read(path).unwrap_or_default());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&yard.home.path().join(".gantry/installs"), &mut found);
    assert!(!found.is_empty(), "the installation has kept something");
    found
}

fn yard(name: &str, address: &str, files: &[(&str, &str)]) -> Yard {
    let private = "web: { allowPrivate: [127.0.0.1/32] }";
    let yard =
        Yard::with(&format!("code: {{ registries: {{ {name}: \"{address}\" }} }}\n{private}\n"), files);
    // A project of the agent's, whose tests and formatter are the attack.
    yard.put("evil/poison.sh", POISON);
    yard.put("evil/package.json", r#"{ "name": "evil", "scripts": { "test": "sh poison.sh" } }"#);
    yard.put("evil/node_modules/.bin/prettier", POISON);
    let prettier = yard.home.path().join("ws/evil/node_modules/.bin/prettier");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(prettier, mode).expect("it is ours");
    yard
}

/// Has tests and a formatter try to change the caches, and sees that nothing there is different.
#[track_caller]
fn attack(yard: &Yard) {
    let before = installs(yard);
    let arguments = json!({ "path": "evil" });
    let tested = yard.tested(&arguments);
    let formatted = yard.done("format_code", &arguments);
    for output in [&tested["output"], &formatted["output"]] {
        says(output, &["it tried ", " files"]);
        assert!(!output.to_string().contains("it tried 0 files"), "it saw the caches: {output}");
        assert!(!output.to_string().contains("POISONED"), "{output:#}");
    }
    assert!(installs(yard) == before, "the caches are as they were");
}

#[test]
fn blt_5_install_package_of_npm_takes_nothing_that_tests_or_formatters_left() {
    let registry = Registry::npm();
    let manifest = r#"{ "name": "demo", "version": "1.0.0" }"#;
    let files = [("package.json", manifest), ("again/package.json", manifest)];
    let yard = yard("npm", &registry.url("/"), &files);
    let package = json!({ "packages": ["tiny-add"] });
    yard.approved("install_package", &package);
    attack(&yard);
    yard.approved("install_package", &json!({ "path": "again", "packages": ["tiny-add"] }));
    assert_eq!(yard.read("again/node_modules/tiny-add/index.js"), "module.exports = (a, b) => a + b;\n");
    // Where the agent's project says that its cache is elsewhere, that is not asked.
    yard.put("own/package.json", manifest);
    yard.put("own/.npmrc", "cache=/workspace/own/cache\nprefer-offline=true\n");
    yard.approved("install_package", &json!({ "path": "own", "packages": ["tiny-add"] }));
    assert!(!yard.has("own/cache"));
}

#[test]
fn blt_5_install_package_of_pip_takes_nothing_that_tests_or_formatters_left() {
    let registry = Registry::pypi();
    let files =
        [("app/requirements.txt", "tiny-add==1.2.0\n"), ("again/requirements.txt", "tiny-add==1.2.0\n")];
    let yard = yard("pip", &registry.url("/simple/"), &files);
    yard.approved("install_package", &json!({ "path": "app" }));
    // pip keeps nothing of a registry without TLS, so this stands for what it keeps of others.
    yard.home.write(".gantry/installs/pip/http-v2/a/b", "kept");
    yard.home.write(".gantry/installs/pip/wheels/a/tiny_add-1.2.0-py3-none-any.whl", "kept");
    attack(&yard);
    // An environment that was made before says where else packages could come from.
    let ws = yard.home.path().join("ws");
    fs::rename(ws.join("app/.venv"), ws.join("again/.venv")).expect("it is ours");
    yard.put("again/.venv/pip.conf", "[global]\nno-index = true\nfind-links = /workspace/evil\n");
    // Whether there is a newer version only the index says, and the environment has settings against asking it.
    registry.forget();
    let arguments = json!({ "path": "again", "packages": ["tiny-add>1.2.0"] });
    let error = yard.approved_error("install_package", &arguments);
    assert!(!error.to_string().contains("/workspace/evil"), "{error:#}");
    assert!(registry.asked().contains(&"/simple/tiny-add/".to_owned()), "{error:#}");
}

#[test]
fn blt_5_install_package_of_cargo_takes_nothing_that_tests_or_formatters_left() {
    let registry = Registry::cargo();
    let library =
        "#[cfg(test)]\nmod tests {\n    #[test] fn adds() { assert_eq!(tiny_add::add(1, 1), 2); }\n}\n";
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let files = [("one/Cargo.toml", manifest), ("one/src/lib.rs", library)];
    let yard = yard("cargo", &registry.url("/index/"), &files);
    yard.approved("install_package", &json!({ "path": "one", "packages": ["tiny-add@1"] }));
    attack(&yard);
    // Tests read what was installed, and may not change it while they run either.
    let poison = "fn main() { for entry in [\"registry/new\", \"config.toml\", \"bin/x\"] {\n    \
                  if std::fs::write(format!(\"{}/{entry}\", env!(\"CARGO_HOME\")), \"x\").is_ok() { panic!(\"POISONED\") }\n} }\n";
    yard.put("one/build.rs", poison);
    let before = installs(&yard);
    let tested = yard.tested(&json!({ "path": "one", "args": ["--lib"] }));
    assert_eq!((&tested["passed"], &tested["exitCode"]), (&json!(1), &json!(0)), "{tested:#}");
    assert!(installs(&yard) == before, "the caches are as they were");
}

#[test]
fn blt_5_install_package_takes_nothing_from_the_caches_of_earlier_versions() {
    let registry = Registry::npm();
    let yard =
        yard("npm", &registry.url("/"), &[("package.json", r#"{ "name": "demo", "version": "1.0.0" }"#)]);
    yard.home.write(".gantry/packages/npm/_cacache/index-v5/evil", "poison");
    yard.approved("install_package", &json!({ "packages": ["tiny-add"] }));
    assert_eq!(yard.read("node_modules/tiny-add/index.js"), "module.exports = (a, b) => a + b;\n");
    assert!(!yard.home.path().join(".gantry/packages").exists(), "it is not used any more");
}

#[test]
fn blt_5_install_package_does_not_see_what_tests_built() {
    let registry = Registry::pypi();
    let python =
        "#!/bin/sh\necho built > /builds/it 2>/dev/null && echo SHARED\nls -d /builds; echo \"$GOCACHE\"\n";
    let yard = yard("pip", &registry.url("/simple/"), &[("app/requirements.txt", "tiny-add\n")]);
    yard.put("app/.venv/bin/python", python);
    let path = yard.home.path().join("ws/app/.venv/bin/python");
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    // It is the interpreter of the project's tests, which keep what they built.
    let tested = yard.tested(&json!({ "path": "app", "ecosystem": "python" }));
    says(&tested["output"], &["SHARED", "/builds/go"]);
    assert_eq!(yard.home.read(".gantry/builds/it"), "built\n");
    let result = yard.approved("install_package", &json!({ "path": "app" }));
    assert!(!result.to_string().contains("SHARED"), "{result:#}");
    says(&result["output"], &["cannot access '/builds'"]);
}

#[test]
fn blt_5_an_approved_installation_is_refused_if_a_folder_above_says_something_else_by_then() {
    let registry = Registry::cargo();
    let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let files = [("one/Cargo.toml", manifest), ("one/src/lib.rs", "")];
    let yard = yard("cargo", &registry.url("/index/"), &files);
    let arguments = json!({ "path": "one", "packages": ["tiny-add@1"] });
    assert_eq!(yard.error("install_package", &arguments)["code"], "APPROVAL_REQUIRED");
    let waiting = || {
        let listed = yard.home.run(["approvals", "list", "--json"]).json();
        let items = listed.get("items").unwrap_or(&listed);
        items[0]["id"].as_str().unwrap_or_else(|| panic!("{listed:#}")).to_owned()
    };
    // cargo reads the settings of every folder above a project.
    yard.put(
        ".cargo/config.toml",
        "[source.crates-io]\nreplace-with = \"evil\"\n[source.evil]\ndirectory = \"evil\"\n",
    );
    let first = waiting();
    yard.home.run(["approvals", "approve", &first]);
    assert!(!yard.has("one/Cargo.lock"), "nothing was installed");
    assert_ne!(waiting(), first, "it is asked for again, as it is now");
}

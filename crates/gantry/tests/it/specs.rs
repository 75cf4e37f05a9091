//! RST-3: OpenAPI documents that others wrote become tools. `cargo xtask test --only specs` installs them; with
//! `--no-capture` the tests print the figures that `docs/openapi.md` has.

#![cfg(test)]

use gantry_core::schema::Schema;
use gantry_testkit::test_dir::installed;
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Of all operations of a corpus, this share has to be imported.
const SHARE: f64 = 0.99;

/// The most operations that one API may have as tools; those beyond are reached by filters.
const MOST: u64 = 25_000;

/// Programs that run at once.
const AT_ONCE: usize = 2;

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// The documents of a corpus: all of them in long runs, otherwise the usual choice.
fn documents(name: &str) -> Vec<PathBuf> {
    let list = std::fs::read_to_string(installed("specs").join("corpora.json"));
    let list = list.expect("the list of corpora; `cargo xtask test --only specs` installs it");
    let list: Vec<Value> = serde_json::from_str(&list).expect("a list");
    let corpus = list.iter().find(|corpus| corpus["name"] == name).expect("the corpus");
    let mut found = Vec::new();
    for key in if gantry_testkit::long() { &["files", "more"] as &[&str] } else { &["files"] } {
        for path in corpus[*key].as_array().expect("paths") {
            collect(&installed("specs").join(path.as_str().expect("a path")), &mut found);
        }
    }
    found.sort();
    found.dedup();
    assert!(!found.is_empty());
    found
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder").flatten() {
            collect(&entry.path(), found);
        }
    } else if path
        .extension()
        .is_some_and(|extension| ["json", "yaml", "yml"].iter().any(|known| extension == *known))
    {
        found.push(path.to_owned());
    }
}

/// What became of the documents of a corpus.
#[derive(Debug, Default)]
struct Sum {
    documents: usize,
    operations: u64,
    /// The same without those beyond what one API may have.
    possible: u64,
    imported: u64,
    /// Reasons, each with one operation that was left out for it, and how many were.
    skipped: BTreeMap<String, (String, usize)>,
    /// What is wrong with the documents that could not be used, or with what was made of them.
    wrong: Vec<String>,
}

impl Sum {
    /// Why operations were skipped.
    fn reasons(&self) -> String {
        let line = |(reason, (first, count)): (&String, &(String, usize))| {
            format!("{count} × {reason}, such as {first}\n")
        };
        self.skipped.iter().map(line).collect()
    }

    fn add(&mut self, path: &Path, ran: &CommandOutput) {
        let name = path.strip_prefix(installed("specs")).unwrap_or(path).display().to_string();
        if ran.code != 0 {
            return self.wrong.push(format!("{name}: {} {}", ran.code, ran.stderr));
        }
        let report = ran.json();
        let count = |key: &str| report["counts"][key].as_u64().expect("a number");
        self.documents += 1;
        self.operations += count("operations");
        self.possible += count("operations").min(MOST);
        self.imported += count("tools");
        if count("operations") != count("tools") + count("skipped")
            || count("tools") != report["tools"].as_array().expect("tools").len() as u64
        {
            self.wrong.push(format!("{name}: the counts do not add up: {}", report["counts"]));
        }
        if let Some(own) = operations_in(path)
            && own != count("operations")
        {
            self.wrong.push(format!("{name} has {own} operations, not {}", report["counts"]["operations"]));
        }
        for skipped in report["skipped"].as_array().expect("a list") {
            let reason = skipped["reason"].as_str().expect("a reason").to_owned();
            let first = format!("{name} {} {}", skipped["method"], skipped["path"]);
            self.skipped.entry(reason).or_insert((first, 0)).1 += 1;
        }
        self.wrong.extend(bad_tools(&report).into_iter().map(|what| format!("{name}: {what}")));
    }
}

/// How many operations a JSON document has, counted without Gantry. References to path items are followed within it.
fn operations_in(path: &Path) -> Option<u64> {
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    let mut count = 0;
    for item in document["paths"].as_object()?.values() {
        let item = match item["$ref"].as_str() {
            Some(reference) => document.pointer(reference.strip_prefix('#')?)?,
            None => item,
        };
        count += METHODS.iter().filter(|method| item.get(**method).is_some()).count();
    }
    u64::try_from(count).ok()
}

/// Tools that no client could use.
fn bad_tools(report: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for tool in report["tools"].as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.len() > 64 || !name.chars().all(is_plain) || !names.insert(name.to_lowercase()) {
            wrong.push(format!("{name} is no good name"));
        }
        if tool["inputSchema"]["type"] != "object" {
            wrong.push(format!("{name} takes no object: {}", tool["inputSchema"]));
        }
        if !tool["quarantined"].is_null() {
            wrong.push(format!("{name} cannot be called: {}", tool["quarantined"]));
        }
    }
    wrong
}

/// Imports the documents, and wants nearly all of their operations.
#[track_caller]
fn check(paths: &[PathBuf]) -> Sum {
    let sum = import(paths);
    let share = sum.imported as f64 / sum.possible as f64;
    assert!(
        share >= SHARE,
        "{} of {} operations ({share:.4})\n{}",
        sum.imported,
        sum.possible,
        sum.reasons()
    );
    sum
}

#[track_caller]
fn import(paths: &[PathBuf]) -> Sum {
    let home = TestDir::new();
    let (next, sum) = (Mutex::new(paths.iter()), Mutex::new(Sum::default()));
    let take = || next.lock().expect("the list").next();
    let work = || {
        while let Some(path) = take() {
            let ran = inspect(&home, path);
            sum.lock().expect("the sum").add(path, &ran);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let sum = sum.into_inner().expect("the sum");
    let Sum { documents, operations, imported, .. } = &sum;
    eprintln!(
        "{documents} documents, {operations} operations, {imported} imported; skipped:\n{}",
        sum.reasons()
    );
    assert!(sum.wrong.is_empty(), "{}\n{}", sum.wrong.join("\n"), sum.reasons());
    sum
}

/// The report on a document. Where the document does not say where its API is, its user does.
fn inspect(home: &TestDir, path: &Path) -> CommandOutput {
    let file = path.display().to_string();
    let ran = home.run(["openapi", "inspect", &file, "--json"]);
    if ran.code == 0 && ran.json()["skipped"].to_string().contains("set baseUrl") {
        return home.run(["openapi", "inspect", &file, "--json", "--base-url", "https://api.example.com"]);
    }
    ran
}

#[test]
fn rst_3_the_api_of_github_imports() {
    let sum = check(&documents("GitHub"));
    assert!(sum.operations >= 1_200, "{}", sum.operations);
}

#[test]
fn rst_3_the_api_of_kubernetes_imports() {
    let sum = check(&documents("Kubernetes"));
    assert!(sum.operations >= 700, "{}", sum.operations);
}

#[test]
fn rst_3_small_documents_with_every_hard_feature_import() {
    let mut paths = documents("ReadMe examples");
    // Pieces of documents lie among them.
    let is_whole = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a document");
        ["\"openapi\"", "\"swagger\"", "openapi:", "swagger:"].iter().any(|key| text.contains(key))
    };
    paths.retain(is_whole);
    // Some of them show every style of parameters that there is, and those styles are refused.
    let shows_styles = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        ["style", "cookies", "extreme"].iter().any(|what| name.starts_with(&format!("parameters-{what}")))
    };
    let (styles, others): (Vec<_>, Vec<_>) = paths.into_iter().partition(shows_styles);
    let sum = check(&others);
    assert!(sum.documents >= 100, "{}", sum.documents);
    let sum = import(&styles);
    let is_refusal = |reason: &String| {
        reason.ends_with("goes into a cookie, which is not supported")
            || reason.contains(": the style ") && reason.ends_with(" is not supported")
    };
    assert!(!sum.skipped.is_empty() && sum.skipped.keys().all(is_refusal), "{}", sum.reasons());
    check(&documents("Scalar Galaxy"));
}

#[test]
fn heavy_rst_3_documents_of_hundreds_of_apis_import() {
    let sum = check(&documents("APIs.guru"));
    assert!(sum.documents >= 90 && sum.operations >= 10_000, "{} {}", sum.documents, sum.operations);
}

/// All of it as tools of a running Gantry: none is put aside because its schema cannot be used.
#[test]
fn heavy_rst_3_the_tools_of_github_can_be_used() {
    let file = installed("specs").join("node_modules/@octokit/openapi/generated/api.github.com.json");
    let home = TestDir::new().config(&json!({ "openapiSpecs": { "github": { "spec": file } } }).to_string());
    let ran = home.run(["tools", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let listing = ran.json();
    let tools: Vec<&Value> = listing
        .as_array()
        .expect("tools")
        .iter()
        .filter(|tool| tool["provider"]["id"] == "openapi:github")
        .collect();
    assert!(tools.len() > 1_200, "{}", tools.len());
    let bad: Vec<_> = tools.iter().filter(|tool| tool["status"] != "ready").collect();
    assert!(bad.is_empty(), "{} tools, such as {}", bad.len(), bad[0]);
    let repository = tools.iter().find(|tool| tool["name"] == "rest__github_repos_get").expect("repos/get");
    let schema = Schema::compile(&repository["inputSchema"]).expect("a schema");
    assert!(
        schema.check(&json!({ "owner": "a", "repo": "b" })).is_ok()
            && schema.check(&json!({ "owner": "a" })).is_err()
    );
}

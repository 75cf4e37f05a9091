//! Reads the events of `go test -json`.

use super::{Failure, MESSAGE_BYTES, Tally};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Tests whose output is kept until they end.
const OPEN_TESTS: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    package: Option<String>,
    import_path: Option<String>,
    test: Option<String>,
    output: Option<String>,
}

/// A test of a package; the package itself has no name.
type Key = (String, Option<String>);

/// What the events say; none if there are none.
pub(super) fn parse(text: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    let mut said: BTreeMap<Key, String> = BTreeMap::new();
    let mut ended: Vec<(Key, Event)> = Vec::new();
    // Tests that hold others, and packages in which a test failed.
    let mut parents: BTreeSet<(String, String)> = BTreeSet::new();
    let mut blamed: BTreeSet<String> = BTreeSet::new();
    for event in events(text) {
        let package = event.package.clone().or_else(|| event.import_path.clone()).unwrap_or_default();
        let key = (package.clone(), event.test.clone());
        match event.action.as_str() {
            "output" | "build-output" => {
                let known = said.contains_key(&key) || said.len() < OPEN_TESTS;
                let text = event.output.as_deref().unwrap_or_default();
                if known && said.get(&key).is_none_or(|said| said.len() < MESSAGE_BYTES) && !is_frame(text) {
                    said.entry(key).or_default().push_str(text);
                }
            }
            "pass" | "fail" | "skip" | "build-fail" => {
                if let Some((parent, _)) = event.test.as_deref().and_then(|test| test.rsplit_once('/')) {
                    parents.insert((package.clone(), parent.to_owned()));
                }
                if event.action == "fail" && event.test.is_some() || event.action == "build-fail" {
                    blamed.insert(package);
                }
                ended.push((key, event));
            }
            _ => {}
        }
    }
    for ((package, test), event) in &ended {
        let is_parent = test.as_ref().is_some_and(|test| parents.contains(&(package.clone(), test.clone())));
        match (event.action.as_str(), test) {
            ("pass", Some(_)) if !is_parent => tally.count([1, 0, 0]),
            ("skip", Some(_)) => tally.count([0, 0, 1]),
            ("fail", Some(_)) if is_parent => {}
            ("fail", None) if blamed.contains(package) => {}
            ("fail" | "build-fail", _) => {
                tally.count([0, 1, 0]);
                tally.note(|| {
                    let message = said.get(&(package.clone(), test.clone())).cloned().unwrap_or_default();
                    let place = place(&message);
                    let name = test.clone().unwrap_or_else(|| package.clone());
                    Failure { name, message, ..Failure::default() }.at(place.as_deref())
                });
            }
            _ => {}
        }
    }
    (!ended.is_empty()).then_some(tally)
}

/// What the tests and the compiler said, as `go test` would have printed it.
pub(super) fn said(text: &str) -> String {
    let mut said = String::new();
    for line in text.lines() {
        match serde_json::from_str::<Event>(line) {
            Ok(event) => said.push_str(event.output.as_deref().unwrap_or_default()),
            Err(_) => {
                said.push_str(line);
                said.push('\n');
            }
        }
    }
    said
}

fn events(text: &str) -> impl Iterator<Item = Event> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Whether a line only says that a test begins or ends.
fn is_frame(line: &str) -> bool {
    ["=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- ", "FAIL\n", "FAIL\t", "exit status"]
        .iter()
        .any(|frame| line.trim_start().starts_with(frame))
}

/// The first `file.go:12` in a message.
fn place(message: &str) -> Option<String> {
    message.lines().find_map(|line| {
        let (file, rest) = line.trim().split_once(".go:")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        (!number.is_empty() && !file.contains(' ')).then(|| format!("{file}.go:{number}"))
    })
}

//! The documentation: its commands work by copy and paste, its links lead somewhere.

#![cfg(test)]

use gantry_testkit::TestDir;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What stands right before a block whose commands are run here.
const MARK: &str = "<!-- tested -->";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("the README")
}

/// The fenced blocks of a page: the line before each that is not empty, its language, its text.
fn blocks(page: &str) -> Vec<(String, String, String)> {
    let mut blocks = Vec::new();
    let mut before = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        match line.strip_prefix("```") {
            Some(language) => {
                let text: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
                blocks.push((std::mem::take(&mut before), language.trim().to_owned(), text.join("\n")));
            }
            None if line.trim().is_empty() => {}
            None => before = line.trim().to_owned(),
        }
    }
    blocks
}

/// The commands of a block, one per line; a line that ends in a backslash goes on in the next.
fn commands(block: &str) -> Vec<String> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// Runs a command line in the folder of a home, with nothing in its environment but the program on the PATH.
fn shell(home: &TestDir, line: &str) -> Output {
    let folder = home.executable().parent().expect("a folder").to_owned();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a PATH"));
    Command::new("sh")
        .args(["-c", line])
        .current_dir(home.path())
        .env_clear()
        .env("PATH", &path)
        .output()
        .expect("sh starts")
}

/// A printed text without what differs from run to run: ids, numbers, times, and the widths of columns.
fn shape(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let pieces = word.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
        pieces
            .map(|piece| match piece.rfind(|c: char| c.is_ascii_digit()) {
                Some(_) => format!("0{}", piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric())),
                None => piece.to_owned(),
            })
            .collect::<String>()
    };
    text.lines().map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn apr_6_the_session_in_the_readme_prints_what_the_readme_shows() {
    let readme = readme();
    let session =
        blocks(&readme).into_iter().find(|(before, language, _)| before == MARK && language == "console");
    let (_, _, text) = session.expect("a session");
    let home = TestDir::new();
    for part in text.trim_start_matches("$ ").split("\n$ ") {
        let (command, shown) = part.split_once('\n').expect("a command and what it prints");
        // The end of an id names it, and every run has another id.
        let line = command.strip_prefix("gantry approvals approve ").map_or(command.to_owned(), |_| {
            let id = home.run(["approvals", "--json"]).json()[0]["id"].as_str().expect("an id").to_owned();
            format!("gantry approvals approve {}", id.split_at(id.len() - 6).1)
        });
        let output = shell(&home, &format!("{line} 2>&1"));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(shape(&printed), shape(shown), "{line}\n{printed}");
    }
}

#[test]
fn the_first_minute_of_the_readme_works_by_copy_and_paste() {
    let readme = readme();
    let tested: Vec<_> = blocks(&readme)
        .into_iter()
        .filter(|(before, language, _)| before == MARK && language == "sh")
        .collect();
    assert!(!tested.is_empty(), "no ```sh block of README.md is marked with {MARK}");
    for (_, _, block) in tested {
        let home = TestDir::new();
        for line in commands(&block) {
            let output = shell(&home, &line);
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{line}\n{out}\n{err}");
            assert!(!out.is_empty(), "{line} shows nothing\n{err}");
            assert!(!err.contains("panicked"), "{line}\n{err}");
        }
    }
}

#[test]
fn the_configuration_of_the_readme_does_what_the_readme_says() {
    let readme = readme();
    let example = blocks(&readme)
        .into_iter()
        .find(|(_, language, text)| language == "yaml" && text.contains("agents:"));
    let (_, _, text) = example.expect("an example of a configuration");
    let home = TestDir::new().config(&text);
    home.write(".env", "KEY=1\n");
    home.write("README.md", "hello");
    let tools = home.run(["tools", "--agent", "reader", "--json"]).json();
    let names: Vec<_> = tools.as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["list_directory", "read_file"]);
    let denied = home.call("read_file", &json!({ "path": ".env" }));
    assert_eq!(denied["error"]["code"], "PERMISSION_DENIED", "{denied}");
    assert_eq!(home.call("read_file", &json!({ "path": "README.md" }))["ok"], true);
}

/// The row that a test is named after: `CAL-6` of `cal_6_…`.
fn row_of(test: &str) -> Option<String> {
    let (area, rest) = test.split_once('_')?;
    let (number, _) = rest.split_once('_')?;
    let is_row = area.len() == 3 && !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_row.then(|| format!("{}-{number}", area.to_ascii_uppercase()))
}

/// The rows that end-to-end tests are named after.
fn tested_rows() -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    let mut folders = vec![root().join("crates/gantry/tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).expect("a test file");
                rows.extend(text.split("fn ").skip(1).filter_map(row_of));
            }
        }
    }
    rows
}

#[test]
fn the_page_of_requirements_knows_which_rows_have_tests() {
    let page = fs::read_to_string(root().join("docs/requirements.md")).expect("the page");
    let tested = tested_rows();
    let mut listed = BTreeSet::new();
    for line in page.lines() {
        let [_, row, _, status, _] = line.split('|').map(str::trim).collect::<Vec<_>>()[..] else { continue };
        if row_of(&format!("{}_", row.replace('-', "_").to_ascii_lowercase())).is_none() {
            continue;
        }
        // Conformance is a step of `cargo xtask test`, and not a test with this name.
        let is_there = status.starts_with("there") || status.starts_with("partly");
        assert_eq!(is_there, tested.contains(row) || row == "SRV-6", "{row} is {status:?}");
        listed.insert(row.to_owned());
    }
    let unlisted: Vec<_> = tested.difference(&listed).collect();
    assert!(unlisted.is_empty(), "tests are named after rows that the page does not have: {unlisted:?}");
}

/// A file of a crate, as ARCHITECTURE.md writes it: `core/policy.rs` is `crates/gantry-core/src/policy.rs`.
fn source(named: &str) -> PathBuf {
    let (name, file) = named.split_once('/').expect("a crate and a file");
    let name = if name == "gantry" { name.to_owned() } else { format!("gantry-{name}") };
    root().join("crates").join(name).join("src").join(file)
}

#[test]
fn every_function_that_the_map_of_questions_names_is_in_its_file() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| …")).collect();
    assert!(rows.len() >= 20, "the table of questions is not found");
    for row in rows {
        let named: Vec<_> = row.split('`').skip(1).step_by(2).collect();
        let is_file =
            |name: &&str| name.contains('/') && Path::new(name).extension().is_some_and(|end| end == "rs");
        let text: String = named
            .iter()
            .copied()
            .filter(is_file)
            .map(|file| fs::read_to_string(source(file)).unwrap_or_else(|error| panic!("{file}: {error}")))
            .collect();
        for item in row.rsplit('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2) {
            let name = item.rsplit("::").next().unwrap_or(item);
            let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let defines = |kind: &&str| text.split(&format!("{kind} {name}")).skip(1).any(ends);
            let is_there = ["fn", "struct", "enum"].iter().any(defines);
            assert!(is_there, "{item} is not in the files of this row:\n{row}");
        }
    }
}

/// Every page that people read.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = fs::read_dir(root())
        .expect("the repository")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(end) if end == "md" => pages.push(path),
                _ => {}
            }
        }
    }
    pages
}

/// The targets of the links in a page, code left out.
fn links(page: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
        }
        if code {
            continue;
        }
        // Every second part is between backticks.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
        for part in prose.split("](").skip(1) {
            targets.extend(part.split([')', ' ']).next().map(str::to_owned));
        }
    }
    targets
}

#[test]
fn every_link_to_a_file_leads_somewhere() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page");
        for target in links(&text) {
            let file = target.split('#').next().unwrap_or_default();
            if target.contains(':') || file.is_empty() {
                continue;
            }
            checked += 1;
            if !page.parent().expect("a folder").join(file).exists() {
                broken.push(format!("{}: {target}", page.strip_prefix(root()).expect("inside").display()));
            }
        }
    }
    assert!(checked > 0, "there are no links, or they are not found");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

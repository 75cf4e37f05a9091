//! The table "Where is …?" of ARCHITECTURE.md names files and functions that exist.

use std::fs;
use std::path::{Path, PathBuf};

/// The text of each code span.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The file that a path of the table stands for: `runtime/pipeline.rs` is in `crates/gantry-runtime/src`.
fn file(root: &Path, path: &str) -> PathBuf {
    let (name, rest) = path.split_once('/').unwrap_or((path, ""));
    let folder = if name == "gantry" { name.to_owned() } else { format!("gantry-{name}") };
    root.join("crates").join(folder).join("src").join(rest)
}

/// Whether a source declares a function or type of this name.
fn declares(source: &str, name: &str) -> bool {
    let name = name.rsplit("::").next().unwrap_or(name);
    ["fn", "struct", "enum", "trait", "const", "type"].iter().any(|keyword| {
        let declaration = format!("{keyword} {name}");
        source.match_indices(&declaration).any(|(start, found)| {
            let next = source.get(start + found.len()..).and_then(|rest| rest.chars().next());
            !next.is_some_and(|next| next.is_alphanumeric() || next == '_')
        })
    })
}

#[test]
fn the_table_of_places_names_files_and_functions_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the page");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| … ")).collect();
    assert!(rows.len() >= 20, "only {} rows", rows.len());
    let mut missing = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [question, files, names] = cells[..] else { panic!("a row has three cells: {row}") };
        let mut source = String::new();
        for path in code(files).into_iter().filter(|span| span.ends_with(".rs")) {
            match fs::read_to_string(file(root, path)) {
                Ok(text) => source += &text,
                Err(_) => missing.push(format!("{question}: no file {path}")),
            }
        }
        let unknown = code(names).into_iter().filter(|name| !declares(&source, name));
        missing.extend(unknown.map(|name| format!("{question}: no {name} in these files")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

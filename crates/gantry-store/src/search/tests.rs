//! The index by itself: what it takes in, what it finds, and what it does about damage.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn document(path: &str, symbols: &str, body: &str) -> Document {
    Document {
        path: path.into(),
        stamp: Stamp { size: 1, modified_ns: 2, changed_ns: 3, inode: 4 },
        names: path.replace(['/', '.'], " "),
        symbols: symbols.into(),
        body: body.into(),
    }
}

fn terms(words: &str) -> Vec<Term> {
    words.split(' ').map(|word| Term { word: word.into(), percent: 100 }).collect()
}

fn found(index: &SearchIndex, words: &str) -> Vec<String> {
    let hits = index.rank(&terms(words), 10, |_| true).unwrap();
    hits.into_iter().map(|hit| hit.path).collect()
}

fn index(dir: &TempDir) -> SearchIndex {
    SearchIndex::open(&dir.path().join("data/search.db")).unwrap()
}

#[test]
fn what_is_taken_in_is_found_until_it_is_gone() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    index.apply(&[document("a.rs", "", "red green"), document("b.rs", "", "green blue")], &[]).unwrap();
    assert_eq!(found(&index, "red"), ["a.rs"]);
    assert_eq!(found(&index, "green").len(), 2);
    assert_eq!(found(&index, "blue green").first().unwrap(), "b.rs");
    index.apply(&[document("a.rs", "", "yellow")], &["b.rs".into(), "never.rs".into()]).unwrap();
    assert!(found(&index, "red green blue").is_empty());
    assert_eq!(found(&index, "yellow"), ["a.rs"]);
    let stamps = index.stamps().unwrap();
    assert_eq!(stamps, [("a.rs".to_owned(), document("", "", "").stamp)]);
    index.compact().unwrap();
    assert_eq!(found(&index, "yellow"), ["a.rs"]);
}

#[test]
fn a_definition_counts_more_than_a_mention_and_paths_can_be_left_out() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    let mut all =
        vec![document("uses.rs", "", "parse parse parse other"), document("defines.rs", "parse", "parse")];
    all.extend((0..20).map(|n| document(&format!("{n}.rs"), "", "filler")));
    index.apply(&all, &[]).unwrap();
    assert_eq!(found(&index, "parse"), ["defines.rs", "uses.rs"]);
    let hits = index.rank(&terms("parse"), 10, |path| path != "defines.rs").unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].path, "uses.rs");
    assert_eq!(index.path(hits[0].id).unwrap().as_deref(), Some("uses.rs"));
    assert_eq!(index.rank(&terms("filler"), 3, |_| true).unwrap().len(), 3);
}

#[test]
fn a_word_that_every_file_has_does_not_hide_a_rare_one() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    let mut all: Vec<Document> = (0..13_000).map(|n| document(&format!("{n}"), "", "common")).collect();
    all.push(document("wanted", "", "common rare"));
    index.apply(&all, &[]).unwrap();
    assert_eq!(found(&index, "common rare"), ["wanted"]);
    assert_eq!(found(&index, "common").len(), 10, "common words alone still find something");
    assert_eq!(found(&index, "common absent").len(), 10);
}

#[test]
fn words_of_the_query_language_are_only_words() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    index.apply(&[document("a", "", "near and not or")], &[]).unwrap();
    for word in ["NEAR", "AND", "NOT", "OR", "a\"b", "\"", "*", "and\" OR \"x"] {
        index.rank(&[Term { word: word.into(), percent: 100 }], 10, |_| true).unwrap();
    }
    assert_eq!(found(&index, "and"), ["a"]);
}

#[test]
fn a_word_that_no_file_has_finds_longer_ones() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    index.apply(&[document("a", "", "authenticate"), document("b", "", "auto")], &[]).unwrap();
    assert_eq!(found(&index, "auth"), ["a"]);
    assert!(found(&index, "aut").is_empty());
}

#[test]
fn the_file_is_only_for_its_owner() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    index.apply(&[document("a", "", "x")], &[]).unwrap();
    for entry in std::fs::read_dir(dir.path().join("data")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[test]
fn a_damaged_index_and_one_of_another_version_are_made_anew() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("data/search.db");
    drop(index(&dir));
    std::fs::write(&path, "this is no database at all, but it is long enough to look at".repeat(100))
        .unwrap();
    let fresh = index(&dir);
    assert!(fresh.stamps().unwrap().is_empty());
    fresh.apply(&[document("a", "", "x")], &[]).unwrap();
    fresh.writer().pragma_update(None, "user_version", 77).unwrap();
    drop(fresh);
    assert!(index(&dir).stamps().unwrap().is_empty());
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("other.db");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(matches!(SearchIndex::open(&path), Err(Error::Foreign { .. })));
    assert!(path.exists());
}

#[test]
fn vectors_are_of_one_model_and_go_with_their_file() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    index.apply(&[document("a", "", "x"), document("b", "", "y"), document("binary", "", "")], &[]).unwrap();
    let missing = index.without_vector("m", 10).unwrap();
    assert_eq!(missing.iter().map(|(_, path)| path.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let (a, b) = (missing[0].0, missing[1].0);
    let never = Edition { id: 999, ..a };
    index.put_vectors("m", &[(a, vec![1.0, 0.5]), (b, vec![0.0, 2.0]), (never, vec![1.0, 1.0])]).unwrap();
    let vectors = index.vectors("m").unwrap();
    assert_eq!(vectors, Vectors { dimensions: 2, ids: vec![a.id, b.id], flat: vec![1.0, 0.5, 0.0, 2.0] });
    assert_eq!(index.without_vector("m", 10).unwrap(), []);
    assert_eq!(index.without_vector("other", 1).unwrap().len(), 1);
    // A file that changed has no vector any more.
    index.apply(&[document("a", "", "z")], &["b".into()]).unwrap();
    assert_eq!(index.vectors("m").unwrap(), Vectors::default());
    assert_eq!(index.without_vector("m", 10).unwrap(), [(a, "a".to_owned())]);
}

#[test]
fn a_vector_of_what_a_file_said_before_is_not_kept() {
    let dir = TempDir::new().unwrap();
    let index = index(&dir);
    index.apply(&[document("a", "", "old"), document("b", "", "same")], &[]).unwrap();
    let sent: Vec<Edition> =
        index.without_vector("m", 10).unwrap().into_iter().map(|(file, _)| file).collect();
    // The model has not answered yet.
    let mut changed = document("a", "", "new");
    changed.stamp.modified_ns += 1;
    index.apply(&[changed], &[]).unwrap();
    let answered: Vec<_> = sent.iter().map(|file| (*file, vec![1.0])).collect();
    index.put_vectors("m", &answered).unwrap();
    assert_eq!(index.vectors("m").unwrap().ids, [sent[1].id]);
    let missing = index.without_vector("m", 10).unwrap();
    assert_eq!(missing.len(), 1, "it is read again");
    index.put_vectors("m", &[(missing[0].0, vec![2.0])]).unwrap();
    assert_eq!(index.vectors("m").unwrap().flat, [2.0, 1.0]);
}

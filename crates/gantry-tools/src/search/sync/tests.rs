//! What the index keeps of folders that could not be looked into.

use super::*;
use crate::workspace::Fenced;
use std::fs;
use tempfile::TempDir;

struct Bench {
    dir: TempDir,
    within: Within,
    index: SearchIndex,
    known: Mutex<Known>,
}

impl Bench {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        let within = Within::open(&dir.path().join("ws"), Fenced::default()).unwrap();
        let index = SearchIndex::open(&dir.path().join("index.db")).unwrap();
        Self { dir, within, index, known: Mutex::default() }
    }

    fn put(&self, path: &str) {
        let path = self.dir.path().join("ws").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "words").unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.dir.path().join("ws").join(path)).unwrap();
    }

    /// A round that looks at so many names and no more.
    fn sync(&self, names: usize) -> Synced {
        let mut start = Start::find(&self.within, &Way::parse(".").unwrap()).unwrap();
        start.names = names;
        let intake = Intake { known: &self.known, stop: &CancellationToken::new() };
        sync_from(start, &Reach::from(&self.within).unwrap(), &self.index, &intake).unwrap()
    }

    fn indexed(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.index.stamps().unwrap().into_iter().map(|(path, _)| path).collect();
        paths.sort();
        paths
    }
}

#[test]
fn what_could_not_be_looked_at_is_not_gone() {
    let bench = Bench::new();
    for path in ["a.rs", "b.rs", "d/e.rs", "d/f/g.rs"] {
        bench.put(path);
    }
    assert_eq!(bench.sync(100).unseen, 0);
    assert_eq!(bench.indexed(), ["a.rs", "b.rs", "d/e.rs", "d/f/g.rs"]);
    bench.remove("b.rs");
    bench.remove("d/e.rs");
    // The names of the root, and none of the folder in it.
    let synced = bench.sync(1);
    assert_eq!(synced, Synced { changed: true, full: false, unseen: 1 });
    assert_eq!(bench.indexed(), ["a.rs", "d/e.rs", "d/f/g.rs"], "what was seen to be gone is forgotten");
    assert_eq!(bench.sync(100).unseen, 0);
    assert_eq!(bench.indexed(), ["a.rs", "d/f/g.rs"]);
}

#[test]
fn folders_beyond_those_that_are_remembered_may_be_anywhere() {
    let mut unseen = Unseen::default();
    unseen.add(b"a/");
    unseen.add(b"\xff/");
    assert_eq!((unseen.count, unseen.has("a/x"), unseen.has("ab/x")), (2, true, false));
    for number in 0..UNSEEN {
        unseen.add(format!("{number}/").as_bytes());
    }
    assert!(unseen.paths.len() == UNSEEN && unseen.has("ab/x"));
}

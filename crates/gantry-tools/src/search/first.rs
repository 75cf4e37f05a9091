//! The first matches by path and line, however many threads find them and in whichever order.
//!
//! Once enough are known, files that come after the last of them cannot matter and are not opened any more. So a search
//! for something common ends early, and still always gives the same answer.

use super::answer::Match;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};

/// A bounded collection.
#[derive(Debug)]
pub(super) struct First {
    enough: usize,
    kept: Mutex<Kept>,
    /// The path after which nothing matters.
    last: RwLock<Option<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Kept {
    files: BTreeMap<Vec<u8>, Vec<Match>>,
    n_matches: usize,
}

impl First {
    /// One that is content with so many matches.
    pub(super) fn new(enough: usize) -> Self {
        Self { enough, kept: Mutex::default(), last: RwLock::default() }
    }

    /// How many matches of one file can matter.
    pub(super) fn enough(&self) -> usize {
        self.enough
    }

    /// Whether matches at this path, or below it if it ends in a slash, can matter.
    pub(super) fn wants(&self, path: &[u8]) -> bool {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_none_or(|last| path <= last.as_slice())
    }

    /// Takes the matches of a file, in their order.
    pub(super) fn add(&self, path: &[u8], matches: Vec<Match>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.n_matches += matches.len();
        kept.files.insert(path.to_owned(), matches);
        while let Some(last) = kept.files.last_entry() {
            let n_last = last.get().len();
            if kept.n_matches - n_last < self.enough {
                break;
            }
            kept.files.pop_last();
            kept.n_matches -= n_last;
        }
        if kept.n_matches >= self.enough {
            let last = kept.files.last_key_value().map(|(path, _)| path.clone());
            *self.last.write().unwrap_or_else(PoisonError::into_inner) = last;
        }
    }

    /// All that were kept, in order: at least the first `enough`, if there are so many.
    pub(super) fn into_matches(self) -> Vec<Match> {
        let kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        kept.files.into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(path: &str, n: usize) -> Vec<Match> {
        (1..=n).map(|line| Match { path: path.into(), line: line as u64, ..Match::default() }).collect()
    }

    proptest! {
        #[test]
        fn whatever_the_order_the_first_are_the_same(
            files in proptest::collection::btree_map("[a-c/]{1,4}", 0usize..5, 0..20),
            seed in any::<u64>(),
            enough in 1usize..10,
        ) {
            let mut expected: Vec<Match> = files.iter().flat_map(|(path, n)| found(path, *n)).collect();
            expected.truncate(enough);
            let mut order: Vec<_> = files.iter().collect();
            order.sort_by_key(|(path, _)| path.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)));
            let first = First::new(enough);
            for (path, n) in order {
                if *n > 0 && first.wants(path.as_bytes()) {
                    first.add(path.as_bytes(), found(path, *n));
                }
            }
            let mut got = first.into_matches();
            got.truncate(enough);
            prop_assert_eq!(got, expected);
        }
    }
}

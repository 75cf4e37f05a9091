//! Numbers that look random and are the same in every run.

/// Numbers that follow from a seed (SplitMix64), so that a run can be repeated.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// A number below this one.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// An index of a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("an index")
    }

    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.index(all.len())]
    }

    /// Numbers of their own for another thread.
    pub fn another(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }
}

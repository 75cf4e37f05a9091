//! Budgets: the sum of all charges never exceeds the limit, even if many calls are charged at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A limit shared by all calls of a session.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    /// Invariant: never above `limit`.
    charged: AtomicU64,
    exceeded: AtomicBool,
}

/// The budget has no room for an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    pub wanted: u64,
    /// The free amount at that moment.
    pub left: u64,
    pub limit: u64,
}

impl Budget {
    pub fn new(limit: u64) -> Self {
        Self { limit, charged: 0.into(), exceeded: false.into() }
    }

    /// Charges an amount.
    ///
    /// # Errors
    /// The amount does not fit and is not charged; the budget counts as exceeded from then on.
    pub fn charge(&self, amount: u64) -> Result<(), Exceeded> {
        let Self { limit, charged, exceeded } = self;
        let fits = |charged: u64| charged.checked_add(amount).filter(|sum| sum <= limit);
        match charged.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits) {
            Ok(_) => Ok(()),
            Err(charged) => {
                exceeded.store(true, Ordering::Release);
                Err(Exceeded { wanted: amount, left: limit.saturating_sub(charged), limit: *limit })
            }
        }
    }

    /// Whether an amount was ever refused.
    pub fn was_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_budget_is_never_overdrawn_and_charges_what_fits(amounts in prop::collection::vec(0u64..60, 0..60)) {
            let (budget, mut spent) = (Budget::new(100), 0);
            for wanted in amounts {
                let exceeded = Exceeded { wanted, left: 100 - spent, limit: 100 };
                let expected = if spent + wanted <= 100 { Ok(()) } else { Err(exceeded) };
                prop_assert_eq!(budget.charge(wanted), expected);
                spent += expected.map_or(0, |()| wanted);
            }
        }
    }

    #[test]
    fn parallel_charges_never_overshoot() {
        let budget = Budget::new(1000);
        let charged: u64 = std::thread::scope(|scope| {
            let take = || (0..1000).filter(|_| budget.charge(3).is_ok()).map(|_| 3u64).sum::<u64>();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(charged, 999);
        assert!(budget.was_exceeded());
        assert!(budget.charge(u64::MAX).is_err());
        assert!(budget.charge(1).is_ok());
    }
}

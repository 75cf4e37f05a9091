//! Budgets: reserve, then commit or release. The sum of what was committed and what is reserved never exceeds the
//! limit, however many calls run at once, and every reservation settles exactly once, even when its holder panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit shared by all calls of a session.
#[derive(Debug, Clone)]
pub struct Budget(Arc<State>);

#[derive(Debug)]
struct State {
    limit: u64,
    /// Committed plus reserved. Invariant: never above `limit`.
    taken: AtomicU64,
    committed: AtomicU64,
    exceeded: std::sync::atomic::AtomicBool,
}

/// A reserved part of a budget. Dropping it without [`Reservation::commit`] gives it back.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is released"]
pub struct Reservation {
    state: Arc<State>,
    amount: u64,
}

/// The budget has no room for an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} more would exceed the budget: {left} of {limit} are left")]
pub struct Exceeded {
    pub wanted: u64,
    /// The free amount at that moment.
    pub left: u64,
    pub limit: u64,
}

impl Budget {
    pub fn new(limit: u64) -> Self {
        let (taken, committed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(State { limit, taken, committed, exceeded: false.into() }))
    }

    /// Reserves an amount.
    ///
    /// # Errors
    /// The amount does not fit; the budget is flagged as exceeded from then on.
    pub fn reserve(&self, amount: u64) -> Result<Reservation, Exceeded> {
        let state = &self.0;
        let fits = |taken: u64| taken.checked_add(amount).filter(|sum| *sum <= state.limit);
        match state.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits) {
            Ok(_) => Ok(Reservation { state: Arc::clone(state), amount }),
            Err(taken) => {
                state.exceeded.store(true, Ordering::Release);
                Err(Exceeded { wanted: amount, left: state.limit.saturating_sub(taken), limit: state.limit })
            }
        }
    }

    pub fn committed(&self) -> u64 {
        self.0.committed.load(Ordering::Acquire)
    }

    /// The amount that can still be reserved.
    pub fn left(&self) -> u64 {
        self.0.limit.saturating_sub(self.0.taken.load(Ordering::Acquire))
    }

    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Whether an amount was ever refused.
    pub fn was_exceeded(&self) -> bool {
        self.0.exceeded.load(Ordering::Acquire)
    }
}

impl Reservation {
    /// Spends the used amount, at most the reserved one, and returns the rest.
    pub fn commit(mut self, used: u64) {
        let used = used.min(self.amount);
        self.state.committed.fetch_add(used, Ordering::AcqRel);
        // `drop` returns the rest.
        self.amount = self.amount.saturating_sub(used);
    }

    pub fn amount(&self) -> u64 {
        self.amount
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.state.taken.fetch_sub(self.amount, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Reserve(u64),
        Commit(usize, u64),
        Release(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0u64..60).prop_map(Step::Reserve),
            (0usize..8, 0u64..80).prop_map(|(n, used)| Step::Commit(n, used)),
            (0usize..8).prop_map(Step::Release),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn a_budget_is_never_overdrawn_and_always_settles(steps in steps()) {
            let budget = Budget::new(100);
            let mut held: Vec<Reservation> = Vec::new();
            let mut spent = 0;
            for step in steps {
                match step {
                    Step::Reserve(amount) => held.extend(budget.reserve(amount).ok()),
                    Step::Commit(n, used) if n < held.len() => {
                        let reservation = held.remove(n);
                        spent += used.min(reservation.amount());
                        reservation.commit(used);
                    }
                    Step::Release(n) if n < held.len() => drop(held.remove(n)),
                    Step::Commit(..) | Step::Release(_) => {}
                }
                let reserved: u64 = held.iter().map(Reservation::amount).sum();
                prop_assert_eq!(budget.left() + budget.committed() + reserved, 100);
                prop_assert_eq!(budget.committed(), spent);
            }
            held.clear();
            prop_assert_eq!(budget.left(), 100 - spent);
        }
    }

    #[test]
    fn parallel_reservations_never_overshoot() {
        let budget = Budget::new(1000);
        let granted: u64 = std::thread::scope(|scope| {
            let take = || {
                (0..1000)
                    .filter_map(|_| budget.reserve(3).ok())
                    .map(|r| {
                        let n = r.amount();
                        r.commit(n);
                        n
                    })
                    .sum::<u64>()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(granted, 999);
        assert_eq!(budget.committed(), 999);
        assert!(budget.was_exceeded());
        assert!(budget.reserve(u64::MAX).is_err());
    }
}

//! Sums per session, gathered over a group and written once, so that a call costs no update of its own.

use crate::error::Error;
use crate::ledger::Outcome;
use crate::sql::{Connection, Record as _, ToValue as _, record, statements};
use gantry_core::State;
use gantry_core::id::SessionId;
use std::collections::HashMap;

/// Limit: the most that one call adds to a sum, so that no sum can overflow.
const ADDEND_MAX: u64 = 1 << 40;

statements! {
    ADD = "UPDATE sessions SET last_us = CASE WHEN last_us < $1 THEN $1 ELSE last_us END, calls = calls + $2,
         failed = failed + $3, refused = refused + $4, unknown = unknown + $5, latency_us = latency_us + $6,
         characters_in = characters_in + $7, characters_out = characters_out + $8, cost_micros = cost_micros + $9
         WHERE id = $10";
}

/// The changes of a group to the sums of its sessions.
#[derive(Debug, Default)]
pub(crate) struct SessionTotals {
    sessions: HashMap<SessionId, Delta>,
}

#[derive(Debug, Default)]
struct Delta {
    last_us: i64,
    calls: i64,
    failed: i64,
    refused: i64,
    unknown: i64,
    latency_us: i64,
    characters_in: i64,
    characters_out: i64,
    cost_micros: i64,
}

record!(Delta: last_us, calls, failed, refused, unknown, latency_us, characters_in, characters_out, cost_micros);

impl SessionTotals {
    /// The session was used at that time.
    pub(crate) fn touch(&mut self, session: SessionId, at: i64) {
        self.delta(session, at);
    }

    /// A call of the session went from `before` to its outcome.
    pub(crate) fn count(&mut self, session: SessionId, before: Option<State>, outcome: &Outcome) {
        let delta = self.delta(session, outcome.finished_us);
        // A person has found out how an unknown call ended: it is counted anew, not twice.
        if before == Some(State::OutcomeUnknown) {
            delta.count(State::OutcomeUnknown, -1);
        }
        // Order: a call that waits is counted when it has ended, with what it cost until then.
        if !outcome.state.is_over() {
            return;
        }
        delta.count(outcome.state, 1);
        delta.latency_us = delta.latency_us.saturating_add(addend(outcome.latency_us));
        delta.characters_in = delta.characters_in.saturating_add(addend(outcome.characters_in));
        delta.characters_out = delta.characters_out.saturating_add(addend(outcome.characters_out));
        delta.cost_micros = delta.cost_micros.saturating_add(addend(outcome.cost_micros));
    }

    /// Adds the sums to the rows of the sessions; a session that was never opened has none, and is left out.
    pub(crate) fn write(self, conn: &Connection) -> Result<(), Error> {
        for (id, delta) in self.sessions {
            let mut values = delta.values();
            values.push(id.value());
            conn.execute(ADD, &values)?;
        }
        Ok(())
    }

    fn delta(&mut self, session: SessionId, at: i64) -> &mut Delta {
        let delta = self.sessions.entry(session).or_default();
        delta.last_us = delta.last_us.max(at);
        delta
    }
}

impl Delta {
    fn count(&mut self, state: State, n: i64) {
        match state {
            State::Executing
            | State::PendingApproval
            | State::ScheduledForExecution
            | State::ApprovedReady
            | State::CompletedSuccess => {}
            State::CompletedFailure => self.failed += n,
            State::Refused | State::RejectedByUser | State::RejectedByTimeout | State::CancelledBySystem => {
                self.failed += n;
                self.refused += n;
            }
            State::OutcomeUnknown => {
                self.failed += n;
                self.unknown += n;
            }
        }
        self.calls += n;
    }
}

fn addend(value: u64) -> i64 {
    i64::try_from(value.min(ADDEND_MAX)).unwrap_or_default()
}

//! The states of a call, and the transitions between them.
//!
//! A call without approval and delay is recorded once, with its final state. A held call has a row of its own, the
//! approval, whose state changes with it. Every writer asks [`State::may_become`] first, inside the transaction that writes
//! the new state, so of two deciders at once one is refused.

words! {
    /// The state of a call. The words are those of the API.
    pub enum State {
        /// It waits for a person.
        PendingApproval = "PENDING_APPROVAL",
        /// It waits for its time.
        ScheduledForExecution = "SCHEDULED_FOR_EXECUTION",
        /// A person said yes, and it is about to begin.
        ApprovedReady = "APPROVED_READY",
        /// A person said no.
        RejectedByUser = "REJECTED_BY_USER",
        /// No person decided in time.
        RejectedByTimeout = "REJECTED_BY_TIMEOUT",
        /// Its intent is durable and it may be having its effect.
        Executing = "EXECUTING",
        /// It ended well.
        CompletedSuccess = "COMPLETED_SUCCESS",
        /// It ended badly.
        CompletedFailure = "COMPLETED_FAILURE",
        /// It was withdrawn, or its precondition has changed.
        CancelledBySystem = "CANCELLED_BY_SYSTEM",
        /// The process that ran it ended first, so it is not known whether it had its effect.
        OutcomeUnknown = "OUTCOME_UNKNOWN",
        /// It was not run: a policy, the arguments or a limit was against it.
        Refused = "REFUSED",
    }
}

impl State {
    /// Whether a call in this state may be in that one next.
    ///
    /// The one way back is from approved to pending: the call has changed before it ran, so a person is asked again. The
    /// call goes back; the approval that was given is over.
    pub fn may_become(self, next: Self) -> bool {
        use State::{
            ApprovedReady, CancelledBySystem, CompletedFailure, CompletedSuccess, Executing, OutcomeUnknown,
            PendingApproval, Refused, RejectedByTimeout, RejectedByUser, ScheduledForExecution,
        };
        match self {
            PendingApproval => matches!(
                next,
                ApprovedReady
                    | ScheduledForExecution
                    | RejectedByUser
                    | RejectedByTimeout
                    | CancelledBySystem
            ),
            ScheduledForExecution => matches!(
                next,
                ApprovedReady | Executing | PendingApproval | RejectedByUser | CancelledBySystem
            ),
            ApprovedReady => matches!(next, Executing | PendingApproval | CancelledBySystem),
            Executing => matches!(next, CompletedSuccess | CompletedFailure | OutcomeUnknown),
            // A person may find out the outcome.
            OutcomeUnknown => matches!(next, CompletedSuccess | CompletedFailure),
            RejectedByUser | RejectedByTimeout | CompletedSuccess | CompletedFailure | CancelledBySystem
            | Refused => false,
        }
    }

    /// Whether the state is final. An unknown outcome is not: a person may still find out the outcome.
    pub fn is_settled(self) -> bool {
        self.is_over() && self != Self::OutcomeUnknown
    }

    /// Whether Gantry has finished with the call.
    pub fn is_over(self) -> bool {
        !self.is_waiting() && self != Self::Executing
    }

    /// Whether the call has not begun and may still do so.
    pub fn is_waiting(self) -> bool {
        matches!(self, Self::PendingApproval | Self::ScheduledForExecution | Self::ApprovedReady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apr_4_every_step_that_is_not_listed_is_refused() {
        let legal = [
            (
                "PENDING_APPROVAL",
                "APPROVED_READY SCHEDULED_FOR_EXECUTION REJECTED_BY_USER REJECTED_BY_TIMEOUT CANCELLED_BY_SYSTEM",
            ),
            (
                "SCHEDULED_FOR_EXECUTION",
                "APPROVED_READY EXECUTING PENDING_APPROVAL REJECTED_BY_USER CANCELLED_BY_SYSTEM",
            ),
            ("APPROVED_READY", "EXECUTING PENDING_APPROVAL CANCELLED_BY_SYSTEM"),
            ("REJECTED_BY_USER", ""),
            ("REJECTED_BY_TIMEOUT", ""),
            ("EXECUTING", "COMPLETED_SUCCESS COMPLETED_FAILURE OUTCOME_UNKNOWN"),
            ("COMPLETED_SUCCESS", ""),
            ("COMPLETED_FAILURE", ""),
            ("CANCELLED_BY_SYSTEM", ""),
            ("OUTCOME_UNKNOWN", "COMPLETED_SUCCESS COMPLETED_FAILURE"),
            ("REFUSED", ""),
        ];
        assert_eq!(legal.len(), State::ALL.len());
        for (from, to) in legal {
            let from = State::parse(from).unwrap();
            for next in State::ALL {
                let expected = to.split_whitespace().any(|word| word == next.as_str());
                assert_eq!(from.may_become(*next), expected, "{from} to {next}");
            }
        }
    }

    #[test]
    fn a_state_that_goes_nowhere_is_settled_and_no_other() {
        for state in State::ALL {
            let goes_on = State::ALL.iter().any(|next| state.may_become(*next));
            assert_eq!(state.is_settled(), !goes_on, "{state}");
            assert_eq!(State::parse(state.as_str()), Some(*state));
        }
    }
}

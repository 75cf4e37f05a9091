//! `gantry approvals watch`: prints requests and their changes; on a terminal, asks about each request.

use super::decide::{DecisionResult, decide, print_conflict};
use super::prompt::{self, PromptResult, prompt};
use super::terminal::{Input, Typed};
use super::{WAITING, format};
use crate::client::{ApiClient, CommandContext, Scope, query};
use crate::exit::Outcome;
use crate::term;
use gantry_core::State;
use gantry_core::id::ApprovalId;
use gantry_server::model::{Approval, List};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How often waiting requests are read again.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Seconds that the server waits for a request while there is none. It does not report calls that wait for their
/// scheduled time; they are seen after this time.
const LONG_POLL_SECONDS: &str = "5";

/// How many requests of each state are watched.
const MAX_REQUESTS: u32 = 1000;

pub(super) async fn run(context: CommandContext, project: Option<&str>) -> anyhow::Result<Outcome> {
    let json = context.json;
    let asks = !json && term::is_interactive();
    // A call that is approved here may have to run in this process, with the MCP servers of its project.
    let scope = if asks { Scope::All } else { Scope::LedgerOnly };
    context
        .with_client(scope, async |client| {
            let (states, unasked) = (HashMap::new(), VecDeque::new());
            let mut watch = Watch { client, project, json, states, unasked, input: Input::new()? };
            watch.run(asks).await?;
            Ok(Outcome::Success)
        })
        .await
}

struct Watch<'a> {
    client: &'a ApiClient,
    project: Option<&'a str>,
    json: bool,
    /// The last printed state of each request that is not over.
    states: HashMap<ApprovalId, State>,
    /// The requests that the user has not been asked about.
    unasked: VecDeque<ApprovalId>,
    input: Input,
}

impl Watch<'_> {
    async fn run(&mut self, asks: bool) -> anyhow::Result<()> {
        self.refresh().await?;
        if self.states.is_empty() && !self.json {
            term::eprint("No calls wait now. Ctrl-C ends.");
        }
        loop {
            while asks && let Some(id) = self.unasked.pop_front() {
                if !self.ask(id).await? {
                    return Ok(());
                }
                self.refresh().await?;
            }
            let is_idle = self.states.is_empty();
            tokio::select! {
                changed = next_refresh(self.client, self.project, is_idle) => changed?,
                () = self.input.interrupted() => return Ok(()),
            }
            self.refresh().await?;
            // The reader of standard output has closed it.
            if term::stdout_error().is_some() {
                return Ok(());
            }
        }
    }

    /// Reads the waiting requests and prints what has changed.
    async fn refresh(&mut self) -> anyhow::Result<()> {
        let mut waiting = Vec::new();
        for state in WAITING {
            waiting.extend(super::page(self.client, Some(state), self.project, MAX_REQUESTS).await?.items);
        }
        waiting.sort_by_key(|approval| approval.created_at);
        let is_waiting = |id: &ApprovalId| waiting.iter().any(|approval| approval.id == *id);
        let gone: Vec<ApprovalId> = self.states.keys().filter(|id| !is_waiting(id)).copied().collect();
        for id in gone {
            self.note(&super::get(self.client, id).await?);
        }
        waiting.iter().for_each(|approval| self.note(approval));
        Ok(())
    }

    /// Prints the state of a request if it is new.
    fn note(&mut self, approval: &Approval) {
        let before = self.states.insert(approval.id, approval.state);
        if approval.state.is_over() {
            self.states.remove(&approval.id);
        }
        if before == Some(approval.state) {
            return;
        }
        if approval.state == State::PendingApproval {
            self.unasked.push_back(approval.id);
        }
        if self.json {
            term::print(&approval.to_json());
        } else {
            term::print(&line(approval));
        }
    }

    /// Asks about one request; false if the user wants to stop.
    async fn ask(&mut self, id: ApprovalId) -> anyhow::Result<bool> {
        let approval = super::get(self.client, id).await?;
        if approval.state != State::PendingApproval {
            return Ok(true);
        }
        loop {
            match prompt(self.client, &approval, &mut self.input, prompt::SKIP).await? {
                PromptResult::Decided(decision) => match decide(self.client, id, &decision).await? {
                    DecisionResult::Accepted(approval) => {
                        self.note(&approval);
                        return Ok(true);
                    }
                    DecisionResult::Conflict(response) => {
                        print_conflict(&response, false)?;
                        return Ok(true);
                    }
                    // Nothing was decided, so the user is asked again.
                    DecisionResult::Invalid(response) => drop(print_conflict(&response, false)?),
                },
                PromptResult::Skipped => return Ok(true),
                PromptResult::Interrupted => return Ok(false),
                PromptResult::Over(approval) => {
                    self.note(&approval);
                    // What the user types now was for this request; it must not decide the next one.
                    term::prompt("It needs no decision any more. Press Enter to go on.");
                    return Ok(matches!(self.input.next().await?, Typed::Line(_)));
                }
            }
        }
    }
}

/// Returns when the requests should be read again.
async fn next_refresh(client: &ApiClient, project: Option<&str>, is_idle: bool) -> anyhow::Result<()> {
    if !is_idle {
        tokio::time::sleep(POLL_INTERVAL).await;
        return Ok(());
    }
    let state = Some(State::PendingApproval.as_str());
    let wait = ("wait", Some(LONG_POLL_SECONDS));
    let query = query(&[("state", state), ("project", project), ("limit", Some("1")), wait]);
    client.get::<List<Approval>>(&format!("/api/v1/approvals{query}")).await.map(drop)
}

/// The state of a request on one line.
fn line(approval: &Approval) -> String {
    let is_pending = approval.state == State::PendingApproval;
    let text = if is_pending {
        format!("by {}: {}", format::requester(approval), approval.reason)
    } else if approval.state == State::ScheduledForExecution {
        format::due(approval)
    } else {
        let message = || approval.message.as_deref().unwrap_or_default().to_owned();
        format::decision(approval).unwrap_or_else(message)
    };
    let decided = approval.decided_at.filter(|_| !is_pending);
    let time = term::timestamp(decided.unwrap_or(approval.created_at));
    let state = format::state(approval.state);
    let line = format!("{time}  {state:9}  {}  {}  {text}", approval.id, approval.tool);
    term::sanitize(line.trim_end())
}

//! `gantry approvals watch`: prints requests and their changes; on a terminal, asks about each request.

use super::prompt::{self, Answer};
use super::terminal::{Input, Typed};
use super::{WAITING, format};
use crate::client::ApiClient;
use crate::exit::Outcome;
use crate::term;
use gantry_core::State;
use gantry_core::id::ApprovalId;
use gantry_server::model::Approval;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The server's limit of one page, and how many pages of each state are watched: more than may wait at once.
const PAGE_LIMIT: u32 = 1000;
const MAX_PAGES: usize = 20;

pub(super) async fn run(client: &ApiClient, project: Option<&str>, asks: bool) -> anyhow::Result<Outcome> {
    let (states, unasked) = (HashMap::new(), VecDeque::new());
    let mut watch = Watch { client, project, states, unasked, input: Input::new()? };
    watch.run(asks).await?;
    Ok(Outcome::Success)
}

struct Watch<'a> {
    client: &'a ApiClient,
    project: Option<&'a str>,
    /// The last printed state of each request that is not over.
    states: HashMap<ApprovalId, State>,
    unasked: VecDeque<ApprovalId>,
    input: Input,
}

impl Watch<'_> {
    async fn run(&mut self, asks: bool) -> anyhow::Result<()> {
        self.refresh().await?;
        if self.states.is_empty() && !self.client.json {
            term::eprint("No calls wait now. Ctrl-C ends.");
        }
        // A reader of standard output that has closed it ends the watch too.
        while term::stdout_error().is_none() {
            while asks && let Some(id) = self.unasked.pop_front() {
                if !self.ask(id).await? {
                    return Ok(());
                }
                self.refresh().await?;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => self.refresh().await?,
                () = self.input.interrupted() => return Ok(()),
            }
        }
        Ok(())
    }

    /// Reads the waiting requests and prints what has changed.
    async fn refresh(&mut self) -> anyhow::Result<()> {
        let mut waiting = Vec::new();
        for state in WAITING {
            let mut cursor: Option<String> = None;
            for _ in 0..MAX_PAGES {
                let place = (PAGE_LIMIT, cursor.as_deref());
                let page = super::page(self.client, Some(state), self.project, place).await?;
                waiting.extend(page.items);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
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
        if self.client.json {
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
        match prompt::ask(self.client, &approval, &mut self.input, prompt::SKIP).await? {
            Answer::Decided(approval) => self.note(&approval),
            Answer::Refused(_) | Answer::Skipped => {}
            Answer::Interrupted => return Ok(false),
            Answer::Over(approval) => {
                self.note(&approval);
                // What the user types now was for this request; it must not decide the next one.
                term::prompt("It needs no decision any more. Press Enter to go on.");
                return Ok(matches!(self.input.next().await?, Typed::Line(_)));
            }
        }
        Ok(true)
    }
}

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

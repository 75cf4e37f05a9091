//! `/api/v1/events`: events as server-sent events: first the recent ones, then new ones.

use super::query::{Query, Sender};
use crate::Identity;
use crate::error::ApiError;
use crate::model::{EventQuery, Missed};
use crate::wait_slots::WaitSlot;
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use gantry_core::{Role, raw};
use gantry_runtime::approvals::Decider;
use gantry_runtime::event::{Event, EventKind};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

pub(super) async fn stream(
    sender: Sender,
    Query(query): Query<EventQuery>,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, ApiError> {
    let project = sender.listed_project(query.project.as_deref())?;
    let types = query.types.map(|types| types.split(',').map(|word| word.trim().to_owned()).collect());
    let (recent, live) = sender.app.projects.services().events.subscribe();
    let wait_until_invalid = Arc::clone(&sender.app.keys).wait_until_invalid(sender.key);
    let slot = query.follow.then(|| sender.app.slots.acquire(&sender)).transpose()?;
    let stop = sender.app.stop.clone().cancelled_owned();
    let filter = Filter { decider: sender.approver(""), who: sender.identity, project, types, _slot: slot };
    let recent: Vec<_> = recent.iter().filter_map(|event| filter.to_sse(event)).map(Ok).collect();
    let live = query.follow.then(|| follow(live, filter).take_until(stop));
    let stream = stream::iter(recent).chain(stream::iter(live).flatten()).take_until(wait_until_invalid);
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

fn follow(
    live: broadcast::Receiver<Arc<Event>>,
    filter: Filter,
) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    stream::unfold((live, filter), |(mut live, filter)| async move {
        loop {
            let sent = match live.recv().await {
                Ok(event) => filter.to_sse(&event),
                // A reader that is too slow is sent the number of events that it missed.
                Err(RecvError::Lagged(missed)) => {
                    let message = format!("{missed} events were not read in time and are missing");
                    let data = serde_json::to_string(&Missed { missed, message }).unwrap_or_default();
                    Some(sse::Event::default().event("missed").data(data))
                }
                Err(RecvError::Closed) => return None,
            };
            if let Some(sent) = sent {
                return Some((Ok(sent), (live, filter)));
            }
        }
    })
}

/// Which events a reader gets: all, or its own and those about calls that it may decide; of every project and of the process,
/// or of one project.
struct Filter {
    who: Identity,
    decider: Option<Decider>,
    project: Option<Arc<str>>,
    types: Option<Vec<String>>,
    /// Held as long as the stream is open.
    _slot: Option<WaitSlot>,
}

impl Filter {
    /// The event, if the reader gets it.
    fn to_sse(&self, event: &Event) -> Option<sse::Event> {
        if !self.shows(event) {
            return None;
        }
        let data = serde_json::to_string(event).unwrap_or_default();
        if let Some(types) = &self.types {
            let kind = raw::string_member(&data, "type")?;
            types.iter().find(|wanted| **wanted == *kind)?;
        }
        Some(sse::Event::default().id(event.seq.to_string()).event("gantry").data(data))
    }

    fn shows(&self, event: &Event) -> bool {
        let is_selected = self.project.is_none() || event.project == self.project;
        // Events of the whole process are not for keys of some projects.
        let reached = match &event.project {
            Some(project) => self.who.can_access_project(project),
            None => self.who.projects.is_none(),
        };
        let is_own = event.principal.as_ref() == Some(&self.who.principal);
        is_selected && reached && (self.who.role == Role::Admin || is_own || self.may_decide(event))
    }

    fn may_decide(&self, event: &Event) -> bool {
        let EventKind::Approval(approval) = &event.kind else { return false };
        self.decider.as_ref().is_some_and(|decider| decider.sees(approval))
    }
}

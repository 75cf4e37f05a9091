//! `/api/v1/events`: what happens, as server-sent events: first what happened lately, then what happens from now on.

use super::query::{self, Query};
use crate::error::ApiError;
use crate::{App, Identity};
use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt as _};
use gantry_runtime::event::Event;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Whether to stay for what happens next.
    #[serde(default = "yes")]
    follow: bool,
    project: Option<String>,
}

fn yes() -> bool {
    true
}

pub(super) async fn stream(
    State(app): State<App>,
    who: Identity,
    Query(wanted): Query<Wanted>,
) -> Result<Sse<impl Stream<Item = Result<sse::Event, Infallible>>>, ApiError> {
    let project = wanted.project.as_deref().map(|name| query::known_project(&app, Some(name))).transpose()?;
    let (recent, live) = app.projects.events().subscribe();
    let filter = Filter { own: who.sees(), project };
    let recent: Vec<_> =
        recent.into_iter().filter(|event| filter.shows(event)).map(|event| told(&event)).collect();
    let live = wanted.follow.then(|| following(live, filter, app.stop.clone()));
    let stream = stream::iter(recent).chain(stream::iter(live).flatten());
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

fn following(
    live: broadcast::Receiver<Arc<Event>>,
    filter: Filter,
    stop: CancellationToken,
) -> impl Stream<Item = Result<sse::Event, Infallible>> {
    stream::unfold((live, filter, stop), |(mut live, filter, stop)| async move {
        loop {
            let received = tokio::select! {
                () = stop.cancelled() => return None,
                received = live.recv() => received,
            };
            match received {
                Ok(event) if filter.shows(&event) => return Some((told(&event), (live, filter, stop))),
                Ok(_) => {}
                // A reader that is too slow is told what it missed, and goes on.
                Err(RecvError::Lagged(missed)) => {
                    let notice =
                        sse::Event::default().event("missed").data(format!("{{\"missed\":{missed}}}"));
                    return Some((Ok(notice), (live, filter, stop)));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

fn told(event: &Event) -> Result<sse::Event, Infallible> {
    let data = serde_json::to_string(event).unwrap_or_default();
    Ok(sse::Event::default().id(event.seq.to_string()).event("gantry").data(data))
}

/// Which events a reader is told: all, or those about itself; of every project and of the process, or of one project.
struct Filter {
    own: Option<Arc<str>>,
    project: Option<Arc<str>>,
}

impl Filter {
    fn shows(&self, event: &Event) -> bool {
        let is_meant = self.project.is_none() || event.project == self.project;
        is_meant && (self.own.is_none() || event.principal == self.own)
    }
}

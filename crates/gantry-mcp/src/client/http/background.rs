//! The background stream of a legacy server: messages that belong to no request.

use super::HttpSession;
use super::response::Opened;
use crate::client::limits::{BACKGROUND_FAILURES, MESSAGE_BYTES, POLL, REOPEN, STREAM_WAS_WELL};
use gantry_egress::{HttpResponse, SseParser};
use std::sync::Arc;
use tokio::time::{Instant, sleep};

/// Keeps the stream open until the connection ends or the server turns out to have none.
pub(super) async fn run(session: Arc<HttpSession>) {
    tokio::select! {
        biased;
        _ = session.dispatcher.ended() => {}
        () = keep_open(&session) => {}
    }
}

async fn keep_open(session: &HttpSession) {
    let server = &session.dispatcher.target.name;
    let mut parser = SseParser::new(MESSAGE_BYTES);
    let mut pause = REOPEN[0];
    let (mut failures, mut refusals) = (0, 0);
    let mut opened_before = false;
    loop {
        let opened = Instant::now();
        match session.open_stream(parser.last_id()).await {
            Ok(Opened::Stream(response)) => {
                (failures, refusals) = (0, 0);
                if opened_before && parser.last_id().is_none() {
                    // Messages in between are lost.
                    session.dispatcher.notify_lists_changed();
                }
                opened_before = true;
                read(session, response, &mut parser).await;
            }
            Ok(Opened::Nothing) => return,
            Ok(Opened::NotNow(status)) => {
                refusals += 1;
                if refusals == 1 {
                    tracing::warn!(%server, %status, "the server refuses its background stream, it is asked again");
                } else {
                    tracing::debug!(%server, %status, refusals, "the server refuses its background stream");
                }
            }
            Err(error) => {
                failures += 1;
                if !error.was_sent() && failures >= BACKGROUND_FAILURES {
                    return session.dispatcher.end(error.to_string());
                }
            }
        }
        if opened.elapsed() >= STREAM_WAS_WELL {
            pause = REOPEN[0];
        }
        sleep(parser.retry().unwrap_or(pause).clamp(POLL[0], REOPEN[1])).await;
        pause = (pause * 2).min(REOPEN[1]);
        parser.restart();
    }
}

async fn read(session: &HttpSession, mut response: HttpResponse, parser: &mut SseParser) {
    while let Ok(Some(chunk)) = response.chunk().await {
        if let Err(failure) = session.take(&chunk, parser, None) {
            tracing::warn!(server = %session.dispatcher.target.name, %failure, "the background stream is opened anew");
            return;
        }
        tokio::task::coop::consume_budget().await;
    }
}

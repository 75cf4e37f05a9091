//! The background stream of the older era: what a server says that belongs to no request.

use super::{Side, answer::Opened};
use crate::client::{
    dispatcher::Outbox,
    limits::{BACKGROUND_FAILURES, MESSAGE_BYTES, POLL, REOPEN, STREAM_WAS_WELL},
};
use gantry_egress::{HttpResponse, SseParser};
use std::sync::Arc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Keeps the stream open until it is told to stop or the server turns out to have none.
pub(super) async fn run(side: Arc<Side>, outbox: Arc<dyn Outbox>, stop: CancellationToken) {
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = keep_open(&side, &outbox) => {}
    }
}

async fn keep_open(side: &Side, outbox: &Arc<dyn Outbox>) {
    let server = &side.dispatcher.target.name;
    let mut parser = SseParser::new(MESSAGE_BYTES);
    let mut pause = REOPEN[0];
    let (mut failures, mut refusals) = (0, 0);
    let mut opened_before = false;
    loop {
        let opened = Instant::now();
        match side.open_stream(parser.last_id()).await {
            Ok(Opened::Stream(response)) => {
                (failures, refusals) = (0, 0);
                if opened_before && parser.last_id().is_none() {
                    // What was said in between is lost.
                    side.dispatcher.look_anew();
                }
                opened_before = true;
                read(side, response, &mut parser, outbox).await;
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
                    return side.dispatcher.end(error.to_string());
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

async fn read(side: &Side, mut response: HttpResponse, parser: &mut SseParser, outbox: &Arc<dyn Outbox>) {
    while let Ok(Some(chunk)) = response.chunk().await {
        if let Err(failure) = side.take(&chunk, parser, None, outbox) {
            tracing::warn!(server = %side.dispatcher.target.name, %failure, "the background stream is opened anew");
            return;
        }
        tokio::task::coop::consume_budget().await;
    }
}

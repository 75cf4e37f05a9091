//! Keeps one `subscriptions/listen` open, and changes what it listens to.

use super::{Wish, stream::Stream, too_many};
use crate::{
    client::{
        core::Core,
        dispatcher::lock,
        limits::{BACKGROUND_FAILURES, REOPEN, WATCHED},
        link::Trouble,
        types::Failure,
    },
    error::code,
};
use std::{collections::BTreeSet, mem, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

/// Hears what the server says and grants wishes, one after the other, for as long as it is polled.
pub(in crate::client) async fn run(core: Arc<Core>, mut wishes: mpsc::Receiver<Wish>) {
    let mut ear = Ear {
        core,
        open: None,
        again: Some(Instant::now()),
        pause: REOPEN[0],
        failures: 0,
        refused: false,
        missed: false,
    };
    loop {
        tokio::select! {
            biased;
            outcome = end_of(&mut ear.open) => ear.ended(outcome),
            () = at(ear.again) => ear.open_again().await,
            Some(wish) = wishes.recv() => ear.grant(wish).await,
        }
    }
}

struct Ear {
    core: Arc<Core>,
    open: Option<Stream>,
    /// When to try again to open a stream for all that is wanted.
    again: Option<Instant>,
    pause: Duration,
    failures: u32,
    /// The last try was refused.
    refused: bool,
    /// Something may have been said while nobody listened.
    missed: bool,
}

impl Ear {
    /// Opens a stream for the lists and these resources. The old one is let go when the new one is open, and stays when
    /// that fails.
    async fn open(&mut self, uris: &BTreeSet<String>) -> Result<(), Trouble> {
        let Some(params) = self.core.filter(uris) else {
            (self.open, self.again) = (None, None);
            return Ok(());
        };
        let mut stream = Stream::open(&self.core, params);
        let outcome = loop {
            tokio::select! {
                biased;
                _ = end_of(&mut self.open) => (self.open, self.missed) = (None, true),
                outcome = stream.acknowledged() => break outcome,
            }
        };
        match outcome {
            Some(Ok(_)) => Err(Failure::Lost("the server ended the subscription at once".into()).into()),
            Some(Err(trouble)) => Err(trouble),
            None => {
                (self.open, self.again) = (Some(stream), None);
                if mem::take(&mut self.missed) {
                    self.core.dispatcher().look_anew();
                }
                Ok(())
            }
        }
    }

    /// The stream came to its end.
    fn ended(&mut self, outcome: Result<String, Trouble>) {
        if self.open.take().is_some_and(|stream| stream.was_well()) {
            (self.pause, self.failures) = (REOPEN[0], 0);
        }
        self.missed = true;
        self.try_later(outcome.err());
    }

    async fn open_again(&mut self) {
        let uris = lock(&self.core.subscriptions.uris).clone();
        let Err(trouble) = self.open(&uris).await else {
            self.refused = false;
            return;
        };
        // One of the resources may be the reason; the lists can be heard of all the same.
        if is_refusal(&trouble) && self.open.is_none() && !uris.is_empty() {
            self.open(&BTreeSet::new()).await.unwrap_or_default();
        }
        self.try_later(Some(trouble));
    }

    /// Changes what is listened to. What the server does not take is not wanted any more.
    async fn grant(&mut self, wish: Wish) {
        let Wish { uri, on, reply } = wish;
        if on && reply.is_closed() {
            return;
        }
        let mut uris = lock(&self.core.subscriptions.uris).clone();
        let another = if on { uris.insert(uri) } else { uris.remove(&uri) };
        let outcome = if uris.len() > WATCHED {
            Err(too_many())
        } else if another || on && self.again.is_some() {
            self.open(&uris).await.map_err(Failure::from)
        } else {
            Ok(())
        };
        if outcome.is_ok() || !on {
            *lock(&self.core.subscriptions.uris) = uris;
        }
        if self.open.is_none() && self.again.is_none() && self.missed {
            self.again = Some(Instant::now() + self.pause);
        }
        let heard = reply.send(outcome).is_ok();
        tracing::trace!(heard, "a wish was looked at");
    }

    /// Decides whether and when to listen again.
    fn try_later(&mut self, trouble: Option<Trouble>) {
        let server = &self.core.dispatcher().target.name;
        let refused = trouble.as_ref().is_some_and(is_refusal);
        let known_before = mem::replace(&mut self.refused, refused) && refused;
        self.failures = if refused { 0 } else { self.failures + 1 };
        self.again = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(REOPEN[1]);
        match trouble.map(Failure::from) {
            Some(Failure::Answered(error)) if error.code == code::METHOD_NOT_FOUND => {
                tracing::warn!(%server, %error, "the server cannot be listened to");
                self.again = None;
            }
            Some(Failure::Unavailable(reason)) if self.failures >= BACKGROUND_FAILURES => {
                self.core.dispatcher().end(reason);
                self.again = None;
            }
            Some(failure) if refused && !known_before => {
                tracing::warn!(%server, %failure, "the server refuses to be listened to, it is asked again");
            }
            Some(failure) => tracing::debug!(%server, %failure, "listening begins anew"),
            None => tracing::debug!(%server, "the server ended a subscription"),
        }
    }
}

/// Whether the server is there and does not want to.
fn is_refusal(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Failure(failure) => matches!(failure, Failure::Answered(_)),
        Trouble::Status(refusal) => refusal.error.is_some() || refusal.status.is_client_error(),
    }
}

/// Waits for the end of a stream, if one is open. It has to be closed after that.
async fn end_of(open: &mut Option<Stream>) -> Result<String, Trouble> {
    match open {
        Some(stream) => stream.end().await,
        None => std::future::pending().await,
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

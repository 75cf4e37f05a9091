//! Requests that stand alone.

use super::{refuse, takes_events};
use crate::{
    ErrorObject,
    envelope::{Id, Request},
    exchange::Capabilities,
    server::{
        Body, EventStream, Handler, Live, Peer, Server, Step, Work,
        body::{Source, message},
        listen::{Listening, Wanted},
        live::Spoken,
        modern,
        params::Params,
        request::Task,
        start::ModernClient,
    },
};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl<H: Handler> Server<H> {
    pub(super) async fn post_modern(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        request: Request<'_>,
        params: &Params<'_>,
    ) -> Response<Body> {
        let work = match self.modern_step(identity, &request, params, Some(headers)) {
            Step::Answer(reply) => return reply.into(),
            Step::Run(work) => work,
        };
        let capabilities = Arc::new(params.declared_here());
        let session = match self.standing(identity, params, &capabilities).await {
            Ok(session) => session,
            Err(error) => return refuse(modern::status(&error), Some(work.id()), &error),
        };
        let job = match work {
            Work::Job(job) => job,
            Work::Listen(id, wanted) => return self.listen(headers, session, id, wanted).await,
        };
        if let Task::Call(call) = &job.task {
            let wanted = self.inner.handler.header_params(&session, &call.name);
            if let Err(error) = modern::check_arguments(headers, &wanted, call.arguments.as_deref()) {
                return refuse(StatusCode::BAD_REQUEST, Some(&job.id), &error);
            }
        }
        let client =
            ModernClient { identity, capabilities, number: self.number(), cancel: CancellationToken::new() };
        match self.modern_live(&session, job, &request.method, params, client) {
            Ok(live) => self.answer_live(headers, live).await,
            Err(reply) => reply.into(),
        }
    }

    async fn answer_live(&self, headers: &HeaderMap, mut live: Live<H>) -> Response<Body> {
        if !takes_events(headers) {
            return live.last().await.into();
        }
        match live.next().await {
            Spoken::Last(reply) => reply.into(),
            Spoken::Message(text, _) => {
                live.detach();
                EventStream::new(Events { first: Some(message(&text)), live: Some(live) }).into_response()
            }
        }
    }

    async fn standing(
        &self,
        identity: &H::Identity,
        params: &Params<'_>,
        capabilities: &Capabilities,
    ) -> Result<Arc<H::Session>, ErrorObject> {
        let version = crate::Version::MODERN;
        self.inner.handler.standing(Peer { identity, version, client: params.client(), capabilities }).await
    }

    async fn listen(
        &self,
        headers: &HeaderMap,
        session: Arc<H::Session>,
        id: Id<'static>,
        wanted: Wanted,
    ) -> Response<Body> {
        if !takes_events(headers) {
            let error = ErrorObject::invalid_request(
                "subscriptions/listen is answered with text/event-stream; accept it",
            );
            return refuse(StatusCode::NOT_ACCEPTABLE, Some(&id), &error);
        }
        let stop = self.inner.hang_up.clone();
        EventStream::new(Listening::begin(self.clone(), session, id, wanted, stop).await).into_response()
    }
}

impl Work {
    fn id(&self) -> &Id<'static> {
        match self {
            Self::Job(job) => &job.id,
            Self::Listen(id, _) => id,
        }
    }
}

/// The events of a request that speaks before its answer. Dropping them cancels it.
struct Events<H: Handler> {
    first: Option<Bytes>,
    live: Option<Live<H>>,
}

impl<H: Handler> Source for Events<H> {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        match self.live.as_mut()?.next().await {
            Spoken::Message(text, _) => Some(message(&text)),
            Spoken::Last(reply) => {
                self.live = None;
                Some(message(&reply.text))
            }
        }
    }
}

//! Requests without a session.

use super::{Accept, Answer};
use crate::ErrorObject;
use crate::envelope::Request;
use crate::server::body::{Source, message};
use crate::server::listen::{ListenRequest, Listening};
use crate::server::request::Operation;
use crate::server::request_task::{Next, RequestTask};
use crate::server::{Body, EventStream, Handler, Reply, Server, modern};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Server {
    pub(super) async fn post_modern(
        &self,
        headers: &HeaderMap,
        accept: Accept,
        handler: &Arc<dyn Handler>,
        request: Request<'_>,
    ) -> Answer {
        self.check_modern(&**handler, &request, Some(headers))?;
        if request.method == "subscriptions/listen" {
            return self.post_listen(accept, handler, &request).await;
        }
        let parsed = modern::parse(&request, &**handler)?;
        let refused = |error| modern::refuse(&request, &error);
        handler.join_session().await.map_err(refused)?;
        if let Operation::Call(call, _) = &parsed.operation {
            let wanted = handler.header_params(&call.tool).map_err(refused)?;
            let checked = modern::check_arguments(headers, &wanted, call.arguments.as_deref());
            checked.map_err(|error| Reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error))?;
        }
        let (number, cancel) = (self.client_number(), CancellationToken::new());
        Ok(respond(accept, self.start_modern(handler, number, parsed, &request, cancel)?).await)
    }

    async fn post_listen(&self, accept: Accept, handler: &Arc<dyn Handler>, request: &Request<'_>) -> Answer {
        let refused = |error| modern::refuse(request, &error);
        let listen = ListenRequest::read(&request.params, &request.id, &handler.features());
        let listen = listen.map_err(refused)?;
        handler.join_session().await.map_err(refused)?;
        if !accept.takes_events() {
            let error = ErrorObject::invalid_request(
                "subscriptions/listen is answered with text/event-stream; accept it",
            );
            return Err(Reply::error(StatusCode::NOT_ACCEPTABLE, Some(&request.id), &error));
        }
        let stop = self.inner.close_streams.clone();
        let (id, handler) = (request.id.clone().into_owned(), Arc::clone(handler));
        Ok(EventStream::new(Listening::begin(self, handler, id, listen, stop).await).into_response())
    }
}

async fn respond(accept: Accept, mut task: RequestTask) -> Response<Body> {
    if !accept.takes_events() {
        return task.response().await.delivered().await.into();
    }
    loop {
        match task.next().await {
            Next::Response(reply) => return reply.delivered().await.into(),
            Next::Message(text, _) => {
                // A client that does not read must not hold up the work that others wait for.
                task.detach();
                let events = TaskEvents { first: Some(message(&text)), task, reply: None, ended: false };
                return EventStream::new(events).into_response();
            }
            Next::Released => {}
        }
    }
}

/// The events of a request that sends messages before its response. Dropping them cancels it.
struct TaskEvents {
    first: Option<Bytes>,
    task: RequestTask,
    reply: Option<Reply>,
    ended: bool,
}

impl Source for TaskEvents {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while !self.ended {
            if let Some(reply) = &mut self.reply {
                if let Some(receipt) = &mut reply.receipt {
                    receipt.await;
                }
                self.ended = true;
                return self.reply.take().map(|reply| message(&reply.text));
            }
            match self.task.next().await {
                Next::Message(text, _) => return Some(message(&text)),
                Next::Released => {}
                Next::Response(reply) => self.reply = Some(reply),
            }
        }
        None
    }
}

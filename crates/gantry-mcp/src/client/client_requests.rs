//! Requests of a legacy server to a client (elicitation, sampling, roots): the client that gets them, and the answer
//! where no client does.

use super::dispatcher::Dispatcher;
use super::limits::MAX_CLIENT_REQUESTS;
use super::pending::{Recipient, RequestOwner};
use super::types::OfferedCapabilities;
use super::{message, meta};
use crate::error::code;
use crate::exchange::{ClientRequest, ClientRequestError, ClientResponse};
use crate::{ErrorObject, lock};
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio_util::sync::CancellationToken;

const CANCEL: &str = r#"{"action":"cancel"}"#;

impl OfferedCapabilities {
    pub(super) fn allows(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.elicitation,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}

impl Dispatcher {
    /// Answers a request of the server, at once or by a task of its own.
    pub(super) fn on_client_request(
        self: &Arc<Self>,
        id: &str,
        method: &str,
        params: &str,
        origin: Option<u64>,
    ) {
        let answer = |outcome| self.post(message::answer(id, &outcome));
        if method == "ping" {
            return answer(Ok("{}".into()));
        }
        let opened = self.find_client(method, params, origin).and_then(|owner| Ok((owner, self.open(id)?)));
        let (owner, cancelled) = match opened {
            Ok(opened) => opened,
            Err(error) => return answer(Err(error)),
        };
        let params = meta::client_request(params).into_owned();
        let request = ClientRequest { key: id.to_owned(), method: method.to_owned(), params };
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let (id, method) = (request.key.clone(), request.method.clone());
            let outcome = tokio::select! {
                biased;
                () = cancelled.cancelled() => None,
                outcome = ask(&owner, request) => Some(outcome),
                () = this.wait_until_request_ends(&owner, origin) => {
                    Some(without_response(&method, &ClientRequestError::Gone))
                }
            };
            lock(&this.client_requests).remove(&id);
            // A server that cancelled its request does not wait for an answer; every other server may wait for ever.
            if let Some(outcome) = outcome {
                this.post(message::answer(&id, &outcome));
            }
        });
    }

    /// Enters a request of the server. Returns the token with which the server cancels it.
    fn open(&self, id: &str) -> Result<CancellationToken, ErrorObject> {
        let mut requests = lock(&self.client_requests);
        if requests.len() >= MAX_CLIENT_REQUESTS {
            let message = "too many questions of this server are open; ask again when one is answered";
            return Err(ErrorObject::new(code::INTERNAL_ERROR, message));
        }
        match requests.entry(id.to_owned()) {
            Entry::Vacant(entry) => Ok(entry.insert(CancellationToken::new()).clone()),
            Entry::Occupied(_) => {
                let message = "a request with this id is open already";
                Err(ErrorObject::new(code::INVALID_REQUEST, message))
            }
        }
    }

    /// Returns when the answer cannot matter any more: the request that the server works on has ended, or, where the
    /// server does not say which one that is, every request of the session.
    async fn wait_until_request_ends(&self, owner: &RequestOwner, origin: Option<u64>) {
        if origin.is_some() {
            return owner.ended.cancelled().await;
        }
        let session = owner.client.session();
        loop {
            let ended = self.pending().end_of_any(session);
            let Some(ended) = ended else { return };
            ended.cancelled().await;
        }
    }

    /// The client that is asked; an error if that is not allowed, not possible or ambiguous.
    fn find_client(
        &self,
        method: &str,
        params: &str,
        origin: Option<u64>,
    ) -> Result<RequestOwner, ErrorObject> {
        let refused = |what: String| ErrorObject::new(code::METHOD_NOT_FOUND, what);
        if !self.takes_requests.load(Ordering::Relaxed) || !self.target.declared.allows(method) {
            return Err(refused(format!("{method} is not offered to this server")));
        }
        let Recipient::Client(owner) = self.recipient(origin) else {
            let what = "cannot be passed on: no request is under way, or it does not say for which it is and requests \
                        of several clients are, or may still run after they were withdrawn";
            return Err(ErrorObject::new(code::INVALID_REQUEST, format!("{method} {what}")));
        };
        if !owner.client.capabilities().can(method, params) {
            return Err(refused(format!("{method} is not supported by the client of this request")));
        }
        Ok(owner)
    }
}

async fn ask(owner: &RequestOwner, request: ClientRequest) -> ClientResponse {
    let method = request.method.clone();
    let responses = owner.client.ask(vec![request]).await;
    let response =
        responses.and_then(|responses| responses.into_iter().next().ok_or(ClientRequestError::Gone));
    response.unwrap_or_else(|why| without_response(&method, &why))
}

/// The answer to a server whose request has no response of a client.
pub(super) fn without_response(method: &str, why: &ClientRequestError) -> ClientResponse {
    match (method, why) {
        ("elicitation/create", ClientRequestError::Late | ClientRequestError::Gone) => Ok(CANCEL.to_owned()),
        (_, ClientRequestError::Unsupported(_)) => {
            Err(ErrorObject::new(code::METHOD_NOT_FOUND, why.to_string()))
        }
        (_, ClientRequestError::Late | ClientRequestError::Gone) => {
            Err(ErrorObject::new(code::INTERNAL_ERROR, why.to_string()))
        }
    }
}

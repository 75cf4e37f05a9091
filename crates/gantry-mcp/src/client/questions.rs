//! Requests of a server (only those of the older era send any): who is asked, and what is answered when nobody can be.

use super::{
    dispatcher::{Asker, Dispatcher, Outbox, Whose, lock},
    message, meta,
    types::Declared,
};
use crate::{
    ErrorObject,
    error::code,
    exchange::{ClientRequest, ClientRequestError, ClientResponse},
};
use std::sync::{Arc, atomic::Ordering};
use tokio_util::sync::CancellationToken;

const CANCEL: &str = r#"{"action":"cancel"}"#;

impl Declared {
    /// Whether servers may ask this at all.
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
    /// A request came. It is answered at once or by a task of its own.
    pub(super) fn asked(
        self: &Arc<Self>,
        id: &str,
        method: &str,
        params: &str,
        origin: Option<u64>,
        outbox: &Arc<dyn Outbox>,
    ) {
        let answer = |outcome| outbox.post(message::answer(id, &outcome));
        if method == "ping" {
            return answer(Ok("{}".into()));
        }
        let asker = match self.addressee(method, params, origin) {
            Ok(asker) => asker,
            Err(error) => return answer(Err(error)),
        };
        let Ok(slot) = Arc::clone(&self.questions).try_acquire_owned() else {
            let message = "too many questions of this server are open; ask again when one is answered";
            return answer(Err(ErrorObject::new(code::INTERNAL_ERROR, message)));
        };
        let withdrawn = CancellationToken::new();
        lock(&self.open_questions).insert(id.to_owned(), withdrawn.clone());
        let params = meta::question(params).into_owned();
        let question = ClientRequest { key: id.to_owned(), method: method.to_owned(), params };
        let (this, outbox) = (Arc::clone(self), Arc::clone(outbox));
        tokio::spawn(async move {
            let (id, method) = (question.key.clone(), question.method.clone());
            let outcome = tokio::select! {
                biased;
                () = withdrawn.cancelled() => None,
                outcome = ask(&asker, question) => Some(outcome),
                () = this.moot(&asker, origin) => Some(unanswered(&method, &ClientRequestError::Gone)),
            };
            lock(&this.open_questions).remove(&id);
            // Whoever withdrew a question does not wait for an answer; everybody else may do so for ever.
            if let Some(outcome) = outcome.filter(|_| !this.has_ended()) {
                outbox.deliver(message::answer(&id, &outcome)).await;
            }
            drop(slot);
        });
    }

    /// Returns when a question cannot matter any more: the request that it is for is over, or, where it does not say
    /// for which it is, every request of its session.
    async fn moot(&self, asker: &Asker, origin: Option<u64>) {
        if origin.is_some() {
            return asker.over.cancelled().await;
        }
        let session = asker.audience.session();
        while let Some(over) = self.end_of_one(session) {
            over.cancelled().await;
        }
    }

    /// Who is to be asked; an error if that is not allowed, not possible or not clear.
    fn addressee(&self, method: &str, params: &str, origin: Option<u64>) -> Result<Asker, ErrorObject> {
        let refused = |what: String| ErrorObject::new(code::METHOD_NOT_FOUND, what);
        if !self.may_ask.load(Ordering::Relaxed) || !self.target.declared.allows(method) {
            return Err(refused(format!("{method} is not offered to this server")));
        }
        let Whose::Client(asker) = self.whose(origin) else {
            let what = "cannot be passed on: no request is under way, or it does not say for which it is and requests \
                        of several clients are, or may still run after they were withdrawn";
            return Err(ErrorObject::new(code::INVALID_REQUEST, format!("{method} {what}")));
        };
        if !asker.audience.capabilities().can(method, params) {
            return Err(refused(format!("{method} is not supported by the client of this request")));
        }
        Ok(asker)
    }
}

async fn ask(asker: &Asker, question: ClientRequest) -> ClientResponse {
    let method = question.method.clone();
    match asker.audience.ask(vec![question]).await {
        Ok(answers) => {
            answers.into_iter().next().unwrap_or_else(|| unanswered(&method, &ClientRequestError::Gone))
        }
        Err(why) => unanswered(&method, &why),
    }
}

/// What a server is told when there is no answer.
pub(super) fn unanswered(method: &str, why: &ClientRequestError) -> ClientResponse {
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

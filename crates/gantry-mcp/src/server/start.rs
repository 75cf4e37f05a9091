//! From a request that was understood to one that is under way.

use super::{
    Handler, Inner, Reply, Server,
    caller::{Caller, Habits, Manner},
    lane::Lane,
    live::{Live, Ticket},
    modern,
    params::Params,
    park::{self, Redeemed},
    request::{Job, Note, Task},
    running::{Done, Outcome, Running, Subject},
};
use crate::{
    ErrorObject,
    error::code,
    exchange::{Capabilities, RequestContext},
};
use futures_util::FutureExt as _;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio_util::sync::CancellationToken;

/// Who sent a modern request.
pub(super) struct ModernClient<'a, I> {
    pub(super) identity: &'a I,
    pub(super) capabilities: Arc<Capabilities>,
    pub(super) number: u64,
    pub(super) cancel: CancellationToken,
}

impl<H: Handler> Server<H> {
    /// Starts a legacy job.
    pub(super) fn live(
        &self,
        lane: &Lane<H>,
        job: Job,
        caller: Arc<Caller>,
        cancel: CancellationToken,
    ) -> Live<H> {
        let Job { id, version, task, wishes: _ } = job;
        let habits = Some(Arc::clone(&lane.habits));
        let about = Subject { topic: task.topic(), version, capabilities: Arc::clone(&lane.capabilities) };
        let work = self.work(Arc::clone(&lane.session), task, habits, Arc::clone(&caller), cancel.clone());
        Live::new(self.clone(), id, Box::new(Running::new(Box::pin(work), caller, cancel, about)), None)
    }

    /// Starts a modern job, or takes up one that waits for what this request brings.
    pub(super) fn modern_live(
        &self,
        session: &Arc<H::Session>,
        job: Job,
        method: &str,
        params: &Params<'_>,
        client: ModernClient<'_, H::Identity>,
    ) -> Result<Live<H>, Reply> {
        let Job { id, version, task, mut wishes } = job;
        let may_park = task.may_park();
        let refused = |error: &ErrorObject| Reply::error(modern::status(error), Some(&id), error);
        let state = if may_park { params.state().map_err(|error| refused(&error))? } else { None };
        if may_park {
            wishes.responses = params.responses();
        }
        let ticket = may_park.then(|| Ticket {
            identity: client.identity.clone(),
            method: method.into(),
            params: params.text().into(),
        });
        let digest = || park::digest(method, params.text());
        let answers = wishes.responses.is_some();
        let state = state.or_else(|| {
            let last = answers.then(|| self.inner.parks.last(client.identity, &digest()));
            last.flatten().map(Into::into)
        });
        let Some(state) = state else {
            let manner = Manner::Modern { may_park };
            let caller =
                Arc::new(Caller::new(Arc::clone(&client.capabilities), client.number, manner, wishes));
            let about = Subject { topic: task.topic(), version, capabilities: client.capabilities };
            let work = self.work(Arc::clone(session), task, None, Arc::clone(&caller), client.cancel.clone());
            let running = Running::new(Box::pin(work), caller, client.cancel, about).cancel_on_drop();
            return Ok(Live::new(self.clone(), id, Box::new(running), ticket));
        };
        match self.inner.parks.redeem(client.identity, &digest(), &state, wishes) {
            Ok(Redeemed::Resumed(running)) => Ok(Live::new(self.clone(), id, running, ticket)),
            Ok(Redeemed::ClientRequestError(questions)) => {
                Err(Reply::ok(self.inner.about.questions(&id, &questions, &state)))
            }
            Err(error) => Err(refused(&error)),
        }
    }

    /// Does what a request asks. A handler that panics costs its own request and nothing else.
    fn work(
        &self,
        session: Arc<H::Session>,
        task: Task,
        habits: Option<Arc<Habits>>,
        audience: Arc<Caller>,
        cancel: CancellationToken,
    ) -> impl Future<Output = Outcome> + Send + 'static {
        let inner = Arc::clone(&self.inner);
        let turn = RequestContext { client: audience, cancel };
        let work = async move { inner.perform(&session, task, habits.as_deref(), turn).await };
        AssertUnwindSafe(work).catch_unwind().map(|outcome| {
            outcome.unwrap_or_else(|_panic| {
                tracing::error!("the handler of an MCP request panicked");
                Err(ErrorObject::new(code::INTERNAL_ERROR, "internal error; the call may have had an effect"))
            })
        })
    }
}

impl<H: Handler> Inner<H> {
    async fn perform(
        &self,
        session: &Arc<H::Session>,
        task: Task,
        habits: Option<&Habits>,
        turn: RequestContext,
    ) -> Outcome {
        let handler = &self.handler;
        match task {
            Task::List(kind, version) => handler.list(session, kind, version).await.map(Done::List),
            Task::Call(call) => handler.call_tool(session, call, turn).await.map(Done::Answer),
            Task::Ask(inquiry, note) => {
                let answer = handler.request(session, inquiry, turn).await?;
                if let (Some(habits), Some(note)) = (habits, note) {
                    note.keep(habits);
                }
                Ok(Done::Answer(answer))
            }
        }
    }
}

impl Note {
    /// Remembers what the handler has agreed to.
    fn keep(self, habits: &Habits) {
        match self {
            Self::Level(level) => habits.set_level(level),
            Self::Watch(uri) => habits.watch(&uri),
            Self::Unwatch(uri) => habits.unwatch(&uri),
        }
    }
}

//! Starts parsed requests, or resumes those that wait for input.

use super::{
    Reply, Server,
    connected_client::{ClientMode, ConnectedClient},
    handler::{ForwardRequest, Handler, Outcome, Session},
    modern,
    pending_input::{ParkKey, Resumed},
    request::{Operation, ParsedRequest},
    request_task::{RequestTask, RunningRequest},
    session::{LegacySession, ResponseMode},
};
use crate::{
    ErrorObject, Version,
    envelope::Request,
    error::code,
    exchange::{BoxFuture, RequestContext},
};
use futures_util::FutureExt as _;
use std::{panic::AssertUnwindSafe, sync::Arc};
use tokio_util::sync::CancellationToken;

/// The client and the session of a modern request.
pub(super) struct ModernClient<'a> {
    pub(super) handler: &'a Arc<dyn Handler>,
    pub(super) session: Arc<dyn Session>,
    /// Tells this client from all others.
    pub(super) number: u64,
    pub(super) cancel: CancellationToken,
}

impl Server {
    /// Starts a request of a legacy session.
    pub(super) fn start_legacy(
        &self,
        legacy: &Arc<LegacySession>,
        mode: ResponseMode,
        request: ParsedRequest,
        cancel: CancellationToken,
    ) -> RequestTask {
        let mode = match mode {
            ResponseMode::Stream => ClientMode::Legacy(Arc::clone(legacy)),
            ResponseMode::Single => ClientMode::ResponseOnly,
        };
        let ParsedRequest { id, version, operation, options } = request;
        let channel = ConnectedClient::new(Arc::clone(&legacy.capabilities), legacy.number, mode, options);
        let kind = operation.result_kind();
        let context = RequestContext { client: Arc::clone(&channel.0) as _, cancel: cancel.clone() };
        let session = Arc::clone(&legacy.session);
        let work = work(session, operation, version, Some(Arc::clone(legacy)), context);
        let running = RunningRequest::new(work, channel, cancel, kind, version);
        RequestTask { server: self.clone(), id, running: Some(Box::new(running)), park_key: None }
    }

    /// Starts a modern request, or resumes the one that waits for the input in this one.
    pub(super) fn start_modern(
        &self,
        client: ModernClient<'_>,
        parsed: ParsedRequest,
        request: &Request<'_>,
    ) -> Result<RequestTask, Reply> {
        let ParsedRequest { id, version, operation, mut options } = parsed;
        let may_ask_for_input = operation.may_ask_for_input();
        let mut park_key = None;
        if may_ask_for_input {
            let params = &request.params;
            let refused =
                |error: ErrorObject| Reply::error(modern::status(&error), Some(&request.id), &error);
            options.responses = params.input_responses.map(str::to_owned);
            let key = ParkKey::new(client.handler, &request.method, params.object_text());
            let inputs = &self.inner.pending_inputs;
            let mut state = params.state().map_err(refused)?;
            if state.is_none() && options.responses.is_some() {
                state = inputs.last_state(&key).map(Into::into);
            }
            if let Some(state) = state {
                return match inputs.resume(&key, &state, options).map_err(refused)? {
                    Resumed::Running(running) => Ok(RequestTask {
                        server: self.clone(),
                        id,
                        running: Some(running),
                        park_key: Some(key),
                    }),
                    Resumed::StillRequired(requests) => {
                        Err(Reply::ok(self.inner.writer.input_required(&id, &requests, &state)))
                    }
                };
            }
            park_key = Some(key);
        }
        let capabilities = Arc::new(request.params.request_capabilities());
        let mode = ClientMode::Modern { may_ask_for_input };
        let channel = ConnectedClient::new(capabilities, client.number, mode, options);
        let kind = operation.result_kind();
        let context = RequestContext { client: Arc::clone(&channel.0) as _, cancel: client.cancel.clone() };
        let work = work(client.session, operation, version, None, context);
        let running = RunningRequest::new(work, channel, client.cancel, kind, version);
        Ok(RequestTask { server: self.clone(), id, running: Some(Box::new(running)), park_key })
    }
}

/// Runs an operation. A handler that panics costs its own request and nothing else.
fn work(
    session: Arc<dyn Session>,
    operation: Operation,
    version: Version,
    legacy: Option<Arc<LegacySession>>,
    context: RequestContext,
) -> BoxFuture<'static, Outcome> {
    let work = async move {
        match operation {
            Operation::List(kind) => session.list(kind, version).await.into(),
            Operation::Call(call, meta) => session.call_tool(*call, meta, version, context).await,
            Operation::Forward { method, params, meta, change } => {
                let result = session.request(ForwardRequest { method, params, meta, context }).await;
                if let (Ok(_), Some(legacy), Some(change)) = (&result, legacy, change) {
                    legacy.settings.apply(change);
                }
                result.map(Into::into).into()
            }
        }
    };
    Box::pin(AssertUnwindSafe(work).catch_unwind().map(|outcome| {
        outcome.unwrap_or_else(|_panic| {
            tracing::error!("the handler of an MCP request panicked");
            let message = "internal error; the call may have had an effect";
            Err(ErrorObject::new(code::INTERNAL_ERROR, message)).into()
        })
    }))
}

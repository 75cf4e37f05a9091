//! Starts parsed requests, or resumes those that wait for input.

use super::{
    Reply, Server,
    connected_client::{ClientMode, ConnectedClient},
    handler::{Handler, Session},
    modern,
    pending_input::{ParkKey, Resumed},
    request::ParsedRequest,
    request_task::{RequestTask, RunningRequest},
    session::LegacySession,
};
use crate::{ErrorObject, envelope::Request};
use std::sync::Arc;
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
        mode: ClientMode,
        request: ParsedRequest,
        cancel: CancellationToken,
    ) -> RequestTask {
        let ParsedRequest { id, operation, options } = request;
        let channel = ConnectedClient::new(Arc::clone(&legacy.capabilities), legacy.number, mode, options);
        let session = Arc::clone(&legacy.session);
        let running = RunningRequest::start(session, operation, Some(Arc::clone(legacy)), channel, cancel);
        RequestTask { server: self.clone(), id, running: Some(running), park_key: None }
    }

    /// Starts a modern request, or resumes the one that waits for the input in this one.
    pub(super) fn start_modern(
        &self,
        client: ModernClient<'_>,
        parsed: ParsedRequest,
        request: &Request<'_>,
    ) -> Result<RequestTask, Reply> {
        let ParsedRequest { id, operation, mut options } = parsed;
        let may_ask_for_input = operation.may_ask_for_input();
        let mut park_key = None;
        if may_ask_for_input {
            let params = &request.params;
            let refused = |error: ErrorObject| modern::refuse(request, &error);
            options.responses = params.get("inputResponses").map(str::to_owned);
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
        let running = RunningRequest::start(client.session, operation, None, channel, client.cancel);
        Ok(RequestTask { server: self.clone(), id, running: Some(running), park_key })
    }
}

//! Starts parsed requests, or resumes those that wait for input.

use super::connection::Connection;
use super::handler::Handler;
use super::pending_input::{ParkKey, Resumed};
use super::request::ParsedRequest;
use super::request_channel::{ClientMode, RequestChannel, ResponseMode};
use super::request_task::{RequestTask, RunningRequest};
use super::{Reply, Server, modern};
use crate::ErrorObject;
use crate::envelope::Request;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Server {
    pub(super) fn start_legacy(
        &self,
        connection: &Arc<Connection>,
        mode: ResponseMode,
        request: ParsedRequest,
        cancel: CancellationToken,
    ) -> RequestTask {
        let ParsedRequest { id, operation, options } = request;
        let channel = RequestChannel::new(ClientMode::Legacy(Arc::clone(connection), mode), options);
        let running = RunningRequest::start(Arc::clone(&connection.handler), operation, channel, cancel);
        RequestTask { server: self.clone(), id, running: Some(running), park_key: None }
    }

    /// Starts a modern request, or resumes the one that waits for the input in this one. `number` tells its client from
    /// all others.
    pub(super) fn start_modern(
        &self,
        handler: &Arc<dyn Handler>,
        number: u64,
        parsed: ParsedRequest,
        request: &Request<'_>,
        cancel: CancellationToken,
    ) -> Result<RequestTask, Reply> {
        let ParsedRequest { id, operation, mut options } = parsed;
        let may_ask_for_input = operation.may_ask_for_input();
        let mut park_key = None;
        if may_ask_for_input {
            let params = &request.params;
            let refused = |error: ErrorObject| modern::refuse(request, &error);
            options.responses = params.get("inputResponses").map(str::to_owned);
            let key = ParkKey::new(handler, &request.method, params.object_text());
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
        let capabilities = request.params.request_capabilities();
        let mode = ClientMode::Modern { capabilities, number, may_ask_for_input };
        let channel = RequestChannel::new(mode, options);
        let running = RunningRequest::start(Arc::clone(handler), operation, channel, cancel);
        Ok(RequestTask { server: self.clone(), id, running: Some(running), park_key })
    }
}

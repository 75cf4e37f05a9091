//! Modern requests that the server answers with requests for input: the client is asked, and the request is sent again
//! with the responses.

use super::client_requests::without_response;
use super::inner::{ConnectionInner, OutgoingRequest};
use super::limits::{INPUTS_PER_ROUND, ROUND_PAUSE, ROUNDS};
use super::meta;
use super::types::{Answer, UpstreamError};
use crate::error::code;
use crate::exchange::{ClientChannel, ClientRequest, ClientRequestError};
use crate::{ErrorObject, raw};
use std::borrow::Cow;
use tokio::time::sleep;

impl ConnectionInner {
    /// Sends a request, and sends it again until its result asks for no more input.
    pub(super) async fn request_with_input(
        &self,
        request: OutgoingRequest<'_>,
        client: &dyn ClientChannel,
    ) -> Answer {
        let mut params = Cow::Borrowed(request.params);
        let mut pause = ROUND_PAUSE[0];
        // One more request than rounds: the last responses have to be sent, too.
        for round in 0..=ROUNDS {
            let outcome = self.request(OutgoingRequest { params: &params, ..request }).await;
            let result =
                if round == 0 { outcome? } else { outcome.map_err(UpstreamError::into_outcome_unknown)? };
            let kind = raw::member(&result, "resultType");
            if kind.and_then(raw::string).as_deref() != Some("input_required") {
                return Ok(result);
            }
            if round == ROUNDS {
                break;
            }
            let inputs = input_requests(&result)?;
            let state = raw::member(&result, "requestState").filter(|state| *state != "null");
            let mut next = request.params.to_owned();
            if inputs.is_empty() {
                if state.is_none() {
                    return Err(wrong("asks for input without saying which"));
                }
                tokio::select! {
                    () = sleep(pause) => {}
                    () = request.cancel.cancelled() => return Err(UpstreamError::Canceled),
                }
                pause = (pause * 2).min(ROUND_PAUSE[1]);
                next = raw::without(&next, |key| key == "inputResponses");
            } else {
                let responses = self.input_responses(inputs, client, request).await?;
                next = raw::with(&next, "inputResponses", &responses);
            }
            params = Cow::Owned(match state {
                Some(state) => raw::with(&next, "requestState", state),
                None => raw::without(&next, |key| key == "requestState"),
            });
        }
        Err(wrong(&format!("asks for input more than {ROUNDS} times")))
    }

    /// Asks the client; the responses as one object.
    async fn input_responses(
        &self,
        inputs: Vec<ClientRequest>,
        client: &dyn ClientChannel,
        request: OutgoingRequest<'_>,
    ) -> Answer {
        let declared = self.dispatcher().target.declared;
        for ClientRequest { method, params, .. } in &inputs {
            if !declared.allows(method) || !client.capabilities().can(method, params) {
                return Err(cannot_be_asked(method));
            }
        }
        let responses = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(UpstreamError::Canceled),
            responses = client.ask(inputs.clone()) => responses,
        };
        let without = |why| inputs.iter().map(|input| without_response(&input.method, &why)).collect();
        let responses = match responses {
            Ok(responses) if responses.len() == inputs.len() => responses,
            Ok(_) => without(ClientRequestError::Gone),
            Err(ClientRequestError::Unsupported(method)) => return Err(cannot_be_asked(&method)),
            Err(why) => without(why),
        };
        // A server can be told of a failed response only by failing the request.
        let responses: Result<Vec<String>, _> = responses.into_iter().collect();
        let responses = responses.map_err(UpstreamError::Rpc)?;
        let keys = inputs.iter().map(|input| &*input.key);
        Ok(raw::object(keys.zip(responses.iter().map(String::as_str))))
    }
}

fn input_requests(result: &str) -> Result<Vec<ClientRequest>, UpstreamError> {
    let Some(inputs) = raw::member(result, "inputRequests").filter(|inputs| *inputs != "null") else {
        return Ok(Vec::new());
    };
    let inputs = raw::members(inputs).ok_or_else(|| wrong("asks for input in a way that cannot be read"))?;
    if inputs.len() > INPUTS_PER_ROUND {
        return Err(wrong(&format!("asks more than {INPUTS_PER_ROUND} questions at once")));
    }
    let client_request = |(key, request): (Cow<'_, str>, &str)| {
        let method = raw::string_member(request, "method")?.into_owned();
        let params = meta::client_request(raw::member(request, "params").unwrap_or("{}")).into_owned();
        Some(ClientRequest { key: key.into_owned(), method, params })
    };
    let inputs: Option<Vec<ClientRequest>> = inputs.into_iter().map(client_request).collect();
    inputs.ok_or_else(|| wrong("asks for input without a method"))
}

/// The error for a request of the server that the client has not declared.
fn cannot_be_asked(method: &str) -> UpstreamError {
    let capability = match method.split('/').next() {
        Some(name @ ("elicitation" | "sampling" | "roots")) => name,
        _ => return wrong(&format!("asks for {method:?}, which is not known")),
    };
    let message =
        format!("the server asks for {method}, which the client does not support or may not be asked");
    let data = format!(r#"{{"requiredCapabilities":{{"{capability}":{{}}}}}}"#);
    UpstreamError::Rpc(ErrorObject::new(code::MISSING_CAPABILITY, message).with_data(data))
}

/// The server does not keep to the protocol; whether it ran the request is not known.
fn wrong(what: &str) -> UpstreamError {
    UpstreamError::OutcomeUnknown(format!("the server {what}"))
}

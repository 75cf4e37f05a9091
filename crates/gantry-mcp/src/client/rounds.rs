//! Requests of the newer era that are answered with questions: the client is asked, and the request is sent again
//! with its answers.

use super::{
    core::{Ask, Core},
    limits::{QUESTIONS_PER_ROUND, ROUND_PAUSE, ROUNDS},
    meta,
    questions::unanswered,
    tasks::once_sent,
    types::Failure,
};
use crate::{
    ErrorObject,
    error::code,
    exchange::{ClientChannel, ClientRequest, ClientRequestError},
    raw,
};
use std::borrow::Cow;
use tokio::time::sleep;

impl Core {
    /// Sends a request and goes on until its result asks nothing more.
    pub(super) async fn ask_in_rounds(
        &self,
        ask: Ask<'_>,
        audience: &dyn ClientChannel,
    ) -> Result<String, Failure> {
        let mut params = Cow::Borrowed(ask.params);
        let mut pause = ROUND_PAUSE[0];
        // One more request than rounds: the last answer has to be sent, too.
        for round in 0..=ROUNDS {
            let outcome = self.ask(Ask { params: &params, ..ask }).await;
            let result = if round == 0 { outcome? } else { outcome.map_err(once_sent)? };
            let kind = raw::member(&result, "resultType");
            if kind.and_then(raw::string).as_deref() != Some("input_required") {
                return Ok(result);
            }
            if round == ROUNDS {
                break;
            }
            let questions = questions(&result)?;
            let state = raw::member(&result, "requestState").filter(|state| *state != "null");
            let mut next = ask.params.to_owned();
            if questions.is_empty() {
                if state.is_none() {
                    return Err(wrong("asks for input without saying which"));
                }
                tokio::select! {
                    () = sleep(pause) => {}
                    () = ask.cancel.cancelled() => return Err(Failure::Canceled),
                }
                pause = (pause * 2).min(ROUND_PAUSE[1]);
                next = raw::without(&next, |key| key == "inputResponses");
            } else {
                let answers = self.answers(questions, audience, ask).await?;
                next = raw::with(&next, "inputResponses", &answers);
            }
            params = Cow::Owned(match state {
                Some(state) => raw::with(&next, "requestState", state),
                None => raw::without(&next, |key| key == "requestState"),
            });
        }
        Err(wrong(&format!("asks for input more than {ROUNDS} times")))
    }

    /// Asks the client; the answers as one object.
    async fn answers(
        &self,
        questions: Vec<ClientRequest>,
        audience: &dyn ClientChannel,
        ask: Ask<'_>,
    ) -> Result<String, Failure> {
        let declared = self.dispatcher().target.declared;
        for question in &questions {
            let ClientRequest { method, params, .. } = question;
            if !declared.allows(method) || !audience.capabilities().can(method, params) {
                return Err(cannot_be_asked(method));
            }
        }
        let asked = questions.clone();
        let answers = tokio::select! {
            biased;
            () = ask.cancel.cancelled() => return Err(Failure::Canceled),
            answers = audience.ask(questions) => answers,
        };
        let answers = match answers {
            Ok(answers) if answers.len() == asked.len() => answers,
            Ok(_) => {
                asked.iter().map(|question| unanswered(&question.method, &ClientRequestError::Gone)).collect()
            }
            Err(ClientRequestError::Unsupported(method)) => return Err(cannot_be_asked(&method)),
            Err(why) => asked.iter().map(|question| unanswered(&question.method, &why)).collect(),
        };
        // There is no way to tell a server of a failed answer but to fail the request.
        let answers: Vec<String> =
            answers.into_iter().collect::<Result<_, _>>().map_err(Failure::Answered)?;
        let keys = asked.iter().map(|question| &*question.key);
        Ok(raw::object(keys.zip(answers.iter().map(String::as_str))))
    }
}

fn questions(result: &str) -> Result<Vec<ClientRequest>, Failure> {
    let Some(asked) = raw::member(result, "inputRequests").filter(|asked| *asked != "null") else {
        return Ok(Vec::new());
    };
    let asked = raw::members(asked).ok_or_else(|| wrong("asks for input in a way that cannot be read"))?;
    if asked.len() > QUESTIONS_PER_ROUND {
        return Err(wrong(&format!("asks more than {QUESTIONS_PER_ROUND} questions at once")));
    }
    let question = |(key, request): (Cow<'_, str>, &str)| {
        let method = raw::string_member(request, "method")?.into_owned();
        let params = meta::question(raw::member(request, "params").unwrap_or("{}")).into_owned();
        Some(ClientRequest { key: key.into_owned(), method, params })
    };
    let questions: Option<Vec<ClientRequest>> = asked.into_iter().map(question).collect();
    questions.ok_or_else(|| wrong("asks for input without a method"))
}

/// The server asks what the client cannot answer, although it was told what the client can.
fn cannot_be_asked(method: &str) -> Failure {
    let capability = match method.split('/').next() {
        Some(name @ ("elicitation" | "sampling" | "roots")) => name,
        _ => return wrong(&format!("asks for {method:?}, which is not known")),
    };
    let message =
        format!("the server asks for {method}, which the client does not support or may not be asked");
    let data = format!(r#"{{"requiredCapabilities":{{"{capability}":{{}}}}}}"#);
    Failure::Answered(ErrorObject::new(code::MISSING_CAPABILITY, message).with_data(data))
}

/// The server does not keep to the protocol. Whether the request was run is not known.
fn wrong(what: &str) -> Failure {
    Failure::Lost(format!("the server {what}"))
}

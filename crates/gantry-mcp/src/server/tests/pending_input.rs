//! Questions to clients of 2026-07-28: asked by a result, answered by the same request sent again.

use super::{Events, Fake, TestServer, answer, error_code, headers, post, question, shown};
use crate::{
    exchange::{Capabilities, ClientChannel as _},
    limits::{PARKED_PER_IDENTITY, QUESTION_WAIT},
    server::{
        outgoing::Outgoing,
        request_channel::{ClientMode, RequestChannel, RequestOptions},
    },
};
use bytes::Bytes;
use serde_json::Value;
use std::time::Duration;
use tokio::time::advance;

const FORMS: &str = r#"{"elicitation":{}}"#;

fn meta(capabilities: &str) -> String {
    format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
    )
}

fn request(id: u32, method: &str, params: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params},{}}}}}"#,
        meta(capabilities)
    )
}

fn call(id: u32, params: &str) -> String {
    request(id, "tools/call", params, FORMS)
}

const SENT: [(&str, &str); 3] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "ask")];
const ASK: &str = r#""name":"ask","arguments":{"rounds":1,"z":1.50}"#;
const BOTH: &str = r#"{"age":{"a":1.10},"extra":{},"name":{"n":"x"}}"#;

/// The state in an answer that asks something.
fn state(answer: &str) -> String {
    let value: Value = serde_json::from_str(answer.split_once(' ').unwrap().1).unwrap();
    assert_eq!(value["result"]["resultType"], "input_required", "{answer}");
    value["result"]["requestState"].as_str().unwrap().to_owned()
}

fn retry(params: &str, responses: &str, state: &str) -> String {
    call(2, &format!(r#"{params},"inputResponses":{responses},"requestState":"{state}""#))
}

async fn post_as(server: &TestServer, identity: &'static str, body: &str) -> String {
    shown(&server.post(&headers(&SENT), &identity, Bytes::copy_from_slice(body.as_bytes())).await)
}

fn runs(server: &TestServer) -> usize {
    server.handler().tokens.lock().unwrap().len()
}

#[tokio::test]
async fn a_question_is_a_result_and_its_answers_come_with_the_request_again() {
    let server = Fake::server();
    let asked = post(&server, &SENT, &call(1, ASK)).await;
    let questions = r#""inputRequests":{"name":{"method":"elicitation/create","params":{"message":"name 0","requestedSchema":{"n":1.10}}},"age":{"#;
    assert!(
        asked.starts_with(&format!(
            r#"200 {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"input_required",{questions}"#
        )),
        "{asked}"
    );
    let done = post(&server, &SENT, &retry(ASK, BOTH, &state(&asked))).await;
    assert!(done.contains(r#""id":2,"result":{"resultType":"complete""#), "{done}");
    assert!(done.contains(r#"{\"n\":\"x\"}{\"a\":1.10}"#), "{done}");
    assert_eq!(runs(&server), 1);
    assert!(!server.handler().last_token().is_cancelled());
}

#[tokio::test]
async fn every_round_has_a_state_of_its_own() {
    let server = Fake::server();
    let params = r#""name":"ask","arguments":{"rounds":3}"#;
    let mut answer = post(&server, &SENT, &call(1, params)).await;
    let mut states = Vec::new();
    for round in 0..3 {
        assert!(answer.contains(&format!("name {round}")), "{answer}");
        states.push(state(&answer));
        answer = post(&server, &SENT, &retry(params, BOTH, states.last().unwrap())).await;
    }
    assert!(answer.contains("complete"), "{answer}");
    for used in states {
        assert_eq!(error_code(&post(&server, &SENT, &retry(params, BOTH, &used)).await), -32602);
    }
    assert_eq!(runs(&server), 1);
}

#[tokio::test]
async fn the_same_params_written_otherwise_are_the_same_request() {
    let server = Fake::server();
    let state = state(&post(&server, &SENT, &call(1, ASK)).await);
    let rewritten = r#""arguments":{"z":1.50,"rounds":1},"name":"ask""#;
    assert!(post(&server, &SENT, &retry(rewritten, BOTH, &state)).await.contains("complete"));
}

#[tokio::test]
async fn missing_answers_are_asked_for_again() {
    let server = Fake::server();
    let asked = post(&server, &SENT, &call(1, ASK)).await;
    let first = state(&asked);
    for responses in ["{}", "null", r#"{"name":{}}"#, r#"{"name":{},"age":7}"#, "[]"] {
        let again = post(&server, &SENT, &retry(ASK, responses, &first)).await;
        assert_eq!(again.replace("\"id\":2", "\"id\":1"), asked, "{responses}");
    }
    let without = call(2, &format!(r#"{ASK},"requestState":"{first}""#));
    assert_eq!(state(&post(&server, &SENT, &without).await), first);
    assert!(post(&server, &SENT, &retry(ASK, BOTH, &first)).await.contains("complete"));
    assert_eq!(runs(&server), 1);
}

#[tokio::test]
async fn a_state_that_leads_nowhere_is_an_error_and_no_second_run() {
    let server = Fake::server();
    let given = state(&post(&server, &SENT, &call(1, ASK)).await);
    let refused = async |identity: &'static str, params: &str, state: &str| {
        let answer = post_as(&server, identity, &retry(params, BOTH, state)).await;
        assert_eq!(error_code(&answer), -32602, "{answer}");
        answer
    };
    // Tampered with.
    let mut flipped = given.clone().into_bytes();
    flipped[3] = if flipped[3] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    for broken in
        ["", "x", &format!("{given}-TAMPERED"), &format!("{given}A"), given.get(1..).unwrap(), &flipped]
    {
        assert!(refused("guest", ASK, broken).await.contains("exact text"), "{broken}");
    }
    // Of another server, or of this one before it was started again.
    let foreign = state(&post(&Fake::server(), &SENT, &call(1, ASK)).await);
    assert!(refused("guest", ASK, &foreign).await.contains("exact text"));
    // Written otherwise, or made up.
    let (tag, id) = given.split_once('-').unwrap();
    let otherwise = format!("{tag}-{}", uuid::Uuid::try_parse(id).unwrap().hyphenated());
    assert!(refused("guest", ASK, &otherwise).await.contains("exact text"));
    let made_up = format!("{tag}-{}", uuid::Uuid::new_v4().simple());
    assert!(refused("guest", ASK, &made_up).await.contains("nothing waits"));
    // From another client.
    assert!(refused("thief", ASK, &given).await.contains("nothing waits"));
    // For another request.
    assert!(refused("guest", &ASK.replace("1.50", "1.51"), &given).await.contains("another request"));
    // A state that is no text.
    let number = call(2, &format!(r#"{ASK},"requestState":7"#));
    assert_eq!(error_code(&post(&server, &SENT, &number).await), -32602);
    // None of that used it up.
    assert!(post(&server, &SENT, &retry(ASK, BOTH, &given)).await.contains("complete"));
    // Now it is.
    assert!(refused("guest", ASK, &given).await.contains("answered already"));
    assert_eq!(runs(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_in_time_is_late_and_its_state_gone() {
    let server = Fake::server();
    let given = state(&post(&server, &SENT, &call(1, ASK)).await);
    advance(QUESTION_WAIT).await;
    assert_eq!(error_code(&post(&server, &SENT, &retry(ASK, BOTH, &given)).await), -32602);
    server.expire_idle();
    // The call had time to end by itself; only then is it let go.
    assert!(!server.handler().last_token().is_cancelled());
    advance(QUESTION_WAIT).await;
    server.expire_idle();
    assert!(server.handler().last_token().is_cancelled());
}

#[tokio::test]
async fn answers_that_come_before_the_question_are_taken() {
    let server = Fake::server();
    let early = call(1, &format!(r#"{ASK},"inputResponses":{BOTH}"#));
    assert!(post(&server, &SENT, &early).await.contains("complete"));
    let wrong = call(1, &format!(r#"{ASK},"inputResponses":{{"wrong":{{}}}}"#));
    state(&post(&server, &SENT, &wrong).await);
}

#[tokio::test(start_paused = true)]
async fn answers_without_their_state_are_no_second_run() {
    let server = Fake::server();
    let first = state(&post(&server, &SENT, &call(1, ASK)).await);
    let bare = |params: &str, responses: &str| call(2, &format!(r#"{params},"inputResponses":{responses}"#));
    // What does not answer the questions is asked again.
    for responses in ["{}", r#"{"wrong":{}}"#] {
        assert_eq!(state(&post(&server, &SENT, &bare(ASK, responses)).await), first);
    }
    assert_eq!(runs(&server), 1);
    // Nothing of the kind waits: these are answers that come before the question.
    let other = ASK.replace("1.50", "1.51");
    assert!(post(&server, &SENT, &bare(&other, BOTH)).await.contains("complete"));
    assert!(post_as(&server, "other", &bare(ASK, BOTH)).await.contains("complete"));
    // Without answers, it is one more request, and answers are for the last one.
    let again = state(&post(&server, &SENT, &call(1, ASK)).await);
    assert_eq!(runs(&server), 4);
    assert!(post(&server, &SENT, &bare(ASK, BOTH)).await.contains("complete"));
    assert_eq!(runs(&server), 4, "it went on");
    assert_eq!(error_code(&post(&server, &SENT, &retry(ASK, BOTH, &again)).await), -32602, "it is over");
    assert!(post(&server, &SENT, &retry(ASK, BOTH, &first)).await.contains("complete"));
    assert_eq!(runs(&server), 4);
    assert!(post(&server, &SENT, &bare(ASK, BOTH)).await.contains("complete"));
    assert_eq!(runs(&server), 5, "nothing waits any more");
    // What took too long cannot be resumed any more.
    state(&post(&server, &SENT, &call(1, ASK)).await);
    advance(QUESTION_WAIT).await;
    assert!(post(&server, &SENT, &bare(ASK, BOTH)).await.contains("complete"));
}

#[tokio::test]
async fn a_question_that_was_withdrawn_before_it_was_asked_costs_no_outcome() {
    let server = Fake::server();
    let sent =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "withdraw")];
    let params = r#""name":"withdraw""#;
    let first = state(&post(&server, &sent, &call(1, params)).await);
    server.handler().gate.add_permits(1);
    server.handler().call_begun().await;
    let again = retry(params, r#"{"name":{}}"#, &first);
    let done = tokio::time::timeout(Duration::from_secs(5), post(&server, &sent, &again));
    assert!(done.await.unwrap().contains("withdrawn"));
    assert_eq!(runs(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_behind_another_one_has_all_its_time() {
    let capabilities = Capabilities::new(FORMS);
    let mode = ClientMode::Modern { capabilities, number: 1, may_ask_for_input: true };
    let channel = RequestChannel::new(mode, RequestOptions::default());
    let respond = async {
        for round in 0..2 {
            let Outgoing::InputRequired(asked, responses) = channel.outgoing.next().await else { panic!() };
            assert!(asked[0].params.contains(&format!("name {round}")));
            advance(QUESTION_WAIT - Duration::from_secs(1)).await;
            assert!(channel.outgoing.pop().is_none(), "one round after the other");
            responses.send(vec![Ok("{}".to_owned())]).unwrap();
        }
    };
    let ask = |round| channel.ask(vec![question("name", round)]);
    let (first, second, ()) = tokio::join!(ask(0), ask(1), respond);
    assert!(first.is_ok() && second.is_ok());
}

#[tokio::test]
async fn only_what_the_client_declared_is_asked() {
    let server = Fake::server();
    for capabilities in ["{}", r#"{"sampling":{}}"#, r#"{"elicitation":{"url":{}}}"#] {
        let answer = post(&server, &SENT, &request(1, "tools/call", ASK, capabilities)).await;
        assert!(answer.contains("does not support elicitation/create"), "{answer}");
    }
}

#[tokio::test]
async fn prompts_and_resources_may_ask_and_others_may_not() {
    let server = Fake::full();
    for (method, params, name, asks) in [
        ("prompts/get", r#""name":"asking""#, "asking", true),
        ("resources/read", r#""uri":"asking""#, "asking", true),
        ("completion/complete", r#""ref":{"name":"asking"},"argument":{}"#, "", false),
    ] {
        let sent = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
        let sent = if name.is_empty() { &sent[..2] } else { &sent[..] };
        let first = post(&server, sent, &request(1, method, params, FORMS)).await;
        if asks {
            let again = format!(r#"{params},"inputResponses":{BOTH},"requestState":"{}""#, state(&first));
            let done = post(&server, sent, &request(2, method, &again, FORMS)).await;
            assert!(done.contains("answered"), "{done}");
        } else {
            assert!(first.contains("does not support"), "{first}");
        }
    }
    // The handler sees neither answers nor states.
    assert!(
        server.handler().asked().iter().all(|asked| !asked.contains("input")),
        "{:?}",
        server.handler().asked()
    );
}

#[tokio::test]
async fn one_identity_does_not_fill_the_place_of_all() {
    let server = Fake::server();
    for _ in 0..PARKED_PER_IDENTITY {
        state(&post(&server, &SENT, &call(1, ASK)).await);
    }
    assert!(post(&server, &SENT, &call(1, ASK)).await.contains("no client is there to answer"));
    state(&post_as(&server, "other", &call(1, ASK)).await);
}

#[tokio::test]
async fn hanging_up_while_the_answers_are_worked_on_cancels() {
    let server = Fake::server();
    let params = r#""name":"ask","arguments":{"rounds":2}"#;
    let first = state(&post(&server, &SENT, &call(1, params)).await);
    assert!(!server.handler().last_token().is_cancelled());
    let sent = headers(&SENT);
    let body = retry(params, BOTH, &first);
    // The second round parks again, which is no hanging up either.
    let second = shown(&server.post(&sent, &"guest", Bytes::from(body)).await);
    assert!(!server.handler().last_token().is_cancelled());
    state(&second);
    server.shutdown().await;
    assert!(server.handler().last_token().is_cancelled());
}

#[tokio::test]
async fn a_server_that_stops_waits_for_no_client_to_come_back() {
    let server = Fake::server();
    state(&post(&server, &SENT, &call(1, ASK)).await);
    server.close_streams();
    assert!(server.handler().last_token().is_cancelled());
    assert!(post(&server, &SENT, &call(1, ASK)).await.contains("no client is there to answer"));
}

#[tokio::test]
async fn a_modern_stream_ends_with_the_answer_and_is_cancelled_by_dropping_it() {
    let server = Fake::server();
    let sent = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "tell")];
    let body = |extra: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{{"name":"tell","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{extra}}}}}}}"#
        )
    };
    let level = r#","io.modelcontextprotocol/logLevel":"warning","progressToken":7"#;
    let mut events = Events::of(answer(&server, &sent, &body(level)).await);
    let first = events.frame().await.unwrap();
    assert_eq!(
        first,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":7,\"progress\":1.10}}\n\n"
    );
    assert!(events.message().await.contains(r#""level":"error""#));
    server.handler().gate.add_permits(1);
    let rest = events.rest().await;
    assert_eq!(rest.len(), 3, "{rest:?}");
    assert!(rest[2].contains(r#""id":"t","result":{"resultType":"complete""#), "{rest:?}");
    assert!(!server.handler().last_token().is_cancelled());
    // Without a level there are no log messages, without a token no progress.
    let mut events = Events::of(answer(&server, &sent, &body("")).await);
    assert!(events.message().await.contains("notifications/x"));
    drop(events);
    assert!(server.handler().last_token().is_cancelled());
}

//! Tokens for client credentials: got once, kept, and got anew.

use super::apis::{ask, document, operation, ready};
use super::server::answer;
use super::*;
use gantry_core::pattern::Pattern;
use gantry_core::{Effect, ErrorCode};
use gantry_egress::Url;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An API at this server that wants a token for reading, and one for writing, with the scopes of each.
async fn api_at(server: &Server, token_url: &str) -> Api {
    let need = |scope: &str| json!([{ "oauth": [scope] }]);
    let paths = json!({ "/x": {
        "get": operation("read", need("r")), "post": operation("write", need("w")), "put": operation("put", need("p"))
    }, "/fire": { "get": operation("fire", need("f")) } });
    let flow = json!({ "clientCredentials": { "tokenUrl": token_url, "scopes": { "r": "", "w": "", "p": "", "f": "" } } });
    let schemes = json!({ "oauth": { "type": "oauth2", "flows": flow } });
    ready(&document(&server.url(""), paths, schemes), |options| {
        let (client_id, client_secret) = ("my id".to_owned(), "very/secret".into());
        let client = Credential::Client { client_id, client_secret, token_url: None, scopes: None };
        options.auth.insert("oauth".into(), client);
        options.effects.push((Pattern::parse("fire").unwrap(), Effect::Destructive));
    })
    .await
}

/// A server that gives numbered tokens, and whose API takes those from a number on.
async fn issuer(lasts: &'static str, first_good: usize) -> Server {
    let count = AtomicUsize::new(0);
    Server::start(move |request| {
        if request.starts_with("POST /token") {
            let n = count.fetch_add(1, Ordering::SeqCst) + 1;
            return ok(
                "application/json",
                format!(r#"{{"access_token":"token-{n}","token_type":"bearer"{lasts}}}"#),
            );
        }
        let token = request
            .split("authorization: Bearer token-")
            .nth(1)
            .map(|rest| rest.split("\r\n").next().unwrap());
        match token.map(|n| n.parse::<usize>().unwrap()) {
            Some(n) if n >= first_good => ok("application/json", format!("{n}")),
            _ => answer("401 Unauthorized", "", request),
        }
    })
    .await
}

fn count(server: &Server, start: &str) -> usize {
    server.asked().iter().filter(|request| request.starts_with(start)).count()
}

#[tokio::test]
async fn rst_3_a_token_is_got_once_and_kept_for_each_set_of_scopes() {
    let server = issuer(r#","expires_in":3600"#, 1).await;
    let api = api_at(&server, &server.url("/token")).await;
    let (first, second, third) = tokio::join!(
        ask(&api, "a_read", json!({})),
        ask(&api, "a_read", json!({})),
        ask(&api, "a_read", json!({}))
    );
    for output in [first, second, third, ask(&api, "a_read", json!({})).await] {
        assert_eq!(output.unwrap(), RawOutput::Json("1".into()));
    }
    assert_eq!(count(&server, "POST /token"), 1, "those who come at once get one together");
    assert_eq!(ask(&api, "a_write", json!({})).await.unwrap(), RawOutput::Json("2".into()));
    let asked = server.asked();
    let got: Vec<_> = asked.iter().filter(|request| request.starts_with("POST /token")).collect();
    // `my%20id:very%2Fsecret`
    assert!(got[0].contains("authorization: Basic bXklMjBpZDp2ZXJ5JTJGc2VjcmV0\r\n"), "{}", got[0]);
    assert!(got[0].ends_with("\r\n\r\ngrant_type=client_credentials&scope=r"), "{}", got[0]);
    assert!(got[1].ends_with("&scope=w"), "{}", got[1]);
}

#[tokio::test]
async fn rst_3_a_token_that_ends_soon_is_not_kept() {
    let server = issuer(r#","expires_in":"29""#, 1).await;
    let api = api_at(&server, &server.url("/token")).await;
    for n in ["1", "2"] {
        assert_eq!(ask(&api, "a_read", json!({})).await.unwrap(), RawOutput::Json(n.into()));
    }
}

#[tokio::test]
async fn rst_3_a_token_that_is_not_taken_is_got_anew_and_only_what_is_idempotent_is_sent_again() {
    let server = issuer("", 2).await;
    let api = api_at(&server, &server.url("/token")).await;
    assert_eq!(ask(&api, "a_read", json!({})).await.unwrap(), RawOutput::Json("2".into()));
    assert_eq!(count(&server, "GET /x"), 2);

    let server = issuer("", 2).await;
    let api = api_at(&server, &server.url("/token")).await;
    let fault = ask(&api, "a_write", json!({})).await.unwrap_err();
    assert_eq!((fault.effect, count(&server, "POST /x")), (EffectState::None, 1));
    assert!(!format!("{fault:?}").contains("token-1"), "{fault:?}");
    assert_eq!(
        ask(&api, "a_write", json!({})).await.unwrap(),
        RawOutput::Json("2".into()),
        "the next one works"
    );

    let server = issuer("", 100).await;
    let api = api_at(&server, &server.url("/token")).await;
    ask(&api, "a_read", json!({})).await.unwrap_err();
    assert_eq!((count(&server, "GET /x"), count(&server, "POST /token")), (2, 2), "once, and not for ever");
}

/// A place that gives one token, and answers like this from then on.
async fn giving_one(then: Vec<u8>) -> Server {
    let given = AtomicUsize::new(0);
    Server::start(move |_| match given.fetch_add(1, Ordering::SeqCst) {
        0 => ok("application/json", r#"{"access_token":"token-1"}"#),
        _ => then.clone(),
    })
    .await
}

#[tokio::test]
async fn rst_3_what_was_answered_stands_if_it_cannot_be_sent_again() {
    let refusal = || answer("401 Unauthorized", "", "who is that?");
    let no_tokens = [
        answer("503 Service Unavailable", "", ""),
        answer("400 Bad Request", "", ""),
        ok("application/json", r#"{"access_token":"two\nlines"}"#),
        Vec::new(),
    ];
    let stands = |fault: CallFailure| {
        assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::None), "{fault:?}");
        let message = &fault.error.message;
        assert!(message.contains("who is that?") && message.contains("could not be sent again"), "{message}");
        assert!(!message.contains("othing was sent"), "{message}");
        assert_eq!(fault.error.details.unwrap()["status"], 401);
    };
    for then in no_tokens {
        let (server, tokens) = (Server::saying(refusal()).await, giving_one(then).await);
        let api = api_at(&server, &tokens.url("/token")).await;
        stands(ask(&api, "a_put", json!({})).await.unwrap_err());
        assert_eq!(count(&server, "PUT /x"), 1);
    }
    // The client is gone.
    let (server, tokens) = (Server::once(refusal()).await, issuer("", 1).await);
    let api = api_at(&server, &tokens.url("/token")).await;
    stands(ask(&api, "a_put", json!({})).await.unwrap_err());
    assert_eq!(count(&server, "PUT /x"), 1);
}

#[tokio::test]
async fn rst_3_what_is_lost_when_it_is_sent_again_may_have_taken_effect() {
    let tokens = issuer("", 1).await;
    let server = Server::start(|request| match request.contains("token-1") {
        true => answer("401 Unauthorized", "", ""),
        false => Vec::new(),
    })
    .await;
    let api = api_at(&server, &tokens.url("/token")).await;
    let fault = ask(&api, "a_put", json!({})).await.unwrap_err();
    assert_eq!(code(&fault), ("OUTCOME_UNKNOWN", EffectState::Possible));
    assert_eq!(count(&server, "PUT /x"), 2);
}

#[tokio::test]
async fn rst_3_what_led_elsewhere_is_not_sent_again_because_of_a_token() {
    let tokens = issuer("", 1).await;
    let server = Server::start(|request| match request.starts_with("GET /done ") {
        true => answer("401 Unauthorized", "", ""),
        false => answer("302 Found", "location: /done\r\n", ""),
    })
    .await;
    let api = api_at(&server, &tokens.url("/token")).await;
    let fault = ask(&api, "a_fire", json!({})).await.unwrap_err();
    assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::Possible), "{fault:?}");
    assert_eq!((count(&server, "GET /fire"), count(&server, "GET /done")), (1, 1));
    // Who only reads may ask again.
    ask(&api, "a_read", json!({})).await.unwrap_err();
    assert_eq!((count(&server, "GET /x"), count(&server, "GET /done")), (2, 3));
}

#[tokio::test]
async fn rst_3_a_server_that_wants_the_client_in_the_body_gets_it_there() {
    let server = Server::start(|request| match request.contains("client_secret=very%2Fsecret") {
        _ if request.starts_with("GET") => ok("application/json", "1"),
        true => ok("application/json", r#"{"access_token":"t"}"#),
        false => answer("400 Bad Request", "", r#"{"error":"invalid_client"}"#),
    })
    .await;
    let api = api_at(&server, &server.url("/token")).await;
    ask(&api, "a_read", json!({})).await.unwrap();
    let asked = server.asked();
    assert_eq!(asked.len(), 3);
    assert!(
        asked[1].contains("client_id=my%20id&client_secret=") && !asked[1].contains("authorization"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn rst_3_who_gives_no_token_says_why_and_nothing_is_sent_to_the_api() {
    let said = r#"{"error":"invalid_scope","error_description":"not for very/secret"}"#;
    let server = Server::saying(answer("400 Bad Request", "", said)).await;
    let api = api_at(&server, &server.url("/token")).await;
    let fault = ask(&api, "a_write", json!({})).await.unwrap_err();
    assert_eq!((fault.error.code, fault.effect), (ErrorCode::PermissionDenied, EffectState::None));
    let message = &fault.error.message;
    assert!(message.contains("invalid_scope: not for [redacted]"), "{message}");
    assert_eq!((count(&server, "POST /x"), count(&server, "POST /token")), (0, 1));

    let api = api_at(&server, "http://tokens.test/token").await;
    let fault = ask(&api, "a_read", json!({})).await.unwrap_err();
    assert!(fault.error.message.contains("is not encrypted"), "{fault:?}");
    let gone = Url::parse("http://127.0.0.1:1/token").unwrap();
    let fault = ask(&api_at(&server, gone.as_str()).await, "a_read", json!({})).await.unwrap_err();
    assert_eq!((fault.error.code, fault.effect), (ErrorCode::UpstreamUnavailable, EffectState::None));
}

#[tokio::test]
async fn rst_3_those_who_wait_for_a_token_that_cannot_be_got_hear_of_it_together() {
    let server = Server::saying(answer("503 Service Unavailable", "", "")).await;
    let api = api_at(&server, &server.url("/token")).await;
    let (first, second, third) = tokio::join!(
        ask(&api, "a_read", json!({})),
        ask(&api, "a_read", json!({})),
        ask(&api, "a_read", json!({}))
    );
    for fault in [first, second, third] {
        assert_eq!(fault.unwrap_err().error.code, ErrorCode::UpstreamUnavailable);
    }
    assert_eq!((count(&server, "POST /token"), count(&server, "GET /x")), (1, 0));
}

#[tokio::test]
async fn a_token_that_a_server_repeats_is_masked_however_it_escapes_it() {
    let server = Server::start(|request| match request.starts_with("POST /token") {
        true => ok("application/json", r#"{"access_token":"tok\/en+abc"}"#),
        false => answer("400 Bad Request", "", r#"{"got":"Bearer tok\/en\u002babc"}"#),
    })
    .await;
    let api = api_at(&server, &server.url("/token")).await;
    let fault = ask(&api, "a_read", json!({})).await.unwrap_err();
    assert_eq!(fault.error.details.unwrap()["body"], json!({ "got": "Bearer [redacted]" }));
    assert!(fault.error.message.ends_with(r#"{"got":"Bearer [redacted]"}"#), "{}", fault.error.message);
}

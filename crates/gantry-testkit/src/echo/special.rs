//! The paths that answer with something else than the request.
//!
//! | path | answer |
//! |---|---|
//! | `/status/CODE…` | that status, with the request as body and the header `retry-after` |
//! | `/stream/KIND`, `/endless/KIND`, `/stalled/KIND` | pieces that end, that never end, that stop coming; KIND is `ndjson`, `sse`, `json` or `tokens` |
//! | `/stuck/CODE` | that status, and the beginning of a text that does not go on |
//! | `/token` | a token for client credentials; `?expires=SECONDS` |
//! | `/guarded/…` | the request, for a caller with such a token, else 401 |
//! | `/large?bytes=N` | N bytes of text |
//! | `/image`, `/binary`, `/text` | what they say |
//! | `/slow?ms=N` | the request, later; how many are here at once is counted |
//! | `/redirect?to=URL` | 302 |
//! | `/json?is=VALUE` | that JSON value |
//! | `/spec/…` | a document that the test put there |

use super::{Served, body, header};
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{StatusCode, header as name};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// A picture of one white point.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR4nGP4DwQACfsD/fteaysAAAAASUVORK5CYII=";

pub(super) async fn answer(served: &Arc<Served>, parts: &Parts, request: Value) -> Response {
    let path = parts.uri.path();
    let query: BTreeMap<_, _> = body::pairs(parts.uri.query().unwrap_or_default()).into_iter().collect();
    let authorization = header(parts, "authorization");
    let authorization = authorization.as_deref();
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<u64>().ok());
    let (first, rest) =
        path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    match first {
        "status" => (
            status(rest),
            [(name::RETRY_AFTER, "7"), (name::SET_COOKIE, "session=s3cret-cookie")],
            json(&request),
        )
            .into_response(),
        "stuck" => {
            let begun = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"it begins"))]);
            (status(rest), Body::from_stream(begun.chain(stream::pending()))).into_response()
        }
        "stream" => streamed(rest, Then::End),
        "endless" => streamed(rest, Then::Repeat),
        "stalled" => streamed(rest, Then::Stall),
        "token" => served.tokens.lock().unwrap().issue(authorization, &request, number("expires")),
        "guarded" if !served.tokens.lock().unwrap().is_valid(authorization) => {
            (StatusCode::UNAUTHORIZED, [(name::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")])
                .into_response()
        }
        "large" => {
            "x".repeat(usize::try_from(number("bytes").unwrap_or(1 << 20)).expect("a size")).into_response()
        }
        "image" => {
            ([(name::CONTENT_TYPE, "image/png")], STANDARD.decode(PNG).expect("a picture")).into_response()
        }
        "binary" => {
            ([(name::CONTENT_TYPE, "application/octet-stream")], b"\xff\x00\xfe".as_slice()).into_response()
        }
        "text" => "plain words".into_response(),
        "slow" => {
            {
                let mut at_once = served.at_once.lock().unwrap();
                *at_once = (at_once.0 + 1, at_once.1.max(at_once.0 + 1));
            }
            tokio::time::sleep(Duration::from_millis(number("ms").unwrap_or(50))).await;
            served.at_once.lock().unwrap().0 -= 1;
            json(&request)
        }
        "redirect" => {
            let to = query.get("to").map(String::as_str).unwrap_or_default();
            (StatusCode::FOUND, [(name::LOCATION, to)]).into_response()
        }
        "json" => {
            let text = query.get("is").cloned().unwrap_or_default();
            ([(name::CONTENT_TYPE, "application/json")], text).into_response()
        }
        "spec" => {
            let document = served.documents.lock().unwrap().get(path).cloned();
            document.map_or_else(
                || StatusCode::NOT_FOUND.into_response(),
                |(media, text)| ([(name::CONTENT_TYPE, media)], text).into_response(),
            )
        }
        _ => json(&request),
    }
}

fn status(path: &str) -> StatusCode {
    path.split('/').next().and_then(|code| code.parse().ok()).expect("a status")
}

fn json(value: &Value) -> Response {
    ([(name::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// What comes after the pieces.
#[derive(Clone, Copy)]
enum Then {
    End,
    Stall,
    Repeat,
}

/// An answer in pieces. Pieces do not end where lines end.
fn streamed(kind: &str, then: Then) -> Response {
    let token = |text: &str| json!({ "type": "token", "content": text });
    let (media, pieces, last) = match kind {
        "ndjson" => ("application/x-ndjson", "{\"n\":1}\n{\"n\":2}\n".to_owned(), "{\"n\":3}".to_owned()),
        "sse" => {
            let pieces = ": hello\n\nid: 1\nevent: first\ndata: {\"n\":1}\n\ndata: two\ndata: lines\n\n";
            ("text/event-stream", pieces.to_owned(), "data: [DONE]\n\n".to_owned())
        }
        "json" => {
            let pieces = format!("data: {}\n\ndata: {}\n\n", token("Hel"), token("lo"));
            let done = json!({ "type": "done", "answer": "Hello, world" });
            ("application/x-ndjson", pieces, format!("data: {done}\ndata: [DONE]\n"))
        }
        // Without a last object, and without a prefix.
        "tokens" => {
            ("application/x-ndjson", format!("{}\n{}\n", token("Hel"), token("lo")), "[DONE]\n".to_owned())
        }
        other => panic!("there is no stream of {other}"),
    };
    let whole = Bytes::from(pieces);
    let chunks: Vec<Bytes> = whole.chunks(5).map(Bytes::copy_from_slice).collect();
    let begun = stream::iter(chunks).map(Ok::<_, Infallible>);
    let body = match then {
        Then::End => Body::from_stream(begun.chain(stream::iter([Ok(Bytes::from(last))]))),
        Then::Stall => Body::from_stream(begun.chain(stream::pending())),
        Then::Repeat => Body::from_stream(stream::repeat(Ok::<_, Infallible>(whole))),
    };
    ([(name::CONTENT_TYPE, media)], body).into_response()
}

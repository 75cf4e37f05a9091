//! An OAuth 2 token endpoint for client credentials.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The client that may have a token.
pub const CLIENT_ID: &str = "gantry-test";
/// Its secret.
pub const CLIENT_SECRET: &str = "s3cret-of-the-client";

#[derive(Debug, Default)]
pub(super) struct Tokens {
    issued: usize,
    /// Those up to this one are worth nothing.
    revoked: usize,
}

impl Tokens {
    pub(super) fn revoke(&mut self) {
        self.revoked = self.issued;
    }

    /// Whether a header `Authorization` has a token that is worth something.
    pub(super) fn is_valid(&self, authorization: Option<&str>) -> bool {
        let number = authorization.and_then(|text| text.strip_prefix("Bearer s3cret-token-"));
        number
            .and_then(|text| text.parse::<usize>().ok())
            .is_some_and(|n| n > self.revoked && n <= self.issued)
    }

    /// The answer to a request for a token, which names the client in its header or in its form.
    pub(super) fn issue(
        &mut self,
        authorization: Option<&str>,
        request: &Value,
        expires: Option<u64>,
    ) -> Response {
        let form = |key: &str| {
            let pairs = request["body"]["form"].as_array().into_iter().flatten();
            pairs.filter(|pair| pair[0] == key).find_map(|pair| pair[1].as_str().map(str::to_owned))
        };
        let basic = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
        let by_form = form("client_id").as_deref() == Some(CLIENT_ID)
            && form("client_secret").as_deref() == Some(CLIENT_SECRET);
        if !by_form && authorization != Some(basic.as_str()) {
            return refuse(StatusCode::UNAUTHORIZED, "invalid_client");
        }
        if request["method"] != "POST" || form("grant_type").as_deref() != Some("client_credentials") {
            return refuse(StatusCode::BAD_REQUEST, "unsupported_grant_type");
        }
        self.issued += 1;
        let token = format!("s3cret-token-{}", self.issued);
        let answer =
            json!({ "access_token": token, "token_type": "bearer", "expires_in": expires.unwrap_or(3600) });
        answered(StatusCode::OK, &answer)
    }
}

fn refuse(status: StatusCode, error: &str) -> Response {
    answered(status, &json!({ "error": error }))
}

fn answered(status: StatusCode, answer: &Value) -> Response {
    (status, [("content-type", "application/json")], answer.to_string()).into_response()
}

//! OAuth 2 tokens for client credentials: requested once, cached until shortly before they expire.

use super::client::{RestClient, header_value};
use super::encode;
use super::error::{self, describe};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::{CallFailure, ErrorCode, ToolError};
use gantry_egress::address_guard::is_loopback;
use gantry_egress::{HttpError, OutboundRequest, Url, display_url};
use gantry_provider::options::Secret;
use gantry_provider::redact::Redactor;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use moka::future::Cache;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long before its expiry a token is not used any more.
const EARLY: Duration = Duration::from_secs(30);

/// How long a token is used if the server does not name its lifetime.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);

/// The longest time that a token is used.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);

const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a failure is cached, so that calls in a row do not send the credentials once each.
const FAILED: Duration = Duration::from_secs(1);

/// Tokens that are cached.
const CACHED: u64 = 64;

const ANSWER_BYTES: usize = 1 << 20;

/// Characters of a message about a token that is refused.
const MESSAGE_CHARS: usize = 1000;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct TokenRequest {
    pub(super) url: Url,
    pub(super) id: String,
    pub(super) secret: Secret,
    pub(super) scopes: Vec<String>,
}

#[derive(Debug, Clone)]
struct Token {
    /// Or why there is none.
    value: Result<Arc<str>, CallFailure>,
    lifetime: Duration,
}

/// Expires each token after its own lifetime.
struct PerToken;

impl moka::Expiry<TokenRequest, Token> for PerToken {
    fn expire_after_create(&self, _: &TokenRequest, token: &Token, _: Instant) -> Option<Duration> {
        Some(token.lifetime)
    }
}

pub(super) struct Tokens {
    client: Arc<RestClient>,
    cache: Cache<TokenRequest, Token>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    pub(super) fn new(client: &Arc<RestClient>) -> Self {
        let cache = Cache::builder().max_capacity(CACHED).expire_after(PerToken).build();
        Self { client: Arc::clone(client), cache }
    }

    /// The cached token, or a new one. Calls that need the same token at once share one request, and its failure.
    pub(super) async fn get(&self, request: &TokenRequest) -> Result<Arc<str>, CallFailure> {
        let token = async {
            let failed = |fault| Token { value: Err(fault), lifetime: FAILED };
            fetch(&self.client, request).await.unwrap_or_else(failed)
        };
        self.cache.get_with(request.clone(), token).await.value
    }

    /// Drops a token that the API refused, unless another one has replaced it.
    pub(super) async fn forget(&self, request: &TokenRequest, token: &str) {
        let cached = self.cache.get(request).await.and_then(|cached| cached.value.ok());
        if cached.is_some_and(|cached| *cached == *token) {
            self.cache.invalidate(request).await;
        }
    }
}

/// Requests a token with the client credentials in a header, or in the body if the server does not accept that.
async fn fetch(client: &RestClient, wanted: &TokenRequest) -> Result<Token, CallFailure> {
    let place = display_url(wanted.url.as_str());
    if wanted.url.scheme() != "https" && !is_loopback(&wanted.url) {
        let message = format!("the address for tokens, {place}, is not encrypted; nothing was sent there");
        return Err(CallFailure::without_effect(ToolError::new(ErrorCode::PermissionDenied, message)));
    }
    let asking = async {
        let (status, body) = request_token(client, wanted, true).await?;
        if is_about_client(status, &body) {
            request_token(client, wanted, false).await
        } else {
            Ok((status, body))
        }
    };
    let late = |_elapsed| error::unavailable(format!("{place} gave no token within {} s", TIMEOUT.as_secs()));
    let (status, body) = tokio::time::timeout(TIMEOUT, asking).await.map_err(late)??;
    token(status, &body).ok_or_else(|| refused(wanted, status, &body))
}

async fn request_token(
    client: &RestClient,
    wanted: &TokenRequest,
    in_header: bool,
) -> Result<(StatusCode, Value), CallFailure> {
    let mut form = vec!["grant_type=client_credentials".to_owned()];
    if !wanted.scopes.is_empty() {
        form.push(format!("scope={}", encode::component(&wanted.scopes.join(" "))));
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let (id, secret) = (encode::component(&wanted.id), encode::component(wanted.secret.expose()));
    if in_header {
        let basic = format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        headers.insert(
            header::AUTHORIZATION,
            header_value("Authorization", &basic).map_err(error::unavailable)?,
        );
    } else {
        form.push(format!("client_id={id}"));
        form.push(format!("client_secret={secret}"));
    }
    let body = form.join("&").into();
    let request = OutboundRequest { method: Method::POST, url: wanted.url.clone(), headers, body };
    let failed = |error: &HttpError| {
        let reason = secrets(wanted).mask(describe(error));
        error::unavailable(format!("no token can be got: {reason}"))
    };
    let reached = client.send(request, false).await.map_err(|missed| failed(&missed.error))?;
    let status = reached.response.status();
    let body = reached.response.body(ANSWER_BYTES).await.map_err(|error| failed(&error))?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Whether the server did not recognise the client.
fn is_about_client(status: StatusCode, body: &Value) -> bool {
    status == StatusCode::UNAUTHORIZED
        || (status == StatusCode::BAD_REQUEST
            && body.get("error").is_some_and(|error| error == "invalid_client"))
}

fn token(status: StatusCode, body: &Value) -> Option<Token> {
    let value = body.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let seconds = body.get("expires_in").and_then(|lasts| {
        lasts.as_u64().or_else(|| Some(lasts.as_f64()? as u64)).or_else(|| lasts.as_str()?.parse().ok())
    });
    let lifetime = seconds.map_or(DEFAULT_LIFETIME, |seconds| {
        Duration::from_secs(seconds).min(MAX_LIFETIME).saturating_sub(EARLY)
    });
    status.is_success().then(|| Token { value: Ok(value.into()), lifetime })
}

fn refused(wanted: &TokenRequest, status: StatusCode, body: &Value) -> CallFailure {
    let words = ["error", "error_description"].into_iter().filter_map(|key| body.get(key)?.as_str());
    let said = words.collect::<Vec<_>>().join(": ");
    let place = display_url(wanted.url.as_str());
    let status_line = error::status_line(status);
    let message = format!("no token can be got: HTTP {status_line} from POST {place}: {said}");
    let message = secrets(wanted).mask(error::one_line(&message, usize::MAX));
    let code =
        if status.is_client_error() { ErrorCode::PermissionDenied } else { ErrorCode::UpstreamUnavailable };
    // Masked before it is cut: a half of a secret is not known as one.
    CallFailure::without_effect(ToolError::new(code, error::one_line(&message, MESSAGE_CHARS)))
}

fn secrets(wanted: &TokenRequest) -> Redactor {
    let mut secrets = Redactor::default();
    let (id, secret) = (&wanted.id, wanted.secret.expose());
    secrets.add_basic(id, secret);
    secrets.add_basic(&encode::component(id), &encode::component(secret));
    secrets
}

//! Tokens that are got for client credentials (OAuth 2), and kept until shortly before they end.

use super::encode;
use super::fault::Told;
use super::outlet::{Outlet, Request, is_loopback, shown};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_core::{ErrorCode, Fault, ToolError};
use gantry_egress::Url;
use gantry_openapi::Method;
use gantry_provider::redact::Redactor;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long before its end a token is not used any more.
const EARLY: Duration = Duration::from_secs(30);

/// How long one is used that does not say for how long it can be.
const UNSAID: Duration = Duration::from_secs(300);

/// The longest time that one is used.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long getting one may take.
const ASKING: Duration = Duration::from_secs(30);

/// How long nobody tries again after a failure, so that those who waited for it do not wait once more, one by one.
const FAILED: Duration = Duration::from_secs(1);

/// Tokens that are kept.
const KEPT: usize = 64;

/// Bytes of the answer with a token.
const ANSWER_BYTES: usize = 1 << 20;

/// What a token is got for.
#[derive(Clone)]
pub(super) struct Errand {
    pub(super) scheme: String,
    pub(super) url: Url,
    pub(super) id: String,
    pub(super) secret: String,
    pub(super) scopes: Vec<String>,
}

/// Where it is got, by whom, for which scheme, and for which scopes.
type Key = (Url, String, String, Vec<String>);

#[derive(Debug, Clone)]
struct Token {
    value: Arc<str>,
    until: Instant,
}

/// What came of asking for one.
#[derive(Debug)]
struct Got {
    value: Result<Arc<str>, Fault>,
    /// As long as this is the answer to whoever asks.
    until: Instant,
}

/// The tokens of one API.
pub(super) struct Tokens {
    outlet: Arc<Outlet>,
    /// Whoever comes first gets the token, and the others wait for it.
    kept: Mutex<HashMap<Key, Arc<OnceCell<Got>>>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

/// A scheme that no token can be got for.
pub(super) fn unusable(scheme: &str) -> ToolError {
    let message = format!("no token can be got for the security scheme {scheme}: its tokenUrl is not known");
    ToolError::new(ErrorCode::UpstreamUnavailable, message)
}

impl Tokens {
    pub(super) fn new(outlet: &Arc<Outlet>) -> Self {
        Self { outlet: Arc::clone(outlet), kept: Mutex::default() }
    }

    /// The token for this errand: the one that is there, or a new one. Several who come at once get one together.
    pub(super) async fn get(&self, errand: &Errand) -> Result<Arc<str>, Fault> {
        let cell = self.cell(errand);
        let fetch = async || match fetch(&self.outlet, errand).await {
            Ok(Token { value, until }) => Got { value: Ok(value), until },
            Err(fault) => Got { value: Err(fault), until: Instant::now() + FAILED },
        };
        cell.get_or_init(fetch).await.value.clone()
    }

    /// Forgets a token that is not taken any more, unless there is another one already.
    pub(super) fn forget(&self, errand: &Errand, token: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(errand);
        let is_it = |cell: &Arc<OnceCell<Got>>| {
            cell.get().and_then(|got| got.value.as_deref().ok()).is_some_and(|kept| kept == token)
        };
        if kept.get(&key).is_some_and(is_it) {
            kept.remove(&key);
        }
    }

    fn cell(&self, errand: &Errand) -> Arc<OnceCell<Got>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_good = |cell: &Arc<OnceCell<Got>>| cell.get().is_none_or(|got| got.until > now);
        let key = key(errand);
        if !kept.contains_key(&key) && kept.len() >= KEPT {
            kept.clear();
        }
        let cell = kept.entry(key).or_default();
        if !is_good(cell) {
            *cell = Arc::default();
        }
        Arc::clone(cell)
    }
}

fn key(errand: &Errand) -> Key {
    (errand.url.clone(), errand.id.clone(), errand.scheme.clone(), errand.scopes.clone())
}

/// Gets a token, first with the credentials in a header, and in the body if that is not what the server wants.
async fn fetch(outlet: &Outlet, errand: &Errand) -> Result<Token, Fault> {
    let place = shown(&errand.url);
    if errand.url.scheme() != "https" && !is_loopback(&errand.url) {
        let message = format!("the address for tokens, {place}, is not encrypted; nothing was sent there");
        return Err(Fault::without_effect(ToolError::new(ErrorCode::PermissionDenied, message)));
    }
    let asking = async {
        let (status, body) = ask(outlet, errand, true).await?;
        if is_about_client(status, &body) { ask(outlet, errand, false).await } else { Ok((status, body)) }
    };
    let late = |_elapsed| {
        let message = format!("{place} gave no token within {} s", ASKING.as_secs());
        Fault::without_effect(ToolError::new(ErrorCode::UpstreamUnavailable, message))
    };
    let (status, body) = tokio::time::timeout(ASKING, asking).await.map_err(late)??;
    token(status, &body).ok_or_else(|| refused(errand, status, &body))
}

async fn ask(outlet: &Outlet, errand: &Errand, in_header: bool) -> Result<(StatusCode, Value), Fault> {
    let mut form = vec!["grant_type=client_credentials".to_owned()];
    if !errand.scopes.is_empty() {
        form.push(format!("scope={}", encode::component(&errand.scopes.join(" "))));
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let (id, secret) = (encode::component(&errand.id), encode::component(&errand.secret));
    if in_header {
        let both = STANDARD.encode(format!("{id}:{secret}"));
        // Base64 is always a value of a header.
        headers.extend(
            HeaderValue::try_from(format!("Basic {both}")).ok().map(|it| (header::AUTHORIZATION, it)),
        );
    } else {
        form.push(format!("client_id={id}"));
        form.push(format!("client_secret={secret}"));
    }
    let body = form.join("&").into_bytes();
    let request =
        Request { method: Method::Post, url: errand.url.clone(), headers, body, public_only: false };
    let secrets = secrets(errand);
    // Asking for a token changes nothing that anybody would miss.
    let told = Told { method: Method::Post, url: &errand.url, reads: true, secrets: &secrets, advice: None };
    let failed = |fault: Fault| {
        let message = format!("no token can be got: {}", fault.error.message);
        Fault::without_effect(ToolError::new(ErrorCode::UpstreamUnavailable, message))
    };
    let reached = outlet.send(&request).await.map_err(|missed| failed(told.unanswered(&missed)))?;
    let status = reached.response.status();
    let body = reached.response.body(ANSWER_BYTES).await.map_err(|error| failed(told.http(&error)))?;
    Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Whether the server did not find out who asks.
fn is_about_client(status: StatusCode, body: &Value) -> bool {
    status == StatusCode::UNAUTHORIZED
        || (status == StatusCode::BAD_REQUEST
            && body.get("error").is_some_and(|error| error == "invalid_client"))
}

fn token(status: StatusCode, body: &Value) -> Option<Token> {
    let value = body.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let lasts = body.get("expires_in").and_then(|lasts| {
        lasts.as_u64().or_else(|| Some(lasts.as_f64()? as u64)).or_else(|| lasts.as_str()?.parse().ok())
    });
    let lasts =
        lasts.map_or(UNSAID, |seconds| Duration::from_secs(seconds).min(LONGEST).saturating_sub(EARLY));
    status.is_success().then(|| Token { value: value.into(), until: Instant::now() + lasts })
}

fn refused(errand: &Errand, status: StatusCode, body: &Value) -> Fault {
    let secrets = secrets(errand);
    // Masked before it is cut: a half of a secret is not known as one.
    let word = |key: &str| {
        let text = secrets.mask(body.get(key)?.as_str()?.to_owned());
        Some(text.chars().take(300).collect())
    };
    let words: Vec<String> = ["error", "error_description"].into_iter().filter_map(word).collect();
    let said = if words.is_empty() { "it said no more".to_owned() } else { words.join(": ") };
    let message = format!("no token can be got: HTTP {status} from POST {}: {said}", shown(&errand.url));
    let code =
        if status.is_client_error() { ErrorCode::PermissionDenied } else { ErrorCode::UpstreamUnavailable };
    Fault::without_effect(ToolError::new(code, secrets.mask(message)))
}

fn secrets(errand: &Errand) -> Redactor {
    let mut secrets = Redactor::default();
    let Errand { id, secret, .. } = errand;
    secrets.add_basic(id, secret);
    secrets.add_basic(&encode::component(id), &encode::component(secret));
    secrets
}

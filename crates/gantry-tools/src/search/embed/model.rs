//! The model itself: an endpoint that speaks the OpenAI protocol and turns texts into vectors.
//!
//! A model that does not answer must not hold up every search, so after that it is left alone for a while.

use crate::search::Embeddings;
use gantry_egress::HttpClient;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long the endpoint may take.
const ANSWER: Duration = Duration::from_secs(15);
/// How long it is not asked after it did not answer.
const REST: Duration = Duration::from_secs(30);
/// Bytes of its answer.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Numbers of one vector.
const DIMENSIONS: usize = 8_192;

#[derive(Debug)]
pub(super) struct Model {
    settings: Embeddings,
    client: OnceLock<HttpClient>,
    silence: Mutex<Option<Silence>>,
}

/// The model gave no answer at all. One that refuses has answered.
#[derive(Debug)]
struct Silence {
    since: Instant,
    reason: String,
}

#[derive(Deserialize)]
struct Reply {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Model {
    pub(super) fn new(settings: Embeddings) -> Self {
        Self { settings, client: OnceLock::new(), silence: Mutex::default() }
    }

    /// Why it is not asked at the moment.
    fn silent(&self) -> Option<String> {
        let silence = self.silence();
        let recent = silence.as_ref().filter(|silence| silence.since.elapsed() < REST)?;
        Some(format!("{}; it is asked again {REST:?} after that", recent.reason))
    }

    /// One vector of length 1 for each text.
    pub(super) async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        if let Some(reason) = self.silent() {
            return Err(reason);
        }
        let late = |_| Err(format!("{} did not answer within {ANSWER:?}", self.settings.url));
        let answer = timeout(ANSWER, self.post(texts)).await.unwrap_or_else(late);
        let silence = |reason: &String| Silence { since: Instant::now(), reason: reason.clone() };
        *self.silence() = answer.as_ref().err().map(silence);
        let (status, body) = answer?;
        let url = &self.settings.url;
        if !status.is_success() {
            return Err(format!("{url} answered {status}"));
        }
        let reply =
            serde_json::from_slice(&body).map_err(|error| format!("{url} gave no embeddings: {error}"))?;
        sound(reply, texts.len()).ok_or_else(|| format!("{url} gave unusable embeddings"))
    }

    async fn post(&self, texts: &[String]) -> Result<(StatusCode, Vec<u8>), String> {
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = HttpClient::new().map_err(|error| error.to_string())?;
                self.client.get_or_init(|| client)
            }
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.settings.api_key {
            let mut value = HeaderValue::try_from(format!("Bearer {key}"))
                .map_err(|error| format!("the API key of the embeddings cannot be sent: {error}"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let url = format!("{}/embeddings", self.settings.url.trim_end_matches('/'));
        let body = json!({ "model": self.settings.model, "input": texts }).to_string();
        let response = client.send(Method::POST, &url, headers, body.into()).await;
        let response = response.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.body(ANSWER_BYTES).await.map_err(|error| error.to_string())?;
        Ok((status, body.into()))
    }

    fn silence(&self) -> MutexGuard<'_, Option<Silence>> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The vectors of a reply in their order, if there is a usable one for each text.
fn sound(reply: Reply, n_texts: usize) -> Option<Vec<Vec<f32>>> {
    let mut items = reply.data;
    items.sort_by_key(|item| item.index);
    let vectors: Vec<Vec<f32>> = items.into_iter().map(|item| unit(item.embedding)).collect();
    let dimensions = vectors.first().map_or(0, Vec::len);
    let is_sound =
        |vector: &Vec<f32>| vector.len() == dimensions && vector.iter().all(|number| number.is_finite());
    let are_sound =
        vectors.len() == n_texts && (1..=DIMENSIONS).contains(&dimensions) && vectors.iter().all(is_sound);
    are_sound.then_some(vectors)
}

/// The vector with the same direction and length 1.
fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|n| n * n).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|n| *n /= length);
    }
    vector
}

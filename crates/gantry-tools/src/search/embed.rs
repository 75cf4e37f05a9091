//! Meaning beside words, where the operator has configured a model: the best files by words get a new order by how near
//! their best lines are to the question.
//!
//! One request per search sends the question and the lines that the answer shows, nothing else of a file. The model is
//! an addition: when it fails or does not answer, the order by words stays and the answer says so. A model that does not
//! answer must not hold up every search, so after that it is left alone for a while.

use super::matches::Match;
use super::search_code::Output;
use crate::options::EmbeddingsOptions;
use gantry_egress::HttpClient;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::json;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Files that get a new order.
pub(super) const CANDIDATES: usize = 50;
const SNIPPET_CHARS: usize = 2_000;
/// What softens the difference between the first ranks when the two orders are put together.
const RANK_SOFTENER: f64 = 60.0;
/// How long the endpoint may take.
const ANSWER: Duration = Duration::from_secs(15);
/// How long it is not asked after it did not answer.
const REST: Duration = Duration::from_secs(30);
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Numbers of one vector.
const DIMENSIONS: usize = 8_192;

/// Puts results in a new order by a model: an endpoint that speaks the OpenAI protocol and turns texts into vectors.
#[derive(Debug)]
pub(super) struct Reranker {
    options: EmbeddingsOptions,
    client: HttpClient,
    /// Since when, and why, the model gives no answer at all. One that refuses has answered.
    silence: Mutex<Option<(Instant, String)>>,
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

impl Reranker {
    pub(super) fn new(options: EmbeddingsOptions) -> Self {
        Self { options, client: HttpClient::unguarded(), silence: Mutex::default() }
    }

    /// Puts the first matches in a new order, or notes why they have the old one.
    pub(super) async fn rerank(&self, question: &str, output: &mut Output) {
        if output.matches.is_empty() {
            return;
        }
        let snippets = output.matches.iter().take(CANDIDATES).map(snippet);
        let texts: Vec<String> = std::iter::once(question.to_owned()).chain(snippets).collect();
        match self.embed(&texts).await {
            Ok(vectors) => reorder(&mut output.matches, &vectors),
            Err(reason) => {
                tracing::warn!(reason, "the embeddings model is of no use; search_code ranks by words alone");
                let notes =
                    output.note.take().into_iter().chain([format!("ranked by words alone: {reason}")]);
                output.note = Some(notes.collect::<Vec<_>>().join("; "));
            }
        }
    }

    /// One vector for each text.
    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        if let Some((since, reason)) = &*self.silence()
            && since.elapsed() < REST
        {
            return Err(format!("{reason}; it is asked again {REST:?} after that"));
        }
        let late = |_| Err(format!("{} did not answer within {ANSWER:?}", self.options.url));
        let answer = timeout(ANSWER, self.post(texts)).await.unwrap_or_else(late);
        *self.silence() = answer.as_ref().err().map(|reason| (Instant::now(), reason.clone()));
        let (status, body) = answer?;
        let url = &self.options.url;
        if !status.is_success() {
            return Err(format!("{url} answered {status}"));
        }
        let reply =
            serde_json::from_slice(&body).map_err(|error| format!("{url} gave no embeddings: {error}"))?;
        sound(reply, texts.len()).ok_or_else(|| format!("{url} gave unusable embeddings"))
    }

    async fn post(&self, texts: &[String]) -> Result<(StatusCode, Vec<u8>), String> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &self.options.api_key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose()))
                .map_err(|error| format!("the API key of the embeddings cannot be sent: {error}"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let url = format!("{}/embeddings", self.options.url.trim_end_matches('/'));
        let body = json!({ "model": self.options.model, "input": texts }).to_string();
        let response = self.client.send(Method::POST, &url, headers, body.into()).await;
        let response = response.map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.body(ANSWER_BYTES).await.map_err(|error| error.to_string())?;
        Ok((status, body.into()))
    }

    fn silence(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.silence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is sent of a match.
fn snippet(found: &Match) -> String {
    let lines = found.before.iter().chain([&found.text]).chain(&found.after).map(String::as_str);
    let all: Vec<&str> =
        [found.path.as_str()].into_iter().chain(found.symbol.as_deref()).chain(lines).collect();
    all.join("\n").chars().take(SNIPPET_CHARS).collect()
}

/// Puts the order by words and the order by meaning together by reciprocal ranks; of equals, the nearer comes first.
/// The first vector is that of the question, the others are those of the first matches.
fn reorder(matches: &mut Vec<Match>, vectors: &[Vec<f32>]) {
    let Some((question, vectors)) = vectors.split_first() else { return };
    let mut by_meaning: Vec<(usize, f32)> =
        vectors.iter().map(|vector| nearness(vector, question)).enumerate().collect();
    by_meaning.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let by_rank = |rank: usize| 1.0 / (RANK_SOFTENER + rank as f64);
    let score = |(n, found): (usize, Match)| {
        let near = by_meaning.iter().position(|(at, _)| *at == n);
        (by_rank(n) + near.map_or(0.0, by_rank), near, found)
    };
    let mut scored: Vec<_> = std::mem::take(matches).into_iter().enumerate().map(score).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let rounded = |score: f64| Some((score * 1e6).round() / 1e6);
    matches.extend(scored.into_iter().map(|(score, _, found)| Match { score: rounded(score), ..found }));
}

/// The vectors of a reply in their order, if there is a usable one for each text.
fn sound(mut reply: Reply, n_texts: usize) -> Option<Vec<Vec<f32>>> {
    reply.data.sort_by_key(|item| item.index);
    let vectors: Vec<Vec<f32>> = reply.data.into_iter().map(|item| item.embedding).collect();
    let dimensions = vectors.first().map_or(0, Vec::len);
    let is_sound =
        |vector: &Vec<f32>| vector.len() == dimensions && vector.iter().all(|number| number.is_finite());
    let are_sound =
        vectors.len() == n_texts && (1..=DIMENSIONS).contains(&dimensions) && vectors.iter().all(is_sound);
    are_sound.then_some(vectors)
}

/// How near two vectors are: the cosine of the angle between them.
fn nearness(a: &[f32], b: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt().max(f32::MIN_POSITIVE)
}

//! Meaning beside words, where the operator has configured a model: the best files by words get a new order by how near
//! their best lines are to the question.
//!
//! One request per search sends the question and the lines that the answer shows, nothing else of a file. The model is
//! an addition: when it fails or does not answer, the order by words stays and the answer says so.

mod model;

use super::Embeddings;
use super::answer::{Answer, Match};
use model::Model;

/// Files that get a new order.
pub(super) const CANDIDATES: usize = 50;
/// Characters that are sent of each.
const SNIPPET_CHARS: usize = 2_000;
/// What softens the difference between the first ranks when the two orders are put together.
const RANK_SOFTENER: f64 = 60.0;

/// Puts answers in a new order.
#[derive(Debug)]
pub(super) struct Reranker {
    model: Model,
}

impl Reranker {
    pub(super) fn new(settings: Embeddings) -> Self {
        Self { model: Model::new(settings) }
    }

    /// Puts the first matches in a new order, or notes why they have the old one.
    pub(super) async fn rerank(&self, question: &str, answer: &mut Answer) {
        if answer.matches.is_empty() {
            return;
        }
        let snippets = answer.matches.iter().take(CANDIDATES).map(snippet);
        let texts: Vec<String> = std::iter::once(question.to_owned()).chain(snippets).collect();
        match self.model.embed(&texts).await {
            Ok(vectors) => reorder(&mut answer.matches, &vectors),
            Err(reason) => {
                tracing::warn!(reason, "the embeddings model is of no use; search_code ranks by words alone");
                let reason = format!("ranked by words alone: {reason}");
                answer.note =
                    Some(answer.note.take().map_or(reason.clone(), |note| format!("{note}; {reason}")));
            }
        }
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
    let nearness = |vector: &Vec<f32>| vector.iter().zip(question).map(|(a, b)| a * b).sum::<f32>();
    let mut by_meaning: Vec<(usize, f32)> = vectors.iter().map(nearness).enumerate().collect();
    by_meaning.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let by_rank = |rank: usize| 1.0 / (RANK_SOFTENER + rank as f64);
    let mut ranks = vec![None; matches.len()];
    for (rank, (n, _)) in by_meaning.into_iter().enumerate() {
        if let Some(place) = ranks.get_mut(n) {
            *place = Some(rank);
        }
    }
    let mut scored: Vec<(f64, Option<usize>, Match)> = std::mem::take(matches)
        .into_iter()
        .zip(ranks)
        .enumerate()
        .map(|(n, (found, near))| (by_rank(n) + near.map_or(0.0, by_rank), near, found))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let rounded = |score: f64| Some((score * 1e6).round() / 1e6);
    matches.extend(scored.into_iter().map(|(score, _, found)| Match { score: rounded(score), ..found }));
}

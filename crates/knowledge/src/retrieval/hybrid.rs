//! Both sides of the search as one: what words found and what meaning found are compared, the question moves a little towards
//! the best of both, and what is near to it then is fused with what words found.

use std::collections::HashMap;
use std::time::Duration;

use orchestr8_contract::Fault;
use serde_json::json;

use super::Hit;
use super::fusion::{Side, Signs, fuse};
use crate::hub::{Hub, Meaning};
use crate::limits::{LEAST_NEAR, MOVED_BY, MOVED_TOWARDS, RERANKED};
use crate::record::read;
use crate::text::language::language;
use crate::vectors::search::{Around, Found, nearest};
use crate::vectors::{from_bytes, tables};

/// What is asked, of whom.
pub struct Question<'a> {
    pub hub: &'a Hub,
    pub tenant: &'a str,
    pub query: &'a str,
    /// The share of the query's words, by weight, in the best passage that words found.
    pub covered: f64,
}

/// The documents of both sides, best first, each with the passage to show: the one with the words, where there is one.
pub async fn both(
    question: &Question<'_>,
    meaning: &Meaning,
    by_words: &[Hit],
    by_meaning: Found,
) -> Result<Vec<Hit>, Fault> {
    let signs =
        Signs { speaks: meaning.embedder.speaks(language(question.query)), covered: question.covered };
    let Found { hits: by_meaning, around } = by_meaning;
    let vectors = question.vectors(meaning, by_words, &by_meaning, around.behind).await?;
    let first = question.fused(by_words, &by_meaning, (&around.vector, &vectors), signs);
    let towards: Vec<&[f32]> = first
        .iter()
        .take(MOVED_TOWARDS)
        .filter_map(|hit| Some(vectors.get(&hit.passage)?.as_slice()))
        .collect();
    if towards.is_empty() {
        return Ok(first);
    }
    let around = Around { vector: moved(&around.vector, &towards), ..around };
    match nearest(question.hub, meaning, question.tenant, &around, RERANKED).await {
        Ok(near) => Ok(question.fused(by_words, &near, (&around.vector, &vectors), signs)),
        // What is there already is an answer.
        Err(_) => Ok(first),
    }
}

impl Question<'_> {
    /// The vectors of what was found: from the index where it has them at hand and is in step, else from the store.
    async fn vectors(
        &self,
        meaning: &Meaning,
        by_words: &[Hit],
        by_meaning: &[Hit],
        behind: bool,
    ) -> Result<HashMap<i64, Vec<f32>>, Fault> {
        let mut numbers: Vec<i64> = by_words.iter().chain(by_meaning).map(|hit| hit.passage).collect();
        let mut vectors = HashMap::with_capacity(numbers.len());
        if !behind {
            let points = meaning.dense.at_hand(self.tenant, numbers.clone()).await?;
            vectors.extend(points.into_iter().map(|point| (point.passage, point.vector)));
            numbers.retain(|number| !vectors.contains_key(number));
        }
        if numbers.is_empty() {
            return Ok(vectors);
        }
        let of = tables::of_passages(self.tenant, meaning.embedder.name(), json!(numbers).to_string());
        let rows = self.hub.rows(of).await?;
        for row in &rows {
            vectors.insert(row.int(0).map_err(read)?, from_bytes(row.blob(1).map_err(read)?)?);
        }
        Ok(vectors)
    }

    /// Whatever words found is compared with the question by meaning, too, whether or not it is among the nearest.
    fn fused(
        &self,
        by_words: &[Hit],
        by_meaning: &[Hit],
        (vector, vectors): (&[f32], &HashMap<i64, Vec<f32>>),
        signs: Signs,
    ) -> Vec<Hit> {
        let mut passages: HashMap<&str, i64> = HashMap::new();
        let mut dense: Vec<(&str, f64)> = Vec::new();
        for hit in by_words.iter().chain(by_meaning) {
            passages.entry(&hit.document).or_insert(hit.passage);
        }
        let mut known: HashMap<&str, f64> = HashMap::new();
        for hit in by_words {
            if let Some(own) = vectors.get(&hit.passage).filter(|own| own.len() == vector.len()) {
                known.insert(&hit.document, f64::from(product(vector, own)));
            }
        }
        for hit in by_meaning.iter().filter(|hit| hit.score >= LEAST_NEAR) {
            let score = known.entry(&hit.document).or_insert(hit.score);
            *score = score.max(hit.score);
        }
        dense.extend(known);
        // The order of a map is nobody's; the same question must always give the same answer.
        dense.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
        let lexical: Vec<(&str, f64)> =
            by_words.iter().map(|hit| (hit.document.as_str(), hit.score)).collect();
        let least = |list: &[(&str, f64)]| list.last().map_or(0.0, |(_, score)| *score);
        let lexical_floor = if lexical.len() >= RERANKED { least(&lexical) } else { 0.0 };
        let dense_floor = least(&dense);
        let fused = fuse(
            &Side { list: lexical, floor: lexical_floor },
            &Side { list: dense, floor: dense_floor },
            signs,
        );
        let hit = |(document, score): (&str, f64)| {
            Some(Hit { document: document.to_owned(), passage: *passages.get(document)?, score })
        };
        fused.into_iter().filter_map(hit).collect()
    }
}

/// The question a little nearer to these, the first of which counts most.
fn moved(vector: &[f32], towards: &[&[f32]]) -> Vec<f32> {
    let mut sum = vec![0.0; vector.len()];
    for (rank, other) in towards.iter().filter(|other| other.len() == vector.len()).enumerate() {
        let share = 1.0 / (rank + 1) as f32;
        sum.iter_mut().zip(*other).for_each(|(sum, number)| *sum += share * number);
    }
    let length = product(&sum, &sum).sqrt();
    let by = if length > 0.0 { MOVED_BY / length } else { 0.0 };
    let mut moved: Vec<f32> = vector.iter().zip(&sum).map(|(number, sum)| number + by * sum).collect();
    let length = product(&moved, &moved).sqrt();
    if length > 0.0 {
        moved.iter_mut().for_each(|number| *number /= length);
    }
    moved
}

fn product(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// How long each side may take, of what the caller allows: what is left is for fusing and telling.
pub fn patience(latency_ms: u64) -> Duration {
    Duration::from_millis(latency_ms.saturating_mul(3) / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_moves_towards_what_was_found_and_keeps_its_length() {
        let moved = moved(&[1.0, 0.0], &[&[0.0, 1.0], &[0.0, 1.0], &[9.0]]);
        assert!(moved[0] > moved[1] && moved[1] > 0.3, "{moved:?}");
        assert!((product(&moved, &moved) - 1.0).abs() < 1e-6);
        assert_eq!(super::moved(&[1.0, 0.0], &[&[0.0, 0.0]]), [1.0, 0.0]);
    }
}

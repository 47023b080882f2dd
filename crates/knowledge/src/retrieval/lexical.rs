//! The search by words: BM25 over the passages of one tenant, with its own counts.

use std::collections::{HashMap, HashSet};

use orchestr8_contract::Fault;
use serde_json::{Value, json};

use super::lexicon::Sign;
use super::tables::{self, Weights};
use super::{Filter, Hit};
use crate::hub::Hub;
use crate::limits::{CANDIDATES, CANDIDATES_MAX, QUERY_TERMS};
use crate::record::read;
use crate::tables::tree_read;
use crate::text::{Term, terms};

/// BM25, and what a word in a title or heading counts against one in the text.
const K1: f64 = 1.2;
const B: f64 = 0.75;
const HEAD: f64 = 1.0;

/// What the plain form of a word counts in a query typed without marks, and in one typed with them: whoever types some means
/// all words as they are.
const PLAIN: f64 = 0.4;
const PLAIN_BESIDE_MARKS: f64 = 0.05;

/// In a tenant of so many passages, words that stand in more than a quarter of them are left out while others remain: they
/// decide little and cost most.
const MANY_PASSAGES: i64 = 2_000;
const SHARE: i64 = 4;
const TERMS_KEPT: usize = 3;

/// A word of a query and what it weighs.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    pub term: Term,
    pub weight: f64,
}

/// What the words found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub wanted: Vec<Wanted>,
}

/// The best documents for a query, each with its best passage. None that passes the filter is ever left out for one that
/// does not.
pub async fn search(
    hub: &Hub,
    tenant: &str,
    query: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Found, Fault> {
    let Some(tree) = hub.row(tree_read(tenant)).await? else { return Ok(Found::default()) };
    let (chunks, words) = (tree.int(1).map_err(read)?, tree.int(2).map_err(read)?);
    let mut unique = HashSet::new();
    let terms: Vec<Term> = terms(query).into_iter().filter(|term| unique.insert(term.clone())).collect();
    if chunks <= 0 || terms.is_empty() {
        return Ok(Found::default());
    }
    let sign = Sign::of(tenant);
    let counted = frequencies(hub, &sign, &terms).await?;
    let query = Query::new(&sign, terms, &counted, chunks);
    let weights = Weights { k1: K1, b: B, head: HEAD, mean: words.max(1) as f64 / chunks as f64 };
    let hits = if query.list.is_empty() {
        Vec::new()
    } else {
        best(hub, tenant, &query, &weights, filter, limit).await?
    };
    Ok(Found { hits, wanted: query.wanted })
}

/// Looks at more and more passages until there are enough documents or nothing is left.
async fn best(
    hub: &Hub,
    tenant: &str,
    query: &Query,
    weights: &Weights,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let words = Value::Array(query.list.clone()).to_string();
    let mut candidates = CANDIDATES;
    loop {
        let statement = if filter.is_empty() {
            tables::best(words.clone(), weights, candidates)
        } else {
            tables::best_within(words.clone(), weights, &stored(tenant, filter), candidates)
        };
        let rows = hub.rows(statement).await?;
        let mut scored = Vec::with_capacity(rows.len());
        for row in &rows {
            scored.push((row.int(0).map_err(read)?, real(row, 1)));
        }
        let hits = documents(hub, tenant, &scored).await?;
        let exhausted = scored.len() < usize::try_from(candidates).unwrap_or(usize::MAX);
        if hits.len() >= limit || exhausted || candidates >= CANDIDATES_MAX {
            return Ok(hits);
        }
        candidates = (candidates * 8).min(CANDIDATES_MAX);
    }
}

/// The documents of these passages that may be seen, each once, in the order of their best passages.
pub(crate) async fn documents(hub: &Hub, tenant: &str, scored: &[(i64, f64)]) -> Result<Vec<Hit>, Fault> {
    let numbers: Vec<i64> = scored.iter().map(|(number, _)| *number).collect();
    let rows = hub.rows(tables::owners(tenant, json!(numbers).to_string())).await?;
    let mut owners = HashMap::with_capacity(rows.len());
    for row in &rows {
        owners.insert(row.int(0).map_err(read)?, row.text(1).map_err(read)?.to_owned());
    }
    let mut seen = HashSet::new();
    let first = |(number, score): &(i64, f64)| {
        let document = owners.get(number)?;
        seen.insert(document.clone()).then(|| Hit {
            document: document.clone(),
            passage: *number,
            score: *score,
        })
    };
    Ok(scored.iter().filter_map(first).collect())
}

async fn frequencies(hub: &Hub, sign: &Sign, terms: &[Term]) -> Result<HashMap<String, i64>, Fault> {
    let forms = terms.iter().flat_map(|term| std::iter::once(&term.kept).chain(&term.folded));
    let words: Vec<String> = forms.map(|form| sign.word(form)).collect();
    let rows = hub.rows(tables::frequencies(json!(words).to_string())).await?;
    let pair = |row: &orchestr8_kernel::ports::store::Row| Ok((row.text(0)?.to_owned(), row.int(1)?));
    rows.iter().map(pair).collect::<Result<_, _>>().map_err(read)
}

/// The words of a query as the index is asked for them.
struct Query {
    wanted: Vec<Wanted>,
    /// `[word, weight, weight of its plain form]`
    list: Vec<Value>,
}

impl Query {
    fn new(sign: &Sign, terms: Vec<Term>, counted: &HashMap<String, i64>, chunks: i64) -> Self {
        let count = |form: &str| counted.get(&sign.word(form)).copied().unwrap_or(0);
        let mut terms: Vec<(i64, Term)> = terms.into_iter().map(|term| (count(&term.kept), term)).collect();
        // Stable, so that words of equal weight keep their order and the same query gives the same answer.
        terms.sort_by_key(|(count, _)| *count);
        terms.truncate(QUERY_TERMS);
        let found = terms.iter().filter(|(count, _)| *count > 0).count();
        let marked = terms.iter().any(|(_, term)| term.folded.is_some());
        let share = if marked { PLAIN_BESIDE_MARKS } else { PLAIN };
        let mut query = Self { wanted: Vec::new(), list: Vec::new() };
        let mut kept = 0;
        for (number, term) in terms {
            let common = chunks >= MANY_PASSAGES && number > chunks / SHARE;
            if common && kept >= TERMS_KEPT.min(found) {
                continue;
            }
            kept += usize::from(number > 0);
            let weight = rarity(number, chunks);
            match &term.folded {
                None if number > 0 => query.list.push(json!([sign.word(&term.kept), weight, weight * share])),
                None => {}
                Some(folded) => {
                    if number > 0 {
                        query.list.push(json!([sign.word(&term.kept), weight, 0.0]));
                    }
                    let plain = rarity(count(folded), chunks) * share;
                    if count(folded) > 0 {
                        query.list.push(json!([sign.word(folded), plain, plain]));
                    }
                }
            }
            query.wanted.push(Wanted { term, weight });
        }
        query
    }
}

/// What a word says that stands in so many of all passages.
fn rarity(count: i64, all: i64) -> f64 {
    let (count, all) = (count as f64, all.max(count) as f64);
    ((all - count + 0.5) / (count + 0.5)).ln_1p() * (K1 + 1.0)
}

pub(crate) fn stored<'a>(tenant: &'a str, filter: &'a Filter) -> tables::Filter<'a> {
    let tags = (!filter.tags.is_empty()).then(|| json!(filter.tags).to_string());
    let metadata = (!filter.metadata.is_empty()).then(|| Value::Object(filter.metadata.clone()).to_string());
    tables::Filter { tenant, tags, below: filter.below.as_deref(), metadata }
}

fn real(row: &orchestr8_kernel::ports::store::Row, column: usize) -> f64 {
    use orchestr8_kernel::ports::store::Cell;
    match row.0.get(column) {
        Some(Cell::Real(real)) => *real,
        Some(Cell::Int(int)) => *int as f64,
        _ => 0.0,
    }
}

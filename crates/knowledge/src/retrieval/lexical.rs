//! The search by words: BM25 over the passages of one tenant, with its own counts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use orchestr8_contract::Fault;
use serde_json::{Value, json};

use super::lexicon::Sign;
use super::tables::{self, Weights};
use super::{Filter, Hit};
use crate::hub::Hub;
use crate::limits::{CANDIDATES, CANDIDATES_MAX, QUERY_TERMS};
use crate::record::read;
use crate::text::{Term, terms};
use crate::words::index::Index;
use crate::words::{Kept, Tree};
use crate::write::number;

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

/// A word as an index is asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    pub form: String,
    /// What it weighs where it stands so, and where it is the plain form of a word with marks.
    pub kept: f64,
    pub plain: f64,
}

/// What the words found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub wanted: Vec<Wanted>,
    /// Whether memory gave it, and not the store.
    pub in_memory: bool,
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
    let Some(tree) = Tree::read(hub, tenant).await? else { return Ok(Found::default()) };
    match hub.words_at(tenant, tree).await {
        Some(words) => search_memory(hub, (tenant, tree, words), query, filter, limit).await,
        None => search_store(hub, (tenant, tree), query, filter, limit).await,
    }
}

/// The same in memory.
async fn search_memory(
    hub: &Hub,
    (tenant, tree, words): (&str, Tree, Arc<Kept>),
    query: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Found, Fault> {
    let terms = asked(query, tree);
    if terms.is_empty() {
        return Ok(Found { in_memory: true, ..Found::default() });
    }
    let within = match filter.is_empty() {
        true => None,
        false => Some(hub.open(tenant, filter).await?),
    };
    let look = move |index: &Index| {
        let counted = forms(&terms).map(|form| (form.to_owned(), number(index.frequency(form)))).collect();
        let query = Query::new(terms, &counted, tree.chunks);
        let hits = index.best(&query.list, &weights(tree), within.as_deref(), limit);
        Found { hits, wanted: query.wanted, in_memory: true }
    };
    hub.words().ask(words, look).await
}

/// The same in the store.
async fn search_store(
    hub: &Hub,
    (tenant, tree): (&str, Tree),
    query: &str,
    filter: &Filter,
    limit: usize,
) -> Result<Found, Fault> {
    let terms = asked(query, tree);
    if terms.is_empty() {
        return Ok(Found::default());
    }
    let sign = Sign::of(tenant);
    let counted = frequencies(hub, &sign, &terms).await?;
    let query = Query::new(terms, &counted, tree.chunks);
    let mut hits = if query.list.is_empty() {
        Vec::new()
    } else {
        best(hub, tenant, &query.stored(&sign), &weights(tree), filter, limit).await?
    };
    hits.truncate(limit);
    Ok(Found { hits, wanted: query.wanted, in_memory: false })
}

/// The words of a query, each once; none if there is nothing to find.
fn asked(query: &str, tree: Tree) -> Vec<Term> {
    if tree.chunks <= 0 {
        return Vec::new();
    }
    let mut unique = HashSet::new();
    terms(query).into_iter().filter(|term| unique.insert(term.clone())).collect()
}

fn forms(terms: &[Term]) -> impl Iterator<Item = &str> {
    terms.iter().flat_map(|term| std::iter::once(&term.kept).chain(&term.folded)).map(String::as_str)
}

fn weights(tree: Tree) -> Weights {
    Weights { k1: K1, b: B, head: HEAD, mean: tree.words.max(1) as f64 / tree.chunks as f64 }
}

/// Looks at more and more passages until there are enough documents or nothing is left.
async fn best(
    hub: &Hub,
    tenant: &str,
    words: &str,
    weights: &Weights,
    filter: &Filter,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let mut candidates = CANDIDATES;
    loop {
        let statement = if filter.is_empty() {
            tables::best(words.to_owned(), weights, candidates)
        } else {
            tables::best_within(words.to_owned(), weights, &stored(tenant, filter), candidates)
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
    Ok(firsts(scored, &owners))
}

/// The documents of these passages, each once, in the order of their best passages.
pub(crate) fn firsts(scored: &[(i64, f64)], owners: &HashMap<i64, String>) -> Vec<Hit> {
    let mut seen = HashSet::new();
    let first = |(number, score): &(i64, f64)| {
        let document = owners.get(number)?;
        seen.insert(document.clone()).then(|| Hit {
            document: document.clone(),
            passage: *number,
            score: *score,
        })
    };
    scored.iter().filter_map(first).collect()
}

/// In how many passages each form of these words stands.
async fn frequencies(hub: &Hub, sign: &Sign, terms: &[Term]) -> Result<HashMap<String, i64>, Fault> {
    let signed: HashMap<String, &str> = forms(terms).map(|form| (sign.word(form), form)).collect();
    let words: Vec<&String> = signed.keys().collect();
    let rows = hub.rows(tables::frequencies(json!(words).to_string())).await?;
    let mut counted = HashMap::with_capacity(rows.len());
    for row in &rows {
        let of = || Ok((row.text(0)?, row.int(1)?));
        let (word, count) = of().map_err(read)?;
        if let Some(form) = signed.get(word) {
            counted.insert((*form).to_owned(), count);
        }
    }
    Ok(counted)
}

/// The words of a query as an index is asked for them.
struct Query {
    wanted: Vec<Wanted>,
    list: Vec<Weighted>,
}

impl Query {
    fn new(terms: Vec<Term>, counted: &HashMap<String, i64>, chunks: i64) -> Self {
        let count = |form: &str| counted.get(form).copied().unwrap_or(0);
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
                None if number > 0 => query.ask(&term.kept, weight, weight * share),
                None => {}
                Some(folded) => {
                    if number > 0 {
                        query.ask(&term.kept, weight, 0.0);
                    }
                    let plain = rarity(count(folded), chunks) * share;
                    if count(folded) > 0 {
                        query.ask(folded, plain, plain);
                    }
                }
            }
            query.wanted.push(Wanted { term, weight });
        }
        query
    }

    fn ask(&mut self, form: &str, kept: f64, plain: f64) {
        self.list.push(Weighted { form: form.to_owned(), kept, plain });
    }

    /// `[word, weight, weight of its plain form]` of each, as the store takes them.
    fn stored(&self, sign: &Sign) -> String {
        let one = |word: &Weighted| json!([sign.word(&word.form), word.kept, word.plain]);
        Value::Array(self.list.iter().map(one).collect()).to_string()
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

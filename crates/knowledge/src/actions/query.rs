//! Finds the passages that answer a question, and an answer made of them (KNO-8.5).

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{Either, join, select};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::ports::store::{Error, Row};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Map, Value, json};

use super::written::{self, Ended, Source, Wish, Written};
use crate::hub::{Hub, tenant};
use crate::limits;
use crate::reading::plain_id;
use crate::record::{Mime, ROOT, read};
use crate::retrieval::closeness::Pairs;
use crate::retrieval::hybrid::{self, Question};
use crate::retrieval::lexical::{self, Found, Wanted};
use crate::retrieval::passage::{answer, covered, plain, snippet, titled};
use crate::retrieval::{Filter, Hit, tables};
use crate::tables::Whose;
use crate::text::prose::{Prose, prose};
use crate::text::terms;
use crate::vectors::search as meanings;

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let began_us = hub.kernel().ports().clock.elapsed_us();
    let asked = Asked::read(&hub, tenant(&context), &args).await?;
    let mut answered = Answered::default();
    if !asked.noop {
        let limit = Duration::from_millis(asked.latency_ms);
        let waited = hub.kernel().ports().clock.sleep(limit);
        let searched = Box::pin(search(&hub, tenant(&context), &asked));
        // Whatever is there when the time is up is the answer.
        answered = match select(searched, waited).await {
            Either::Left((found, _)) => found?,
            Either::Right(_) => Answered { degraded: true, ..Answered::default() },
        };
        let passed_us = hub.kernel().ports().clock.elapsed_us().saturating_sub(began_us);
        answered.write(&hub, &context, &asked, asked.latency_ms.saturating_sub(passed_us / 1000)).await;
        // Whoever cancelled does not want what was there when they did.
        context.check()?;
    }
    let latency_us = hub.kernel().ports().clock.elapsed_us().saturating_sub(began_us);
    Ok(Output::json(answered.shown(latency_us / 1000)).into())
}

/// What is asked.
struct Asked {
    query: String,
    filter: Filter,
    top_k: usize,
    latency_ms: u64,
    plain: bool,
    language: Option<String>,
    sides: Sides,
    noop: bool,
}

/// Which sides of the search are asked.
#[derive(Clone, Copy, PartialEq)]
enum Sides {
    Both,
    Words,
    Meaning,
}

impl Sides {
    fn read(name: Option<&str>) -> Self {
        match name {
            Some("lexical") => Self::Words,
            Some("dense") => Self::Meaning,
            Some(_) | None => Self::Both,
        }
    }
}

impl Asked {
    async fn read(hub: &Hub, tenant: &str, args: &Args) -> Result<Self, Fault> {
        let at = |path: &str| args.as_value().pointer(path);
        let noop = at("/routing/noop_qdrant").and_then(Value::as_bool).unwrap_or(false);
        if noop && !hub.settings().test_mode {
            return Err(Fault::invalid("`routing.noop_qdrant` is for test mode only")
                .with("path", "routing.noop_qdrant"));
        }
        if at("/filters/tenant_id").and_then(Value::as_str).is_some_and(|named| named != tenant) {
            return Err(Fault::new(Code::Unauthorized, "`filters.tenant_id` is not your tenant")
                .with("path", "filters.tenant_id"));
        }
        let below = at("/filters/subtree").and_then(Value::as_str).map(plain_id).filter(|id| id != ROOT);
        if let Some(id) = &below {
            hub.document(Whose { tenant, id }).await?;
        }
        let tags = at("/filters/tags").and_then(Value::as_array).into_iter().flatten();
        let filter = Filter {
            tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
            below,
            metadata: at("/filters/metadata").and_then(Value::as_object).cloned().unwrap_or_default(),
        };
        let top_k = args.get("top_k").and_then(Value::as_u64).and_then(|k| usize::try_from(k).ok());
        let latency_ms = at("/routing/max_latency_ms").and_then(Value::as_u64).unwrap_or(limits::LATENCY_MS);
        Ok(Self {
            query: args.text("query").unwrap_or_default().to_owned(),
            filter,
            top_k: top_k.unwrap_or(limits::TOP_K).clamp(1, limits::TOP_K_MAX),
            latency_ms: latency_ms.clamp(limits::LATENCY_MS_MIN, limits::LATENCY_MS_MAX),
            plain: at("/context_hints/preferred_format").and_then(Value::as_str) == Some("plain"),
            language: at("/context_hints/language").and_then(Value::as_str).map(str::to_owned),
            sides: Sides::read(at("/routing/retrieval").and_then(Value::as_str)),
            noop,
        })
    }
}

/// What was found.
#[derive(Default)]
struct Answered {
    response: String,
    context: Vec<Value>,
    lexical_hits: usize,
    dense_hits: usize,
    degraded: bool,
    /// The sides that answered.
    retrieval: Option<&'static str>,
    /// The passages in full, for a model to answer from.
    texts: Vec<String>,
    written: Option<Written>,
    /// Why sentences stand in for the answer of a model.
    fallback: Option<&'static str>,
    /// What an answer cost that was not taken.
    model_usage: Option<Value>,
}

/// A model was to answer, and failed or took too long.
const MODEL_UNAVAILABLE: &str = "model_unavailable";

/// A model answered, and cited none of the passages.
const MODEL_UNCITED: &str = "model_cited_nothing";

/// No side of the search was asked, or none had answered when the time was up.
const NO_SIDE: &str = "none";

impl Answered {
    /// Lets the configured model answer from the passages. Without one, or when it is late, their own sentences are the answer.
    async fn write(&mut self, hub: &Hub, context: &Context, asked: &Asked, left_ms: u64) {
        let title =
            |item: &'_ Value| item.pointer("/metadata/title").and_then(Value::as_str).map(str::to_owned);
        let titles: Vec<String> = self.context.iter().map(|item| title(item).unwrap_or_default()).collect();
        let sources: Vec<Source<'_>> =
            titles.iter().zip(&self.texts).map(|(title, text)| Source { title, text }).collect();
        let wish =
            Wish { question: &asked.query, language: asked.language.as_deref(), plain: asked.plain, left_ms };
        match written::write(hub, context, &wish, &sources).await {
            Ended::NoModel => {}
            Ended::Missed => (self.degraded, self.fallback) = (true, Some(MODEL_UNAVAILABLE)),
            Ended::Uncited { usage } => {
                (self.degraded, self.fallback, self.model_usage) = (true, Some(MODEL_UNCITED), Some(usage));
            }
            Ended::Written(written) => self.written = Some(written),
        }
    }

    /// What the answer says, and where it says that it is from.
    fn add_written(value: &mut Value, written: Written) {
        let cited = written.cited.iter().filter_map(|number| {
            let item = value["context"].get(number - 1)?;
            let member = |name: &str| item[name].clone();
            Some(
                json!({"number": number, "document_id": member("document_id"), "revision": member("revision"),
                        "offset": member("offset"), "length": member("length")}),
            )
        });
        let citations: Vec<Value> = cited.collect();
        value["response"] = json!(written.text);
        value["extractive"] = json!(false);
        value["model"] = json!(written.model);
        value["citations"] = json!(citations);
        value["usage"]["model"] = written.usage;
    }

    fn shown(self, latency_ms: u64) -> Value {
        let mut value = json!({"response": self.response, "context": self.context, "extractive": true,
            "retrieval": self.retrieval.unwrap_or(NO_SIDE),
            "usage": {"latency_ms": latency_ms, "qdrant_hits": self.dense_hits, "lexical_hits": self.lexical_hits}});
        if self.degraded {
            value["degraded"] = json!(true);
        }
        if let Some(fallback) = self.fallback {
            value["fallback"] = json!(fallback);
        }
        if let Some(usage) = self.model_usage {
            value["usage"]["model"] = usage;
        }
        if let Some(written) = self.written {
            Self::add_written(&mut value, written);
        }
        value
    }
}

/// Asks both sides at once, and goes on with what is there when their time is up.
async fn search(hub: &Hub, tenant: &str, asked: &Asked) -> Result<Answered, Fault> {
    let looked_at = asked.top_k.max(limits::RERANKED);
    let patience = hybrid::patience(asked.latency_ms);
    let words = within(hub, patience, by_words(hub, tenant, asked, looked_at));
    let meaning = within(hub, patience, by_meaning(hub, tenant, asked, looked_at));
    let (words, meaning) = join(words, meaning).await;
    let late = words.is_none() || meaning.is_none();
    let words = words.transpose()?.unwrap_or_default();
    let mut answered = Answered {
        lexical_hits: words.hits.len(),
        degraded: late,
        retrieval: Some("lexical only"),
        ..Answered::default()
    };
    // Meaning that fails is no reason not to answer: words are still there, and the answer says so.
    let meaning = match meaning {
        Some(Ok(meaning)) => meaning,
        Some(Err(fault)) => {
            let error = json!({"error": orchestr8_kernel::log::error(&fault)});
            hub.kernel().log().warn("a query was answered by words alone", error);
            answered.degraded = true;
            None
        }
        None => None,
    };
    let hits = match (hub.meaning(), meaning) {
        (Some(side), Some(found)) => {
            answered.dense_hits = found.hits.len();
            answered.degraded |= found.around.behind;
            if asked.sides == Sides::Meaning {
                answered.retrieval = Some("dense only");
                found.hits
            } else {
                answered.retrieval = Some("hybrid");
                let question = Question { hub, tenant, query: &asked.query, covered: words.covered };
                hybrid::both(&question, side, &words.hits, found).await?
            }
        }
        (Some(_) | None, _) => words.hits,
    };
    tell(hub, tenant, asked, hits.into_iter().take(asked.top_k).collect(), &words.wanted, answered).await
}

/// What words found, looked at more closely.
#[derive(Default)]
struct Words {
    hits: Vec<Hit>,
    wanted: Vec<Wanted>,
    /// How much of the query stands in the first.
    covered: f64,
}

async fn by_words(hub: &Hub, tenant: &str, asked: &Asked, looked_at: usize) -> Result<Words, Fault> {
    if asked.sides == Sides::Meaning && hub.meaning().is_some() {
        return Ok(Words::default());
    }
    let Found { hits, wanted, .. } =
        lexical::search(hub, tenant, &asked.query, &asked.filter, looked_at).await?;
    let pairs = Pairs::of(&asked.query, &wanted);
    let mut found = passages(hub, tenant, hits.into_iter().take(looked_at).collect()).await?;
    for one in &mut found {
        one.hit.score += pairs.gain(&one.text, one.title());
    }
    found.sort_by(|one, other| other.hit.score.total_cmp(&one.hit.score));
    let covered =
        found.first().map_or(0.0, |one| covered(&format!("{}\n{}", one.title(), one.text), &wanted));
    Ok(Words { hits: found.into_iter().map(|one| one.hit).collect(), wanted, covered })
}

/// What meaning found; none where there is no model for it.
async fn by_meaning(
    hub: &Hub,
    tenant: &str,
    asked: &Asked,
    looked_at: usize,
) -> Result<Option<meanings::Found>, Fault> {
    let Some(meaning) = hub.meaning().filter(|_| asked.sides != Sides::Words) else { return Ok(None) };
    let wait = Duration::from_millis(limits::CATCH_UP_MS.min(asked.latency_ms / 2));
    let limits = (looked_at, wait);
    meanings::search(hub, meaning, tenant, &asked.query, &asked.filter, limits).await.map(Some)
}

/// What it gives, unless it takes too long.
async fn within<T>(hub: &Hub, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    match select(Box::pin(work), hub.kernel().ports().clock.sleep(limit)).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}

async fn tell(
    hub: &Hub,
    tenant: &str,
    asked: &Asked,
    hits: Vec<Hit>,
    wanted: &[Wanted],
    mut answered: Answered,
) -> Result<Answered, Fault> {
    let found = passages(hub, tenant, hits).await?;
    let shown = found.iter().map(|one| one.shown(hub, wanted)).collect::<Result<Vec<_>, _>>();
    answered.context = shown.map_err(read)?;
    let said: Vec<Prose> = found.iter().map(Passage::said).collect();
    // Where words were not searched for, all of them count the same.
    let plain_words: Vec<Wanted> =
        terms(&asked.query).into_iter().map(|term| Wanted { term, weight: 1.0 }).collect();
    answered.response = answer(&said, if wanted.is_empty() { &plain_words } else { wanted });
    if asked.plain {
        answered.response = plain(&answered.response);
    }
    answered.texts = found.into_iter().map(|passage| passage.text).collect();
    Ok(answered)
}

/// One passage that was found.
struct Passage {
    row: Row,
    hit: Hit,
    text: String,
    metadata: Map<String, Value>,
}

impl Passage {
    fn read(row: Row, hit: Hit) -> Result<Self, Error> {
        let text = row.text(5)?.to_owned();
        let metadata: Map<String, Value> = serde_json::from_str(row.text(6)?).unwrap_or_default();
        Ok(Self { row, hit, text, metadata })
    }

    fn title(&self) -> &str {
        self.metadata.get("title").and_then(Value::as_str).unwrap_or_default()
    }

    /// What sentences can be taken from: JSON has none.
    fn said(&self) -> Prose {
        match self.row.text(8).ok().and_then(Mime::parse) {
            Some(Mime::Json) => Prose::default(),
            Some(Mime::Markdown) => titled(prose(&self.text, true), self.title()),
            Some(Mime::Plain) | None => titled(prose(&self.text, false), self.title()),
        }
    }

    fn shown(&self, hub: &Hub, wanted: &[Wanted]) -> Result<Value, Error> {
        let (id, piece) = (self.row.text(1)?, snippet(&self.text, wanted));
        let mut item = json!({"document_id": id, "revision": self.row.int(2)?, "snippet": piece.text,
            "offset": self.row.int(3)? + crate::write::number(piece.offset), "length": piece.length,
            "score": (self.hit.score * 1e6).round() / 1e6, "metadata": self.metadata});
        if let Some(uri) = hub.web_uri(id, self.row.int(7)? != 0) {
            item["web_uri"] = json!(uri);
        }
        Ok(item)
    }
}

/// The passages of these hits, in their order. One that was changed or deleted a moment ago is not there any more.
async fn passages(hub: &Hub, tenant: &str, hits: Vec<Hit>) -> Result<Vec<Passage>, Fault> {
    let numbers: Vec<i64> = hits.iter().map(|hit| hit.passage).collect();
    let rows = hub.rows(tables::passages(tenant, json!(numbers).to_string())).await?;
    let mut by_number = HashMap::with_capacity(rows.len());
    for row in rows {
        by_number.insert(row.int(0).map_err(read)?, row);
    }
    let found = hits.into_iter().filter_map(|hit| Some((by_number.remove(&hit.passage)?, hit)));
    found.map(|(row, hit)| Passage::read(row, hit)).collect::<Result<_, _>>().map_err(read)
}

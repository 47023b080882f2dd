//! Finds the passages that answer a question, and an answer made of them (KNO-8.5).

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{Either, select};
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Map, Value, json};

use crate::hub::{Hub, tenant};
use crate::limits;
use crate::reading::plain_id;
use crate::record::{Mime, ROOT, read};
use crate::retrieval::lexical::{self, Found, Wanted};
use crate::retrieval::passage::{answer, plain, snippet};
use crate::retrieval::{Filter, Hit, tables};
use crate::tables::Whose;

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
    noop: bool,
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
    hybrid: bool,
}

impl Answered {
    fn shown(self, latency_ms: u64) -> Value {
        let mut value = json!({"response": self.response, "context": self.context, "extractive": true,
            "retrieval": if self.hybrid { "hybrid" } else { "lexical only" },
            "usage": {"latency_ms": latency_ms, "qdrant_hits": self.dense_hits, "lexical_hits": self.lexical_hits}});
        if self.degraded {
            value["degraded"] = json!(true);
        }
        value
    }
}

async fn search(hub: &Hub, tenant: &str, asked: &Asked) -> Result<Answered, Fault> {
    let Found { hits, wanted } =
        lexical::search(hub, tenant, &asked.query, &asked.filter, asked.top_k).await?;
    let lexical_hits = hits.len();
    let hits: Vec<Hit> = hits.into_iter().take(asked.top_k).collect();
    let shown = show(hub, tenant, &hits, &wanted).await?;
    let passages: Vec<&str> = shown.iter().map(|(_, text)| text.as_str()).collect();
    let mut response = answer(&passages, &wanted);
    if asked.plain {
        response = plain(&response);
    }
    let context = shown.into_iter().map(|(item, _)| item).collect();
    Ok(Answered { response, context, lexical_hits, ..Answered::default() })
}

/// The items of the context, with the texts of their passages.
async fn show(
    hub: &Hub,
    tenant: &str,
    hits: &[Hit],
    wanted: &[Wanted],
) -> Result<Vec<(Value, String)>, Fault> {
    let numbers: Vec<i64> = hits.iter().map(|hit| hit.passage).collect();
    let rows = hub.rows(tables::passages(tenant, json!(numbers).to_string())).await?;
    let mut by_number = HashMap::with_capacity(rows.len());
    for row in rows {
        by_number.insert(row.int(0).map_err(read)?, row);
    }
    let mut shown = Vec::with_capacity(hits.len());
    for hit in hits {
        // One that was changed or deleted a moment ago is not there any more.
        let Some(row) = by_number.get(&hit.passage) else { continue };
        let item = || {
            let (id, text) = (row.text(1)?, row.text(5)?);
            let piece = snippet(text, wanted);
            let metadata: Map<String, Value> = serde_json::from_str(row.text(6)?).unwrap_or_default();
            let mut item = json!({"document_id": id, "revision": row.int(2)?, "snippet": piece.text,
                "offset": row.int(3)? + crate::write::number(piece.offset), "length": piece.length,
                "score": (hit.score * 1e6).round() / 1e6, "metadata": metadata});
            if let Some(uri) = hub.web_uri(id, row.int(7)? != 0) {
                item["web_uri"] = json!(uri);
            }
            let text = match Mime::parse(row.text(8)?) {
                Some(Mime::Json) => String::new(),
                Some(Mime::Markdown | Mime::Plain) | None => text.to_owned(),
            };
            Ok((item, text))
        };
        shown.push(item().map_err(read)?);
    }
    Ok(shown)
}

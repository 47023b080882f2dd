//! What there is to know: of one session, and of all of them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use orchestr8_contract::{AccessRole, Fault};
use orchestr8_kernel::ledger::store_fault;
use orchestr8_kernel::ports::store::Row;
use orchestr8_kernel::resilience::Kept;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Map, Value, json};

use super::{answer, session};
use crate::hub::Hub;
use crate::limits;
use crate::news::News;
use crate::recover::{REASON, command};
use crate::tables::{self, Asked};
use crate::tree::Tree;

/// What the keys of breakers begin with.
const MODEL: &str = "cb:model:";
const BASH: &str = "cb:bash:";

pub async fn state(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    answer(hub.info(&session))
}

pub async fn stats(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let (stats, file) = session.with_header(|header| (header.stats.clone(), header.file.clone()));
    let usage = stats.usage;
    answer(json!({
        "sessionFile": file, "sessionId": &*session.id,
        "userMessages": stats.user_messages, "assistantMessages": stats.assistant_messages,
        "toolCalls": stats.tool_calls, "toolResults": stats.tool_results, "totalMessages": stats.total_messages,
        "tokens": {"input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
                   "cacheWrite": usage.cache_write, "total": usage.total()},
        "cost": usage.cost,
    }))
}

/// Prompts of the registry: what a client may offer as commands.
pub async fn commands(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    session(&hub, &args, &context)?;
    let table = hub.kernel().registry().table();
    let commands: Vec<Value> = table
        .prompts()
        .filter(|action| action.admits(&context.principal))
        .map(|action| json!({"name": action.name, "description": action.about.description, "source": "prompt"}))
        .collect();
    answer(json!({"commands": commands}))
}

/// There are no skill files here: what an agent can do is in its tools and prompts.
pub async fn skills(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    session(&hub, &args, &context)?;
    answer(json!({"skills": []}))
}

pub async fn tools(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let table = hub.kernel().registry().table();
    let tools: Vec<Value> = table
        .tools_for(&context.principal.tenant)
        .filter(|action| hub.may_use(&session, &context.principal, action))
        .map(|action| json!({"name": action.name, "description": action.about.description}))
        .collect();
    answer(json!({"tools": tools}))
}

pub async fn recovery(hub: Hub, _: Args, _: Context) -> Result<Reply, Halt> {
    answer(hub.recovery().told())
}

pub async fn health(hub: Hub, _: Args, _: Context) -> Result<Reply, Halt> {
    let open = open_breakers(&hub);
    let bash = open.iter().any(|key| key.starts_with(BASH));
    let model = open.iter().any(|key| key.starts_with(MODEL));
    let issues: Vec<String> = open.iter().map(|key| format!("Circuit open: {key}")).collect();
    answer(
        json!({"healthy": issues.is_empty(), "issues": issues, "hasOpenCircuit": model, "hasOpenBashCircuit": bash}),
    )
}

/// The breakers of models and of the shell that let nothing through.
fn open_breakers(hub: &Hub) -> Vec<String> {
    let ours = |key: &str| key.starts_with(MODEL) || key.starts_with(BASH);
    let all = hub.kernel().breakers().snapshot();
    let open = all.into_iter().filter(|breaker| match breaker.state {
        Kept::Open { .. } => ours(&breaker.key),
        Kept::HalfOpen | Kept::Closed { .. } => false,
    });
    open.map(|breaker| breaker.key.to_string()).collect()
}

pub async fn metrics(hub: Hub, _: Args, _: Context) -> Result<Reply, Halt> {
    let breakers: Vec<Value> = hub
        .kernel()
        .breakers()
        .snapshot()
        .into_iter()
        .filter_map(|breaker| {
            let provider = breaker.key.strip_prefix(MODEL)?.to_owned();
            let state = match breaker.state {
                Kept::Open { .. } => "open",
                Kept::HalfOpen => "half_open",
                Kept::Closed { .. } => "closed",
            };
            Some(json!({"provider": provider, "state": state}))
        })
        .collect();
    answer(json!({
        "sessionCount": hub.count(),
        "stores": {"replay": {"inFlightCount": hub.kernel().in_flight(), "maxInFlightCommands": hub.kernel().limits().in_flight},
                   "version": {"sessionCount": hub.count()}},
        "circuitBreakers": breakers,
    }))
}

pub async fn history(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = args.text("sessionIdFilter");
    let lanes = session.map(|session| (format!("session:{session}"), format!("session:{session}:side")));
    #[allow(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit")]
    let moment =
        |name: &str, preset: i64| args.get(name).and_then(Value::as_f64).map_or(preset, |ms| ms as i64);
    let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(limits::HISTORY_PAGE);
    let asked = Asked {
        tenant: context.principal.tenant.as_str(),
        lanes: lanes.as_ref().map(|(lane, side)| [lane.as_str(), side.as_str()]),
        id: args.text("commandId"),
        from_ms: moment("fromTimestamp", 0),
        to_ms: moment("toTimestamp", i64::MAX),
        limit: limit + 1,
    };
    let rows = hub.kernel().ports().store.query(tables::history(&asked)).await.map_err(store_fault)?;
    let truncated = i64::try_from(rows.len()).unwrap_or(i64::MAX) > limit;
    let shown = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut entries = rows.iter().take(shown).map(told).collect::<Result<Vec<_>, Fault>>()?;
    if !context.principal.has(AccessRole::Owner) {
        let visible: HashSet<Arc<str>> =
            hub.visible_to(&context.principal).iter().map(|session| session.id.clone()).collect();
        entries.retain(|entry| entry["sessionId"].as_str().is_some_and(|id| visible.contains(id)));
    }
    entries.reverse();
    let mut filters = Map::new();
    for name in ["sessionIdFilter", "commandId", "fromTimestamp", "toTimestamp"] {
        filters.extend(args.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    answer(json!({
        "enabled": true, "initialized": true, "initState": "ready", "journalPath": "store", "schemaVersion": 1,
        "filters": filters, "returned": entries.len(), "entries": entries, "truncated": truncated,
        "maxItemsReturned": limit, "maxItemsAllowed": limits::HISTORY_PAGE_MAX,
    }))
}

/// One line of the journal in the words of the protocol.
fn told(row: &Row) -> Result<Value, Fault> {
    let text = |column| row.optional_text(column).map_err(store_fault);
    let data: Value = serde_json::from_str(row.text(6).map_err(store_fault)?).unwrap_or_default();
    let (lane, id) = (text(4)?.unwrap_or("server"), text(5)?);
    let phase = match row.text(3).map_err(store_fault)? {
        "accepted" => "command_accepted",
        _ => "command_finished",
    };
    let mut told = json!({
        "recordedAt": row.int(0).map_err(store_fault)?, "phase": phase, "commandId": id.unwrap_or(row.text(1).map_err(store_fault)?),
        "commandType": command(row.text(2).map_err(store_fault)?), "laneKey": lane, "explicitId": id.is_some(),
        "fingerprint": data["fingerprint"],
    });
    let session =
        lane.strip_prefix("session:").map(|session| session.strip_suffix(":side").unwrap_or(session));
    let members = [
        ("sessionId", json!(session)),
        ("dependsOn", data["dependsOn"].clone()),
        ("ifSessionVersion", data["expected"].clone()),
        ("sessionVersion", data["version"].clone()),
        ("errorCode", data["code"].clone()),
    ];
    for (name, value) in members {
        if !value.is_null() {
            told[name] = value;
        }
    }
    if phase == "command_finished" {
        told["success"] = json!(data["end"] == "success");
        told["timedOut"] = json!(data["end"] == "timeout");
    }
    if data["recovered"] == true {
        told["error"] = json!(REASON);
        told["recovered"] = json!(true);
        told["recoveryReason"] = json!("restart_inflight_marked_failed");
    }
    Ok(told)
}

/// What happened after a number: from the store what is kept, from memory also the deltas of the turn under way. `complete` means
/// that everything up to `lastSeq` is there.
pub async fn events(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let session = session(&hub, &args, &context)?;
    let after = args.get("afterSeq").and_then(Value::as_u64).unwrap_or(0);
    let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(1_000);
    // Memory first: it forgets only what is in the store, which is asked after it. And nothing from beyond that moment: what was
    // told since may be in the store in another order, and whoever follows the session hears of it anyway.
    let (last, recent) = session.recent_after(after);
    let mut events: BTreeMap<u64, Value> = BTreeMap::new();
    let kept = tables::events_between(session.whose(), after, last, limit);
    let rows = hub.kernel().ports().store.query(kept).await.map_err(store_fault)?;
    let complete = i64::try_from(rows.len()).unwrap_or(i64::MAX) < limit;
    if !rows.is_empty() {
        let (_, tree) = Tree::of(&hub, &session).await?;
        for row in &rows {
            let seq = u64::try_from(row.int(0).map_err(store_fault)?).unwrap_or(0);
            let news: News = serde_json::from_str(row.text(1).map_err(store_fault)?)
                .map_err(|error| Fault::internal("a stored event cannot be read").because(error))?;
            let message = |place| tree.get(place).and_then(|node| node.entry.body.message());
            events.insert(seq, news.told(message));
        }
    }
    let reached = if complete { last } else { events.last_key_value().map_or(after, |(seq, _)| *seq) };
    for (seq, data) in recent.into_iter().filter(|(seq, _)| *seq <= reached) {
        events.entry(seq).or_insert_with(|| data["event"].clone());
    }
    let events: Vec<Value> =
        events.into_iter().map(|(seq, event)| json!({"seq": seq, "event": event})).collect();
    answer(json!({"events": events, "lastSeq": last, "complete": complete}))
}

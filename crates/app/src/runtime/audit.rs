//! `audit.entries` and `audit.verify`: the audit trail for whoever may see it, and the proof that it is whole.

use orchestr8_agents::aacp::Hub as Messages;
use orchestr8_contract::chain::seal;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::Slotting;
use orchestr8_kernel::audit::CHAIN;
use orchestr8_kernel::log::Log;
use orchestr8_kernel::ports::store::{self, Store as _};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use orchestr8_stores::{Sqlite, chain};
use orchestr8_tlog::HeadRecorder;
use serde_json::{Map, Value, json};

use crate::tables::{self, AuditPlace};

/// Entries on a page.
const PAGE: i64 = 100;
const PAGE_LIMIT: i64 = 500;

pub fn actions(
    store: &Sqlite,
    messages: &Messages,
    heads: Option<&HeadRecorder>,
) -> Result<Vec<Action>, schema::Error> {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 256});
    let input = json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "action": text, "principal": text, "end": text, "object": text,
            "cursor": {"type": "string", "pattern": "^[0-9]{1,18}([.][0-9]{1,9})?$"},
            "limit": {"type": "integer", "minimum": 1, "maximum": PAGE_LIMIT},
        },
    });
    let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let policy = Policy { slotting: Slotting::Free, ..Policy::read() };
    let (read, prove, heads) = ((store.clone(), messages.clone()), store.clone(), heads.cloned());
    let entries =
        Action::tool("audit.entries", "Lists the audit trail, the newest first.", input, policy.clone(), {
            move |args, context| entries(read.clone(), args, context)
        })?;
    let verify = Action::tool("audit.verify", "Proves that the audit trail is whole.", nothing, policy, {
        move |_, _| verify(prove.clone(), heads.clone())
    })?;
    Ok([entries, verify].map(|action| action.hidden()).into())
}

async fn entries((store, messages): (Sqlite, Messages), args: Args, context: Context) -> Result<Reply, Halt> {
    // What was done with messages is in the trail once their tail is filed.
    messages.filed().await?;
    let limit = args.get("limit").and_then(Value::as_i64).unwrap_or(PAGE).clamp(1, PAGE_LIMIT);
    let before = args.text("cursor").map_or(AuditPlace { sequence: i64::MAX, record: -1 }, place);
    let wanted = |name| args.text(name).unwrap_or_default().to_owned();
    let filter = tables::AuditFilter {
        tenant: context.principal.tenant.as_str().to_owned(),
        action: wanted("action"),
        principal: wanted("principal"),
        end: wanted("end"),
        object: wanted("object"),
    };
    let rows = store.query(tables::audit_entries(CHAIN, before, &filter, limit)).await.map_err(unreadable)?;
    let shown: Vec<Value> = rows.iter().map(entry).collect::<Result<_, Fault>>()?;
    let more = i64::try_from(rows.len()).is_ok_and(|count| count == limit);
    let next = shown.last().filter(|_| more).map(|last| last["id"].clone());
    Ok(Output::json(json!({"entries": shown, "nextCursor": next})).into())
}

fn entry(row: &store::Row) -> Result<Value, Fault> {
    let body: Map<String, Value> =
        serde_json::from_str(row.text(1).map_err(unreadable)?).map_err(|cause| {
            Fault::new(Code::StoreCorrupt, "an entry of the audit trail cannot be read").because(cause)
        })?;
    let of = |name: &str| body.get(name).cloned().unwrap_or_default();
    let (sequence, record) = (row.int(0).map_err(unreadable)?, row.int(3).map_err(unreadable)?);
    let id = if record < 0 { sequence.to_string() } else { format!("{sequence}.{record}") };
    let hash = row.text(2).map_err(unreadable)?;
    let (whole, before) = (row.text(4).map_err(unreadable)?, row.text(5).map_err(unreadable)?);
    let at_ms = row.int(6).map_err(unreadable)?;
    // One that was changed in the data file is shown, and not as genuine.
    let is_intact = seal(before, sequence, at_ms, whole.as_bytes()) == hash;
    Ok(json!({
        "id": id, "intact": is_intact, "sequence": sequence, "at": of("timestamp"), "action": of("action"), "principal": of("principal"),
        "tenant": of("tenant"), "object": of("object"), "objects": body.get("objects"),
        "source": of("source"), "face": of("face"), "agent": body.get("agent"), "outcome": body.get("outcome"),
        "detail": body.get("detail"), "requestId": body.get("request"),
        "end": of("end"), "errorCode": of("error_code"), "transport": of("transport"), "runId": of("run_id"),
        "correlationId": of("correlation_id"), "argsHash": of("args_hash"), "hash": hash,
    }))
}

/// The place that a cursor names: everything before it is older.
fn place(cursor: &str) -> AuditPlace {
    let (sequence, record) = cursor.split_once('.').unwrap_or((cursor, "-1"));
    AuditPlace { sequence: sequence.parse().unwrap_or(i64::MAX), record: record.parse().unwrap_or(-1) }
}

async fn verify(store: Sqlite, heads: Option<HeadRecorder>) -> Result<Reply, Halt> {
    let log = match &heads {
        Some(heads) => Some(heads.verify().await.map_err(|error| {
            Fault::new(Code::StoreFailed, "the signed heads cannot be compared").because(error)
        })?),
        None => None,
    };
    let said = match store.verify_chain(CHAIN).await {
        Ok(_) if let Some(difference) = log.as_ref().and_then(|log| log.difference.as_ref()) => {
            // Without the name of the entry: it may be another tenant's.
            let what = format!("in the log `{}`: {}", difference.log, difference.what);
            json!({"whole": false, "brokenAt": difference.number, "what": what})
        }
        Ok(verified) => {
            let signed = log.as_ref().map(|log| log.heads());
            let failing = heads.map(|heads| heads.failing_anchors()).unwrap_or_default();
            json!({
                "whole": true, "entries": verified.entries, "pruned": verified.pruned, "head": verified.head,
                "signedHeads": signed, "failingAnchors": failing,
            })
        }
        Err(chain::Error::Broken(broken)) => {
            json!({"whole": false, "brokenAt": broken.seq, "what": broken.what})
        }
        Err(chain::Error::Store(error)) => return Err(unreadable(error).into()),
    };
    Ok(Output::json(said).into())
}

fn unreadable(error: store::Error) -> Fault {
    Fault::new(Code::StoreFailed, "the audit trail cannot be read").because(error)
}

/// Reads the whole audit trail once after the start, and says in the log if an entry was changed, removed or added in the data file.
pub async fn check_at_start(store: Sqlite, log: Log) {
    match store.verify_chain(CHAIN).await {
        Ok(_) => {}
        Err(chain::Error::Broken(broken)) => log.error(
            "the audit trail was changed in the data file; see orchestr8 audit verify",
            json!({"brokenAt": broken.seq, "what": broken.what}),
        ),
        Err(chain::Error::Store(error)) => {
            log.error("the audit trail could not be checked", json!({"cause": error.to_string()}));
        }
    }
}

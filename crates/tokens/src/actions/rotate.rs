//! `tokens.rotate`: another secret for a token; the old one works until its grace ends.

use std::sync::Arc;

use orchestr8_contract::Output;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::{id, known, may_hand_out, sha256, still_valid};
use crate::limits::{GRACE_LIMIT_MS, GRACE_MS};
use crate::record::{TokenRecord, hash};
use crate::{Inner, tables};

pub(super) fn input() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["id", "sha256"],
        "properties": {
            "id": id(), "sha256": sha256(),
            "graceMs": {"type": "integer", "minimum": 0, "maximum": GRACE_LIMIT_MS},
        },
    })
}

pub(super) async fn run(tokens: Arc<Inner>, args: Args, context: Context) -> Result<Reply, Halt> {
    let record = still_valid(known(&tokens, &args, &context.principal).await?)?;
    record.check_seal(tokens.kernel.row_seal())?;
    may_hand_out(&context.principal, &record)?;
    let now_ms = tokens.kernel.ports().clock.now_ms();
    let grace_ms = args.get("graceMs").and_then(Value::as_i64).unwrap_or(GRACE_MS);
    let (until_ms, fresh) = (now_ms.saturating_add(grace_ms), args.text("sha256").unwrap_or_default());
    let record = TokenRecord {
        old_sha256: Some(record.sha256),
        sha256: fresh.to_owned(),
        rotated_ms: Some(now_ms),
        old_until_ms: Some(until_ms),
        ..record
    };
    let (seal, old) =
        (record.sealed(tokens.kernel.row_seal())?, record.old_sha256.as_deref().unwrap_or_default());
    let mut effects = Batch::new();
    effects.then_one(tables::rotate(&record.id, old, fresh, (now_ms, until_ms), seal.as_deref()));
    let (key, grant) = (hash(&record.sha256)?, record.grant());
    let shown = Output::json(record.shown(None, now_ms));
    Ok(Reply::new(shown, effects).then(move || tokens.table.rotate(key, grant, until_ms)))
}

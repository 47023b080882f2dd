//! `tokens.revoke`: ends a token on every face, its open connections included.

use std::sync::Arc;

use orchestr8_contract::Output;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::{id, known};
use crate::record::TokenRecord;
use crate::{Inner, tables};

pub(super) fn input() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["id"],
        "properties": {"id": id()},
    })
}

/// Revoking it twice changes nothing more.
pub(super) async fn run(tokens: Arc<Inner>, args: Args, context: Context) -> Result<Reply, Halt> {
    let record = known(&tokens, &args, &context.principal).await?;
    let now_ms = tokens.kernel.ports().clock.now_ms();
    if record.revoked_ms.is_some() {
        return Ok(Output::json(record.shown(None, now_ms)).into());
    }
    let by = context.principal.name.to_string();
    let record = TokenRecord { revoked_ms: Some(now_ms), revoked_by: Some(by), old_sha256: None, ..record };
    let seal = record.sealed(tokens.kernel.row_seal())?;
    let mut effects = Batch::new();
    effects.then(tables::revoke(&record.id, now_ms, &context.principal.name, seal.as_deref()));
    let shown = Output::json(record.shown(None, now_ms));
    Ok(Reply::new(shown, effects).then(move || tokens.table.revoke(&record.id)))
}

//! The part of the ledger in the store.

use std::sync::Arc;

use orchestr8_contract::id::RunId;
use orchestr8_contract::{Code, Fault};

use super::{Claim, Slip, store_fault};
use crate::fingerprint::Fingerprint;
use crate::outcome::Stored;
use crate::ports::store::{Statement, Store};
use crate::tables::{self, LedgerRow};

/// What the store knows of a key.
pub enum Found {
    Nothing,
    /// Used before: with its outcome, or without one when the run was cut off.
    Other {
        action: String,
        fingerprint: Fingerprint,
        run: String,
        outcome: Option<Arc<Stored>>,
    },
}

pub async fn find(store: &dyn Store, slip: &Slip, now_ms: i64) -> Result<Found, Fault> {
    let rows = store
        .query(tables::ledger_find(slip.tenant.as_str(), &slip.scope, &slip.key))
        .await
        .map_err(store_fault)?;
    let Some(row) = rows.first() else { return Ok(Found::Nothing) };
    if row.int(5).map_err(store_fault)? <= now_ms {
        return Ok(Found::Nothing);
    }
    let outcome = match row.optional_text(4).map_err(store_fault)? {
        Some(text) => Some(Arc::new(serde_json::from_str::<Stored>(text).map_err(|error| {
            Fault::new(Code::StoreCorrupt, "a stored outcome cannot be read").because(error)
        })?)),
        None => None,
    };
    Ok(Found::Other {
        fingerprint: Fingerprint::stored(row.text(0).map_err(store_fault)?),
        action: row.text(1).map_err(store_fault)?.to_owned(),
        run: row.text(2).map_err(store_fault)?.to_owned(),
        outcome,
    })
}

/// Marks a key as running: a fresh row, or the one a dead run left.
pub fn begin(slip: &Slip, claim: &Claim, ttl_ms: u64, dead: Option<&str>, now_ms: i64) -> Statement {
    let expires_ms = now_ms.saturating_add_unsigned(ttl_ms);
    match dead {
        Some(dead) => tables::ledger_take_over(
            slip.tenant.as_str(),
            &slip.scope,
            &slip.key,
            dead,
            &claim.run.to_string(),
            expires_ms,
        ),
        None => tables::ledger_insert(row(slip, claim, tables::RUNNING, None, expires_ms, now_ms)),
    }
}

/// Writes the outcome: over the running row if there is one, as a fresh row if not.
pub fn settle(slip: &Slip, claim: &Claim, ttl_ms: u64, outcome: &str, now_ms: i64) -> Statement {
    let expires_ms = now_ms.saturating_add_unsigned(ttl_ms);
    match claim.began {
        true => tables::ledger_settle(
            slip.tenant.as_str(),
            &slip.scope,
            &slip.key,
            &claim.run.to_string(),
            outcome,
            expires_ms,
        ),
        false => tables::ledger_insert(row(
            slip,
            claim,
            tables::DONE,
            Some(outcome.to_owned()),
            expires_ms,
            now_ms,
        )),
    }
}

pub fn release(slip: &Slip, run: RunId) -> Statement {
    tables::ledger_release(slip.tenant.as_str(), &slip.scope, &slip.key, &run.to_string())
}

fn row<'a>(
    slip: &'a Slip,
    claim: &'a Claim,
    state: &'static str,
    outcome: Option<String>,
    expires_ms: i64,
    now_ms: i64,
) -> LedgerRow<'a> {
    LedgerRow {
        tenant: slip.tenant.as_str(),
        scope: &slip.scope,
        key: &slip.key,
        fingerprint: claim.fingerprint.as_str(),
        action: &claim.action,
        run: claim.run.to_string(),
        state,
        outcome,
        expires_ms,
        now_ms,
    }
}

//! Runs that were cut off by the end of an earlier process, and the outcome they get.

use std::collections::HashSet;

use orchestr8_contract::id::RunId;
use orchestr8_contract::{Fault, limits};
use serde_json::json;

use super::{Ledger, store_fault};
use crate::outcome::{End, Stored};
use crate::ports::store::{Batch, Error, Row};
use crate::tables;

/// So many are settled in one commit.
const AT_ONCE: i64 = 500;

/// A run that had begun when its process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutOff {
    pub tenant: String,
    pub scope: String,
    pub key: String,
    pub action: String,
    pub run: String,
    /// The lane it was in, if it was in one and its beginning was journalled.
    pub lane: Option<String>,
}

impl Ledger {
    /// Settles every run of scopes that begin with this text and that an earlier process left in the middle: a repeat gets the
    /// fault, as final as any outcome. Only for whoever alone uses these scopes, before anything is submitted under them.
    pub async fn settle_cut_off(
        &self,
        scopes: &str,
        fault: impl Fn(&CutOff) -> Fault,
        now_ms: i64,
    ) -> Result<Vec<CutOff>, Fault> {
        // The first text that is not a continuation of the prefix.
        let end = format!("{scopes}{}", char::MAX);
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        loop {
            let rows = self.store.query(tables::ledger_cut_off(scopes, &end, AT_ONCE)).await;
            let mut batch = Batch::new();
            for row in rows.map_err(store_fault)? {
                let found = read(&row).map_err(store_fault)?;
                let fault = fault(&found);
                let data = json!({"end": End::ToolError, "code": fault.code, "recovered": true});
                let run = RunId(found.run.parse().unwrap_or_default());
                let (stored, _) = Stored::of(run, End::ToolError, Err(fault), None);
                let outcome = serde_json::to_string(&stored)
                    .map_err(|error| Fault::internal("the outcome cannot be stored").because(error))?;
                let expires_ms = now_ms.saturating_add_unsigned(limits::KEY_TTL_MS);
                let CutOff { tenant, scope, key, run, .. } = &found;
                batch.then_one(tables::ledger_settle(tenant, scope, key, run, &outcome, expires_ms));
                // A run under several keys is one run.
                if seen.insert(run.clone()) {
                    batch.then(tables::journal_cut_off(tenant, run, now_ms, data.to_string()));
                    all.push(found);
                }
            }
            if batch.is_empty() {
                return Ok(all);
            }
            self.store.commit(batch).await.map_err(store_fault)?;
        }
    }
}

fn read(row: &Row) -> Result<CutOff, Error> {
    let text = |column| row.text(column).map(str::to_owned);
    Ok(CutOff {
        tenant: text(0)?,
        scope: text(1)?,
        key: text(2)?,
        action: text(3)?,
        run: text(4)?,
        lane: row.optional_text(5)?.map(str::to_owned),
    })
}

//! Keeps the index over vectors in step with the documents: one walk along the journal of changes fills an empty index, follows
//! what is written, takes up another model, and goes on where a crash or a server that was gone has interrupted it.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};
use orchestr8_contract::Fault;
use orchestr8_kernel::Cancel;
use orchestr8_kernel::ports::store::{Cell, Row};
use orchestr8_kernel::resilience::retry::{Jitter, delay_ms};
use serde_json::json;

use super::{from_bytes, tables};
use crate::hub::{Hub, Meaning};
use crate::limits::{
    FOLLOW_BASE_MS, FOLLOW_CAP_MS, FOLLOW_DOCUMENTS, FOLLOW_EVERY_MS, FOLLOW_PASSAGES, FOLLOW_TENANTS,
    MODEL_EVERY_MS,
};
use crate::record::read;
use crate::retrieval::dense::Point;
use crate::write::CHANGES;

/// How a step along the journal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// The index reflects everything.
    Done,
}

/// The documents of one step along the journal.
struct Page {
    /// With the number of passages of each.
    documents: Vec<(String, usize)>,
    /// The place of the last of them, and whether others may follow.
    last: (i64, String),
    full: bool,
}

impl Hub {
    /// Follows the changes until it is told to stop. Whatever fails is tried again, later and later; writes never wait for it.
    pub async fn follow(&self, cancel: Cancel) {
        if !self.expects_meaning() {
            return;
        }
        let _following = self.progress().follow();
        if !self.model_is_there(&cancel).await {
            return;
        }
        let mut news = self.store().watch(CHANGES);
        let clock = self.kernel().ports().clock.clone();
        let mut failures = 0;
        while !cancel.is_fired() {
            news.mark_unchanged();
            let round = Box::pin(AssertUnwindSafe(self.follow_all()).catch_unwind());
            let Either::Left((ended, _)) = select(round, Box::pin(cancel.fired())).await else { break };
            let ended = ended.unwrap_or_else(|_| Err(Fault::internal("following the changes broke off")));
            let wait_ms = match ended {
                Ok(Step::More) => continue,
                Ok(Step::Done) => {
                    failures = 0;
                    FOLLOW_EVERY_MS
                }
                Err(fault) => {
                    failures += 1;
                    let word =
                        json!({"error": orchestr8_kernel::log::error(&fault), "failuresInARow": failures});
                    self.kernel().log().warn("the index by meaning is behind", word);
                    self.put_off_ms(failures)
                }
            };
            let failed = failures > 0;
            let woken = Box::pin(async {
                // After a failure only time helps; and a store that has stopped tells nothing more.
                if failed || news.changed().await.is_err() {
                    futures::future::pending::<()>().await;
                }
            });
            let passed = select(woken, clock.sleep(Duration::from_millis(wait_ms)));
            if let Either::Right(_) = select(Box::pin(passed), Box::pin(cancel.fired())).await {
                break;
            }
        }
    }

    /// Waits until the model is there: somebody may fetch it while this runs. False if it is told to stop before.
    async fn model_is_there(&self, cancel: &Cancel) -> bool {
        let missing = self.meaning().is_none();
        while self.meaning().is_none() {
            let looked = self.kernel().ports().clock.sleep(Duration::from_millis(MODEL_EVERY_MS));
            if let Either::Right(_) = select(looked, Box::pin(cancel.fired())).await {
                return false;
            }
        }
        if missing {
            self.kernel().log().info("the embedder is there: documents are searched by meaning, too", ());
        }
        true
    }

    fn put_off_ms(&self, failures: u32) -> u64 {
        let doubled = FOLLOW_BASE_MS.checked_shl(failures.saturating_sub(1)).unwrap_or(FOLLOW_CAP_MS);
        delay_ms(Jitter::Equal, doubled.min(FOLLOW_CAP_MS), self.kernel().ports().random.unit())
    }

    /// One step for every tenant that is behind, so that nobody waits for another's many documents. One that fails does not
    /// keep the others; the first failure is told.
    pub async fn follow_all(&self) -> Result<Step, Fault> {
        let (mut after, mut step, mut failed) = (String::new(), Step::Done, None);
        loop {
            let rows = self.rows(tables::trees_after(&after, FOLLOW_TENANTS)).await?;
            let Some(last) = rows.last() else { break };
            after = last.text(0).map_err(read)?.to_owned();
            for row in &rows {
                let tenant = row.text(0).map_err(read)?;
                match self.follow_tenant(tenant, row.int(1).map_err(read)?).await {
                    Ok(Step::More) => step = Step::More,
                    Ok(Step::Done) => {}
                    Err(fault) => {
                        // What the index says of itself counts again from here: it may have lost everything.
                        self.progress().forget(tenant);
                        failed = failed.or(Some(fault));
                    }
                }
            }
        }
        failed.map_or(Ok(step), Err)
    }

    /// One step towards a version of a tenant's tree that was read before its changes are.
    pub(super) async fn follow_tenant(&self, tenant: &str, version: i64) -> Result<Step, Fault> {
        let Some(meaning) = self.meaning() else { return Ok(Step::Done) };
        let _step = self.progress().step().await;
        let reached = match self.progress().reached(tenant) {
            Some(reached) => reached,
            None => {
                let reached = meaning.dense.position(tenant).await?;
                self.progress().reach(tenant, reached);
                reached
            }
        };
        if reached >= version {
            return Ok(Step::Done);
        }
        // Ids are never empty, so this comes before everything of the next position.
        let mut cursor = (reached + 1, String::new());
        loop {
            let page = self.changes(tenant, &cursor).await?;
            self.take_up(meaning, tenant, &page).await?;
            // Whatever changed up to that version is in by now, or has changed again since and comes later. A position that a
            // page cuts in two is not done yet.
            let done = if page.full { page.last.0 - 1 } else { version };
            if done > reached {
                meaning.dense.reflect(tenant, done).await?;
                self.progress().reach(tenant, done);
                return Ok(if done >= version { Step::Done } else { Step::More });
            }
            cursor = page.last;
        }
    }

    async fn changes(&self, tenant: &str, cursor: &(i64, String)) -> Result<Page, Fault> {
        let rows = self.rows(tables::changes(tenant, (cursor.0, &cursor.1), FOLLOW_DOCUMENTS)).await?;
        let mut page = Page { documents: Vec::new(), last: cursor.clone(), full: false };
        let mut passages = 0;
        for row in &rows {
            if passages >= FOLLOW_PASSAGES {
                page.full = true;
                return Ok(page);
            }
            let of = || Ok((row.text(0)?.to_owned(), row.int(1)?, row.int(2)?));
            let (document, position, count) = of().map_err(read)?;
            let count = usize::try_from(count).unwrap_or(0);
            passages += count;
            page.last = (position, document.clone());
            page.documents.push((document, count));
        }
        page.full = crate::write::number(rows.len()) >= FOLLOW_DOCUMENTS;
        Ok(page)
    }

    /// Brings the documents of a page into the index as they are now.
    async fn take_up(&self, meaning: &Meaning, tenant: &str, page: &Page) -> Result<(), Fault> {
        let ids: Vec<&str> = page.documents.iter().map(|(id, _)| id.as_str()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let (mut points, unknown) = self.standing(meaning, tenant, &ids).await?;
        if !unknown.is_empty() {
            self.learn(meaning, tenant, &unknown).await?;
            let ids: Vec<&str> = unknown.iter().map(String::as_str).collect();
            points.retain(|point| !unknown.contains(&point.document));
            // One that changed while it was learned has a later place in the journal, too, and comes again.
            points.extend(self.standing(meaning, tenant, &ids).await?.0);
        }
        let held: HashSet<&str> = points.iter().map(|point| point.document.as_str()).collect();
        let gone: Vec<String> =
            ids.iter().filter(|id| !held.contains(**id)).map(|id| (*id).to_owned()).collect();
        if !points.is_empty() {
            meaning.dense.upsert(tenant, points).await?;
        }
        if !gone.is_empty() {
            meaning.dense.remove(tenant, gone).await?;
        }
        Ok(())
    }

    /// The points of these documents that are known, and the documents that have passages without a vector.
    async fn standing(
        &self,
        meaning: &Meaning,
        tenant: &str,
        ids: &[&str],
    ) -> Result<(Vec<Point>, HashSet<String>), Fault> {
        let statement = tables::standing(tenant, meaning.embedder.name(), json!(ids).to_string());
        let (mut points, mut unknown) = (Vec::new(), HashSet::new());
        for row in &self.rows(statement).await? {
            let document = row.text(0).map_err(read)?.to_owned();
            match vector(row)? {
                Some(vector) if vector.len() == meaning.embedder.dimensions() => {
                    points.push(Point { passage: row.int(1).map_err(read)?, document, vector });
                }
                Some(_) | None => {
                    unknown.insert(document);
                }
            }
        }
        Ok((points, unknown))
    }
}

fn vector(row: &Row) -> Result<Option<Vec<f32>>, Fault> {
    match row.0.get(2) {
        Some(Cell::Null) | None => Ok(None),
        Some(_) => from_bytes(row.blob(2).map_err(read)?).map(Some),
    }
}

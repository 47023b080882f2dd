//! Keeps the index over vectors in step with the documents: it fills an empty index, follows what is written, takes up another
//! model, and goes on where a crash or a server that was gone has interrupted it.

use std::collections::HashSet;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};
use orchestr8_contract::Fault;
use orchestr8_kernel::Cancel;
use orchestr8_kernel::ports::store::{Cell, Row};
use serde_json::json;

use super::{from_bytes, tables};
use crate::hub::{Hub, Meaning};
use crate::journal::progress::Progress;
use crate::journal::tables::trees_after;
use crate::journal::{Follower, Step};
use crate::limits::{FOLLOW_TENANTS, MODEL_EVERY_MS};
use crate::record::read;
use crate::retrieval::dense::Point;
use crate::write::CHANGES;

/// The index over the vectors of a model.
struct ByMeaning<'a> {
    hub: &'a Hub,
    meaning: &'a Meaning,
}

impl Hub {
    /// Follows the changes until it is told to stop.
    pub async fn follow(&self, cancel: Cancel) {
        if !self.expects_meaning() {
            return;
        }
        let _following = self.progress().followed().follow();
        if !self.model_is_there(&cancel).await {
            return;
        }
        let news = vec![self.store().watch(CHANGES)];
        self.keep_up(&cancel, news, "the index by meaning is behind", || self.follow_all().boxed()).await;
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

    /// One step for every tenant that is behind, so that nobody waits for another's many documents. One that fails does not
    /// keep the others; the first failure is told.
    pub async fn follow_all(&self) -> Result<Step, Fault> {
        let (mut after, mut step, mut failed) = (String::new(), Step::Done, None);
        loop {
            let rows = self.rows(trees_after(&after, FOLLOW_TENANTS)).await?;
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
        match self.meaning() {
            Some(meaning) => self.step_along(&ByMeaning { hub: self, meaning }, tenant, version).await,
            None => Ok(Step::Done),
        }
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

impl Follower for ByMeaning<'_> {
    fn progress(&self) -> &Progress {
        self.hub.progress()
    }

    async fn position(&self, tenant: &str) -> Result<i64, Fault> {
        self.meaning.dense.position(tenant).await
    }

    async fn take_up(&self, tenant: &str, ids: &[&str]) -> Result<(), Fault> {
        let (hub, meaning) = (self.hub, self.meaning);
        let (mut points, unknown) = hub.standing(meaning, tenant, ids).await?;
        if !unknown.is_empty() {
            hub.learn(meaning, tenant, &unknown).await?;
            let ids: Vec<&str> = unknown.iter().map(String::as_str).collect();
            points.retain(|point| !unknown.contains(&point.document));
            // One that changed while it was learned has a later place in the journal, too, and comes again.
            points.extend(hub.standing(meaning, tenant, &ids).await?.0);
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

    async fn reflect(&self, tenant: &str, position: i64) -> Result<(), Fault> {
        self.meaning.dense.reflect(tenant, position).await
    }
}

fn vector(row: &Row) -> Result<Option<Vec<f32>>, Fault> {
    match row.0.get(2) {
        Some(Cell::Null) | None => Ok(None),
        Some(_) => from_bytes(row.blob(2).map_err(read)?).map(Some),
    }
}

//! The search by meaning: the passages whose vectors are nearest to that of a query, as documents that may be seen.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join, select};
use orchestr8_contract::Fault;

use super::follow::Step;
use crate::hub::{Hub, Meaning};
use crate::limits::{CANDIDATES_MAX, CATCH_UP_CHANGES};
use crate::record::read;
use crate::retrieval::dense::{Near, Purpose};
use crate::retrieval::lexical::{documents, stored};
use crate::retrieval::{Filter, Hit, tables};
use crate::tables::tree_read;

/// Passages asked for at first, for each document that is wanted: several of them may belong to one document.
const PASSAGES_EACH: usize = 4;

/// What was found by meaning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Nearest first; the score is the cosine of the angle between query and passage.
    pub hits: Vec<Hit>,
    /// Something was written that is not in the index yet; the answer is less than it should be.
    pub behind: bool,
    /// The query as a vector, and the passages that passed the filter if there was one: whoever asks again need not find
    /// them out again.
    pub vector: Vec<f32>,
    pub within: Within,
}

/// Only these passages; all if none are named.
pub type Within = Option<Arc<HashSet<i64>>>;

/// The nearest documents, each with its nearest passage. None that passes the filter is left out for one that does not. It
/// waits so long for the index to take up what was written before; then it answers with what there is, and says so.
pub async fn search(
    hub: &Hub,
    meaning: &Meaning,
    tenant: &str,
    query: &str,
    filter: &Filter,
    (limit, wait): (usize, Duration),
) -> Result<Found, Fault> {
    let texts = vec![query.to_owned()];
    let (vectors, caught_up) =
        join(hub.ask_model(meaning, texts, Purpose::Query), hub.caught_up(tenant, wait)).await;
    let (vectors, behind) = (vectors?, !caught_up?);
    let Some(vector) = vectors.into_iter().next() else { return Ok(Found { behind, ..Found::default() }) };
    let within = match filter.is_empty() {
        true => None,
        false => Some(open(hub, tenant, filter).await?),
    };
    let hits = nearest(hub, meaning, tenant, (vector.clone(), within.clone()), limit).await?;
    Ok(Found { hits, behind, vector, within })
}

/// The documents nearest to a vector, each with its nearest passage.
pub async fn nearest(
    hub: &Hub,
    meaning: &Meaning,
    tenant: &str,
    (vector, within): (Vec<f32>, Within),
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let most = usize::try_from(CANDIDATES_MAX).unwrap_or(usize::MAX);
    let mut asked = limit.saturating_mul(PASSAGES_EACH).min(most);
    loop {
        let near =
            Near { tenant: tenant.into(), vector: vector.clone(), within: within.clone(), limit: asked };
        let scored = meaning.dense.search(near).await.inspect_err(|_| {
            // It may have lost what it held; whoever follows the changes asks it anew.
            hub.progress().forget(tenant);
        })?;
        // What was deleted or changed a moment ago falls away here, and may have to be made up for.
        let mut hits = documents(hub, tenant, &scored).await?;
        if hits.len() >= limit || scored.len() < asked || asked >= most {
            hits.truncate(limit);
            return Ok(hits);
        }
        asked = asked.saturating_mul(8).min(most);
    }
}

/// The passages of all documents that pass a filter. Every change makes a new version of the tree.
async fn open(hub: &Hub, tenant: &str, filter: &Filter) -> Result<Arc<HashSet<i64>>, Fault> {
    // Read first: what is read after it is at least as new.
    let version = match hub.row(tree_read(tenant)).await? {
        Some(tree) => tree.int(0).map_err(read)?,
        None => return Ok(Arc::default()),
    };
    if let Some(numbers) = hub.passing().get(tenant, filter, version) {
        return Ok(numbers);
    }
    let rows = hub.rows(tables::open(&stored(tenant, filter))).await?;
    let numbers: HashSet<i64> = rows.iter().map(|row| row.int(0)).collect::<Result<_, _>>().map_err(read)?;
    let numbers = Arc::new(numbers);
    hub.passing().keep(tenant, filter, version, numbers.clone());
    Ok(numbers)
}

impl Hub {
    /// Waits so long until the index reflects all that the tenant has written so far, and says whether it does.
    pub(crate) async fn caught_up(&self, tenant: &str, wait: Duration) -> Result<bool, Fault> {
        let Some(tree) = self.row(tree_read(tenant)).await? else { return Ok(true) };
        let version = tree.int(0).map_err(read)?;
        let mut told = self.progress().watch();
        let reached = || self.progress().reached(tenant).unwrap_or(0);
        if reached() >= version {
            return Ok(true);
        }
        let over = self.kernel().ports().clock.sleep(wait);
        if !self.progress().is_followed() {
            // A short command has nobody who follows the changes; it does so itself.
            let work = Box::pin(async {
                while self.follow_tenant(tenant, version).await? == Step::More {}
                Ok(true)
            });
            return match select(work, over).await {
                Either::Left((ended, _)) => ended,
                Either::Right(_) => Ok(false),
            };
        }
        if version - reached() > CATCH_UP_CHANGES {
            return Ok(false);
        }
        let work = Box::pin(async {
            while reached() < version {
                if told.changed().await.is_err() {
                    return false;
                }
            }
            true
        });
        Ok(match select(work, over).await {
            Either::Left((caught_up, _)) => caught_up,
            Either::Right(_) => false,
        })
    }
}

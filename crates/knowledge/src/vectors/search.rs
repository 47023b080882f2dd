//! The search by meaning: the passages whose vectors are nearest to that of a query, as documents that may be seen.

use std::time::Duration;

use futures::future::{Either, join, select};
use orchestr8_contract::Fault;

use crate::hub::{Hub, Meaning};
use crate::journal::Step;
use crate::limits::CANDIDATES_MAX;
use crate::record::read;
use crate::retrieval::dense::{Near, Purpose};
use crate::retrieval::lexical::{documents, firsts};
use crate::retrieval::passing::Within;
use crate::retrieval::{Filter, Hit};
use crate::tables::tree_read;

/// Passages asked for at first, for each document that is wanted: several of them may belong to one document.
const PASSAGES_EACH: usize = 4;

/// What was found by meaning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Nearest first; the score is the cosine of the angle between query and passage.
    pub hits: Vec<Hit>,
    /// Whoever asks again need not find it out again.
    pub around: Around,
}

/// What is looked around.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Around {
    /// The query as a vector, and the passages that passed the filter if there was one.
    pub vector: Vec<f32>,
    pub within: Within,
    /// Something was written that is not in the index yet; the answer is less than it should be.
    pub behind: bool,
}

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
    let Some(vector) = vectors.into_iter().next() else {
        return Ok(Found { around: Around { behind, ..Around::default() }, ..Found::default() });
    };
    let within = match filter.is_empty() {
        true => None,
        false => Some(hub.open(tenant, filter).await?),
    };
    let around = Around { vector, within, behind };
    let hits = nearest(hub, meaning, tenant, &around, limit).await?;
    Ok(Found { hits, around })
}

/// The documents nearest to a vector, each with its nearest passage.
pub async fn nearest(
    hub: &Hub,
    meaning: &Meaning,
    tenant: &str,
    around: &Around,
    limit: usize,
) -> Result<Vec<Hit>, Fault> {
    let most = usize::try_from(CANDIDATES_MAX).unwrap_or(usize::MAX);
    let mut asked = limit.saturating_mul(PASSAGES_EACH).min(most);
    loop {
        let (vector, within) = (around.vector.clone(), around.within.clone());
        let near = Near { tenant: tenant.into(), vector, within, limit: asked };
        let scored = meaning.dense.search(near).await.inspect_err(|_| {
            // It may have lost what it held; whoever follows the changes asks it anew.
            hub.progress().forget(tenant);
        })?;
        // What was deleted or changed a moment ago falls away here, and may have to be made up for.
        let mut hits = owned(hub, meaning, tenant, &scored, around.behind).await?;
        if hits.len() >= limit || scored.len() < asked || asked >= most {
            hits.truncate(limit);
            return Ok(hits);
        }
        asked = asked.saturating_mul(8).min(most);
    }
}

/// The documents of these passages, each once. An index that is in step knows whose they are; else the store says which of
/// them may be seen.
async fn owned(
    hub: &Hub,
    meaning: &Meaning,
    tenant: &str,
    scored: &[(i64, f64)],
    behind: bool,
) -> Result<Vec<Hit>, Fault> {
    if !behind {
        let numbers = scored.iter().map(|(number, _)| *number).collect();
        let points = meaning.dense.at_hand(tenant, numbers).await?;
        if points.len() == scored.len() {
            let owners = points.into_iter().map(|point| (point.passage, point.document)).collect();
            return Ok(firsts(scored, &owners));
        }
    }
    documents(hub, tenant, scored).await
}

impl Hub {
    /// Waits so long until the index reflects all that the tenant has written so far, and says whether it does.
    async fn caught_up(&self, tenant: &str, wait: Duration) -> Result<bool, Fault> {
        let Some(tree) = self.row(tree_read(tenant)).await? else { return Ok(true) };
        let version = tree.int(0).map_err(read)?;
        let (progress, clock) = (self.progress(), &self.kernel().ports().clock);
        if progress.followed().is_followed() || progress.reached(tenant).unwrap_or(0) >= version {
            return Ok(progress.comes_to(tenant, version, clock.as_ref(), wait).await);
        }
        // A short command has nobody who follows the changes; it does so itself.
        let work = Box::pin(async {
            while self.follow_tenant(tenant, version).await? == Step::More {}
            Ok(true)
        });
        match select(work, clock.sleep(wait)).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Ok(false),
        }
    }
}

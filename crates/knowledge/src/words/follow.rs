//! Keeps the words in memory in step with the documents, and hands them to a query that may use them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use orchestr8_contract::Fault;
use orchestr8_kernel::Cancel;
use serde_json::json;

use super::index::Index;
use super::{Kept, Tree, Words, tables, take};
use crate::hub::Hub;
use crate::journal::progress::Progress;
use crate::journal::{Follower, Step};
use crate::limits::WORDS_CATCH_UP_MS;
use crate::record::read;
use crate::tables::tree_read;
use crate::write::CHANGES;

/// The words of a tenant, as they follow the journal.
struct ByWords<'a> {
    hub: &'a Hub,
    kept: &'a Arc<Kept>,
}

impl Tree {
    /// None if the tenant has no tree.
    pub(crate) async fn read(hub: &Hub, tenant: &str) -> Result<Option<Self>, Fault> {
        let Some(row) = hub.row(tree_read(tenant)).await? else { return Ok(None) };
        let of = || Ok(Self { version: row.int(0)?, chunks: row.int(1)?, words: row.int(2)? });
        of().map(Some).map_err(read)
    }
}

impl Hub {
    /// Follows the changes of the tenants that are asked for, until it is told to stop.
    pub(crate) async fn follow_words(&self, cancel: &Cancel) {
        let _following = self.words().followed.follow();
        let news = vec![self.store().watch(CHANGES), self.words().wanted.subscribe()];
        self.keep_up(cancel, news, "the words in memory are behind", || self.words_round().boxed()).await;
    }

    /// Takes up a tenant's words until they reflect all that is written, and says whether they fit. For whoever has nobody
    /// that follows the changes: a measurement, or a test.
    pub async fn take_up_words(&self, tenant: &str) -> Result<bool, Fault> {
        let Some(tree) = Tree::read(self, tenant).await? else { return Ok(false) };
        let Some(kept) = self.words().want(tenant, tree, self.elapsed_us()) else { return Ok(false) };
        while self.words_step(tenant, &kept).await? == Step::More {}
        Ok(self.words().kept(tenant).is_some())
    }

    /// Bytes that the words in memory take, of all tenants.
    pub fn words_bytes(&self) -> usize {
        self.words().bytes()
    }

    /// The tenant's words as of this version of its tree. None: the store answers, since they are not there, are still being
    /// taken up, or would take too long to wait for.
    pub(crate) async fn words_at(&self, tenant: &str, tree: Tree) -> Option<Arc<Kept>> {
        let words = self.words();
        // A short command has nobody who follows the changes, and one query is not worth taking up everything.
        let (kept, wait_ms) = match words.followed.is_followed() {
            true => (words.want(tenant, tree, self.elapsed_us())?, WORDS_CATCH_UP_MS),
            false => (words.kept(tenant)?, 0),
        };
        let (clock, wait) = (&self.kernel().ports().clock, Duration::from_millis(wait_ms));
        kept.progress.comes_to(tenant, tree.version, clock.as_ref(), wait).await.then_some(kept)
    }

    /// One step for every tenant that is held. One that fails does not keep the others; the first failure is told.
    async fn words_round(&self) -> Result<Step, Fault> {
        let (mut step, mut failed) = (Step::Done, None);
        for (tenant, kept) in self.words().held() {
            match self.words_step(&tenant, &kept).await {
                Ok(Step::More) => step = Step::More,
                Ok(Step::Done) => {}
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        failed.map_or(Ok(step), Err)
    }

    async fn words_step(&self, tenant: &str, kept: &Arc<Kept>) -> Result<Step, Fault> {
        let words = self.words();
        let tree = Tree::read(self, tenant).await?;
        // A tree that has become small is answered from the store from now on, unless it grows again at once.
        let Some(tree) = tree.filter(|tree| tree.chunks >= words.settings.from_passages / 2) else {
            words.let_go(tenant);
            return Ok(Step::Done);
        };
        let step = self.step_along(&ByWords { hub: self, kept }, tenant, tree.version).await;
        // What broke off may have left half of a document; it is made anew when it is asked for again.
        let step = step.inspect_err(|_| words.let_go(tenant))?;
        if words.make_room(tenant, self.elapsed_us()) {
            return Ok(step);
        }
        let word =
            json!({"tenant": tenant, "passages": tree.chunks, "hint": "raise knowledge.words.memoryMb"});
        self.kernel().log().warn("the words of a tenant do not fit into memory: the store answers", word);
        Ok(Step::Done)
    }

    fn elapsed_us(&self) -> u64 {
        self.kernel().ports().clock.elapsed_us()
    }
}

impl Follower for ByWords<'_> {
    fn progress(&self) -> &Progress {
        &self.kept.progress
    }

    /// Only asked before anything is known.
    async fn position(&self, _tenant: &str) -> Result<i64, Fault> {
        Ok(0)
    }

    async fn take_up(&self, tenant: &str, ids: &[&str]) -> Result<(), Fault> {
        let rows = self.hub.rows(tables::taken(tenant, json!(ids).to_string())).await?;
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let kept = self.kept.clone();
        self.hub.words().work(move || take_up(&kept, &ids, take::documents(&rows).map_err(read)?)).await
    }

    /// Its progress says it all.
    async fn reflect(&self, _tenant: &str, _position: i64) -> Result<(), Fault> {
        Ok(())
    }
}

fn take_up(kept: &Kept, ids: &[String], documents: Vec<super::index::Taken>) -> Result<(), Fault> {
    kept.change(|index| {
        let there: HashSet<&str> = documents.iter().map(|document| document.id.as_str()).collect();
        ids.iter().filter(|id| !there.contains(id.as_str())).for_each(|id| index.remove(id));
        documents.into_iter().for_each(|document| index.put(document));
    });
    // Made anew beside the old one, so that queries go on meanwhile.
    let renewed = {
        let index = kept.index.read();
        index.is_worn().then(|| index.renewed())
    };
    if let Some(renewed) = renewed {
        kept.change(|index: &mut Index| *index = renewed);
    }
    Ok(())
}

impl Words {
    /// Asks the index of a tenant where it may take its time.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        kept: Arc<Kept>,
        ask: impl FnOnce(&Index) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        self.work(move || Ok(ask(&kept.index.read()))).await
    }
}

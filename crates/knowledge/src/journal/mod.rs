//! The journal of changes, and how indexes outside of the store follow it: one walk along it fills an empty index, takes up what
//! is written, and goes on where a failure has interrupted it.

mod keep_up;
pub mod progress;
pub mod tables;

use orchestr8_contract::Fault;

use crate::hub::Hub;
use crate::limits::{FOLLOW_DOCUMENTS, FOLLOW_PASSAGES};
use crate::record::read;
use progress::Progress;

/// How a step along the journal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is more to do.
    More,
    /// The index reflects everything.
    Done,
}

/// An index that is made of what the store holds: a cache that knows up to which change of a tenant it has come.
pub trait Follower: Sync {
    fn progress(&self) -> &Progress;

    /// The change of the tenant that it reflects; 0 if it knows nothing of it.
    fn position(&self, tenant: &str) -> impl Future<Output = Result<i64, Fault>> + Send;

    /// Brings these documents into it as they are now.
    fn take_up(&self, tenant: &str, documents: &[&str]) -> impl Future<Output = Result<(), Fault>> + Send;

    /// From now on it reflects all changes up to this one.
    fn reflect(&self, tenant: &str, position: i64) -> impl Future<Output = Result<(), Fault>> + Send;
}

/// The documents of one step.
struct Page {
    documents: Vec<String>,
    /// The place of the last of them, and whether others may follow.
    last: (i64, String),
    full: bool,
}

impl Hub {
    /// One step towards a version of a tenant's tree that was read before its changes are.
    pub(crate) async fn step_along(
        &self,
        index: &impl Follower,
        tenant: &str,
        version: i64,
    ) -> Result<Step, Fault> {
        let progress = index.progress();
        let _step = progress.step().await;
        let reached = match progress.reached(tenant) {
            Some(reached) => reached,
            None => {
                let reached = index.position(tenant).await?;
                progress.reach(tenant, reached);
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
            let documents: Vec<&str> = page.documents.iter().map(String::as_str).collect();
            if !documents.is_empty() {
                index.take_up(tenant, &documents).await?;
            }
            // Whatever changed up to that version is in by now, or has changed again since and comes later. A position that a
            // page cuts in two is not done yet.
            let done = if page.full { page.last.0 - 1 } else { version };
            if done > reached {
                index.reflect(tenant, done).await?;
                progress.reach(tenant, done);
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
            passages += usize::try_from(count).unwrap_or(0);
            page.last = (position, document.clone());
            page.documents.push(document);
        }
        page.full = crate::write::number(rows.len()) >= FOLLOW_DOCUMENTS;
        Ok(page)
    }
}

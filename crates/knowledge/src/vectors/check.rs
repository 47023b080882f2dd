//! The vectors against the passages: what the store should keep and the index should hold is compared with what they do.

use std::collections::HashSet;

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::store::Batch;
use serde_json::{Value, json};

use super::tables;
use crate::hub::{Hub, Meaning};
use crate::journal::tables::changes;
use crate::limits::{LATE, PROBLEMS, REINDEX_PAGE};
use crate::record::read;
use crate::retrieval::Mend;
use crate::retrieval::tables::documents_after;
use crate::tables::{Whose, change_note, tree_bump, tree_read};
use crate::write::{CHANGES, number};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vectors {
    /// The model that they are of.
    pub model: String,
    /// Passages that should have a vector.
    pub passages: usize,
    /// Passages whose vectors the store has not, and vectors of documents that are not there.
    pub wrong: usize,
    /// Passages that the index holds, and how many of them it should not, or should and does not.
    pub indexed: usize,
    pub astray: usize,
    /// Changes that the index does not reflect yet: what they are about is not wrong, only late.
    pub behind: i64,
    pub mended: usize,
}

/// The passages of a tenant.
#[derive(Default)]
struct Passages {
    /// Those that the index should hold.
    wanted: HashSet<i64>,
    /// Documents with a text that has no vector.
    wrong: Vec<String>,
}

impl Vectors {
    pub fn shown(&self) -> Value {
        json!({"model": self.model, "passages": self.passages, "wrong": self.wrong, "indexed": self.indexed,
               "astray": self.astray, "behind": self.behind, "mended": self.mended})
    }
}

impl Hub {
    /// Compares the vectors of a tenant, in the store and in the index, with its passages. What is mended in the store is
    /// learned again in the background.
    pub async fn check_vectors(&self, tenant: &str, mend: Mend) -> Result<Option<Vectors>, Fault> {
        let Some(meaning) = self.meaning() else { return Ok(None) };
        let mut found = Vectors { model: meaning.embedder.name().to_owned(), ..Vectors::default() };
        // What changes from now on is late at most.
        let version = match self.row(tree_read(tenant)).await? {
            Some(row) => row.int(0).map_err(read)?,
            None => 0,
        };
        let reached = meaning.dense.position(tenant).await?;
        found.behind = (version - reached).max(0);
        let Some(late) = self.late(tenant, reached).await? else { return Ok(Some(found)) };
        let Passages { wanted, wrong } = self.check_stored(meaning, tenant, &late, &mut found).await?;
        let held: HashSet<i64> = meaning.dense.passages(tenant).await?.into_iter().collect();
        found.indexed = held.len();
        if found.behind == 0 && self.unchanged(tenant, version).await? {
            found.astray = held.symmetric_difference(&wanted).count();
        }
        self.mend(meaning, tenant, &wrong, mend, &mut found).await?;
        Ok(Some(found))
    }

    async fn mend(
        &self,
        meaning: &Meaning,
        tenant: &str,
        wrong: &[String],
        mend: Mend,
        found: &mut Vectors,
    ) -> Result<(), Fault> {
        let clear = match mend {
            Mend::No => return Ok(()),
            Mend::Wrong => found.astray > 0,
            Mend::All => true,
        };
        for page in wrong.chunks(usize::try_from(REINDEX_PAGE).unwrap_or(1)) {
            let mut batch = Batch::new();
            batch.then_one(tree_bump(tenant));
            for id in page {
                let whose = Whose { tenant, id };
                batch.then(tables::vectors_forget(whose));
                batch.then(change_note(whose));
            }
            self.store().commit(batch).await.map_err(read)?;
        }
        if clear {
            let _step = self.progress().step().await;
            meaning.dense.clear(tenant).await?;
            self.progress().forget(tenant);
        }
        let mut batch = Batch::new();
        batch.then(tables::strays_forget(tenant));
        batch.wake(CHANGES);
        self.store().commit(batch).await.map_err(read)?;
        found.mended = found.wrong + found.astray;
        Ok(())
    }

    async fn unchanged(&self, tenant: &str, version: i64) -> Result<bool, Fault> {
        let row = self.row(tree_read(tenant)).await?;
        let now = row.map_or(Ok(0), |row| row.int(0)).map_err(read)?;
        Ok(now == version)
    }

    /// Documents whose changes the index has not taken up yet; none if there are too many to tell them apart.
    async fn late(&self, tenant: &str, reached: i64) -> Result<Option<HashSet<String>>, Fault> {
        let rows = self.rows(changes(tenant, (reached + 1, ""), LATE)).await?;
        if number(rows.len()) == LATE {
            return Ok(None);
        }
        let late = rows.iter().map(|row| Ok(row.text(0)?.to_owned())).collect::<Result<_, _>>();
        late.map(Some).map_err(read)
    }

    /// Looks at every document that is not late.
    async fn check_stored(
        &self,
        meaning: &Meaning,
        tenant: &str,
        late: &HashSet<String>,
        found: &mut Vectors,
    ) -> Result<Passages, Fault> {
        let mut passages = Passages::default();
        let mut after = String::new();
        'pages: loop {
            let rows = self.rows(documents_after((tenant, &after), REINDEX_PAGE)).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                let (owner, id) = (row.text(0).map_err(read)?, row.text(1).map_err(read)?);
                if owner != tenant {
                    break 'pages;
                }
                id.clone_into(&mut after);
                let whose = Whose { tenant, id };
                let texts = self.texts(whose).await?;
                found.passages += texts.len();
                if !late.contains(id) {
                    let known = self.known(meaning, whose).await?;
                    let lost = texts.iter().filter(|one| !known.contains(&one.print)).count();
                    found.wrong += lost;
                    if lost > 0 {
                        passages.wrong.push(id.to_owned());
                    }
                }
                passages.wanted.extend(texts.iter().map(|one| one.number));
            }
        }
        found.wrong += self.rows(tables::strays(tenant, number(PROBLEMS))).await?.len();
        Ok(passages)
    }
}

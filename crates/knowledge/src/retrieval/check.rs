//! The index against the documents: what it should hold is made again from the texts and compared with what it holds.

use orchestr8_contract::Fault;
use orchestr8_kernel::ports::store::{Batch, Row};

use super::lexicon::{Entry, Sign, entries};
use super::tables;
use crate::hub::Hub;
use crate::limits::{PROBLEMS, REINDEX_PAGE};
use crate::record::{Document, read};
use crate::tables::{Whose, change_note, tree_bump, tree_hold};
use crate::write::{CHANGES, index, number};

/// What a look at the index does about what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    /// Only tells.
    No,
    /// Writes anew what is wrong.
    Wrong,
    /// Writes everything anew.
    All,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub documents: usize,
    /// Documents whose entries are not what they should be, and words of documents that are not there.
    pub wrong: usize,
    pub mended: usize,
    /// The first of them: `tenant/id`.
    pub examples: Vec<String>,
}

impl Report {
    fn add(&mut self, what: String) {
        self.wrong += 1;
        if self.examples.len() < PROBLEMS {
            self.examples.push(what);
        }
    }
}

impl Hub {
    /// Compares the index with the documents of all tenants, hidden ones included: they may come back.
    pub async fn check_index(&self, mend: Mend) -> Result<Report, Fault> {
        let mut report = Report::default();
        self.check_documents(None, mend, &mut report).await?;
        self.check_strays(mend, &mut report).await?;
        Ok(report)
    }

    /// The same for one tenant, which learns nothing about others.
    pub async fn check_tenant(&self, tenant: &str, mend: Mend) -> Result<Report, Fault> {
        let mut report = Report::default();
        self.check_documents(Some(tenant), mend, &mut report).await?;
        self.check_own_strays(tenant, mend, &mut report).await?;
        if mend == Mend::All {
            self.words().let_go(tenant);
        }
        Ok(report)
    }

    async fn check_documents(
        &self,
        only: Option<&str>,
        mend: Mend,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let mut after = (only.unwrap_or_default().to_owned(), String::new());
        loop {
            let rows = self.rows(tables::documents_after((&after.0, &after.1), REINDEX_PAGE)).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = key(last)?;
            for row in &rows {
                let (tenant, id) = key(row)?;
                if only.is_some_and(|only| only != tenant) {
                    return Ok(());
                }
                self.check_document(Whose { tenant: &tenant, id: &id }, mend, report).await?;
            }
        }
    }

    /// Words of passages that are not there belong to nobody, so anybody may have them mended; counts are a tenant's own.
    async fn check_own_strays(&self, tenant: &str, mend: Mend, report: &mut Report) -> Result<(), Fault> {
        let strays = self.rows(tables::strays(number(PROBLEMS))).await?;
        for row in &strays {
            report.add(format!("passage {}", row.int(0).map_err(read)?));
        }
        let counts = self.rows(tables::counts_wrong()).await?;
        let own = counts.iter().any(|row| row.text(0).is_ok_and(|found| found == tenant));
        if own {
            report.add(format!("{tenant}: its counts"));
        }
        if mend != Mend::No && (own || !strays.is_empty()) {
            let mut batch = Batch::new();
            batch.then(tables::strays_forget());
            batch.then(tables::counts_mend(tenant));
            self.store().commit(batch).await.map_err(read)?;
            report.mended += strays.len() + usize::from(own);
        }
        Ok(())
    }

    async fn check_document(&self, whose: Whose<'_>, mend: Mend, report: &mut Report) -> Result<(), Fault> {
        // Nobody writes it meanwhile: what is compared belongs together.
        let _turn = self.turns().at_document(whose.tenant, whose.id).await;
        let Some(document) = self.any_document(whose).await? else { return Ok(()) };
        let body = self.body(whose, document.content_revision).await?;
        let wanted = entries(&Sign::of(whose.tenant), &document.title, document.mime, &body);
        let right = self.is_right(whose, &wanted).await?;
        report.documents += 1;
        if !right {
            report.add(format!("{}/{}", whose.tenant, whose.id));
        }
        let write = match mend {
            Mend::No => false,
            Mend::Wrong => !right,
            Mend::All => true,
        };
        if write {
            self.rewrite(whose, &document, &wanted).await?;
            report.mended += usize::from(!right);
        }
        Ok(())
    }

    async fn rewrite(&self, whose: Whose<'_>, document: &Document, wanted: &[Entry]) -> Result<(), Fault> {
        let mut batch = Batch::new();
        batch.then_one(tree_hold(whose, document.revision));
        batch.then_one(tree_bump(whose.tenant));
        index(&mut batch, whose, wanted);
        // Its passages have other numbers now, which an index over vectors must learn.
        batch.then(change_note(whose));
        batch.wake(CHANGES);
        self.store().commit(batch).await.map_err(read)
    }

    async fn is_right(&self, whose: Whose<'_>, wanted: &[Entry]) -> Result<bool, Fault> {
        let rows = self.rows(tables::passages_of(whose)).await?;
        if rows.len() != wanted.len() {
            return Ok(false);
        }
        for (row, entry) in rows.iter().zip(wanted) {
            let same = || {
                Ok(row.int(1)? == number(entry.chunk.offset)
                    && row.int(2)? == number(entry.chunk.length)
                    && row.int(3)? == entry.words
                    && row.text(4)? == entry.chunk.heading
                    && row.blob(5).is_ok_and(|print| print == entry.print))
            };
            let number = row.int(0).map_err(read)?;
            if !same().map_err(read)? || self.rows(tables::holds(number, phrases(entry))).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Words of passages that are not there, and counts that are off.
    async fn check_strays(&self, mend: Mend, report: &mut Report) -> Result<(), Fault> {
        let strays = self.rows(tables::strays(number(PROBLEMS))).await?;
        let counts = self.rows(tables::counts_wrong()).await?;
        for row in &strays {
            report.add(format!("passage {}", row.int(0).map_err(read)?));
        }
        for row in &counts {
            report.add(format!("{}: its counts", row.text(0).map_err(read)?));
        }
        if mend != Mend::No && !(strays.is_empty() && counts.is_empty()) {
            let mut batch = Batch::new();
            for statement in tables::strays_mend() {
                batch.then(statement);
            }
            self.store().commit(batch).await.map_err(read)?;
            report.mended += strays.len() + counts.len();
        }
        Ok(())
    }
}

/// The words of an entry as one question: all of them, in their order.
fn phrases(entry: &Entry) -> String {
    let columns = [("head", &entry.head), ("body", &entry.body), ("fold", &entry.fold)];
    let filled = columns.into_iter().filter(|(_, words)| !words.is_empty());
    filled
        .map(|(column, words)| format!("{column} : \"{}\"", words.trim_end()))
        .collect::<Vec<_>>()
        .join(" AND ")
}

fn key(row: &Row) -> Result<(String, String), Fault> {
    Ok((row.text(0).map_err(read)?.to_owned(), row.text(1).map_err(read)?.to_owned()))
}

//! Deletes the oldest entries of a hash chain so that the rest can still be proven: what goes is written into the chain
//! first, then it goes, a few entries at a time.

use orchestr8_contract::chain::{Entry, Prover, Pruned};
use orchestr8_contract::merkle::Hash;
use orchestr8_kernel::ports::store::{Batch, Error, Guard, Link, Statement, Store};

use crate::merkle::{LogSource, PrunedSet};
use crate::retention::{SLICE_ROWS, SLICES_MAX};

/// Each time entries are deleted the chain says so; waiting until the oldest is a day older than it need be keeps that to
/// one entry a day.
pub const PATIENCE_MS: i64 = 86_400_000;

/// Which entries of a log may be deleted for their age.
pub struct PruneRule<'a> {
    /// Those from before this moment.
    pub before_ms: i64,
    /// Those up to this number: a signed head covers them.
    pub covered: u64,
    /// Gives the signed statement about the digest of what was deleted.
    pub sign: &'a (dyn Fn(Hash) -> String + Sync),
}

/// The newest entry before the first young one; of a chain where all are old, the last but one, so that there is always one
/// to go on from. Times may go back where a clock was set back: then nothing young is deleted with the old.
const THROUGH: &str = "SELECT seq, entry_hash FROM chain WHERE name = ?1 AND seq <= ?3 AND seq < COALESCE(
        (SELECT MIN(seq) FROM chain WHERE name = ?1 AND at_ms >= ?2),
        (SELECT MAX(seq) FROM chain WHERE name = ?1))
    ORDER BY seq DESC LIMIT 1";

const OLDEST: &str = "SELECT at_ms FROM chain WHERE name = ?1 ORDER BY seq LIMIT 1";

const DUE: &str = "SELECT seq, entry_hash FROM chain WHERE name = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";

const ENTRIES: &str = "SELECT seq, at_ms, body, prev_hash, entry_hash FROM chain
    WHERE name = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4";

const DELETE: &str = "DELETE FROM chain WHERE name = ?1 AND seq IN
    (SELECT seq FROM chain WHERE name = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)";

/// Deletes the old entries of a hash chain that is a log, and gives how many went. `told` makes the entry that says so. The log
/// keeps the hashes of what went.
pub async fn prune(
    store: &dyn Store,
    source: &LogSource,
    rule: &PruneRule<'_>,
    told: impl FnOnce(&Pruned) -> Link,
) -> Result<u64, Error> {
    let Some(chain) = source.chain else { return Ok(0) };
    let oldest = store.query(Statement::new(OLDEST, vec![chain.into()])).await?;
    let oldest_ms = oldest.first().map(|row| row.int(0)).transpose()?;
    if oldest_ms.is_none_or(|oldest_ms| oldest_ms >= rule.before_ms.saturating_sub(PATIENCE_MS)) {
        return Ok(0);
    }
    let covered = i64::try_from(rule.covered).unwrap_or(i64::MAX);
    let cells = vec![chain.into(), rule.before_ms.into(), covered.into()];
    let through = store.query(Statement::new(THROUGH, cells)).await?;
    let Some(row) = through.first() else { return Ok(0) };
    let pruned = Pruned { through_hash: row.text(1)?.to_owned(), through_seq: row.int(0)? };
    verify(store, chain, pruned.through_seq).await?;
    let mut batch = Batch::new();
    batch.link(told(&pruned));
    store.commit(batch).await?;
    delete(store, source, chain, pruned.through_seq, rule).await
}

/// Proves the entries that are about to go. One whose time was changed in the file would otherwise be deleted for its age, and the
/// statement about that signed.
async fn verify(store: &dyn Store, chain: &'static str, through: i64) -> Result<(), Error> {
    let mut prover = Prover::new();
    let mut after = 0;
    loop {
        let cells = vec![chain.into(), after.into(), through.into(), SLICE_ROWS.into()];
        let rows = store.query(Statement::new(ENTRIES, cells)).await?;
        for row in &rows {
            let entry = Entry {
                seq: row.int(0)?,
                at_ms: row.int(1)?,
                body: row.text(2)?.as_bytes(),
                prev_hash: row.text(3)?.as_bytes(),
                entry_hash: row.text(4)?.as_bytes(),
            };
            after = entry.seq;
            prover.take(entry).map_err(|broken| {
                Error::Corrupt(format!("nothing of {chain} was deleted: entry {after} {}", broken.what))
            })?;
        }
        if rows.is_empty() {
            return Ok(());
        }
    }
}

async fn delete(
    store: &dyn Store,
    source: &LogSource,
    chain: &'static str,
    through: i64,
    rule: &PruneRule<'_>,
) -> Result<u64, Error> {
    let mut set = PrunedSet::load(store, source).await?;
    let mut deleted = 0;
    // What is left when there is too much for one time is as old the next time.
    for _ in 0..SLICES_MAX {
        let cells = || vec![chain.into(), through.into(), SLICE_ROWS.into()];
        let rows = store.query(Statement::new(DUE, cells())).await?;
        if !rows.is_empty() {
            let mut batch = Batch::new();
            set.add(source, &rows, rule.sign, &mut batch)?;
            batch.steps.push((Statement::new(DELETE, cells()), Guard::Rows(rows.len())));
            store.commit(batch).await?;
            deleted += rows.len() as u64;
        }
        if i64::try_from(rows.len()).is_ok_and(|count| count < SLICE_ROWS) {
            break;
        }
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use orchestr8_contract::chain::{Broken, Entry, Prover, Verified};
    use orchestr8_kernel::audit::{self, CHAIN};

    use super::*;
    use crate::merkle::AUDIT_LOG;
    use crate::sqlite::Simulated;

    const DAY_MS: i64 = 86_400_000;

    fn told(pruned: &Pruned) -> Link {
        audit::pruned(pruned, 100 * DAY_MS)
    }

    async fn prune(store: &Simulated, before_ms: i64) -> u64 {
        let rule = PruneRule { before_ms, covered: u64::MAX, sign: &|_| String::new() };
        super::prune(store, &AUDIT_LOG, &rule, told).await.unwrap()
    }

    async fn filled(days: impl IntoIterator<Item = i64>) -> Simulated {
        let store = Simulated::faultless(&[]).unwrap();
        for day in days {
            let mut batch = Batch::new();
            batch.link(Link { chain: CHAIN.into(), at_ms: day * DAY_MS, body: "{}".into() });
            store.commit(batch).await.unwrap();
        }
        store
    }

    async fn verify(store: &Simulated) -> Result<Verified, Broken> {
        let sql = "SELECT seq, at_ms, body, prev_hash, entry_hash FROM chain WHERE name = ?1 ORDER BY seq";
        let mut prover = Prover::new();
        for row in store.query(Statement::new(sql, vec![CHAIN.into()])).await.unwrap() {
            prover.take(Entry {
                seq: row.int(0).unwrap(),
                at_ms: row.int(1).unwrap(),
                body: row.text(2).unwrap().as_bytes(),
                prev_hash: row.text(3).unwrap().as_bytes(),
                entry_hash: row.text(4).unwrap().as_bytes(),
            })?;
        }
        prover.finish()
    }

    #[tokio::test]
    async fn an_entry_that_was_made_older_is_not_deleted() {
        let store = filled([100; 5]).await;
        let mut batch = Batch::new();
        let forged = Statement::new(
            "UPDATE chain SET at_ms = ?1 WHERE name = ?2 AND seq <= 3",
            vec![1.into(), CHAIN.into()],
        );
        batch.then(forged);
        store.commit(batch).await.unwrap();
        let rule = PruneRule { before_ms: 50 * DAY_MS, covered: u64::MAX, sign: &|_| String::new() };
        let refused = super::prune(&store, &AUDIT_LOG, &rule, told).await.unwrap_err();
        assert!(matches!(refused, Error::Corrupt(_)), "{refused}");
        let rows = store.query(Statement::new("SELECT COUNT(*) FROM chain", Vec::new())).await.unwrap();
        assert_eq!(rows[0].int(0).unwrap(), 5, "nothing went, and nothing says that it did");
    }

    #[tokio::test]
    async fn the_old_go_and_the_rest_is_proven_from_there() {
        let store = filled((0..SLICE_ROWS + 30).map(|at| at / 100)).await;
        let young = store
            .query(Statement::new("SELECT COUNT(*) FROM chain WHERE at_ms >= ?1", vec![(3 * DAY_MS).into()]));
        let young = young.await.unwrap()[0].int(0).unwrap();
        assert_eq!(prune(&store, 3 * DAY_MS).await, 300);
        let verified = verify(&store).await.unwrap();
        assert_eq!((verified.entries, verified.pruned), (young.unsigned_abs() + 1, 300));
        // Appending goes on from the same head, and a second time deletes what has become old since.
        let mut batch = Batch::new();
        batch.link(Link { chain: CHAIN.into(), at_ms: 101 * DAY_MS, body: "{}".into() });
        store.commit(batch).await.unwrap();
        assert_eq!(prune(&store, 50 * DAY_MS).await, young.unsigned_abs());
        let verified = verify(&store).await.unwrap();
        assert_eq!((verified.entries, verified.pruned), (3, 530));
    }

    #[tokio::test]
    async fn a_little_age_is_no_reason_and_the_newest_entry_stays() {
        let store = filled([1, 1, 5]).await;
        assert_eq!(prune(&store, 2 * DAY_MS).await, 0, "a day of patience");
        assert_eq!(prune(&store, 90 * DAY_MS).await, 2);
        let verified = verify(&store).await.unwrap();
        assert_eq!((verified.entries, verified.pruned), (2, 2));
        assert_eq!(prune(&filled([]).await, 90 * DAY_MS).await, 0);
    }

    #[tokio::test]
    async fn a_clock_that_was_set_back_costs_nothing_young() {
        let store = filled([1, 50, 2, 60]).await;
        assert_eq!(prune(&store, 40 * DAY_MS).await, 1, "the entry of day 2 stays");
        assert_eq!(verify(&store).await.unwrap().entries, 4);
    }

    #[tokio::test]
    async fn a_crash_before_the_deleting_leaves_a_chain_that_holds() {
        let store = filled([1, 2, 3, 60]).await;
        let row = &store
            .query(Statement::new(THROUGH, vec![CHAIN.into(), (40 * DAY_MS).into(), 99.into()]))
            .await
            .unwrap()[0];
        let pruned =
            Pruned { through_hash: row.text(1).unwrap().to_owned(), through_seq: row.int(0).unwrap() };
        let mut batch = Batch::new();
        batch.link(told(&pruned));
        batch.then(Statement::new(DELETE, vec![CHAIN.into(), 2.into(), SLICE_ROWS.into()]));
        store.commit(batch).await.unwrap();
        assert_eq!(verify(&store).await.unwrap().pruned, 2, "the third was to go and is still there");
        assert_eq!(prune(&store, 40 * DAY_MS).await, 1);
        assert_eq!(verify(&store).await.unwrap().pruned, 3);
    }
}

//! What every store must pass. A store runs it with `store_suite!(open)`, where `open()` gives a fresh store with
//! [`TABLES`] applied, and whatever must live as long as it does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, also when another crate runs them")]

pub mod atomicity;
pub mod chains;
pub mod guards;
pub mod order;
pub mod values;

use std::sync::Arc;

use orchestr8_kernel::ports::store::{Batch, Cell, Row, Statement, Store};

use crate::migrations::Migration;

/// The tables the suite works on.
pub const TABLES: &[Migration] = &[Migration {
    name: "suite/0001-tables",
    sql: "CREATE TABLE item (id INTEGER PRIMARY KEY, revision INTEGER NOT NULL DEFAULT 0) STRICT;
          CREATE TABLE part (
              id INTEGER PRIMARY KEY,
              item INTEGER NOT NULL REFERENCES item (id) DEFERRABLE INITIALLY DEFERRED
          ) STRICT;
          CREATE TABLE piece (id INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES item (id)) STRICT;
          CREATE TABLE claim (key TEXT PRIMARY KEY, owner INTEGER NOT NULL) STRICT;
          CREATE TABLE value (id INTEGER PRIMARY KEY, an_int INTEGER, a_real REAL, a_text TEXT, a_blob BLOB) STRICT;",
}];

pub type Shared = Arc<dyn Store>;

/// One test for each case of the suite.
#[macro_export]
macro_rules! store_suite {
    ($open:path) => {
        $crate::store_suite!($open, atomicity:
            a_batch_happens_whole
            a_failed_guard_undoes_everything_of_its_batch
            a_refused_statement_undoes_everything_of_its_batch
            an_empty_batch_is_done
            a_wrong_batch_harms_no_neighbour
            a_broken_promise_found_at_the_end_harms_no_neighbour
        );
        $crate::store_suite!($open, guards:
            a_conflict_says_what_it_expected_and_found
            of_many_claims_on_one_key_exactly_one_wins
            of_many_writers_on_one_revision_exactly_one_wins
            references_hold
        );
        $crate::store_suite!($open, values:
            every_value_reads_back_as_written
            wrong_statements_are_refused_and_change_nothing
            a_batch_only_changes_and_a_query_only_reads
            too_many_steps_are_refused
        );
        $crate::store_suite!($open, order:
            whoever_has_the_answer_reads_what_was_written
            batches_of_one_task_happen_in_its_order
            many_tasks_commit_at_once_and_nothing_is_lost
            watchers_wake_when_it_is_durable_and_only_for_their_topic
            whoever_is_woken_finds_what_he_was_woken_for
        );
        $crate::store_suite!($open, chains:
            a_chain_counts_from_one_and_holds_together
            chains_do_not_mix
            an_undone_batch_leaves_no_gap
            many_append_at_once_without_a_gap
        );
    };
    ($open:path, $module:ident: $($case:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _kept) = $open();
                $crate::suite::$module::$case(store).await;
            }
        )+
    };
}

pub(crate) fn insert_item(id: i64) -> Statement {
    Statement::new("INSERT INTO item (id) VALUES (?1)", vec![id.into()])
}

pub(crate) fn batch(statements: impl IntoIterator<Item = Statement>) -> Batch {
    let mut batch = Batch::new();
    for statement in statements {
        batch.then_one(statement);
    }
    batch
}

pub(crate) async fn rows(store: &Shared, sql: &'static str, cells: Vec<Cell>) -> Vec<Row> {
    store.query(Statement::new(sql, cells)).await.unwrap()
}

pub(crate) async fn ints(store: &Shared, sql: &'static str) -> Vec<i64> {
    rows(store, sql, vec![]).await.iter().map(|row| row.int(0).unwrap()).collect()
}

/// The ids of all items.
pub(crate) async fn items(store: &Shared) -> Vec<i64> {
    ints(store, "SELECT id FROM item ORDER BY id").await
}

//! How the store finds what statements name: through an index, or by looking at everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement};
use orchestr8_stores::Sqlite;
use parking_lot::Mutex;
use tokio::sync::watch;

/// A store that remembers every statement that changes something.
pub struct Noting {
    store: Sqlite,
    seen: Mutex<BTreeSet<String>>,
}

/// One statement, and the steps by which the store finds its rows.
pub struct Plan {
    pub sql: String,
    pub steps: Vec<String>,
}

impl Noting {
    pub fn on(store: Sqlite) -> Arc<Self> {
        Arc::new(Self { store, seen: Mutex::default() })
    }

    /// The plans of all changes so far.
    pub async fn plans(&self) -> Vec<Plan> {
        let seen = self.seen.lock().clone();
        let mut plans = Vec::new();
        for sql in seen {
            let steps = self.store.plan(&sql).await.expect("a plan");
            plans.push(Plan { sql, steps });
        }
        plans
    }
}

impl Store for Noting {
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>> {
        self.seen.lock().extend(batch.steps.iter().map(|(statement, _)| statement.sql.to_string()));
        self.store.commit(batch)
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        self.store.query(statement)
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.store.watch(topic)
    }
}

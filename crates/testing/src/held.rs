//! A store that can be held up at one statement, so that a test says what happens exactly then.

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::within;

/// Holds up the statements it is told to, and passes on everything else.
pub struct Holding {
    store: Arc<dyn Store>,
    holds: Mutex<Vec<Arc<Hold>>>,
}

/// One statement that is held up, once.
pub struct Hold {
    sql: &'static str,
    when: When,
    reached: Notify,
    released: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    After,
}

impl Holding {
    pub fn on(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { store, holds: Mutex::default() })
    }

    /// The next statement with this text is not carried out before it is released.
    pub fn before(&self, sql: &'static str) -> Arc<Hold> {
        self.hold(sql, When::Before)
    }

    /// The next statement with this text is carried out, and whoever asked does not hear of it before it is released.
    pub fn after(&self, sql: &'static str) -> Arc<Hold> {
        self.hold(sql, When::After)
    }

    fn hold(&self, sql: &'static str, when: When) -> Arc<Hold> {
        let hold = Arc::new(Hold { sql, when, reached: Notify::new(), released: Notify::new() });
        self.holds.lock().push(hold.clone());
        hold
    }

    /// The first hold for one of these statements. It holds up nothing else.
    fn take<'a>(&self, mut statements: impl Iterator<Item = &'a Statement>) -> Option<Arc<Hold>> {
        let mut holds = self.holds.lock();
        if holds.is_empty() {
            return None;
        }
        let found = statements.find_map(|one| holds.iter().position(|hold| one.sql.contains(hold.sql)))?;
        Some(holds.remove(found))
    }
}

impl Hold {
    /// Waits until somebody is held up.
    pub async fn reached(&self) {
        within(self.reached.notified()).await;
    }

    pub fn release(&self) {
        self.released.notify_one();
    }

    async fn around<T>(&self, work: impl Future<Output = T>) -> T {
        if self.when == When::Before {
            self.wait().await;
        }
        let worked = work.await;
        if self.when == When::After {
            self.wait().await;
        }
        worked
    }

    async fn wait(&self) {
        self.reached.notify_one();
        self.released.notified().await;
    }
}

impl Store for Holding {
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>> {
        let Some(hold) = self.take(batch.steps.iter().map(|(statement, _)| statement)) else {
            return self.store.commit(batch);
        };
        let store = self.store.clone();
        Box::pin(async move { hold.around(async { store.commit(batch).await }).await })
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        let Some(hold) = self.take(std::iter::once(&statement)) else { return self.store.query(statement) };
        let store = self.store.clone();
        Box::pin(async move { hold.around(async { store.query(statement).await }).await })
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.store.watch(topic)
    }
}

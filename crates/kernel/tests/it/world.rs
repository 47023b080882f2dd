//! A kernel to try things on: a store in memory, a clock that moves when told, and actions that wait to be let go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use orchestr8_contract::id::Key;
use orchestr8_contract::{AllowedRoles, Code, Fault, Output};
use orchestr8_kernel::action::{Effect, OnUnknown};
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement};
use orchestr8_kernel::ports::{Clock, Store, ids};
use orchestr8_kernel::submission::{Identity, Scope};
use orchestr8_kernel::{Action, Kernel, Limits, Policy, Reply, Settled, Submission};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, submission};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

/// A clock that stands still until it is moved. Whoever sleeps wakes when it is moved far enough.
#[derive(Default)]
pub struct Moved {
    now_us: Mutex<u64>,
    sleepers: Mutex<BTreeMap<(u64, usize), tokio::sync::oneshot::Sender<()>>>,
    count: AtomicUsize,
}

impl Moved {
    /// How many waits were begun since time last moved, and not ended by it.
    pub fn waits(&self) -> usize {
        self.sleepers.lock().len()
    }

    pub fn by_ms(&self, ms: u64) {
        let now_us = {
            let mut now_us = self.now_us.lock();
            *now_us += ms * 1000;
            *now_us
        };
        let mut sleepers = self.sleepers.lock();
        let later = sleepers.split_off(&(now_us + 1, 0));
        for (_, wake) in std::mem::replace(&mut *sleepers, later) {
            let _ = wake.send(());
        }
    }
}

impl Clock for Moved {
    fn now_ms(&self) -> i64 {
        1_000_000 + i64::try_from(*self.now_us.lock() / 1000).unwrap()
    }

    fn elapsed_us(&self) -> u64 {
        *self.now_us.lock()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let wake_us = *self.now_us.lock() + u64::try_from(duration.as_micros()).unwrap();
        let (wake, woken) = tokio::sync::oneshot::channel();
        let count = self.count.fetch_add(1, Ordering::SeqCst);
        self.sleepers.lock().insert((wake_us, count), wake);
        Box::pin(async move {
            let _ = woken.await;
        })
    }
}

/// Counts what reaches the store.
pub struct Counting {
    inner: Sqlite,
    pub commits: AtomicUsize,
    pub queries: AtomicUsize,
    /// While it is true, commits wait.
    pub stuck: watch::Sender<bool>,
}

impl Store for Counting {
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        let (inner, mut stuck) = (self.inner.clone(), self.stuck.subscribe());
        Box::pin(async move {
            let _ = stuck.wait_for(|stuck| !stuck).await;
            inner.commit(batch).await
        })
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.inner.query(statement)
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.inner.watch(topic)
    }
}

pub struct World {
    pub kernel: Kernel,
    pub clock: Arc<Moved>,
    pub store: Arc<Counting>,
    /// Lets waiting actions go on, one for each permit.
    pub gate: Arc<Semaphore>,
    /// How often work began, and how often it came to its end.
    pub begun: Arc<AtomicUsize>,
    pub done: Arc<AtomicUsize>,
}

const EFFECTS: &str = "CREATE TABLE effects (name TEXT NOT NULL PRIMARY KEY) STRICT";

pub fn open_store() -> Arc<Counting> {
    let inner = memory(&[&[("test-1", EFFECTS)]]);
    let (commits, queries) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Arc::new(Counting { inner, commits, queries, stuck: watch::Sender::new(false) })
}

impl World {
    pub fn new() -> Self {
        Self::on(
            open_store(),
            Limits {
                concurrent_runs: 2,
                payload_bytes: 1000,
                dependency_wait_ms: 5_000,
                ..Limits::default()
            },
        )
    }

    /// A kernel on a store that may have seen others: what a restart is.
    pub fn on(store: Arc<Counting>, limits: Limits) -> Self {
        let clock = Arc::new(Moved::default());
        let parts =
            Parts { clock: clock.clone(), ids: Arc::new(ids::Random), limits, ..Parts::on(store.clone()) };
        let world = Self {
            kernel: parts.kernel(),
            clock,
            store,
            gate: Arc::new(Semaphore::new(0)),
            begun: Arc::default(),
            done: Arc::default(),
        };
        world.register("read", Policy::quick_read(), Kind::Now);
        world.register("wait", Policy::read(), Kind::Waits);
        world.register("store", Policy::stored(), Kind::Stores);
        world.register("outside", Policy::outside(OnUnknown::Fail), Kind::Waits);
        world.register(
            "again",
            Policy { effect: Effect::Outside(OnUnknown::Retry), ..Policy::stored() },
            Kind::Waits,
        );
        world.register("fail", Policy::read(), Kind::Fails);
        world.register("panic", Policy::read(), Kind::Panics);
        world.register("quick-panic", Policy::quick_read(), Kind::Panics);
        world
    }

    pub fn register(&self, name: &str, policy: Policy, kind: Kind) {
        let (gate, begun, done) = (self.gate.clone(), self.begun.clone(), self.done.clone());
        let schema = json!({"type":"object","properties":{"name":{"type":"string"}}});
        let action = Action::tool(name, "for tests", schema, policy, move |args, context| {
            let (gate, begun, done) = (gate.clone(), begun.clone(), done.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let mut effects = Batch::new();
                match kind {
                    Kind::Now => {}
                    Kind::Waits => gate.acquire().await.map_err(|_| Fault::internal("closed"))?.forget(),
                    Kind::Cooperates => {
                        context.cancel.fired().await;
                        return Err(Fault::new(Code::Cancelled, "stopped").into());
                    }
                    Kind::Stores | Kind::StoresLate => {
                        if matches!(kind, Kind::StoresLate) {
                            gate.acquire().await.map_err(|_| Fault::internal("closed"))?.forget();
                        }
                        let name = args.text("name").unwrap_or("x").to_owned();
                        effects.then_one(Statement::new(
                            "INSERT INTO effects (name) VALUES (?1) ON CONFLICT DO NOTHING",
                            vec![name.into()],
                        ));
                    }
                    Kind::Fails => return Err(Fault::invalid("no good").into()),
                    Kind::Panics => panic!("a bug"),
                }
                done.fetch_add(1, Ordering::SeqCst);
                Ok(Reply::new(Output::json(args.into_value()), effects))
            }
        });
        self.kernel.registry().register(action.unwrap().allowed_to(AllowedRoles::ANYONE)).unwrap();
    }

    pub fn ask(&self, action: &str, args: Value) -> Submission {
        submission(action, args)
    }

    pub fn keyed(&self, action: &str, key: &str, args: Value) -> Submission {
        let mut submission = self.ask(action, args);
        submission.identities.push(identity(key));
        submission
    }

    pub fn spawn(&self, submission: Submission) -> tokio::task::JoinHandle<Settled> {
        let kernel = self.kernel.clone();
        tokio::spawn(async move { kernel.submit(submission).await })
    }

    pub async fn until(&self, what: impl Fn(&World) -> bool) {
        while !what(self) {
            tokio::task::yield_now().await;
        }
    }

    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    pub async fn rows(&self, sql: &'static str) -> Vec<Row> {
        self.store.query(Statement::new(sql, vec![])).await.unwrap()
    }
}

#[derive(Clone, Copy)]
pub enum Kind {
    Now,
    Waits,
    Cooperates,
    Stores,
    /// Waits, and then has effects.
    StoresLate,
    Fails,
    Panics,
}

pub fn identity(key: &str) -> Identity {
    Identity { scope: Scope("test".into()), key: Key::parse(key).unwrap(), ttl_ms: 60_000 }
}

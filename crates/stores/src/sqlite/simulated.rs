//! A store for seeded simulation: the same engine over a database in memory, run where it is called, without threads, with
//! faults that a seed decides. The same seed and the same calls give the same answers.

use std::sync::Arc;

use futures::future::BoxFuture;
use orchestr8_kernel::ports::random::{Random, Seeded};
use orchestr8_kernel::ports::store::{Batch, Error, Row, Statement, Store};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::watch;

use super::cells;
use super::engine::{Engine, Stop};
use super::faults::{FailPlan, Fault, Point};
use super::logs::Logs;
use super::open;
use crate::migrations::Migration;
use crate::topics::Topics;

/// How often a commit goes wrong, each as a share of all commits (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Nothing is applied, and the answer is `Error::Full`.
    pub full: f64,
    /// The process dies; nothing was applied.
    pub crash_before: f64,
    /// The process dies; the batch was applied and nobody was told.
    pub crash_after: f64,
}

/// A process's handle to its simulated disk.
///
/// When the process dies, the call during which it died and every other one under way never end, as nothing goes on in a
/// dead process; later calls get `Error::Closed`. The simulation waits for [`Simulated::crashed`], drops what ran in the
/// process, and starts it anew on [`Simulated::restart`].
#[derive(Clone)]
pub struct Simulated {
    disk: Arc<Mutex<Engine>>,
    dice: Arc<Dice>,
    life: Arc<Life>,
}

struct Life {
    dead: watch::Sender<bool>,
    topics: Topics,
}

/// A call waits up to this many turns before it does its work and again before it ends, so that others get in between.
const TURNS_MAX: f64 = 3.0;

impl Simulated {
    /// A fresh disk, brought to the shape the migrations give it.
    pub fn new(migrations: &[Migration], seed: u64, rates: Rates) -> Result<Self, open::Error> {
        Ok(Self::on(open::memory(migrations)?, seed, rates))
    }

    /// Without faults, for tests that only need a store, and as the disk that is copied for each seed.
    pub fn faultless(migrations: &[Migration]) -> Result<Self, open::Error> {
        Self::new(migrations, 0, Rates::default())
    }

    /// A process of its own on a copy of this disk. Copying costs a small part of migrating, so a simulation makes one disk
    /// and copies it for each seed.
    pub fn copy(&self, seed: u64, rates: Rates) -> Result<Self, Error> {
        Ok(Self::on(open::copy(&self.disk.lock().connection)?, seed, rates))
    }

    /// From now on faults come at these rates.
    pub fn set_rates(&self, rates: Rates) {
        *self.dice.rates.lock() = rates;
    }

    /// The process dies now.
    pub fn crash(&self) {
        self.life.dead.send_replace(true);
    }

    pub fn is_dead(&self) -> bool {
        *self.life.dead.borrow()
    }

    /// Ends when the process has died.
    pub async fn crashed(&self) {
        let mut dead = self.life.dead.subscribe();
        // The sender lives as long as this handle.
        let _ = dead.wait_for(|dead| *dead).await;
    }

    /// The process starts anew on what was committed. The old handle is dead from now on.
    pub fn restart(&self) -> Self {
        self.crash();
        // The disk has been read before, and it is in memory: reading it again does not fail.
        drop(self.disk.lock().forget());
        Self { disk: self.disk.clone(), dice: self.dice.clone(), life: Life::begin() }
    }

    fn on(connection: Connection, seed: u64, rates: Rates) -> Self {
        let dice = Arc::new(Dice { random: Seeded::new(seed), rates: Mutex::new(rates) });
        let engine = Engine::new(connection, Logs::none(), dice.clone());
        Self { disk: Arc::new(Mutex::new(engine)), dice, life: Life::begin() }
    }

    async fn turns(&self) {
        let turns = self.dice.random.unit() * TURNS_MAX;
        let mut turn = 1.0;
        while turn <= turns {
            tokio::task::yield_now().await;
            turn += 1.0;
        }
        if self.is_dead() {
            // Whoever was under way when the process died is never heard of again.
            std::future::pending::<()>().await;
        }
    }

    fn commit_now(&self, batch: &Batch) -> Option<Result<(), Error>> {
        match self.disk.lock().commit(&[batch]) {
            Ok(mut answers) => answers.pop(),
            Err(Stop::Crash | Stop::Broken(_)) => {
                self.crash();
                None
            }
        }
    }
}

impl Store for Simulated {
    fn commit(&self, batch: Batch) -> BoxFuture<'static, Result<(), Error>> {
        let process = self.clone();
        Box::pin(async move {
            if process.is_dead() {
                return Err(Error::Closed);
            }
            process.turns().await;
            let Some(answer) = process.commit_now(&batch) else {
                return std::future::pending().await;
            };
            if answer.is_ok() {
                process.life.topics.wake(&batch.topics);
            }
            process.turns().await;
            answer
        })
    }

    fn query(&self, statement: Statement) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        let process = self.clone();
        Box::pin(async move {
            if process.is_dead() {
                return Err(Error::Closed);
            }
            process.turns().await;
            cells::read(&process.disk.lock().connection, &statement)
        })
    }

    fn watch(&self, topic: &str) -> watch::Receiver<u64> {
        self.life.topics.watch(topic)
    }
}

impl Life {
    fn begin() -> Arc<Self> {
        Arc::new(Self { dead: watch::Sender::new(false), topics: Topics::default() })
    }
}

struct Dice {
    random: Seeded,
    rates: Mutex<Rates>,
}

impl FailPlan for Dice {
    fn at(&self, point: Point) -> Fault {
        let rates = *self.rates.lock();
        match point {
            Point::BeforeBegin | Point::AfterBatch => Fault::None,
            Point::BeforeCommit => match self.random.unit() {
                unit if unit < rates.full => Fault::Full,
                unit if unit < rates.full + rates.crash_before => Fault::Crash,
                _ => Fault::None,
            },
            Point::AfterCommit if self.random.unit() < rates.crash_after => Fault::Crash,
            Point::AfterCommit => Fault::None,
        }
    }
}

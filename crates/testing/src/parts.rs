//! What a kernel for tests is made of.

use std::sync::Arc;

use orchestr8_contract::id::CorrelationId;
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::{Clock, Ids, Random, Store, clock, ids, random};
use orchestr8_kernel::{Args, Kernel, Limits, Log, Ports, Principal, Source, Submission, Transport, tables};
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_stores::{Migration, Sqlite};
use serde_json::Value;

/// The tables of a crate: its `tables::MIGRATIONS`.
pub type Tables = &'static [(&'static str, &'static str)];

/// The parts; a test changes those that matter to it.
pub struct Parts {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub random: Arc<dyn Random>,
    pub store: Arc<dyn Store>,
    pub log: Log,
    pub limits: Limits,
}

impl Parts {
    /// Time that passes, counted ids, seeded randomness, no log, the default limits.
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self {
            clock: Arc::new(clock::Real::new()),
            ids: Arc::new(ids::Counted::default()),
            random: Arc::new(random::Seeded::new(1)),
            store,
            log: Log::off(),
            limits: Limits::default(),
        }
    }

    /// The same, on a store in memory with the kernel's tables and these.
    pub fn in_memory(lists: &[Tables]) -> Self {
        Self::on(Arc::new(memory(lists)))
    }

    pub fn kernel(self) -> Kernel {
        let bus = Bus::new(&Config::default(), self.clock.clone(), self.log.clone());
        let ports = Ports {
            clock: self.clock,
            ids: self.ids,
            random: self.random,
            store: self.store,
            log: self.log,
            redactor: Arc::default(),
        };
        Kernel::new(ports, self.limits, bus)
    }
}

/// A store in memory with the kernel's tables and these.
pub fn memory(lists: &[Tables]) -> Sqlite {
    sqlite::open(Options::new(Place::Memory, migrations(lists))).unwrap()
}

/// The migrations of the kernel and of these crates.
pub fn migrations(lists: &[Tables]) -> Vec<Migration> {
    let all = [tables::MIGRATIONS].into_iter().chain(lists.iter().copied()).flatten();
    all.map(|&(name, sql)| Migration { name, sql }).collect()
}

/// The wish of the person at this machine that an action run, as if it came over stdio.
pub fn submission(action: &str, args: Value) -> Submission {
    let Value::Object(map) = args else { panic!("arguments are an object") };
    let correlation = CorrelationId::parse("test").unwrap();
    let mut submission = Submission::new(action, Args::new(map), Arc::new(Principal::local()), correlation);
    submission.transport = Transport::Stdio;
    submission.source = Source::stdio("test");
    submission
}

//! One life: a kernel on a runtime of its own, from its start to its crash or to the end of all wishes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{AllowedRoles, Code, Fault, Output};
use orchestr8_kernel::action::{Cost, Effect, OnUnknown};
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::store::{Batch, Statement};
use orchestr8_kernel::ports::{clock, ids, random};
use orchestr8_kernel::{
    Action, End, Halt, Kernel, Limits, Log, Policy, Ports, Reply, Settled, Started, Why, tables,
};
use orchestr8_stores::Migration;
use orchestr8_stores::sqlite::simulated::{Rates, Simulated};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::clients::{self, Wish};

const EFFECTS: &str = "CREATE TABLE effects (seq INTEGER PRIMARY KEY, key TEXT NOT NULL) STRICT";
const DEADLINE_MS: u64 = 100;

/// A process dies about once in fifteen commits, and the disk is full about once in thirty.
const RATES: Rates = Rates { full: 0.03, crash_before: 0.03, crash_after: 0.04 };

/// What lies outside every life: the disk, the world, and the memory of the clients.
pub struct World {
    pub store: Simulated,
    pub wishes: Vec<Vec<Wish>>,
    /// How often something happened outside the store, by key.
    pub outside: Arc<Mutex<BTreeMap<String, usize>>>,
    /// What the clients were told, in order.
    pub history: Vec<String>,
    random: StdRng,
    ids: Arc<ids::Counted>,
    seed: u64,
}

/// What one life saw of a lane: what was asked for and what began, each in its order.
#[derive(Default)]
pub struct Lanes {
    asked: Mutex<Vec<String>>,
    begun: Mutex<Vec<String>>,
}

impl Lanes {
    /// Whether what began in each lane began in the order in which it was asked for. What was answered from the ledger
    /// never begins, so one list has gaps.
    fn kept_order(&self, wishes: &[Vec<Wish>]) -> bool {
        let (asked, begun) = (self.asked.lock(), self.begun.lock());
        let lane_of = |key: &str| {
            wishes.iter().flatten().find(|wish| wish.key == *key).and_then(|wish| wish.lane.clone())
        };
        ["lane-0", "lane-1"].iter().all(|lane| {
            let of_lane = |key: &&String| lane_of(key).as_deref() == Some(lane);
            let mut asked = asked.iter().filter(of_lane);
            begun.iter().filter(of_lane).all(|key| asked.any(|other| other == key))
        })
    }
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut migrations: Vec<Migration> =
            tables::MIGRATIONS.iter().map(|&(name, sql)| Migration { name, sql }).collect();
        migrations.push(Migration { name: "simulation-1", sql: EFFECTS });
        Self {
            store: Simulated::new(&migrations, seed, RATES).expect("a store in memory"),
            wishes: clients::wishes(&mut random),
            outside: Arc::default(),
            history: Vec::new(),
            random,
            ids: Arc::default(),
            seed,
        }
    }

    pub fn kernel(&self, begun: Arc<Lanes>, number: usize) -> Kernel {
        let clock = Arc::new(clock::Simulated::new());
        let ports = Ports {
            clock: clock.clone(),
            ids: self.ids.clone(),
            random: Arc::new(random::Seeded::new(self.seed + number as u64)),
            store: Arc::new(self.store.clone()),
            log: Log::off(),
            redactor: Arc::default(),
        };
        let bus = Bus::new(&Config::default(), clock, ports.log.clone());
        let limits = Limits { timeout_ms: DEADLINE_MS, concurrent_runs: 3, ..Limits::default() };
        let kernel = Kernel::new(ports, limits, bus);
        self.register(&kernel, &begun);
        kernel
    }

    fn register(&self, kernel: &Kernel, lanes: &Arc<Lanes>) {
        let outside = |on_unknown| Policy { effect: Effect::Outside(on_unknown), ..Policy::stored() };
        let quick = Policy { cost: Cost::Quick, ..Policy::stored() };
        let all = [
            ("stored", quick),
            ("once", outside(OnUnknown::Fail)),
            ("again", outside(OnUnknown::Retry)),
            ("failing", Policy::read()),
            ("slow", Policy::stored()),
        ];
        for (name, policy) in all {
            let (happened, lanes) = (self.outside.clone(), lanes.clone());
            let action =
                Action::tool(name, "simulated", json!({"type":"object"}), policy, move |args, context| {
                    let (happened, lanes) = (happened.clone(), lanes.clone());
                    async move {
                        let key = args.text("key").unwrap_or_default().to_owned();
                        lanes.begun.lock().push(key.clone());
                        let mut effects = Batch::new();
                        match name {
                            "stored" => {
                                effects.then_one(Statement::new(
                                    "INSERT INTO effects (key) VALUES (?1)",
                                    vec![key.into()],
                                ));
                            }
                            "failing" => return Err(Fault::invalid("as wished").into()),
                            "slow" => {
                                context
                                    .kernel
                                    .ports()
                                    .clock
                                    .sleep(Duration::from_millis(DEADLINE_MS * 2))
                                    .await
                            }
                            _ => *happened.lock().entry(key).or_default() += 1,
                        }
                        Ok(Reply::new(Output::json(args.into_value()), effects))
                    }
                });
            kernel
                .registry()
                .register(action.expect("an action").allowed_to(AllowedRoles::ANYONE))
                .expect("a free name");
        }
    }
}

/// Whether every wish was told how it ended. False: this life crashed before.
pub fn live(world: &mut World, number: usize) -> bool {
    world.store = world.store.restart();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let lanes = Arc::new(Lanes::default());
    let ended = runtime.block_on(async {
        let kernel = world.kernel(lanes.clone(), number);
        let store = world.store.clone();
        tokio::select! {
            biased;
            () = store.crashed() => false,
            () = everybody(world, &kernel, &lanes) => true,
        }
    });
    if !lanes.kept_order(&world.wishes) {
        world.history.push("BROKEN the order of a lane".to_owned());
    }
    drop(runtime);
    ended
}

async fn everybody(world: &mut World, kernel: &Kernel, lanes: &Lanes) {
    while world.wishes.iter().flatten().any(|wish| wish.told.is_none()) {
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (client, wishes) in world.wishes.iter().enumerate() {
            open.extend(
                wishes.iter().enumerate().filter(|(_, wish)| wish.told.is_none()).map(|(at, _)| (client, at)),
            );
        }
        let mut running = Vec::new();
        for (client, at) in open {
            // Now and then a wish is asked for twice at once, or one that was told before is asked for again.
            let times = if world.random.random_bool(0.2) { 2 } else { 1 };
            for _ in 0..times {
                let wish = &world.wishes[client][at];
                lanes.asked.lock().push(wish.key.clone());
                let submission = clients::submission(wish);
                let cancel = submission.cancel.clone();
                running.push((client, at, kernel.start(submission)));
                match world.random.random_range(0..20) {
                    0 => cancel.fire(Why::Client),
                    1 => cancel.fire(Why::Disconnect),
                    _ => {}
                }
            }
        }
        contradict(world, kernel).await;
        for (client, at, started) in running {
            let settled = match started {
                Started::Done(settled) => *settled,
                Started::Running(task) => task.await.expect("a submission never panics"),
            };
            hear(world, client, at, &settled);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Now and then somebody uses the key of something that has ended for something else, and must be refused.
async fn contradict(world: &mut World, kernel: &Kernel) {
    for wish in world.wishes.clone().into_iter().flatten().filter(|wish| wish.told.is_some()) {
        if !world.random.random_bool(0.1) {
            continue;
        }
        let settled = kernel.submit(clients::contradiction(&wish)).await;
        let refused = matches!(settled.code(), Some(Code::KeyConflict | Code::IdConflict));
        // A store that cannot be read cannot tell either.
        if settled.end != End::Refused || !(refused || settled.code() == Some(Code::StoreFailed)) {
            let code = settled.code();
            world.history.push(format!(
                "BROKEN {} was asked for something else and told {:?} {code:?}",
                wish.key, settled.end
            ));
        }
    }
}

/// What a client makes of an answer. Busy and broken stores are no answers: it asks again.
fn hear(world: &mut World, client: usize, at: usize, settled: &Settled) {
    let told = match (&settled.result, settled.end) {
        (_, End::Refused) if settled.code() != Some(Code::OutcomeUnknown) => return,
        (Err(Halt::Fault(fault)), _) if matches!(fault.code, Code::StoreFailed) => return,
        (Ok(output), end) => format!("{} {}", end.as_str(), serde_json::to_string(output).expect("json")),
        (Err(Halt::Fault(fault)), end) => format!("{} {}", end.as_str(), fault.code),
        (Err(Halt::Asks(_)), end) => end.as_str().to_owned(),
    };
    let wish = &mut world.wishes[client][at];
    world.history.push(format!("{} {told} {}", wish.key, settled.replayed));
    match &wish.told {
        // What the work gives in the end takes the place of its timeout, once and for all.
        Some(before) if before.starts_with("timeout") && told.starts_with("late_completed") => {
            wish.told = Some(told);
        }
        Some(before) if *before != told => {
            world.history.push(format!("BROKEN {}: {before}, then {told}", wish.key))
        }
        Some(_) => {}
        None => wish.told = Some(told),
    }
}

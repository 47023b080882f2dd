//! One life of the server, with the agents around it; and the network between them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use orchestr8_agents::aacp::{Backoff, Hub, Settings};
use orchestr8_agents::{Coordinator, of_messages, tables};
use orchestr8_contract::Output;
use orchestr8_kernel::bus::{Bus, Config};
use orchestr8_kernel::ports::{Clock as _, clock, ids, random};
use orchestr8_kernel::{Cancel, Kernel, Limits, Log, Ports};
use orchestr8_stores::sqlite::simulated::{Rates, Simulated};
use orchestr8_testing::{migrations, submission};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::peer::Peer;

/// A server dies about once in twenty commits, and its disk is full about once in fifty.
const RATES: Rates = Rates { full: 0.02, crash_before: 0.02, crash_after: 0.03 };

/// Turns in which everything may go wrong; afterwards the network and the disks hold, and everybody comes to rest.
const WILD_TURNS: u32 = 20;
const TURNS: u32 = 2_000;

const TIMEOUT_MS: i64 = 50;
pub const ATTEMPTS: u32 = 4;

/// Made once, and copied for each seed.
static DISK: LazyLock<Simulated> =
    LazyLock::new(|| Simulated::faultless(&migrations(&[tables::MIGRATIONS])).expect("a store in memory"));

pub struct World {
    pub store: Simulated,
    pub peers: Vec<Peer>,
    /// Every request: who asks whom.
    pub requests: BTreeMap<String, (usize, usize)>,
    /// Those that their target takes and never answers.
    pub swallowed: BTreeSet<String>,
    pub history: Vec<String>,
    pub mishaps: BTreeMap<&'static str, usize>,
    pub statuses: BTreeMap<String, Value>,
    random: StdRng,
    ids: Arc<ids::Counted>,
    seed: u64,
    turn: u32,
    elapsed_ms: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut peers: Vec<Peer> = (0..3).map(|n| Peer::new(&format!("agent-{n}"))).collect();
        let (mut requests, mut swallowed) = (BTreeMap::new(), BTreeSet::new());
        for n in 0..random.random_range(3..8) {
            let id = uuid_of(1, n);
            let source = random.random_range(0..3);
            let target = (source + random.random_range(1..3)) % 3;
            let to = peers[target].name.clone();
            peers[source].post(&to, json!({"messageType": "REQUEST", "requestId": id, "payload": {"n": n}}));
            if random.random_bool(0.2) {
                peers[source].post(&to, json!({"messageType": "EVENT", "payload": {"after": n}}));
            }
            if random.random_bool(0.1) {
                swallowed.insert(id.clone());
            }
            requests.insert(id, (source, target));
        }
        let mut world = Self {
            store: DISK.copy(seed, RATES).expect("a copy of the disk"),
            peers,
            requests,
            swallowed,
            history: Vec::new(),
            mishaps: BTreeMap::new(),
            statuses: BTreeMap::new(),
            random,
            ids: Arc::default(),
            seed,
            turn: 0,
            elapsed_ms: 0,
        };
        for _ in 0..world.swallowed.len() {
            world.note("swallowed");
        }
        world
    }

    pub fn note(&mut self, what: &'static str) {
        *self.mishaps.entry(what).or_default() += 1;
    }

    fn is_wild(&self) -> bool {
        self.turn < WILD_TURNS
    }

    fn chance(&mut self, share: f64) -> bool {
        self.is_wild() && self.random.random_bool(share)
    }

    fn server(&self, clock: Arc<clock::Simulated>, number: usize) -> (Kernel, Hub) {
        let ports = Ports {
            clock: clock.clone(),
            ids: self.ids.clone(),
            random: Arc::new(random::Seeded::new(self.seed + number as u64)),
            store: Arc::new(self.store.clone()),
            log: Log::off(),
            redactor: Arc::default(),
        };
        let bus = Bus::new(&Config::default(), clock.clone(), Log::off());
        let coordinator = Coordinator::new(bus.clone(), clock, Log::off());
        let kernel = Kernel::new(ports, Limits::default(), bus);
        let policy = Backoff { max_attempts: ATTEMPTS, base_delay_ms: 20, max_delay_ms: 100 };
        let settings = Settings { timeout_ms: TIMEOUT_MS, policy: Arc::new(policy), ..Settings::default() };
        let hub = Hub::new(kernel.clone(), coordinator, settings);
        for action in of_messages(&hub).expect("actions") {
            kernel.registry().register(action).expect("a free name");
        }
        (kernel, hub)
    }
}

/// An id as the envelope wants it: a UUID of version 4.
fn uuid_of(kind: u64, n: u64) -> String {
    format!("{kind:08x}-0000-4000-8000-{n:012x}")
}

/// Whether everybody has come to rest. False: this life of the server ended in a crash.
pub fn live(world: &mut World, number: usize) -> bool {
    world.store = world.store.restart();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let ended = runtime.block_on(async {
        let clock = Arc::new(clock::Simulated::new());
        clock.advance(Duration::from_millis(world.elapsed_ms));
        let (kernel, hub) = world.server(clock.clone(), number);
        let store = world.store.clone();
        let stop = Cancel::new();
        tokio::spawn({
            let (hub, stop) = (hub.clone(), stop.clone());
            async move { hub.run(stop).await }
        });
        let ended = tokio::select! {
            biased;
            () = store.crashed() => false,
            () = everybody(world, &kernel) => true,
        };
        world.elapsed_ms = u64::try_from(clock.now_ms() - clock::Simulated::START_MS).unwrap_or(0);
        ended
    });
    if !ended {
        world.note("server crash");
    }
    drop(runtime);
    ended
}

async fn everybody(world: &mut World, kernel: &Kernel) {
    // A server that has just begun knows the agents from its disk; the first to come registers them.
    for at in 0..world.peers.len() {
        let args = json!({"agentId": world.peers[at].name});
        while ask(kernel, "agents.register", args.clone()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    while !rests(world, kernel).await {
        world.turn += 1;
        if !world.is_wild() {
            world.store.set_rates(Rates::default());
        }
        assert!(
            world.turn < TURNS,
            "seed {}: no rest after {TURNS} turns: {:?}",
            world.seed,
            world.history.last()
        );
        for at in 0..world.peers.len() {
            turn(world, kernel, at).await;
        }
        // Once all is calm, there is only time left to pass.
        let pause_ms = if world.is_wild() { world.random.random_range(1..20) } else { 50 };
        kernel.ports().clock.sleep(Duration::from_millis(pause_ms)).await;
    }
}

/// One turn of one agent: it may crash or lose its way; it sends, reads, acknowledges.
async fn turn(world: &mut World, kernel: &Kernel, at: usize) {
    if world.peers[at].parted > 0 {
        world.peers[at].parted -= 1;
        return;
    }
    if world.chance(0.03) {
        world.note("parted");
        world.peers[at].parted = world.random.random_range(1..8);
        return;
    }
    send(world, kernel, at).await;
    // A crash takes everything since the last time it wrote something down.
    let before = world.chance(0.05).then(|| world.peers[at].memory.clone());
    let done = world.peers[at].executed.clone();
    read(world, kernel, at).await;
    if let Some(memory) = before {
        world.note("agent crash");
        // Its work and its notes are one: what was not written down was not done.
        world.peers[at].memory = memory;
        world.peers[at].executed = done;
        return;
    }
    acknowledge(world, kernel, at).await;
}

async fn send(world: &mut World, kernel: &Kernel, at: usize) {
    let mut unsent = world.peers[at].unsent();
    if world.chance(0.5) && unsent.len() > 1 {
        world.note("out of order");
        let first = world.random.random_range(0..unsent.len());
        unsent.rotate_left(first);
    }
    for key in unsent.into_iter().take(3) {
        if world.chance(0.2) {
            world.note("lost");
            continue;
        }
        let id = world.random.random_bool(0.7).then(|| {
            uuid_of(2, (at as u64) << 24 | u64::from(key.0.bytes().last().unwrap_or(0)) << 16 | key.1)
        });
        // An acknowledgement on the way may have made it needless.
        let Some(envelope) = world.peers[at].transmission(&key, id) else { continue };
        let copies = if world.chance(0.2) { 2 } else { 1 };
        if copies == 2 {
            world.note("doubled");
        }
        // Before it is handed over: a server that dies may have it all the same.
        world.peers[at].brought(&key);
        let asked = (0..copies).map(|_| ask(kernel, "aacp.send", envelope.clone()));
        let answers = futures::future::join_all(asked).await;
        if world.chance(0.15) {
            world.note("answer lost");
            continue;
        }
        for answer in answers {
            let told = match answer {
                Ok(sent) => {
                    let ack = sent["ack"].as_u64().unwrap_or(0);
                    world.peers[at].acknowledged(&key.0, ack);
                    format!("{} -> {} {}: ack {ack}", world.peers[at].name, key.0, key.1)
                }
                Err(code) if code == "STORE_FAILED" => continue,
                Err(code) => {
                    world.peers[at].broken.push(format!("a message was refused: {code}"));
                    code
                }
            };
            world.history.push(told);
        }
    }
}

async fn read(world: &mut World, kernel: &Kernel, at: usize) {
    let name = world.peers[at].name.clone();
    let mut args = json!({"agentId": name, "limit": 4});
    // What it has read it asks for from there on; after a crash, from what it had written down.
    args["afterSeq"] = world.peers[at].memory.read.into();
    let Ok(page) = ask(kernel, "aacp.inbox", args).await else { return };
    if world.chance(0.1) {
        world.note("answer lost");
        return;
    }
    let swallowed = world.swallowed.clone();
    for message in page["messages"].as_array().into_iter().flatten() {
        let position = message["inboxSeq"].as_u64().expect("a place");
        world.peers[at].take(position, &message["envelope"], |request| swallowed.contains(request));
        world.history.push(format!("{name} read {position}"));
    }
}

/// Tells the server how far it has read, now and then, and never before that is written down: what is acknowledged may be
/// taken out of its turn.
async fn acknowledge(world: &mut World, kernel: &Kernel, at: usize) {
    let peer = &world.peers[at];
    let (name, read, behind) = (peer.name.clone(), peer.memory.read, peer.memory.read > peer.memory.acked);
    if behind && world.random.random_bool(0.5) {
        let done = ask(kernel, "aacp.ack", json!({"agentId": name, "inboxSeq": read})).await;
        if done.is_ok() && !world.chance(0.2) {
            world.peers[at].memory.acked = read;
        }
    }
}

/// Whether all is calm, everything sent is at the server, and every request has an outcome or no attempts left.
async fn rests(world: &mut World, kernel: &Kernel) -> bool {
    if world.is_wild() || world.peers.iter().any(|peer| peer.parted > 0 || !peer.unsent().is_empty()) {
        return false;
    }
    let heard = |(id, (source, _)): (&String, &(usize, usize))| {
        world.swallowed.contains(id) || world.peers[*source].memory.outcomes.contains_key(id)
    };
    if !world.requests.iter().all(heard) {
        return false;
    }
    for (id, _) in world.requests.clone() {
        let Ok(status) = ask(kernel, "aacp.request_status", json!({"requestId": id})).await else {
            return false;
        };
        let given_up = status["status"] == "UNKNOWN" && status.get("nextRetryAt").is_none();
        let ended = if world.swallowed.contains(&id) { given_up } else { status["status"] == "COMPLETED" };
        if !ended {
            return false;
        }
        if status["late"] == true {
            world.note("late");
        }
        world.statuses.insert(id, status);
    }
    true
}

async fn ask(kernel: &Kernel, action: &str, args: Value) -> Result<Value, String> {
    let settled = kernel.submit(submission(action, args)).await;
    match (&settled.result, settled.code()) {
        (Ok(Output::Json { value }), _) => Ok(value.clone()),
        (_, code) => Err(code.map_or_else(|| String::from("nothing"), |code| code.as_str().to_owned())),
    }
}

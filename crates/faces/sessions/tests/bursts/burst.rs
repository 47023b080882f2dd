//! A burst: what each client sends, and what came back when it was played.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use orchestr8_kernel::ports::{clock, ids};
use orchestr8_models::{Catalog, Ports};
use orchestr8_sessions::{Hub, commands, tables};
use orchestr8_sessions_face::{Face, Settings};
use orchestr8_stores::sqlite::simulated::{Rates, Simulated};
use orchestr8_testing::{Parts, migrations};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, duplex};
use tokio_util::sync::CancellationToken;

use crate::heard::Heard;

pub struct Plan {
    /// What each client sends, in order.
    pub clients: Vec<Vec<Value>>,
    /// Whether commands act beside the lane: then versions are not a matter of one lane alone.
    pub beside: bool,
}

const CLIENTS: usize = 3;
const COMMANDS: usize = 8;

pub fn plan(seed: u64) -> Plan {
    let mut dice = StdRng::seed_from_u64(seed);
    let beside = seed % 2 == 1;
    let mut unique = 0;
    let mut ids: Vec<String> = Vec::new();
    let clients = (0..CLIENTS).map(|_| {
        let mut sent: Vec<Value> = Vec::new();
        while sent.len() < COMMANDS {
            let mut command = command(&mut dice, beside);
            unique += 1;
            let own = format!("u{unique}");
            if dice.random_bool(0.3) && !ids.is_empty() {
                command["dependsOn"] = json!([ids.choose(&mut dice)]);
            }
            // Some ids are shared by all, each for one of two commands.
            let id = match dice.random_bool(0.25) {
                true => format!("shared{}", dice.random_range(0..3)),
                false => own,
            };
            command["id"] = json!(id);
            ids.push(id);
            if dice.random_bool(0.2) {
                sent.push(command.clone());
            }
            sent.push(command);
        }
        sent
    });
    Plan { clients: clients.collect(), beside }
}

fn command(dice: &mut StdRng, beside: bool) -> Value {
    let session = ["a", "b"].choose(dice).unwrap();
    let kinds: &[&str] = match beside {
        true => &[
            "create_session",
            "prompt",
            "prompt",
            "steer",
            "abort",
            "get_state",
            "set_session_name",
            "delete_session",
        ],
        false => &["create_session", "prompt", "prompt", "get_state", "set_session_name", "delete_session"],
    };
    let kind = *kinds.choose(dice).unwrap();
    let mut command = json!({"type": kind, "sessionId": session});
    match kind {
        "prompt" if dice.random_bool(0.2) => command["message"] = json!("/slow 40\nslow words"),
        "prompt" | "steer" => command["message"] = json!("hello"),
        "set_session_name" => command["name"] = json!("named"),
        _ => {}
    }
    if kind != "create_session" && dice.random_bool(0.2) {
        command["ifSessionVersion"] = json!(dice.random_range(0..4));
    }
    command
}

/// What every client heard, and somebody who sent nothing.
pub struct Played {
    pub clients: Vec<Heard>,
    pub observer: Heard,
}

pub fn play(seed: u64, plan: &Plan) -> Played {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let face = face(seed).await;
        let mut observing = listen(&face);
        let mut observer = Heard::default();
        // The first words; from now on it hears everything.
        observing.next_line().await.unwrap().unwrap();
        let clients = plan.clients.iter().enumerate().map(|(number, sent)| {
            let dice = StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(number as u64));
            tokio::spawn(client(face.clone(), sent.clone(), dice))
        });
        let mut clients_heard = Vec::new();
        for client in clients.collect::<Vec<_>>() {
            clients_heard.push(client.await.unwrap());
        }
        while let Ok(line) = tokio::time::timeout(Duration::from_millis(1), observing.next_line()).await {
            observer.take(serde_json::from_str(&line.unwrap().unwrap()).unwrap());
        }
        Played { clients: clients_heard, observer }
    })
}

async fn face(seed: u64) -> Face {
    static BLANK: OnceLock<Simulated> = OnceLock::new();
    let blank = BLANK.get_or_init(|| Simulated::faultless(&migrations(&[tables::MIGRATIONS])).unwrap());
    let store = Arc::new(blank.copy(seed, Rates::default()).unwrap());
    let clock = Arc::new(clock::Simulated::new());
    let kernel = Parts { clock, ids: Arc::new(ids::Counted::default()), ..Parts::on(store) }.kernel();
    let catalog = Catalog::new(Default::default(), Ports::of(&kernel)).unwrap();
    let settings = orchestr8_sessions::Settings::new(PathBuf::from("/"), PathBuf::from("/nowhere"));
    let hub = Hub::new(kernel.clone(), catalog, settings);
    for action in commands::all(&hub).unwrap() {
        kernel.registry().register(action).unwrap();
    }
    hub.start().await.unwrap();
    const MANY: usize = 100_000;
    let settings = Settings {
        bucket_commands: MANY,
        global_commands: MANY,
        soft_bytes: 1 << 24,
        hard_bytes: 1 << 25,
        ..Settings::new("0")
    };
    Face::new(kernel, settings)
}

/// A client that only listens.
fn listen(face: &Face) -> Lines<BufReader<DuplexStream>> {
    let (near, far) = duplex(1 << 22);
    let (input, output) = tokio::io::split(far);
    let face = face.clone();
    tokio::spawn(async move { face.serve_stdio(input, output, CancellationToken::new()).await });
    BufReader::new(near).lines()
}

/// Sends its commands, a few at a time, and hears until all are answered.
async fn client(face: Face, sent: Vec<Value>, mut dice: StdRng) -> Heard {
    let (near, far) = duplex(1 << 20);
    let (input, output) = tokio::io::split(far);
    tokio::spawn(async move { face.serve_stdio(input, output, CancellationToken::new()).await });
    let (reader, mut writer) = tokio::io::split(near);
    let count = sent.len();
    tokio::spawn(async move {
        for command in sent {
            writer.write_all(format!("{command}\n").as_bytes()).await.unwrap();
            for _ in 0..dice.random_range(0..6) {
                tokio::task::yield_now().await;
            }
            if dice.random_bool(0.2) {
                tokio::time::sleep(Duration::from_millis(dice.random_range(1..50))).await;
            }
        }
        // It stays until everything is answered.
        std::future::pending::<()>().await;
        drop(writer);
    });
    let mut lines = BufReader::new(reader).lines();
    let mut heard = Heard::default();
    while heard.responses.len() < count {
        let line = tokio::time::timeout(Duration::from_secs(3600), lines.next_line()).await;
        let Ok(Ok(Some(line))) = line else {
            heard.silent = true;
            break;
        };
        heard.take(serde_json::from_str(&line).unwrap());
    }
    heard
}

//! Workflows whose steps have effects outside, and a server that is killed without warning again and again.
//!
//! Clients start executions under keys, follow them and decide what they ask. A ledger in this process notes every call a
//! step makes. In the end every acknowledged execution has ended as it should; no step ran after it was seen to be
//! finished; a step ran twice only if a kill came between; journals have no gaps; a key gives the same execution always.

mod client;
mod ledger;
mod shapes;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use self::client::{Board, Ended, client};
use self::ledger::Ledger;
use self::shapes::{SHAPES, Shape};
use crate::lives::{Watch, cycles};
use crate::program::Place;
use crate::server::{Http, Server};

const CLIENTS: usize = 48;

/// A server is killed after up to so many starts and effects, and a random moment more.
const MOST: u64 = 60;

fn start(place: &Place, life: u64) -> Server {
    Server::start_with(place, &[("ORCHESTR8_SECRET_LIFE", &format!("life-{life:06}"))])
}

#[test]
fn killed_servers_finish_every_execution_and_repeat_no_finished_step() {
    let place = Place::new()
        .with("ORCHESTR8_WORKFLOWS_HTTP_ALLOW_PRIVATE", "true")
        .with("ORCHESTR8_WORKFLOWS_MAX_CONCURRENT_STEPS", "32")
        .with("ORCHESTR8_LOGGING_LEVEL", "error");
    let ledger: Arc<Ledger> = Arc::default();
    let outside = ledger.serve();
    let life = json!({"agents": ["@orchestr8/http"], "to": [format!("http://{outside}:X-Life")]});
    place.write("orchestr8.json", &json!({"secrets": {"named": {"LIFE": life}}}).to_string());
    let cycles = cycles();
    let board = Board {
        definitions: SHAPES.iter().map(|shape| shape.definition(outside)).collect(),
        ledger: ledger.clone(),
        finish: AtomicBool::new(false),
        replayed: AtomicU64::new(0),
    };
    let ended: Vec<Ended> = std::thread::scope(|scope| {
        let board = &board;
        let _watch = Watch(&board.ledger.lives);
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number, board))).collect();
        ledger.lives.go_through(cycles, MOST, |life| start(&place, life));
        board.finish.store(true, Ordering::SeqCst);
        let server = ledger.lives.begin(|| start(&place, cycles));
        let ended = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        check(&mut server.connect(), &ledger, &ended);
        server.terminate();
        ended
    });
    let (keys, calls, repeated) = ledger.totals();
    let replayed = board.replayed.load(Ordering::SeqCst);
    println!(
        "{cycles} kills, {} executions, {keys} effects in {calls} calls, {repeated} of them repeated over a kill, {replayed} starts answered from the ledger",
        ended.len()
    );
    assert!(
        cycles < 20 || (repeated > 0 && replayed > 0),
        "no kill came in the middle: the test proves little"
    );
}

fn check(http: &mut Http, ledger: &Ledger, ended: &Vec<Ended>) {
    assert_eq!(ledger.wrong(), Vec::<String>::new());
    let ids: BTreeSet<&str> = ended.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids.len(), ended.len(), "two keys share an execution");
    assert_eq!(count(http), ended.len() + children(ended), "an execution nobody was told of");
    for one in ended {
        for key in one.shape.all_keys(&one.id) {
            assert!(ledger.count(&key) > 0, "{key} never happened");
        }
        if one.shape == Shape::Saga {
            check_child(http, ledger, &one.id);
        }
        check_journal(http, ledger, one);
    }
}

/// The steps of a child were undone with its parent.
fn check_child(http: &mut Http, ledger: &Ledger, id: &str) {
    let resource = http.get(&format!("/v1/executions/{id}")).json();
    let key = resource["outputs"]["child"]["y"]["body"]["key"].as_str().unwrap();
    let child = key.trim_end_matches(":y");
    for step in ["x", "y"] {
        assert!(ledger.count(&format!("{child}:{step}:compensate")) > 0, "{step} of {child} was not undone");
    }
    assert_eq!(http.get(&format!("/v1/executions/{child}")).json()["status"], "compensated");
}

fn children(ended: &[Ended]) -> usize {
    ended.iter().filter(|one| matches!(one.shape, Shape::Child | Shape::Saga)).count()
}

/// How many executions the server knows.
fn count(http: &mut Http) -> usize {
    let (mut found, mut cursor) = (0, String::new());
    loop {
        let page = http.get(&format!("/v1/executions?limit=500{cursor}")).json();
        found += page["executions"].as_array().unwrap().len();
        let Some(next) = page["nextCursor"].as_str() else { return found };
        cursor = format!("&cursor={next}");
    }
}

/// Numbers without gaps, each step completed once, and no more calls outside than starts on record.
fn check_journal(http: &mut Http, ledger: &Ledger, one: &Ended) {
    let page = http.get(&format!("/v1/executions/{}/journal?limit=1000", one.id)).json();
    let entries = page["entries"].as_array().unwrap();
    for (at, entry) in entries.iter().enumerate() {
        assert_eq!(entry["sequence"], at + 1, "{}: a gap in {page:#}", one.key);
    }
    let of = |kind: &str, step: &str, item: Option<u64>| {
        let matches = |entry: &&Value| {
            entry["type"] == kind && entry["stepId"] == step && entry["data"]["index"].as_u64() == item
        };
        entries.iter().filter(matches).count()
    };
    for key in one.shape.all_keys(&one.id) {
        let (work, is_undo) = key.strip_suffix(":compensate").map_or((&*key, false), |work| (work, true));
        let parts: Vec<&str> = work.splitn(3, ':').collect();
        let item = parts.get(2).map(|item| item.parse().unwrap());
        if is_undo {
            assert_eq!(of("step-compensated", parts[1], item), 1, "{key}: {page:#}");
            let starts = of("step-compensating", parts[1], item);
            assert!(ledger.count(&key) <= starts, "{key}: more calls than its {starts} starts: {page:#}");
            continue;
        }
        assert_eq!(of("step-complete", parts[1], item), 1, "{key}: {page:#}");
        let starts = of("step-start", parts[1], item);
        assert!(ledger.count(&key) <= starts, "{key}: more calls than its {starts} starts: {page:#}");
    }
}

//! What was published is delivered, however often the server is killed in between.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use super::{create, publish, uuid};
use crate::lives::{Lives, Watch, cycles};
use crate::program::Place;
use crate::server::{Http, Server};

const PUBLISHERS: usize = 4;

/// A server is killed after up to so many messages, and a random moment more.
const MESSAGES: u64 = 30;

/// Kills are slow, and other tests kill more often: this one takes a tenth of theirs.
const SHARE: u64 = 10;

/// What the publishers share.
#[derive(Default)]
struct Board {
    lives: Lives,
    next: AtomicU64,
    finish: AtomicBool,
}

/// Publishes until it is told to stop, and returns what was acknowledged.
fn publisher(board: &Board) -> Vec<u64> {
    let (mut acknowledged, mut generation) = (Vec::new(), 0);
    loop {
        let address;
        (generation, address) = board.lives.server_after(generation);
        let Ok(mut http) = Http::connect(address) else { continue };
        loop {
            if board.finish.load(Ordering::SeqCst) {
                return acknowledged;
            }
            let number = board.next.fetch_add(1, Ordering::SeqCst) + 1;
            match publish(&mut http, &create(number)) {
                Ok(status) => {
                    assert_eq!(status, 202);
                    acknowledged.push(number);
                    board.lives.advance();
                }
                Err(_) => break,
            }
        }
    }
}

#[test]
fn kno_1_killed_servers_lose_no_message() {
    let place = Place::new().with("ORCHESTR8_LOGGING_LEVEL", "error");
    let (board, cycles) = (Board::default(), (cycles() / SHARE).max(1));
    let start = || Server::start(&place, &[]);
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let board = &board;
        let _watch = Watch(&board.lives);
        let publishers: Vec<_> = (0..PUBLISHERS).map(|_| scope.spawn(move || publisher(board))).collect();
        board.lives.go_through(cycles, MESSAGES, |_| start());
        let server = board.lives.begin(start);
        board.lives.wait_for(PUBLISHERS as u64);
        board.finish.store(true, Ordering::SeqCst);
        let acknowledged = publishers.into_iter().flat_map(|one| one.join().unwrap()).collect();
        drain(&server);
        check(&server, &acknowledged);
        acknowledged
    });
    println!("{cycles} kills, {PUBLISHERS} publishers, {} messages, none lost", acknowledged.len());
}

/// Until nothing waits any more.
fn drain(server: &Server) {
    let mut http = server.connect();
    for _ in 0..10_000 {
        if http.get("/admin/queues").json()["data"]["queues"] == Value::Array(Vec::new()) {
            return;
        }
        // Asking takes a moment by itself; a reply says that something has come on.
        http.get("/a2a/replies/nobody?tenant_id=acme&wait_ms=20");
    }
    panic!("the queue is never empty");
}

/// Each was done, once, and answered.
fn check(server: &Server, acknowledged: &Vec<u64>) {
    let mut http = server.connect();
    let mut answered = std::collections::BTreeMap::<String, Vec<Value>>::new();
    let mut after = 0;
    loop {
        let page = http.get(&format!("/a2a/replies/me?tenant_id=acme&after={after}")).json()["data"].clone();
        for reply in page["replies"].as_array().unwrap() {
            let envelope = &reply["envelope"];
            let id = envelope["request_id"].as_str().unwrap().to_owned();
            answered.entry(id).or_default().push(envelope["payload"]["response"]["data"].clone());
        }
        after = page["next"].as_i64().unwrap();
        if page["more"] == false {
            break;
        }
    }
    for number in acknowledged {
        let replies = answered.get(&uuid(*number)).unwrap_or_else(|| panic!("{number} was never answered"));
        assert!(replies.iter().all(|reply| reply["revision"] == 1), "{number} was done twice: {replies:?}");
        let document = http.get(&format!("/documents/{}?tenant_id=acme", uuid(*number)));
        assert_eq!(document.status, 200, "{number}");
    }
}

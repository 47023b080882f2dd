//! Nothing acknowledged is lost and nothing is done twice, however often the process is killed in the middle.
//!
//! Clients append keyed values over HTTP. The server is killed without warning at random moments and started again on the
//! same data; clients send whatever was not acknowledged once more, under the same key. In the end each client's list must
//! hold each of its values once, in order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::lives::{Lives, Watch, cycles};
use crate::program::Place;
use crate::server::{Http, Server};

const CLIENTS: usize = 64;

/// A server is killed after up to so many acknowledgements, and a random moment more.
const ACKNOWLEDGEMENTS: u64 = 400;

/// What the clients share.
#[derive(Default)]
struct Board {
    lives: Lives,
    replayed: AtomicU64,
    finish: AtomicBool,
}

/// Sends value after value until it is told to stop, and returns how many were acknowledged.
fn client(number: usize, board: &Board) -> u64 {
    let (mut value, mut generation) = (0, 0);
    loop {
        let address;
        (generation, address) = board.lives.server_after(generation);
        let Ok(mut http) = Http::connect(address) else { continue };
        loop {
            // Only after an acknowledgement: what was sent must be known to have happened.
            if board.finish.load(Ordering::SeqCst) && value > 0 {
                return value;
            }
            match append(&mut http, number, value) {
                Some(replayed) => {
                    value += 1;
                    board.replayed.fetch_add(u64::from(replayed), Ordering::SeqCst);
                    board.lives.advance();
                }
                None => break,
            }
        }
    }
}

/// Whether it was answered from the ledger; None: it was not answered.
fn append(http: &mut Http, client: usize, value: u64) -> Option<bool> {
    let params = json!({"name": "test_append", "arguments": {"list": format!("client-{client}"), "value": value.to_string()}});
    let answer =
        http.modern(value, "tools/call", params, &format!("Idempotency-Key: {client}-{value}\r\n")).ok()?;
    let body: Value = serde_json::from_str(&answer.body).ok()?;
    assert_eq!((answer.status, &body["result"]["isError"]), (200, &json!(false)), "{answer:?}");
    Some(body["result"]["_meta"]["orchestr8/replayed"] == true)
}

#[test]
fn killed_servers_lose_nothing_and_double_nothing() {
    let place = Place::new()
        .with("ORCHESTR8_RESOURCES_MAX_CONCURRENT_EXECUTIONS", "128")
        .with("ORCHESTR8_LOGGING_LEVEL", "error");
    let (board, cycles) = (Board::default(), cycles());
    let start = || Server::start(&place, &["--conformance"]);
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let board = &board;
        let _watch = Watch(&board.lives);
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number, board))).collect();
        board.lives.go_through(cycles, ACKNOWLEDGEMENTS, |_| start());
        let server = board.lives.begin(start);
        board.lives.wait_for(CLIENTS as u64);
        board.finish.store(true, Ordering::SeqCst);
        let acknowledged = clients.into_iter().map(|client| client.join().unwrap()).collect();
        server.terminate();
        acknowledged
    });
    check(&place, &acknowledged);
    let (all, replayed) = (board.lives.progress(), board.replayed.load(Ordering::SeqCst));
    assert!(
        cycles < 20 || replayed > 0,
        "no kill ever came between the commit and its answer: the test proves little"
    );
    println!("{cycles} kills, {CLIENTS} clients, {all} values, {replayed} answered from the ledger");
}

fn check(place: &Place, acknowledged: &[u64]) {
    let server = Server::start(place, &["--conformance"]);
    let mut http = server.connect();
    for (client, count) in acknowledged.iter().enumerate() {
        let params = json!({"name": "test_list", "arguments": {"list": format!("client-{client}")}});
        let answer = http.modern(1, "tools/call", params, "").unwrap().json();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let stored: Value = serde_json::from_str(text).unwrap();
        let expected: Vec<String> = (0..*count).map(|value| value.to_string()).collect();
        assert_eq!(stored["values"], json!(expected), "client {client} was told of {count} values");
    }
    server.terminate();
    let said = place.run(&["audit", "verify"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let entries: u64 = acknowledged.iter().sum();
    assert!(
        said.out.starts_with(&format!("ok: {entries} entries")),
        "{entries} appends, and the audit trail says {}",
        said.out
    );
}

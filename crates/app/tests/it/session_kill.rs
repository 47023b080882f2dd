//! Sessions outlive `kill -9`: every answered command answers again as it did, nothing said is lost, nothing is done twice.
//!
//! Each client has a session of its own and sends command after command over a WebSocket: prompts, some of which call a tool,
//! names, steering. The server is killed without warning at random moments and started again on the same data; what was not
//! answered is sent once more under the same id. A prompt that was cut off in the middle has failed, once for all.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use crate::lives::{Lives, Watch, cycles};
use crate::program::{PATIENCE, Place};
use crate::server::Server;

const CLIENTS: usize = 16;

/// A server is killed after up to so many answers, and a random moment more.
const ANSWERS: u64 = 60;

/// So many of its last commands a client sends again at the end.
const REPEATED: usize = 40;

#[derive(Default)]
struct Board {
    lives: Lives,
    replayed: AtomicU64,
    cut_off: AtomicU64,
    finish: AtomicBool,
}

/// What a client was told.
struct Told {
    command: Value,
    response: Value,
}

struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn connect(address: std::net::SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self(client(format!("ws://{address}/ws/session"), stream).ok()?.0))
    }

    /// The answer to a command, whatever is told in between; none when the server is gone.
    fn ask(&mut self, command: &Value) -> Option<Value> {
        self.0.send(Message::text(command.to_string())).ok()?;
        loop {
            let Message::Text(text) = self.0.read().ok()? else { continue };
            let heard: Value = serde_json::from_str(&text).unwrap();
            if heard["type"] == "response" && heard["id"] == command["id"] {
                return Some(heard);
            }
        }
    }
}

fn command(number: usize, count: u64) -> Value {
    let session = format!("s{number}");
    let mut command = match count % 5 {
        _ if count == 0 => json!({"type": "create_session"}),
        1 => json!({"type": "set_session_name", "name": format!("name {count}")}),
        2 => json!({"type": "steer", "message": format!("said {count}")}),
        3 => {
            let args = json!({"list": format!("list-{number}"), "value": count.to_string()});
            json!({"type": "prompt", "message": format!("/tool test_append {args}\nsaid {count}")})
        }
        _ => json!({"type": "prompt", "message": format!("said {count}")}),
    };
    command["sessionId"] = json!(session);
    command["id"] = json!(format!("{number}-{count}"));
    command
}

/// Sends command after command until it is told to stop.
fn live(number: usize, board: &Board) -> Vec<Told> {
    let (mut told, mut generation): (Vec<Told>, u64) = (Vec::new(), 0);
    loop {
        let address;
        (generation, address) = board.lives.server_after(generation);
        let Some(mut socket) = Socket::connect(address) else { continue };
        loop {
            if board.finish.load(Ordering::SeqCst) && told.len() > 5 {
                return told;
            }
            let command = command(number, told.len() as u64);
            let Some(response) = socket.ask(&command) else { break };
            board.replayed.fetch_add(u64::from(response["replayed"] == true), Ordering::SeqCst);
            board.cut_off.fetch_add(u64::from(is_cut_off(&response)), Ordering::SeqCst);
            told.push(Told { command, response });
            board.lives.advance();
        }
    }
}

fn is_cut_off(response: &Value) -> bool {
    response["errorCode"] == "OUTCOME_UNKNOWN"
}

#[test]
fn killed_servers_keep_every_answer_and_every_word() {
    let place = Place::new()
        .with("ORCHESTR8_LOGGING_LEVEL", "error")
        .with("ORCHESTR8_RESOURCES_MAX_CONCURRENT_EXECUTIONS", "128")
        .with("ORCHESTR8_SESSIONS_COMMANDS_PER_MINUTE", "1000000")
        .with("ORCHESTR8_SESSIONS_COMMANDS_PER_MINUTE_OVERALL", "1000000");
    let (board, cycles) = (Board::default(), cycles());
    let start = || Server::start(&place, &["--conformance"]);
    std::thread::scope(|scope| {
        let board = &board;
        let _watch = Watch(&board.lives);
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || live(number, board))).collect();
        board.lives.go_through(cycles, ANSWERS, |_| start());
        let server = board.lives.begin(start);
        board.lives.wait_for(CLIENTS as u64);
        board.finish.store(true, Ordering::SeqCst);
        let told: Vec<Vec<Told>> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        server.terminate();
        let server = start();
        for (number, told) in told.iter().enumerate() {
            check(number, told, &server);
        }
        server.terminate();
    });
    let [replayed, cut_off] = [&board.replayed, &board.cut_off].map(|count| count.load(Ordering::SeqCst));
    assert!(
        cycles < 20 || replayed > 0,
        "no kill came between a commit and its answer: the test proves little"
    );
    assert!(cycles < 20 || cut_off > 0, "no kill came in the middle of a prompt: the test proves little");
    let all = board.lives.progress();
    println!(
        "{cycles} kills, {CLIENTS} clients, {all} answers, {replayed} of them again, {cut_off} prompts cut off"
    );
}

fn check(number: usize, told: &[Told], server: &Server) {
    let mut socket = Socket::connect(server.address).unwrap();
    versions(number, told);
    for Told { command, response } in told.iter().rev().take(REPEATED) {
        let again = socket.ask(command).unwrap();
        assert_eq!(again["replayed"], true, "{again}");
        let plain = |response: &Value| {
            let mut plain = response.clone();
            plain.as_object_mut().unwrap().remove("replayed");
            plain
        };
        assert_eq!(plain(&again), plain(response), "client {number}");
    }
    let session = format!("s{number}");
    let asked = json!({"type": "get_messages", "sessionId": session, "id": format!("check-{number}")});
    let messages = socket.ask(&asked).unwrap();
    let said: Vec<u64> = messages["data"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| {
            let text = message["content"][0]["text"].as_str()?;
            text.rsplit_once("said ")?.1.parse().ok()
        })
        .collect();
    let mut once = said.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), said.len(), "client {number}: something was said twice: {said:?}");
    for Told { command, response } in told {
        let count: u64 = command["id"].as_str().unwrap().split_once('-').unwrap().1.parse().unwrap();
        // A message that steers comes with the next prompt: the last one may still wait.
        let waits = command["type"] == "steer" && count + 3 > told.len() as u64;
        if response["success"] == true && command.get("message").is_some() && !waits {
            assert!(said.contains(&count), "client {number}: {command} was answered and is not in {said:?}");
        }
    }
    effects(number, told, server);
}

/// SES-10: each command that succeeded counts one, and none is left out.
fn versions(number: usize, told: &[Told]) {
    let mut version = None;
    for Told { command, response } in told.iter().filter(|told| told.response["success"] == true) {
        let given = response["sessionVersion"].as_u64();
        assert_eq!(
            given,
            version.map_or(Some(0), |version: u64| Some(version + 1)),
            "client {number}: {command}"
        );
        version = given;
    }
}

/// What a prompt that succeeded did outside happened once; of one that was cut off, at most once.
fn effects(number: usize, told: &[Told], server: &Server) {
    let params = json!({"name": "test_list", "arguments": {"list": format!("list-{number}")}});
    let answer = server.connect().modern(1, "tools/call", params, "").unwrap().json();
    let stored: Value =
        serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    let happened: Vec<&str> = stored["values"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for Told { command, response } in told
        .iter()
        .filter(|told| told.command["message"].as_str().is_some_and(|text| text.starts_with("/tool")))
    {
        let count = command["id"].as_str().unwrap().split_once('-').unwrap().1;
        let times = happened.iter().filter(|value| **value == count).count();
        match response["success"] == true {
            true => assert_eq!(times, 1, "client {number}: {command} happened {times} times"),
            false => assert!(times <= 1, "client {number}: {command} was cut off and happened {times} times"),
        }
    }
}

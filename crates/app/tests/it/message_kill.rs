//! Messages outlive `kill -9`: whatever a sender was told is kept is delivered, in order, and no request is worked on twice.
//!
//! Each pair is a thread that asks and a thread that answers, both over HTTP with numbers of their own. The server is killed without
//! warning at random moments and started again on the same data. What was not answered is sent once more under the same ids. The
//! workers keep the ledger of what was really done outside the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::lives::{Lives, Watch, cycles};
use crate::program::Place;
use crate::server::{Http, Server};

const PAIRS: usize = 8;

/// A server is killed after up to so many answers, and a random moment more.
const ANSWERS: u64 = 40;

#[derive(Default)]
struct Board {
    lives: Lives,
    repeated: AtomicU64,
    finish: AtomicBool,
    /// Those who ask have all their answers.
    done: AtomicU64,
}

/// The server is gone: what was asked may have happened or not.
struct Gone;

fn ask(http: &mut Http, method: &str, target: &str, body: Option<&Value>) -> Result<(u16, Value), Gone> {
    let text = body.map(Value::to_string);
    let answer = http.request(method, target, "", text.as_deref()).map_err(|_| Gone)?;
    // A server that is being killed may cut its last answer off.
    let value = serde_json::from_str(&answer.body).map_err(|_| Gone)?;
    Ok((answer.status, value))
}

/// Does turn after turn, on whichever server lives, until there is nothing more to do.
fn keep_at<T>(
    board: &Board,
    mut state: T,
    mut turn: impl FnMut(&mut T, &mut Http) -> Result<bool, Gone>,
) -> T {
    let mut generation = 0;
    loop {
        let address;
        (generation, address) = board.lives.server_after(generation);
        let Ok(mut http) = Http::connect(address) else { continue };
        while let Ok(goes_on) = turn(&mut state, &mut http) {
            if !goes_on {
                return state;
            }
        }
    }
}

/// An id of a kind of message: a UUID of version 4.
fn uuid(kind: &str, pair: usize, seq: u64) -> String {
    format!("0000000{kind}-{pair:04x}-4000-8000-{seq:012x}")
}

/// Asks one request after the other. Gives how many were answered.
fn asker(pair: usize, board: &Board) -> u64 {
    let (asked, sent) = (0_u64, false);
    let (asked, _) = keep_at(board, (asked, sent), |(asked, sent), http| {
        if board.finish.load(Ordering::SeqCst) && *asked > 0 && !*sent {
            board.done.fetch_add(1, Ordering::SeqCst);
            return Ok(false);
        }
        let seq = *asked + 1;
        let id = uuid("0", pair, seq);
        if !*sent {
            let body = json!({
                "messageId": uuid("1", pair, seq), "requestId": id, "sourceAgentId": format!("ask-{pair}"),
                "targetAgentId": format!("work-{pair}"), "seq": seq, "messageType": "REQUEST", "timeoutMs": 600_000, "payload": seq
            });
            let (status, told) = ask(http, "POST", "/aacp/messages", Some(&body))?;
            assert!(matches!(status, 200 | 201), "{told}");
            assert_eq!(told["ack"], seq, "{told}");
            board.repeated.fetch_add(u64::from(status == 200), Ordering::SeqCst);
            *sent = true;
        }
        let (status, told) = ask(http, "GET", &format!("/aacp/requests/{id}?wait=100ms"), None)?;
        assert_eq!(status, 200, "{id} was acknowledged: {told}");
        if told["status"] == "COMPLETED" {
            assert_eq!(told["response"], json!({"done": seq}), "{told}");
            (*asked, *sent) = (seq, false);
            board.lives.advance();
        }
        Ok(true)
    });
    asked
}

/// What a worker has written down.
#[derive(Default)]
struct Notes {
    read: u64,
    done: BTreeMap<String, u64>,
    /// The answer that is still to be sent.
    open: Option<Value>,
    seq: u64,
}

/// Works on what comes, each request once, and answers.
fn worker(pair: usize, board: &Board) -> Notes {
    let name = format!("work-{pair}");
    keep_at(board, Notes::default(), |notes, http| {
        if let Some(answer) = &notes.open {
            let (status, told) = ask(http, "POST", "/aacp/messages", Some(answer))?;
            assert!(matches!(status, 200 | 201), "{told}");
            notes.open = None;
        }
        if board.done.load(Ordering::SeqCst) == PAIRS as u64 {
            return Ok(false);
        }
        let target = format!("/aacp/agents/{name}/inbox?afterSeq={}&limit=1&wait=100ms", notes.read);
        let (status, page) = ask(http, "GET", &target, None)?;
        assert_eq!(status, 200, "{page}");
        let Some(message) = page["messages"].get(0) else { return Ok(true) };
        let envelope = &message["envelope"];
        let (id, seq) = (envelope["requestId"].as_str().unwrap(), envelope["seq"].as_u64().unwrap());
        assert_eq!(seq, notes.done.len() as u64 + 1, "in order, and without gaps: {envelope}");
        *notes.done.entry(id.to_owned()).or_default() += 1;
        notes.read = message["inboxSeq"].as_u64().unwrap();
        notes.seq += 1;
        notes.open = Some(json!({
            "messageId": uuid("2", pair, seq), "requestId": id, "sourceAgentId": name, "targetAgentId": format!("ask-{pair}"),
            "seq": notes.seq, "ack": seq, "messageType": "RESPONSE", "payload": {"done": seq}
        }));
        Ok(true)
    })
}

#[test]
fn killed_servers_lose_no_message_and_no_request_is_worked_on_twice() {
    let place = Place::new().with("ORCHESTR8_LOGGING_LEVEL", "error");
    let (board, cycles) = (Board::default(), cycles());
    let start = || Server::start(&place, &[]);
    // Nobody can be asked before it is there; registered once, it stays so.
    let server = start();
    for pair in 0..PAIRS {
        let told =
            server.connect().request("PUT", &format!("/aacp/agents/work-{pair}"), "", Some("{}")).unwrap();
        assert_eq!(told.status, 200, "{told:?}");
    }
    server.kill();
    std::thread::scope(|scope| {
        let board = &board;
        let _watch = Watch(&board.lives);
        let workers: Vec<_> = (0..PAIRS).map(|pair| scope.spawn(move || worker(pair, board))).collect();
        let askers: Vec<_> = (0..PAIRS).map(|pair| scope.spawn(move || asker(pair, board))).collect();
        board.lives.go_through(cycles, ANSWERS, |_| start());
        let server = board.lives.begin(start);
        board.lives.wait_for(PAIRS as u64);
        board.finish.store(true, Ordering::SeqCst);
        let asked: Vec<u64> = askers.into_iter().map(|asker| asker.join().unwrap()).collect();
        let notes: Vec<Notes> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        server.terminate();
        for (asked, notes) in asked.iter().zip(&notes) {
            assert_eq!(*asked, notes.done.len() as u64);
            assert!(notes.done.values().all(|times| *times == 1), "{:?}", notes.done);
        }
    });
    let (repeated, all) = (board.repeated.load(Ordering::SeqCst), board.lives.progress());
    assert!(
        cycles < 20 || repeated > 0,
        "no kill came between a commit and its answer: the test proves little"
    );
    println!("{cycles} kills, {PAIRS} pairs, {all} requests answered, {repeated} of them sent again");
}

//! Documents outlive `kill -9`: every one that was acknowledged is there with every revision and is found by a query, the index
//! holds what the tree holds, and whoever wants to know of changes is told at least once.
//!
//! Each client writes, changes and moves documents of its own over HTTP, under keys. The server is killed without warning at random
//! moments and started again on the same data; what was not answered is sent once more under the same key.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::lives::{Lives, Watch, cycles};
use crate::program::{PATIENCE, Place};
use crate::server::{Http, Server};

const CLIENTS: usize = 16;

/// A server is killed after up to so many acknowledgements, and a random moment more.
const ACKNOWLEDGEMENTS: u64 = 80;

/// Steps in the life of a document: it is made, changed, and moved below the one before it.
const STEPS: u64 = 3;

#[derive(Default)]
struct Board {
    lives: Lives,
    replayed: AtomicU64,
    finish: AtomicBool,
}

/// An event, its document and revision.
type News = (String, String, i64);

/// What others were told.
#[derive(Clone, Default)]
struct Heard(Arc<(Mutex<HashSet<News>>, Condvar)>);

impl Heard {
    fn add(&self, news: News) {
        self.0.0.lock().unwrap().insert(news);
        self.0.1.notify_all();
    }

    /// Until all of it was told. As long as something new comes, there is hope.
    fn wait_for(&self, wanted: &HashSet<News>) {
        let mut heard = self.0.0.lock().unwrap();
        while let Some(missing) = wanted.iter().find(|news| !heard.contains(news)) {
            let before = heard.len();
            let timed_out;
            (heard, timed_out) = self.0.1.wait_timeout(heard, PATIENCE).unwrap();
            assert!(!timed_out.timed_out() || heard.len() > before, "nobody was told of {missing:?}");
        }
    }
}

fn id(client: usize, document: u64) -> String {
    format!("{client:08x}-0000-4000-8000-{document:012x}")
}

/// A word that only this document has.
fn word(client: usize, document: u64) -> String {
    format!("zq{client}x{document}")
}

/// The request of a step, and its key.
fn request(client: usize, count: u64) -> (&'static str, String, Value) {
    let (document, path) = (count / STEPS, format!("/documents/{}", id(client, count / STEPS)));
    match count % STEPS {
        0 => {
            let body = format!("# Note\nIt is about {} and more.", word(client, document));
            let args = json!({"document_id": id(client, document), "parent_id": "root",
                "content": {"mime_type": "text/markdown", "body": body}, "metadata": {"title": format!("D{client}-{document}")}});
            ("POST", String::from("/documents"), args)
        }
        1 => ("PATCH", path, json!({"old_str": "and more", "new_str": "and much more"})),
        _ => {
            let parent = if document == 0 { String::from("root") } else { id(client, document - 1) };
            // A tree has a bottom: now and then a new branch begins.
            let parent = if document.is_multiple_of(20) { String::from("root") } else { parent };
            ("POST", format!("{path}/move"), json!({"new_parent_id": parent}))
        }
    }
}

/// Sends one step after the other until it is told to stop, and says how many were acknowledged.
fn live(client: usize, board: &Board) -> u64 {
    let (mut count, mut generation) = (0, 0);
    loop {
        let address;
        (generation, address) = board.lives.server_after(generation);
        let Ok(mut http) = Http::connect(address) else { continue };
        loop {
            if board.finish.load(Ordering::SeqCst) && count > 0 {
                return count;
            }
            let (method, target, args) = request(client, count);
            let key = format!("Idempotency-Key: {client}-{count}\r\n");
            let Ok(answer) = http.request(method, &target, &key, Some(&args.to_string())) else { break };
            assert!((200..300).contains(&answer.status), "client {client}, step {count}: {answer:?}");
            let revision = answer.json()["revision"].as_u64();
            assert_eq!(revision, Some(count % STEPS + 1), "client {client}, step {count}: {answer:?}");
            let replayed = answer.head.to_lowercase().contains("idempotency-replayed");
            board.replayed.fetch_add(u64::from(replayed), Ordering::SeqCst);
            count += 1;
            board.lives.advance();
        }
    }
}

/// Hears of changes, and refuses now and then.
fn ear() -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, heard) = (listener.local_addr().unwrap(), Heard::default());
    let all = heard.clone();
    std::thread::spawn(move || {
        let calls = Arc::new(AtomicU64::new(0));
        for stream in listener.incoming().map_while(Result::ok) {
            let (heard, calls) = (all.clone(), calls.clone());
            std::thread::spawn(move || hear(stream, &heard, &calls));
        }
    });
    (address, heard)
}

fn hear(stream: TcpStream, heard: &Heard, calls: &AtomicU64) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.to_lowercase();
            length =
                lower.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let refuses = calls.fetch_add(1, Ordering::SeqCst) % 7 == 3;
        if !refuses {
            let news: Value = serde_json::from_slice(&body).unwrap();
            let text = |name: &str| news[name].as_str().unwrap().to_owned();
            heard.add((text("event"), text("document_id"), news["revision"].as_i64().unwrap()));
        }
        let status = if refuses { "503 Service Unavailable" } else { "204 No Content" };
        stream
            .get_mut()
            .write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes())
            .ok()?;
    }
}

#[test]
fn killed_servers_keep_every_document_and_find_it() {
    let place = Place::new()
        .with("ORCHESTR8_LOGGING_LEVEL", "error")
        .with("ORCHESTR8_KNOWLEDGE_WEBHOOKS_ALLOW_PRIVATE", "true")
        .with("ORCHESTR8_RESOURCES_MAX_CONCURRENT_EXECUTIONS", "128");
    let ((address, heard), board, cycles) = (ear(), Board::default(), cycles());
    let start = || Server::start(&place, &[]);
    let first = start();
    let hook = json!({"url": format!("http://{address}/hook")}).to_string();
    assert_eq!(first.connect().request("POST", "/webhooks", "", Some(&hook)).unwrap().status, 201);
    first.terminate();
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let board = &board;
        let _watch = Watch(&board.lives);
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || live(client, board))).collect();
        board.lives.go_through(cycles, ACKNOWLEDGEMENTS, |_| start());
        let server = board.lives.begin(start);
        board.lives.wait_for(CLIENTS as u64);
        board.finish.store(true, Ordering::SeqCst);
        let acknowledged = clients.into_iter().map(|client| client.join().unwrap()).collect();
        server.kill();
        acknowledged
    });
    check(&place, &acknowledged, &heard);
    let (all, replayed) = (board.lives.progress(), board.replayed.load(Ordering::SeqCst));
    assert!(
        cycles < 20 || replayed > 0,
        "no kill came between a commit and its answer: the test proves little"
    );
    println!("{cycles} kills, {CLIENTS} clients, {all} acknowledgements, {replayed} of them again");
}

fn check(place: &Place, acknowledged: &[u64], heard: &Heard) {
    let server = Server::start(place, &[]);
    let mut http = server.connect();
    let mut told = HashSet::new();
    for (client, count) in acknowledged.iter().enumerate() {
        for document in 0..count.div_ceil(STEPS) {
            let steps = (count - document * STEPS).min(STEPS);
            let id = id(client, document);
            for (event, revision) in [("document.created", 1), ("document.updated", 2), ("document.moved", 3)]
                .into_iter()
                .take(steps as usize)
            {
                told.insert((event.to_owned(), id.clone(), revision));
            }
            check_document(&mut http, &id, steps);
            let query = json!({"query": word(client, document), "top_k": 2}).to_string();
            let found = http.request("POST", "/documents/query", "", Some(&query)).unwrap().json();
            let ids: Vec<&Value> =
                found["context"].as_array().unwrap().iter().map(|one| &one["document_id"]).collect();
            assert_eq!(ids, [&json!(id)], "client {client}, document {document}");
        }
    }
    let report = http.request("POST", "/documents/verify", "", Some("{}")).unwrap();
    assert_eq!((report.status, &report.json()["wrong"]), (200, &json!(0)), "{report:?}");
    // What waits is told now; more than once is fine, never is not.
    heard.wait_for(&told);
    let hooks = http.get("/webhooks").json();
    assert_eq!(hooks["webhooks"][0]["failed"], 0, "{hooks}");
    server.terminate();
}

/// The document is there, and its revisions are those that were acknowledged, or one more that was on its way.
fn check_document(http: &mut Http, id: &str, steps: u64) {
    let document = http.get(&format!("/documents/{id}?full=true"));
    assert_eq!(document.status, 200, "{document:?}");
    let document = document.json();
    let revision = document["revision"].as_u64().unwrap();
    assert!(revision == steps || (steps < STEPS && revision == steps + 1), "{id} after {steps}: {document}");
    let body = document["content"]["body"].as_str().unwrap();
    assert_eq!(body.contains("and much more"), revision >= 2, "{document}");
    let history = http.get(&format!("/documents/{id}/history")).json();
    let revisions: Vec<u64> = history["revisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["revision"].as_u64().unwrap())
        .collect();
    assert_eq!(revisions, (1..=revision).rev().collect::<Vec<_>>(), "{id}");
}

//! Ours: whoever asks posts a REQUEST and waits for its answer; the worker reads its inbox stream and posts a RESPONSE to each.
use super::{Made, Parties};
use crate::http::{self, Connection};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Connections of the worker: an answer under way does not hold up the next.
const POSTERS: usize = 16;
const MESSAGES: &str = "/aacp/messages";
const WAITING: &str = "/aacp/messages?wait=20";

pub struct Ours {
    address: SocketAddr,
    askers: Vec<Connection>,
    count: usize,
}

impl Ours {
    pub fn open(address: SocketAddr, in_flight: usize) -> Result<Self, String> {
        let started = Instant::now();
        let mut first = http::connect(address, started)?;
        post(&mut first, address, "/aacp/agents", &json!({"agentId": "worker"}))?;
        let stream = listen(address)?;
        let poster = Poster::open(address, started)?;
        std::thread::spawn(move || {
            if let Err(why) = work(stream, poster) {
                eprintln!("the worker: {why}");
            }
        });
        let mut askers = vec![first];
        while askers.len() < in_flight {
            askers.push(http::connect(address, started)?);
        }
        Ok(Self { address, askers, count: 0 })
    }
}

impl Parties for Ours {
    fn run(&mut self, in_flight: usize, calls: usize, limit: Duration) -> Result<Made, String> {
        let (began, next, base, address) = (Instant::now(), AtomicUsize::new(0), self.count, self.address);
        self.count += calls;
        let next = &next;
        let took: Result<Vec<Vec<f64>>, String> = std::thread::scope(|scope| {
            let lanes: Vec<_> = self.askers[..in_flight]
                .iter_mut()
                .map(|connection| {
                    scope.spawn(move || {
                        let mut took = Vec::new();
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            if number >= calls || began.elapsed() > limit {
                                return Ok(took);
                            }
                            let id = base + number;
                            let body = json!({
                                "messageId": format!("00000001-0000-4000-8000-{id:012x}"),
                                "requestId": format!("00000002-0000-4000-8000-{id:012x}"), "sourceAgentId": "asker",
                                "targetAgentId": "worker", "messageType": "REQUEST", "payload": {"n": id}
                            });
                            let sent = Instant::now();
                            let answer = post(connection, address, WAITING, &body)?;
                            took.push(sent.elapsed().as_secs_f64() * 1e6);
                            if !answer.contains(r#""status":"COMPLETED""#) {
                                return Err(format!("not answered: {answer}"));
                            }
                        }
                    })
                })
                .collect();
            lanes.into_iter().map(|lane| lane.join().map_err(|_| "a lane broke".to_owned())?).collect()
        });
        let mut latencies_us: Vec<f64> = took?.into_iter().flatten().collect();
        latencies_us.sort_unstable_by(f64::total_cmp);
        Ok(Made { latencies_us, seconds: began.elapsed().as_secs_f64() })
    }
}

fn post(
    connection: &mut Connection,
    address: SocketAddr,
    path: &str,
    body: &Value,
) -> Result<String, String> {
    connection.write(http::request(address, path, "", &body.to_string()).as_bytes())?;
    Ok(connection.read()?.body)
}

fn listen(address: SocketAddr) -> Result<TcpStream, String> {
    let failed = |error: std::io::Error| format!("the inbox: {error}");
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    let head = format!(
        "GET /aacp/agents/worker/inbox HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(failed)?;
    Ok(stream)
}

/// Answers what comes, as soon as it is read; acknowledged with the answer. Every event is one line of data; the frames of the
/// transfer are lines of their own.
fn work(stream: TcpStream, mut poster: Poster) -> Result<(), String> {
    for line in BufReader::new(stream).lines() {
        let line = line.map_err(|error| format!("the inbox: {error}"))?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let envelope: Value = serde_json::from_str(data).map_err(|error| format!("{data}: {error}"))?;
        poster.post(&json!({
            "requestId": envelope["requestId"], "sourceAgentId": "worker", "targetAgentId": "asker",
            "messageType": "RESPONSE", "ack": envelope["seq"], "payload": {"done": true}
        }))?;
    }
    Ok(())
}

/// The worker's connections: it writes to one that is free and goes on reading; what comes back is read aside.
struct Poster {
    address: SocketAddr,
    writers: Vec<TcpStream>,
    free: mpsc::Receiver<usize>,
}

impl Poster {
    fn open(address: SocketAddr, started: Instant) -> Result<Self, String> {
        let (done, free) = mpsc::channel();
        let mut writers = Vec::new();
        for at in 0..POSTERS {
            let mut connection = http::connect(address, started)?;
            // A connection may be free for long.
            let socket = connection.socket();
            socket.set_read_timeout(None).map_err(|error| format!("a connection: {error}"))?;
            writers.push(socket.try_clone().map_err(|error| format!("a connection: {error}"))?);
            let done = done.clone();
            done.send(at).map_err(|error| error.to_string())?;
            std::thread::spawn(move || {
                loop {
                    if let Err(why) = connection.read() {
                        eprintln!("the worker: {why}");
                        return;
                    }
                    if done.send(at).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { address, writers, free })
    }

    fn post(&mut self, body: &Value) -> Result<(), String> {
        let at = self.free.recv().map_err(|_| "all connections are gone".to_owned())?;
        let request = http::request(self.address, MESSAGES, "", &body.to_string());
        self.writers[at].write_all(request.as_bytes()).map_err(|error| format!("answering: {error}"))
    }
}

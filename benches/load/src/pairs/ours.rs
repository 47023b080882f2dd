//! Ours: whoever asks posts a REQUEST and waits for its answer; the worker reads its inbox stream and posts a RESPONSE to each.
use super::{Made, Parties};
use crate::http::{self, Connection};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
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
        let (work, works) = mpsc::channel::<(String, u64)>();
        let stream = listen(address)?;
        std::thread::spawn(move || read(stream, &work));
        let works = Arc::new(Mutex::new(works));
        for _ in 0..POSTERS {
            let (works, mut connection) = (works.clone(), http::connect(address, started)?);
            std::thread::spawn(move || {
                while let Ok((request, seq)) =
                    works.lock().map_err(|_| ()).and_then(|works| works.recv().map_err(|_| ()))
                {
                    let answer = json!({
                        "requestId": request, "sourceAgentId": "worker", "targetAgentId": "asker", "messageType": "RESPONSE",
                        "ack": seq, "payload": {"done": true}
                    });
                    if let Err(why) = post(&mut connection, address, MESSAGES, &answer) {
                        eprintln!("the worker: {why}");
                        return;
                    }
                }
            });
        }
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
                                "messageId": format!("m-{id}"), "requestId": format!("r-{id}"), "sourceAgentId": "asker",
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

/// Every event is one line of data; the frames of the transfer are lines of their own.
fn read(stream: TcpStream, work: &mpsc::Sender<(String, u64)>) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let envelope: Value = serde_json::from_str(data).unwrap_or_default();
        let request = envelope["requestId"].as_str().unwrap_or_default().to_owned();
        if work.send((request, envelope["seq"].as_u64().unwrap_or(0))).is_err() {
            return;
        }
    }
}

//! NATS JetStream: requests in one stream, answers in another, both in files; each party is pushed what the other has stored.
use super::{Made, Parties};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// One connection to the server, in its text protocol.
struct Client {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

/// A message that was pushed.
struct Pushed {
    subject: String,
    reply: Option<String>,
    payload: Vec<u8>,
}

pub struct Nats {
    asker: Client,
    count: usize,
}

impl Nats {
    pub fn open(address: SocketAddr) -> Result<Self, String> {
        let mut asker = Client::connect(address)?;
        for (stream, subjects) in [("REQUESTS", "req.>"), ("ANSWERS", "res.>")] {
            let config =
                json!({"name": stream, "subjects": [subjects], "storage": "file", "retention": "limits"});
            asker.api(&format!("STREAM.CREATE.{stream}"), &config)?;
        }
        let consumer = |stream: &str, name: &str| {
            json!({"stream_name": stream, "config": {
                "durable_name": name, "deliver_subject": format!("to.{name}"), "ack_policy": "explicit", "max_ack_pending": 20_000,
            }})
        };
        let mut worker = Client::connect(address)?;
        worker.subscribe("to.worker", 1)?;
        worker.api("CONSUMER.DURABLE.CREATE.REQUESTS.worker", &consumer("REQUESTS", "worker"))?;
        std::thread::spawn(move || {
            if let Err(why) = work(worker) {
                eprintln!("the worker: {why}");
            }
        });
        asker.subscribe("to.asker", 1)?;
        asker.api("CONSUMER.DURABLE.CREATE.ANSWERS.asker", &consumer("ANSWERS", "asker"))?;
        Ok(Self { asker, count: 0 })
    }
}

/// Answers what comes, and acknowledges it.
fn work(mut client: Client) -> Result<(), String> {
    loop {
        let Some(pushed) = client.next()? else { continue };
        let id = pushed.subject.rsplit('.').next().unwrap_or_default().to_owned();
        client.publish(&format!("res.{id}"), &format!("a-{id}"), br#"{"done":true}"#)?;
        client.acknowledge(&pushed)?;
    }
}

impl Parties for Nats {
    fn run(&mut self, in_flight: usize, calls: usize, limit: Duration) -> Result<Made, String> {
        let began = Instant::now();
        let base = self.count;
        self.count += calls;
        let (mut sent, mut open, mut latencies_us) = (0, HashMap::new(), Vec::with_capacity(calls));
        loop {
            while open.len() < in_flight && sent < calls && began.elapsed() < limit {
                let id = (base + sent).to_string();
                open.insert(id.clone(), Instant::now());
                let payload = format!(r#"{{"n":{id}}}"#);
                self.asker.publish(&format!("req.{id}"), &format!("q-{id}"), payload.as_bytes())?;
                sent += 1;
            }
            if open.is_empty() {
                break;
            }
            let Some(pushed) = self.asker.next()? else { continue };
            let id = pushed.subject.rsplit('.').next().unwrap_or_default();
            // A message that is pushed again was counted.
            if let Some(at) = open.remove(id) {
                latencies_us.push(at.elapsed().as_secs_f64() * 1e6);
            }
            self.asker.acknowledge(&pushed)?;
        }
        latencies_us.sort_unstable_by(f64::total_cmp);
        Ok(Made { latencies_us, seconds: began.elapsed().as_secs_f64() })
    }
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("NATS: {error}");
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_LIMIT)).map_err(failed)?;
        let mut client = Self { reader: BufReader::new(stream.try_clone().map_err(failed)?), writer: stream };
        client.line()?;
        client.write(
            b"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n",
        )?;
        Ok(client)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.writer.write_all(bytes).map_err(|error| format!("NATS: {error}"))
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => Err("NATS closed the connection".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!("NATS: {error}")),
        }
    }

    fn subscribe(&mut self, subject: &str, id: u32) -> Result<(), String> {
        self.write(format!("SUB {subject} {id}\r\n").as_bytes())
    }

    /// With an id, so that a repeat is recognised, as ours does it.
    fn publish(&mut self, subject: &str, id: &str, payload: &[u8]) -> Result<(), String> {
        let head = format!("NATS/1.0\r\nNats-Msg-Id: {id}\r\n\r\n");
        let mut bytes =
            format!("HPUB {subject} {} {}\r\n{head}", head.len(), head.len() + payload.len()).into_bytes();
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(b"\r\n");
        self.write(&bytes)
    }

    fn acknowledge(&mut self, pushed: &Pushed) -> Result<(), String> {
        match &pushed.reply {
            Some(reply) => self.write(format!("PUB {reply} 4\r\n+ACK\r\n").as_bytes()),
            None => Err(format!("{} wants no acknowledgement", pushed.subject)),
        }
    }

    /// The next message; none when it was something else.
    fn next(&mut self) -> Result<Option<Pushed>, String> {
        let line = self.line()?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let (subject, reply, head, total) = match words.as_slice() {
            ["MSG", subject, _, total] => (*subject, None, "0", *total),
            ["MSG", subject, _, reply, total] => (*subject, Some(*reply), "0", *total),
            ["HMSG", subject, _, head, total] => (*subject, None, *head, *total),
            ["HMSG", subject, _, reply, head, total] => (*subject, Some(*reply), *head, *total),
            ["PING"] => return self.write(b"PONG\r\n").map(|()| None),
            ["-ERR", ..] => return Err(line),
            _ => return Ok(None),
        };
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("NATS said {line}"));
        let (head, total) = (number(head)?, number(total)?);
        let mut body = vec![0; total + 2];
        self.reader.read_exact(&mut body).map_err(|error| format!("NATS: {error}"))?;
        let payload = body[head..total].to_vec();
        Ok(Some(Pushed { subject: subject.to_owned(), reply: reply.map(str::to_owned), payload }))
    }

    /// Asks the server itself.
    fn api(&mut self, what: &str, config: &Value) -> Result<(), String> {
        self.subscribe("api.answer", 9)?;
        let text = config.to_string();
        self.write(format!("PUB $JS.API.{what} api.answer {}\r\n{text}\r\n", text.len()).as_bytes())?;
        let answer = loop {
            if let Some(pushed) = self.next()? {
                break pushed;
            }
        };
        self.write(b"UNSUB 9\r\n")?;
        let told: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
        match told.get("error") {
            Some(error) => Err(format!("{what}: {error}")),
            None => Ok(()),
        }
    }
}

//! A server behind Streamable HTTP, reached over keep-alive connections.
use crate::measure::{self, Wire};
use crate::message::{self, Era};
use crate::{Plan, ending};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(20);
pub const ANSWER_LIMIT: Duration = Duration::from_secs(20);

pub fn run(plan: &Plan) -> Result<Value, String> {
    let address = free_address().map_err(|error| format!("no free port: {error}"))?;
    let command: Vec<String> =
        plan.command.iter().map(|part| part.replace("{address}", &address.to_string())).collect();
    let started = Instant::now();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}", command[0]))?;
    let outcome = talk(plan, &mut child, address, started);
    ending::end(child);
    outcome
}

fn talk(plan: &Plan, child: &mut Child, address: SocketAddr, started: Instant) -> Result<Value, String> {
    let mut first = connect(address, started)?;
    first.post(
        &message::opening(plan.era),
        &headers(plan.era, message::opening_method(plan.era), None, None),
    )?;
    let reply = first.read()?;
    let start_ms = started.elapsed().as_secs_f64() * 1e3;
    if !reply.body.contains(r#""result":"#) {
        return Err(format!("the server refused: {}", reply.body));
    }
    let session = reply.session;
    if plan.era == Era::Legacy {
        let headers = headers(plan.era, "notifications/initialized", None, session.as_deref());
        first.post(message::INITIALIZED, &headers)?;
        first.read()?;
    }
    let mut connections = vec![first];
    while connections.len() < plan.in_flight {
        connections.push(connect(address, started)?);
    }
    let headers = headers(plan.era, "tools/call", Some("echo"), session.as_deref());
    let mut bundle = Bundle { connections, head: head(address, "/mcp", &headers), request: String::new() };
    measure::run(plan, &mut bundle, child.id(), started, start_ms)
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// A connection, once the server accepts one.
pub fn connect(address: SocketAddr, started: Instant) -> Result<Connection, String> {
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                let _ = stream.set_read_timeout(Some(ANSWER_LIMIT));
                return Ok(Connection {
                    stream: BufReader::with_capacity(1 << 16, stream),
                    address,
                    head: Vec::new(),
                });
            }
            Err(error) if started.elapsed() > START_LIMIT => return Err(format!("connecting: {error}")),
            Err(_) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn headers(era: Era, method: &str, name: Option<&str>, session: Option<&str>) -> String {
    let mut lines = match era {
        Era::Legacy => format!("MCP-Protocol-Version: {}\r\n", message::LEGACY),
        Era::Modern => format!("MCP-Protocol-Version: {}\r\nMcp-Method: {method}\r\n", message::MODERN),
    };
    if let Some(name) = name.filter(|_| era == Era::Modern) {
        lines.push_str(&format!("Mcp-Name: {name}\r\n"));
    }
    if let Some(session) = session {
        lines.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
    }
    lines
}

/// A POST of a body, ready to be written.
pub fn request(address: SocketAddr, path: &str, headers: &str, body: &str) -> String {
    format!("{}{}\r\n\r\n{body}", head(address, path, headers), body.len())
}

/// The head of a POST, up to the length of its body.
fn head(address: SocketAddr, path: &str, headers: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\n{headers}Content-Length: "
    )
}

pub struct Reply {
    pub body: String,
    session: Option<String>,
}

pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    /// The head of the answer read last: one buffer for all of them, because the client must not be the slow part.
    head: Vec<u8>,
}

impl Connection {
    fn post(&mut self, body: &str, headers: &str) -> Result<(), String> {
        let request = request(self.address, "/mcp", headers, body);
        self.write(request.as_bytes())
    }

    pub fn write(&mut self, request: &[u8]) -> Result<(), String> {
        self.stream.get_mut().write_all(request).map_err(|error| format!("writing: {error}"))
    }

    /// What can be waited for, to know that an answer has come.
    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!("reading: {error}")),
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).map_err(|error| format!("reading: {error}"))?;
        Ok(bytes)
    }

    pub fn read(&mut self) -> Result<Reply, String> {
        self.head.clear();
        while !self.head.ends_with(b"\r\n\r\n") {
            match self.stream.read_until(b'\n', &mut self.head) {
                Ok(0) => return Err("the server closed the connection".to_owned()),
                Ok(_) => {}
                Err(error) => return Err(format!("reading: {error}")),
            }
        }
        let head = std::str::from_utf8(&self.head).map_err(|_| "a head that is not UTF-8")?;
        let (mut length, mut chunked, mut session) = (0, false, None);
        for line in head.lines().skip(1) {
            let Some((name, value)) = line.split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| line.to_owned())?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.contains("chunked");
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(value.trim().to_owned());
            }
        }
        let is_good = head.get(8..).is_some_and(|rest| rest.starts_with(" 20"));
        let bytes = if chunked { self.chunks()? } else { self.exactly(length)? };
        let body = String::from_utf8(bytes).map_err(|_| "a body that is not UTF-8")?;
        match is_good {
            true => Ok(Reply { body, session }),
            false => Err(format!("{}: {body}", String::from_utf8_lossy(&self.head))),
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        loop {
            let line = self.line()?;
            let length = usize::from_str_radix(&line, 16).map_err(|_| format!("not a chunk: {line}"))?;
            bytes.extend(self.exactly(length)?);
            self.line()?;
            if length == 0 {
                return Ok(bytes);
            }
        }
    }
}

/// One connection per call in flight, as HTTP/1.1 clients do it.
struct Bundle {
    connections: Vec<Connection>,
    /// What all requests begin with.
    head: String,
    request: String,
}

impl Wire for Bundle {
    fn lanes(&self) -> usize {
        self.connections.len()
    }

    fn send(&mut self, lane: usize, message: &str) -> Result<(), String> {
        self.request.clear();
        let Self { head, request, .. } = self;
        // Writing to a string cannot fail.
        let _ = write!(request, "{head}{}\r\n\r\n{message}", message.len());
        self.connections[lane].write(self.request.as_bytes())
    }

    fn receive(&mut self, lane: usize) -> Result<String, String> {
        Ok(self.connections[lane].read()?.body)
    }
}

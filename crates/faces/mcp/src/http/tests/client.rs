//! A raw HTTP client: one connection, requests as written, answers as they come.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(20);

pub const JSON: (&str, &str) = ("Content-Type", "application/json");
pub const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");
pub const EVENTS: (&str, &str) = ("Accept", "text/event-stream");
pub const MODERN: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    pub status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub fn is_stream(&self) -> bool {
        self.get("content-type") == Some("text/event-stream")
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub head: Head,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Status and error number, as most refusals are told apart.
    pub fn refusal(&self) -> (u16, i64) {
        (self.head.status, self.json()["error"]["code"].as_i64().unwrap_or_default())
    }
}

/// A server-sent event.
#[derive(Debug, Default, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub retry: Option<String>,
    pub data: String,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub struct Client {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
    /// What a chunked body has brought and nobody has taken.
    content: String,
    ended: bool,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, host: address.to_string(), buffer: Vec::new(), content: String::new(), ended: false }
    }

    pub async fn send(&mut self, method: &str, headers: &[(&str, &str)], body: &[u8]) {
        self.send_to("/mcp", method, headers, body).await;
    }

    pub async fn send_to(&mut self, path: &str, method: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if method == "POST" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        self.stream.write_all(&bytes).await.unwrap();
        (self.content, self.ended) = (String::new(), false);
    }

    pub async fn ask(&mut self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send(method, headers, body).await;
        let head = self.head().await;
        let text = self.body(&head).await;
        Answer { head, text }
    }

    /// A POST with the usual headers before the given ones.
    pub async fn post(&mut self, headers: &[(&str, &str)], body: &Value) -> Answer {
        let headers = [&[JSON, ACCEPT], headers].concat();
        self.ask("POST", &headers, body.to_string().as_bytes()).await
    }

    /// The same, for an answer that is read event by event.
    pub async fn open(&mut self, headers: &[(&str, &str)], body: &Value) -> Head {
        let headers = [&[JSON, ACCEPT], headers].concat();
        self.send("POST", &headers, body.to_string().as_bytes()).await;
        self.head().await
    }

    async fn more(&mut self) -> bool {
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await;
        read.expect("the server says nothing").unwrap() > 0
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.drain(..end + 2).take(end).collect();
                return String::from_utf8(line).unwrap();
            }
            assert!(self.more().await, "the server closed the connection");
        }
    }

    pub async fn head(&mut self) -> Head {
        let status = self.line().await;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let head = Head { status, headers };
        self.ended = head.get("content-length") == Some("0");
        head
    }

    async fn exactly(&mut self, length: usize) -> String {
        while self.buffer.len() < length {
            assert!(self.more().await, "the server closed the connection");
        }
        String::from_utf8(self.buffer.drain(..length).collect()).unwrap()
    }

    async fn body(&mut self, head: &Head) -> String {
        if let Some(length) = head.get("content-length") {
            return self.exactly(length.parse().unwrap()).await;
        }
        if head.get("transfer-encoding").is_none() {
            return String::new();
        }
        while self.chunk().await {}
        std::mem::take(&mut self.content)
    }

    /// Reads one chunk of the body; false at its end.
    async fn chunk(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let length = usize::from_str_radix(&self.line().await, 16).unwrap();
        let text = self.exactly(length).await;
        self.content.push_str(&text);
        self.line().await;
        self.ended = length == 0;
        !self.ended
    }

    /// What has come of the body until the next blank line, comments included; None at its end.
    pub async fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.content.find("\n\n") {
                let mut block: String = self.content.drain(..end + 2).collect();
                block.truncate(end);
                return Some(block);
            }
            if !self.chunk().await {
                assert_eq!(self.content, "", "an event was cut");
                return None;
            }
        }
    }

    /// The next event, comments passed over; None at the end of the stream.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            let block = self.block().await?;
            let mut event = Event::default();
            let mut seen = false;
            for line in block.lines().filter(|line| !line.starts_with(':')) {
                let (name, value) = line.split_once(": ").unwrap();
                seen = true;
                match name {
                    "id" => event.id = Some(value.to_owned()),
                    "retry" => event.retry = Some(value.to_owned()),
                    "data" => event.data.push_str(value),
                    "event" => assert_eq!(value, "message"),
                    other => panic!("an unknown field: {other}"),
                }
            }
            if seen {
                return Some(event);
            }
        }
    }
}

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}))
}

pub fn initialize(version: &str) -> Value {
    let capabilities = json!({"elicitation": {}});
    let client = json!({"name": "test", "version": "1"});
    request(
        0,
        "initialize",
        json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}),
    )
}

pub fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// The one text of a tool's result.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}

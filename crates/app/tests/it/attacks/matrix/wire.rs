//! One request in the words of its face, the connections of one caller, and what an answer means.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::HandshakeError;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use crate::program::PATIENCE;
use crate::server::Http;

/// A request, before a caller is known.
#[derive(Debug, Clone)]
pub enum Request {
    Http {
        method: &'static str,
        target: String,
        body: Option<Value>,
    },
    /// A delivery to a webhook trigger, with its signature.
    Delivery {
        target: String,
        body: String,
        signature: String,
    },
    /// A method of MCP over HTTP in the modern era.
    Mcp {
        method: &'static str,
        params: Value,
    },
    /// A method of MCP that exists in the legacy era only, in a conversation of its own.
    LegacyMcp {
        method: &'static str,
        params: Value,
    },
    /// A command of the session protocol over WebSocket.
    Command(Value),
    /// A WebSocket of events: its first message.
    Socket {
        target: String,
    },
    /// An event stream: its head, and what comes first.
    Stream {
        target: String,
    },
}

pub fn http(method: &'static str, target: impl Into<String>, body: Option<Value>) -> Request {
    Request::Http { method, target: target.into(), body }
}

pub fn get(target: impl Into<String>) -> Request {
    http("GET", target, None)
}

pub fn post(target: impl Into<String>, body: Value) -> Request {
    http("POST", target, Some(body))
}

pub fn tool(name: &str, arguments: Value) -> Request {
    Request::Mcp { method: "tools/call", params: json!({"name": name, "arguments": arguments}) }
}

/// What an answer means, whatever the face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Done,
    /// Known, and without the right.
    Refused,
    /// Not known.
    Unauthenticated,
    NotFound,
    Failed(String),
}

#[derive(Debug)]
pub struct Reply {
    pub verdict: Verdict,
    /// Everything that was said.
    pub text: String,
}

/// One caller with its connections: kept-alive HTTP and the socket of sessions.
pub struct Wire {
    pub address: SocketAddr,
    pub token: String,
    http: Option<Http>,
    socket: Option<WebSocket<TcpStream>>,
    /// Header lines on every request.
    pub headers: String,
    /// Members of every JSON body, of the arguments of tools and of commands.
    pub members: Option<Value>,
    /// Everything the socket of sessions has said.
    pub heard: String,
}

static COMMANDS: AtomicU32 = AtomicU32::new(0);

impl Wire {
    pub fn new(address: SocketAddr, token: &str) -> Self {
        let (headers, heard) = (String::new(), String::new());
        Self { address, token: token.to_owned(), http: None, socket: None, headers, members: None, heard }
    }

    pub fn ask(&mut self, request: &Request) -> Reply {
        match self.forged(request.clone()) {
            Request::Http { method, target, body } => self.http(method, &target, body),
            Request::Delivery { target, body, signature } => self.deliver(&target, &body, &signature),
            Request::Mcp { method, params } => self.mcp(method, params),
            Request::LegacyMcp { method, params } => self.legacy_mcp(method, params),
            Request::Command(command) => self.command(command),
            Request::Stream { target } => self.stream(&target),
            Request::Socket { target } => self.socket(&target),
        }
    }

    /// The request with the claims of this caller in it.
    fn forged(&self, mut request: Request) -> Request {
        let Some(claims) = &self.members else { return request };
        let into = |place: &mut Value| {
            if let (Some(place), Some(claims)) = (place.as_object_mut(), claims.as_object()) {
                claims.iter().for_each(|(name, value)| {
                    place.entry(name.clone()).or_insert_with(|| value.clone());
                });
            }
        };
        match &mut request {
            Request::Http { body: Some(body), .. } => into(body),
            Request::Mcp { params, .. } | Request::LegacyMcp { params, .. } => {
                params["_meta"] = claims.clone();
                if let Some(arguments) = params.get_mut("arguments") {
                    into(arguments);
                }
            }
            Request::Command(command) => into(command),
            Request::Http { body: None, .. }
            | Request::Delivery { .. }
            | Request::Stream { .. }
            | Request::Socket { .. } => {}
        }
        request
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\n{}", self.token, self.headers)
    }

    /// Sends on the connection there is; on a new one if the server has closed it.
    fn send(
        &mut self,
        send: impl Fn(&mut Http, &str) -> std::io::Result<crate::server::Answer>,
    ) -> (u16, String) {
        let more = self.authorization();
        for _ in 0..2 {
            let mut http = self.http.take().unwrap_or_else(|| Http::connect(self.address).unwrap());
            if let Ok(answer) = send(&mut http, &more) {
                self.http = Some(http);
                return (answer.status, answer.body);
            }
        }
        panic!("no answer on a new connection");
    }

    fn http(&mut self, method: &str, target: &str, body: Option<Value>) -> Reply {
        let body = body.map(|body| body.to_string());
        let (status, text) = self.send(|http, more| http.request(method, target, more, body.as_deref()));
        Reply { verdict: of_status(status, &text), text }
    }

    fn deliver(&mut self, target: &str, body: &str, signature: &str) -> Reply {
        let head = format!("X-Hub-Signature-256: {signature}\r\n");
        let (status, text) =
            self.send(|http, more| http.request("POST", target, &format!("{head}{more}"), Some(body)));
        Reply { verdict: of_status(status, &text), text }
    }

    fn mcp(&mut self, method: &str, mut params: Value) -> Reply {
        let object = ["name", "uri", "taskId"].into_iter().find_map(|member| params[member].as_str());
        let name = object.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
        let mut meta = params["_meta"].as_object().cloned().unwrap_or_default();
        meta.insert("io.modelcontextprotocol/protocolVersion".to_owned(), json!("2026-07-28"));
        meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert_with(|| json!({}));
        params["_meta"] = Value::Object(meta);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let head = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
        let (status, text) = self.send(|http, more| http.post(&format!("{head}{more}"), &body));
        Reply { verdict: of_mcp(status, &text), text }
    }

    fn legacy_mcp(&mut self, method: &str, params: Value) -> Reply {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}}});
        let more = self.authorization();
        let mut http = Http::connect(self.address).unwrap();
        let begun = http.post(&more, &hello.to_string()).unwrap();
        let session = begun.head.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id"));
        let Some(session) = session else {
            return Reply { verdict: of_mcp(begun.status, &begun.body), text: begun.body };
        };
        let more = format!("{more}{session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        http.post(&more, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())
            .unwrap();
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let answer = http.post(&more, &call.to_string()).unwrap();
        Reply { verdict: of_mcp(answer.status, &answer.body), text: answer.body }
    }

    fn socket(&mut self, target: &str) -> Reply {
        match self.upgrade(target) {
            Ok(mut socket) => {
                let first = socket.read().map(|message| message.to_string()).unwrap_or_default();
                Reply { verdict: Verdict::Done, text: first }
            }
            Err(refused) => refused,
        }
    }

    fn upgrade(&self, target: &str) -> Result<WebSocket<TcpStream>, Reply> {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("ws://{}{target}", self.address).into_client_request().unwrap();
        for line in self.authorization().lines() {
            let (name, value) = line.split_once(": ").unwrap();
            let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        match client(request, stream) {
            Ok((socket, _)) => Ok(socket),
            Err(HandshakeError::Failure(Error::Http(refused))) => {
                let text =
                    String::from_utf8_lossy(refused.body().as_deref().unwrap_or_default()).into_owned();
                Err(Reply { verdict: of_status(refused.status().as_u16(), &text), text })
            }
            Err(error) => panic!("{target}: {error}"),
        }
    }

    fn command(&mut self, mut command: Value) -> Reply {
        let mut socket = match self.socket.take().map_or_else(|| self.upgrade("/ws/session"), Ok) {
            Ok(socket) => socket,
            Err(refused) => return refused,
        };
        let id = format!("m{}", COMMANDS.fetch_add(1, Ordering::Relaxed));
        command["id"] = json!(id);
        if socket.send(Message::text(command.to_string())).is_err() {
            return self.command(command);
        }
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => {
                    self.heard.push_str(&text);
                    let said: Value = serde_json::from_str(&text).unwrap();
                    if said["type"] == "response" && said["id"] == id.as_str() {
                        self.socket = Some(socket);
                        return Reply { verdict: of_command(&said), text: text.to_string() };
                    }
                }
                Ok(_) => {}
                // Closed, for instance because the token was revoked: a new one says why.
                Err(_) => return self.command(command),
            }
        }
    }

    fn stream(&mut self, target: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let more = self.authorization();
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n{more}\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut text = String::new();
        while !text.ends_with("\r\n\r\n") && reader.read_line(&mut text).unwrap_or(0) > 0 {}
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(500);
        // The first event, or why there is none.
        let mut first = [0; 1024];
        let read = reader.read(&mut first).unwrap_or(0);
        text.push_str(&String::from_utf8_lossy(&first[..read]));
        Reply { verdict: of_status(status, ""), text }
    }
}

fn of_status(status: u16, text: &str) -> Verdict {
    match status {
        200..=399 => Verdict::Done,
        401 => Verdict::Unauthenticated,
        403 => Verdict::Refused,
        404 => Verdict::NotFound,
        _ => {
            let said: Value = serde_json::from_str(text).unwrap_or_default();
            let code = said["error"]["code"].as_str().unwrap_or_default();
            match said["error"]["cause"].as_str() {
                // A step of a workflow was refused.
                Some("UNAUTHORIZED") => Verdict::Refused,
                Some("NOT_FOUND") => Verdict::NotFound,
                _ => Verdict::Failed(format!("{status} {code}")),
            }
        }
    }
}

fn of_mcp(status: u16, text: &str) -> Verdict {
    let refused = of_status(status, "");
    if matches!(refused, Verdict::Unauthenticated | Verdict::Refused) {
        return refused;
    }
    let said: Value = serde_json::from_str(text).unwrap_or_default();
    let (error, result) = (&said["error"], &said["result"]);
    let code = error["data"]["code"].as_str().or(result["structuredContent"]["code"].as_str());
    match (error.is_object() || result["isError"] == true, code) {
        (false, _) if result.is_object() => Verdict::Done,
        (true, Some("UNAUTHORIZED")) => Verdict::Refused,
        (true, Some("NOT_FOUND")) => Verdict::NotFound,
        (true, None) if text.contains("not found") || text.contains("there is no") => Verdict::NotFound,
        (_, code) => Verdict::Failed(format!("{status} {}", code.unwrap_or(text))),
    }
}

fn of_command(said: &Value) -> Verdict {
    match (said["success"] == true, said["errorCode"].as_str().unwrap_or_default()) {
        (true, _) => Verdict::Done,
        (false, "UNAUTHORIZED") => Verdict::Refused,
        (false, "NOT_FOUND") => Verdict::NotFound,
        (false, code) => Verdict::Failed(code.to_owned()),
    }
}

/// Asks for something that must be done.
pub fn done(wire: &mut Wire, request: &Request) -> Value {
    let reply = wire.ask(request);
    assert_eq!(reply.verdict, Verdict::Done, "{request:?}: {}", reply.text);
    serde_json::from_str(&reply.text).unwrap_or_default()
}

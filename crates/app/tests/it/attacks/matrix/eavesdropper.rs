//! A client that opens everything that tells of changes, and listens while others work.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::json;

use crate::program::PATIENCE;

pub struct Eavesdropper {
    heard: Arc<Mutex<String>>,
}

impl Eavesdropper {
    /// Listens to events, to the sockets, and to these resources over MCP.
    pub fn start(address: SocketAddr, token: &str, uris: &[String]) -> Self {
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let events = "Accept: text/event-stream\r\n";
        let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": true, "resourceSubscriptions": uris},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}}}})
        .to_string();
        let mcp = format!(
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: {}\r\n",
            listen.len()
        );
        let heard: Arc<Mutex<String>> = Arc::default();
        for (method, target, more, body) in [
            ("GET", "/v1/events", events, ""),
            ("GET", "/ws", upgrade, ""),
            ("GET", "/ws/session", upgrade, ""),
            ("POST", "/mcp", &mcp, &listen),
        ] {
            let mut stream = TcpStream::connect(address).unwrap();
            let host = format!("Host: {address}\r\nAuthorization: Bearer {token}\r\n");
            write!(stream, "{method} {target} HTTP/1.1\r\n{host}{more}\r\n{body}").unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 101"), "{target}: {head}");
            let heard = heard.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 65_536];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    heard.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
                }
            });
        }
        Self { heard }
    }

    /// Waits until it was told of this.
    pub fn wait_for(&self, text: &str) {
        #[allow(clippy::disallowed_methods, reason = "a test that waits in vain must end")]
        let begun = Instant::now();
        while !self.heard.lock().unwrap().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "{text:?} was not heard: {}", self.heard.lock().unwrap());
            std::thread::yield_now();
        }
    }

    pub fn heard_nothing_of(&self, texts: &[&str]) {
        let heard = self.heard.lock().unwrap();
        for text in texts {
            let place = heard
                .find(text)
                .map(|at| heard[at.saturating_sub(200)..].chars().take(400).collect::<String>());
            assert_eq!(place, None, "{text}");
        }
    }
}

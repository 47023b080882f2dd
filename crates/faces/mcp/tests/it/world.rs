//! A face to try things on: a store in memory, counted ids, a simulated clock, and a client that remembers what it heard.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::{Store, clock};
use orchestr8_kernel::{Limits, Principal, Transport};
use orchestr8_mcp::connection::Connection;
use orchestr8_mcp::{Face, Incoming, Outlet, Received, Settings, tables};
use orchestr8_stores::sqlite::simulated::Simulated;
use orchestr8_testing::{Parts, migrations};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::fixtures;

/// Longer than anything in a test takes; simulated, so nobody waits it out.
const PATIENCE: Duration = Duration::from_secs(600);

/// Turns given to tasks that can go on, before a test concludes that nothing more is said.
const TURNS: usize = 64;

pub fn store() -> Arc<Simulated> {
    Arc::new(Simulated::faultless(&migrations(&[tables::MIGRATIONS])).unwrap())
}

pub fn settings() -> Settings {
    Settings::new("test-server", "1.2.3", [7; 32])
}

pub fn face_on(store: Arc<dyn Store>, limits: Limits, settings: Settings) -> Face {
    let clock = Arc::new(clock::Simulated::new());
    let kernel = Parts { clock, limits, ..Parts::on(store) }.kernel();
    fixtures::register(&kernel);
    Face::new(kernel, settings)
}

pub fn face() -> Face {
    face_on(store(), Limits::default(), settings())
}

/// What was said outside of replies, and the replies that came later.
#[derive(Default)]
pub struct Heard {
    lines: Mutex<VecDeque<String>>,
    news: tokio::sync::Notify,
}

impl Outlet for Heard {
    fn send(&self, text: String) -> bool {
        self.lines.lock().push_back(text);
        self.news.notify_one();
        true
    }
}

/// A client of one connection.
pub struct Client {
    pub connection: Arc<Connection>,
    pub heard: Arc<Heard>,
}

impl Client {
    pub fn of(face: &Face) -> Self {
        let heard = Arc::new(Heard::default());
        Self {
            connection: face.connect(Arc::new(Principal::local()), Transport::Stdio, heard.clone()),
            heard,
        }
    }

    /// A client whose legacy conversation is RUNNING.
    pub fn running(face: &Face, version: &str, capabilities: &Value) -> Self {
        let client = Self::of(face);
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "0"}});
        client.tell(
            &json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params}).to_string(),
        );
        client.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        client.heard.lines.lock().clear();
        client
    }

    /// Sends a line; what comes of it is heard sooner or later.
    pub fn tell(&self, line: &str) {
        self.tell_bytes(line.as_bytes());
    }

    pub fn tell_bytes(&self, line: &[u8]) {
        match self.connection.receive(line, &Incoming::default(), self.heard.clone()) {
            Received::Nothing => {}
            Received::Reply(reply) => drop(self.heard.send(reply.text)),
            Received::Pending(pending) => {
                let heard = self.heard.clone();
                tokio::spawn(async move {
                    if let Some(reply) = pending.await {
                        heard.send(reply.text);
                    }
                });
            }
        }
    }

    /// The next thing heard.
    pub async fn hear(&self) -> Value {
        serde_json::from_str(&self.hear_text().await).unwrap()
    }

    pub async fn hear_text(&self) -> String {
        let next = async {
            loop {
                if let Some(line) = self.heard.lines.lock().pop_front() {
                    return line;
                }
                self.heard.news.notified().await;
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("something should have been said")
    }

    /// What has been heard and not been looked at, once nothing more can go on without time passing.
    pub async fn rest(&self) -> Vec<String> {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        self.heard.lines.lock().drain(..).collect()
    }

    /// Sends a request and waits for its answer, letting go by what else is heard.
    pub async fn ask(&self, id: Value, method: &str, params: Value) -> Value {
        self.tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let heard = self.hear().await;
            if heard.get("id") == Some(&id) && heard.get("method").is_none() {
                return heard;
            }
        }
    }

    pub async fn call(&self, id: u64, name: &str, arguments: Value) -> Value {
        self.ask(json!(id), "tools/call", json!({"name": name, "arguments": arguments})).await
    }
}

/// The structured error a tool call was answered with.
pub fn tool_error(answer: &Value) -> Value {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// Params of a modern request.
pub fn modern(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

//! The world outside: a server that notes every call a step makes, by its key and by the life of the server that made it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::lives::Lives;

/// What has happened outside.
#[derive(Default)]
pub struct Ledger {
    keys: Mutex<Keys>,
    pub lives: Lives,
}

#[derive(Default)]
struct Keys {
    /// The life in which each call was made.
    calls: BTreeMap<String, Vec<String>>,
    /// Keys of steps that were seen to be finished.
    finished: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Ledger {
    /// Serves it in the background, until the test process ends.
    pub fn serve(self: &Arc<Self>) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/effect", post(take)).with_state(self.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        address
    }

    /// From now on no step with this key may run.
    pub fn finish(&self, key: String) {
        self.keys.lock().unwrap().finished.insert(key);
    }

    /// How often a key was called.
    pub fn count(&self, key: &str) -> usize {
        self.keys.lock().unwrap().calls.get(key).map_or(0, Vec::len)
    }

    /// Keys, calls, and keys that were called more than once.
    pub fn totals(&self) -> (usize, usize, usize) {
        let keys = self.keys.lock().unwrap();
        let repeated = keys.calls.values().filter(|lives| lives.len() > 1).count();
        (keys.calls.len(), keys.calls.values().map(Vec::len).sum(), repeated)
    }

    pub fn wrong(&self) -> Vec<String> {
        self.keys.lock().unwrap().wrong.clone()
    }

    fn note(&self, key: &str, life: &str) -> usize {
        let mut keys = self.keys.lock().unwrap();
        if keys.finished.contains(key) {
            keys.wrong.push(format!("{key} ran again in {life} after it was seen to be finished"));
        }
        let lives = keys.calls.entry(key.to_owned()).or_default();
        let is_repeat = lives.iter().any(|earlier| earlier == life);
        lives.push(life.to_owned());
        let count = lives.len();
        if is_repeat {
            keys.wrong.push(format!("{key} ran twice in {life}"));
        }
        drop(keys);
        self.lives.advance();
        count
    }
}

async fn take(State(ledger): State<Arc<Ledger>>, headers: HeaderMap) -> Json<Value> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("none");
    let (key, life) = (header("idempotency-key"), header("x-life"));
    Json(json!({"key": key, "count": ledger.note(key, life)}))
}

//! A Qdrant server as its users run it: one collection, an index over its vectors and over what filters ask for, HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::engines::{FILTERS, RECALL, TOP, Work};
use crate::server::Server;
use crate::words::DIMENSIONS;
use crate::{memory_mb, print};

const POINTS: usize = 500;

/// How far it may look, at most; and from how little on. The first that finds enough is taken.
const REACHES: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];

pub struct Peer {
    server: Server,
    calls: Calls,
    work: Arc<Work>,
}

#[derive(Clone)]
struct Calls {
    client: Client,
    base: String,
}

impl Peer {
    pub async fn fill(passages: usize, work: Arc<Work>) -> Self {
        let server = Server::start().await;
        let base = server.url().join("collections/bench").unwrap().to_string();
        let calls = Calls { client: Client::new(), base };
        // It would scan what is smaller than 20 MB; with a graph it is faster.
        let collection = json!({"vectors": {"size": DIMENSIONS, "distance": "Cosine"},
                                "optimizers_config": {"indexing_threshold": 1000}});
        calls.send(Method::PUT, "", &collection).await;
        for every in FILTERS.iter().filter(|every| **every > 1) {
            let index = json!({"field_name": key(*every), "field_schema": "integer"});
            calls.send(Method::PUT, "/index?wait=true", &index).await;
        }
        let began = Instant::now();
        for (page, points) in work.points.chunks(POINTS).enumerate() {
            let list = points.iter().enumerate().map(|(at, point)| {
                let n = page * POINTS + at;
                let passes = FILTERS.iter().map(|every| (key(*every), json!(n % every)));
                json!({"id": point.passage, "vector": point.vector, "payload": passes.collect::<Value>()})
            });
            calls.send(Method::PUT, "/points?wait=true", &json!({"points": list.collect::<Vec<_>>()})).await;
        }
        calls.indexed(passages).await;
        print(&format!("{passages} vectors, Qdrant, indexed in"), began.elapsed().as_secs_f64(), "s");
        print(&format!("{passages} vectors, Qdrant, memory"), memory_mb(&server.process().to_string()), "MB");
        Self { server, calls, work }
    }

    /// Both that work on a search: the server, and its client here.
    pub fn processes(&self) -> Vec<String> {
        vec![self.server.process().to_string(), String::from("self")]
    }

    /// How far it must look to find enough.
    pub async fn reach(&self, filter: usize, name: &str) -> usize {
        for reach in REACHES {
            let mut found = Vec::new();
            for query in &self.work.queries {
                found.push(self.calls.search(&body(query, filter, reach)).await);
            }
            let recall = self.work.recall(filter, &found);
            if recall >= RECALL || reach == REACHES[REACHES.len() - 1] {
                print(&format!("{name}, Qdrant, recall@10"), recall, "");
                print(&format!("{name}, Qdrant, hnsw_ef"), reach as f64, "");
                return reach;
            }
        }
        REACHES[REACHES.len() - 1]
    }

    pub fn asking(&self, filter: usize, reach: usize) -> crate::Ask {
        let calls = self.calls.clone();
        let bodies: Vec<Value> = self.work.queries.iter().map(|query| body(query, filter, reach)).collect();
        let bodies = Arc::new(bodies);
        Arc::new(move |n| {
            let (calls, bodies) = (calls.clone(), bodies.clone());
            Box::pin(async move { drop(calls.search(&bodies[n % bodies.len()]).await) })
        })
    }
}

fn key(every: usize) -> String {
    format!("one_in_{every}")
}

fn body(query: &[f32], filter: usize, reach: usize) -> Value {
    let mut body = json!({"query": query, "limit": TOP, "params": {"hnsw_ef": reach}});
    let every = FILTERS[filter];
    if every > 1 {
        body["filter"] = json!({"must": [{"key": key(every), "match": {"value": 0}}]});
    }
    body
}

impl Calls {
    async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let call = self.client.request(method, format!("{}{path}", self.base));
        let answer =
            call.header("content-type", "application/json").body(body.to_string()).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn search(&self, body: &Value) -> Vec<i64> {
        let answer = self.send(Method::POST, "/points/query", body).await;
        let points = answer.pointer("/result/points").and_then(Value::as_array).unwrap();
        points.iter().map(|point| point["id"].as_i64().unwrap()).collect()
    }

    /// Waits until it has built its graph; before that it would be slow.
    async fn indexed(&self, passages: usize) {
        let began = Instant::now();
        loop {
            let about = self.send(Method::GET, "", &Value::Null).await;
            let done = about.pointer("/result/indexed_vectors_count").and_then(Value::as_u64).unwrap_or(0);
            let green = about.pointer("/result/status").and_then(Value::as_str) == Some("green");
            // A last small part may stay below what it makes a graph for.
            if green && done as usize * 10 >= passages * 9 {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(1_800), "the server does not come to an end");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

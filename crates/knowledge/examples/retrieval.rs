//! Puts a collection into a store in memory, asks its queries through the action, and writes a TREC run to score.
//!
//! `cargo run -p orchestr8-knowledge --example retrieval -- <folder with corpus.jsonl and queries.jsonl> <run file>`
#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that cannot go on should stop")]

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_kernel::{Args, Kernel, Principal, Submission};
use orchestr8_knowledge::{Hub, Settings, actions, tables};
use orchestr8_testing::{Parts, memory, settled};
use serde_json::{Value, json};
use uuid::Uuid;

async fn ask(kernel: &Kernel, name: &str, args: Value) -> Value {
    let Value::Object(map) = args else { panic!("arguments are an object") };
    let roles = orchestr8_contract::RoleSet::named(["owner"]);
    let principal = Principal::new("measure", Tenant::local(), roles);
    let correlation = CorrelationId::parse("measure").unwrap();
    settled::value(
        kernel.submit(Submission::new(name, Args::new(map), Arc::new(principal), correlation)).await,
    )
}

fn lines(path: String) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(run)) = (arguments.next(), arguments.next()) else {
        panic!("give the folder of a collection and the name of the run file")
    };
    let kernel = Parts::on(Arc::new(memory(&[tables::MIGRATIONS]))).kernel();
    let hub = Hub::new(kernel.clone(), Settings::default());
    for action in actions::all(&hub).unwrap() {
        kernel.registry().register(action).unwrap();
    }
    let mut names = HashMap::new();
    for (n, document) in lines(format!("{folder}/corpus.jsonl")).iter().enumerate() {
        let id = Uuid::from_u128(n as u128 + 1).to_string();
        let name = document["_id"].as_str().unwrap().to_owned();
        let title = document["title"].as_str().filter(|title| !title.trim().is_empty()).unwrap_or(&name);
        let title: String = title.chars().take(500).collect();
        let text = document["text"].as_str().unwrap();
        let args = json!({"document_id": id, "parent_id": "root", "metadata": {"title": title},
                          "content": {"mime_type": "text/plain", "body": text}});
        ask(&kernel, "knowledge.create_document", args).await;
        names.insert(id, name);
    }
    let mut out = fs::File::create(run).unwrap();
    for query in lines(format!("{folder}/queries.jsonl")) {
        let args = json!({"query": query["text"], "top_k": 20});
        let found = ask(&kernel, "knowledge.query_knowledge", args).await;
        for (rank, item) in found["context"].as_array().unwrap().iter().enumerate() {
            let name = &names[item["document_id"].as_str().unwrap()];
            let line =
                format!("{} Q0 {name} {} {} o8", query["_id"].as_str().unwrap(), rank + 1, item["score"]);
            writeln!(out, "{line}").unwrap();
        }
    }
}

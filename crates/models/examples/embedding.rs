//! Measures the embedder of this process: texts per second, memory, and the vectors themselves to compare with others.
//!
//! `cargo run --release -p orchestr8-models --example embedding -- <model.onnx> <texts.jsonl> [vectors.jsonl]`, where a line is
//! `{"text": …}`, with or without a title, as in the collections that retrieval is measured with.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement that cannot go on should stop, and it talks to a terminal"
)]

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use orchestr8_kernel::ports::clock::Real;
use orchestr8_models::embedders::{Embedder, MiniLm, Purpose};
use serde_json::{Value, json};

fn text(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap();
    let (title, text) =
        (value["title"].as_str().unwrap_or_default(), value["text"].as_str().unwrap_or_default());
    if text.starts_with(title) { text.to_owned() } else { format!("{title}\n{text}") }
}

fn memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

#[tokio::main]
async fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [model, texts, out @ ..] = given.as_slice() else { panic!("give the model and a file of texts") };
    let texts: Vec<String> = std::fs::read_to_string(texts).unwrap().lines().map(text).collect();
    let before_mb = memory_mb();
    let model = MiniLm::new(model, Arc::new(Real::new()));
    let began = Instant::now();
    model.embed(vec![String::from("first")], Purpose::Query).await.unwrap();
    println!("read in {} ms, {:.0} MB", began.elapsed().as_millis(), memory_mb() - before_mb);
    let mut times_us = Vec::new();
    for text in texts.iter().take(100) {
        let began = Instant::now();
        model.embed(vec![text.clone()], Purpose::Query).await.unwrap();
        times_us.push(began.elapsed().as_micros());
    }
    times_us.sort_unstable();
    println!("one at a time: median {} us", times_us[times_us.len() / 2]);
    let (began, count) = (Instant::now(), texts.len());
    let vectors = model.embed(texts, Purpose::Passage).await.unwrap();
    println!("together: {:.0} texts/s, {:.0} MB", count as f64 / began.elapsed().as_secs_f64(), memory_mb());
    if let [out] = out {
        let mut file = std::fs::File::create(out).unwrap();
        vectors.iter().for_each(|vector| writeln!(file, "{}", json!(vector)).unwrap());
    }
}

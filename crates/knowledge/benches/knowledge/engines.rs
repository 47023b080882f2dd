//! The index in this process and a Qdrant server, on the same vectors, through the same port.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use orchestr8_knowledge::retrieval::dense::{Dense, Near, Point};
use orchestr8_knowledge::tables;
use orchestr8_knowledge::vectors::qdrant::Settings;
use orchestr8_knowledge::vectors::{Embedded, Qdrant};
use orchestr8_testing::Parts;
use serde_json::Value;

use crate::server::Server;
use crate::words::{DIMENSIONS, Dice, Words};
use crate::{Extent, ask, cpu_ms, memory_mb, print};

const TENANT: &str = "bench";
const TOP: usize = 10;

/// Queries whose answers are compared with the exact ones.
const COMPARED: usize = 200;

/// Points of one document, and documents that are put in at once.
const EACH: usize = 10;
const AT_ONCE: usize = 100;

struct Work {
    points: Vec<Point>,
    queries: Vec<Vec<f32>>,
    exact: Vec<Vec<i64>>,
}

pub async fn measure(passages: usize, extent: Extent) {
    let work = work(passages);
    let before = memory_mb("self");
    let embedded = Embedded::new(DIMENSIONS, 4 << 30);
    fill(&format!("{passages} vectors, here"), &embedded, &work).await;
    print(&format!("{passages} vectors, here, memory"), memory_mb("self") - before, "MB");
    search(&format!("{passages} vectors, here"), &embedded, &work, extent, "self").await;
    if std::env::var_os("O8_QDRANT").is_none() {
        return;
    }
    let server = Server::start().await;
    let kernel = Parts::in_memory(&[tables::MIGRATIONS]).kernel();
    let settings = Settings { url: server.url(), key: None, collection: String::from("bench") };
    let qdrant = Qdrant::new(&kernel, &settings, &Words);
    fill(&format!("{passages} vectors, Qdrant"), &qdrant, &work).await;
    indexed(&server).await;
    let process = server.process().to_string();
    print(&format!("{passages} vectors, Qdrant, memory"), memory_mb(&process), "MB");
    search(&format!("{passages} vectors, Qdrant"), &qdrant, &work, extent, &process).await;
}

fn work(passages: usize) -> Work {
    let mut dice = Dice(88_172_645_463_325_252);
    let point = |n: usize| (i64::try_from(n + 1).unwrap(), format!("document-{}", n / EACH));
    let points: Vec<Point> = (0..passages)
        .map(|n| {
            let (passage, document) = point(n);
            Point { passage, document, vector: unit(dice.vector()) }
        })
        .collect();
    let queries: Vec<Vec<f32>> = (0..COMPARED).map(|_| unit(dice.vector())).collect();
    let exact = queries.iter().map(|query| nearest(&points, query)).collect();
    Work { points, queries, exact }
}

fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}

fn nearest(points: &[Point], query: &[f32]) -> Vec<i64> {
    let near = |point: &Point| point.vector.iter().zip(query).map(|(a, b)| a * b).sum::<f32>();
    let mut scored: Vec<(f32, i64)> = points.iter().map(|point| (near(point), point.passage)).collect();
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    scored.into_iter().take(TOP).map(|(_, number)| number).collect()
}

async fn fill(name: &str, dense: &dyn Dense, work: &Work) {
    let began = Instant::now();
    for some in work.points.chunks(EACH * AT_ONCE) {
        dense.upsert(TENANT, some.to_vec()).await.unwrap();
    }
    print(&format!("{name}, filled in"), began.elapsed().as_secs_f64(), "s");
}

/// Waits until the server has built its graph; before that it would be slow.
async fn indexed(server: &Server) {
    let began = Instant::now();
    let read = async |path: &str| -> Value {
        let text = reqwest::get(server.url().join(path).unwrap()).await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let list = read("collections").await;
    let names = list.pointer("/result/collections").and_then(Value::as_array).unwrap();
    let name = names.iter().filter_map(|one| one["name"].as_str()).find(|name| !name.ends_with("_positions"));
    let path = format!("collections/{}", name.unwrap());
    while read(&path).await.pointer("/result/status").and_then(Value::as_str) != Some("green") {
        assert!(began.elapsed() < Duration::from_secs(1_800), "the server does not come to an end");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    print("Qdrant, then indexed in", began.elapsed().as_secs_f64(), "s");
}

async fn search(name: &str, dense: &dyn Dense, work: &Work, extent: Extent, process: &str) {
    let near = |n: usize| Near {
        tenant: Arc::from(TENANT),
        vector: work.queries[n % work.queries.len()].clone(),
        within: None,
        limit: TOP,
    };
    let mut found = 0;
    for (n, exact) in work.exact.iter().enumerate() {
        let hits = dense.search(near(n)).await.unwrap();
        found += hits.iter().filter(|(number, _)| exact.contains(number)).count();
    }
    print(&format!("{name}, recall@10"), found as f64 / (work.exact.len() * TOP) as f64, "");
    let own = Path::new("/proc/self") != Path::new(&format!("/proc/{process}"));
    let before = (cpu_ms(process), cpu_ms("self"));
    let times = ask(extent.queries, async |n| drop(dense.search(near(n)).await.unwrap())).await;
    let mut spent = cpu_ms(process) - before.0;
    if own {
        spent += cpu_ms("self") - before.1;
    }
    times.show(&format!("{name}, search"));
    print(&format!("{name}, search, CPU"), spent / extent.queries as f64, "ms");
}

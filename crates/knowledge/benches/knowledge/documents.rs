//! Documents through the whole path: written durably by one and by many, indexed, and found by queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::future::join_all;
use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_kernel::{Args, Kernel, Principal, Submission};
use orchestr8_knowledge::vectors::{Embedded, Step};
use orchestr8_knowledge::{Hub, Meaning, Settings, actions, tables};
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_testing::{Parts, migrations, settled};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::words::{DIMENSIONS, Dice, Words};
use crate::{Extent, ask, memory_mb, print};

/// Passages of a document that is to be found, and words of each.
const EACH: usize = 10;
const WORDS: usize = 80;

/// Writers that fill a tree.
const WRITERS: usize = 64;

struct Bench {
    kernel: Kernel,
    hub: Hub,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// On a file, with every commit flushed.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("bench.sqlite3"));
        let store = sqlite::open(Options::new(place, migrations(&[tables::MIGRATIONS]))).unwrap();
        let kernel = Parts::on(Arc::new(store)).kernel();
        let dense = Arc::new(Embedded::new(DIMENSIONS, 4 << 30));
        let meaning = Meaning { embedder: Arc::new(Words), dense };
        let hub = Hub::with_meaning(kernel.clone(), Settings::default(), meaning);
        for action in actions::all(&hub).unwrap() {
            kernel.registry().register(action).unwrap();
        }
        Self { kernel, hub, _folder: folder }
    }

    async fn ask(&self, name: &str, args: Value) -> Value {
        let Value::Object(map) = args else { panic!("arguments are an object") };
        let roles = [String::from("owner")].into();
        let principal = Principal { name: "bench".into(), tenant: Tenant::local(), roles };
        let correlation = CorrelationId::parse("bench").unwrap();
        let wish = Submission::new(name, Args::new(map), Arc::new(principal), correlation);
        settled::value(self.kernel.submit(wish).await)
    }

    async fn put(&self, n: usize, body: String) {
        let id = Uuid::from_u128(n as u128 + 1);
        let args = json!({"document_id": id, "parent_id": "root", "metadata": {"title": format!("Document {n}")},
                          "content": {"mime_type": "text/markdown", "body": body}});
        self.ask("knowledge.create_document", args).await;
    }
}

/// Documents of one passage, each durable before its writer goes on.
pub async fn create(writers: usize, extent: Extent) {
    let bench = Bench::new();
    let (next, began) = (AtomicUsize::new(0), Instant::now());
    let write = async || {
        while began.elapsed() < extent.writing {
            let n = next.fetch_add(1, Ordering::Relaxed);
            bench.put(n, Dice(n as u64 + 7).words(WORDS)).await;
        }
    };
    join_all((0..writers).map(|_| write())).await;
    let rate = next.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    print(&format!("documents created, {writers} writers"), rate, "/s");
}

pub async fn query(passages: usize, extent: Extent) {
    let (bench, next) = (Bench::new(), AtomicUsize::new(0));
    let began = Instant::now();
    let write = async || loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= passages / EACH {
            break;
        }
        let mut dice = Dice(n as u64 + 7);
        let section = |at: usize| format!("# Part {at}\n{}\n\n", dice.words(WORDS));
        bench.put(n, (0..EACH).map(section).collect()).await;
    };
    join_all((0..WRITERS).map(|_| write())).await;
    print(&format!("{passages} passages, written in"), began.elapsed().as_secs_f64(), "s");
    let began = Instant::now();
    while bench.hub.follow_all().await.unwrap() == Step::More {}
    print(&format!("{passages} passages, indexed by meaning in"), began.elapsed().as_secs_f64(), "s");
    let times = ask(extent.queries, async |n| {
        let args = json!({"query": Dice(n as u64 * 31 + 5).words(6), "top_k": 5});
        drop(bench.ask("knowledge.query_knowledge", args).await);
    });
    times.await.show(&format!("{passages} passages, query"));
    print(&format!("{passages} passages, memory of the process"), memory_mb("self"), "MB");
}

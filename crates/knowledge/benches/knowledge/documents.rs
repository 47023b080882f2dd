//! Documents through the whole path: written durably by one and by many, indexed, and found by queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::future::{BoxFuture, try_join_all};
use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_kernel::{Args, Kernel, Principal, Submission};
use orchestr8_knowledge::vectors::{Embedded, Step};
use orchestr8_knowledge::{Hub, Meaning, Settings, actions, tables, words};
use orchestr8_stores::sqlite::{self, Options, Place};
use orchestr8_testing::{Parts, migrations, settled};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::words::{DIMENSIONS, Dice, Words};
use crate::{Extent, ask, cpu_ms, memory_mb, own, print};

/// Passages of a document that is to be found, and words of each.
const EACH: usize = 10;
const WORDS: usize = 80;

/// Writers that fill a tree: as many as the kernel runs at once, so that none waits in vain on a busy machine.
const WRITERS: usize = 8;

/// Of the searches that an index is asked for, one in so many is a whole query here.
const WHOLE: usize = 10;

struct Bench {
    kernel: Kernel,
    hub: Hub,
    /// Another over the same store, whose words are never in memory.
    stored: Kernel,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// On a file, with every commit flushed.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("bench.sqlite3"));
        let store = sqlite::open(Options::new(place, migrations(&[tables::MIGRATIONS]))).unwrap();
        let store = Arc::new(store);
        let dense = Arc::new(Embedded::new(DIMENSIONS, 4 << 30));
        let meaning = Meaning { embedder: Arc::new(Words), dense };
        let hub = |words: words::Settings| {
            let kernel = Parts::on(store.clone()).kernel();
            let settings = Settings { words, ..Settings::default() };
            let hub = Hub::with_meaning(kernel.clone(), settings, meaning.clone());
            for action in actions::all(&hub).unwrap() {
                kernel.registry().register(action).unwrap();
            }
            (kernel, hub)
        };
        let (stored, _) = hub(words::Settings { memory_bytes: 0, ..words::Settings::default() });
        let (kernel, hub) = hub(words::Settings::default());
        Self { kernel, hub, stored, _folder: folder }
    }

    async fn ask(&self, name: &str, args: Value) -> Value {
        ask_of(&self.kernel, name, args).await
    }

    /// Every second document is tagged.
    async fn put(&self, n: usize, body: String) {
        let id = Uuid::from_u128(n as u128 + 1);
        let tags: &[&str] = if n.is_multiple_of(2) { &["even"] } else { &[] };
        let args = json!({"document_id": id, "parent_id": "root",
                          "metadata": {"title": format!("Document {n}"), "tags": tags},
                          "content": {"mime_type": "text/markdown", "body": body}});
        self.ask("knowledge.create_document", args).await;
    }

    /// Writers put documents, one after another, while there are more.
    async fn fill(
        self: &Arc<Self>,
        writers: usize,
        more: impl Fn(usize) -> Option<String> + Clone + Send + 'static,
    ) {
        let next = Arc::new(AtomicUsize::new(0));
        let write = |_| {
            let (bench, next, more) = (self.clone(), next.clone(), more.clone());
            tokio::spawn(async move {
                while let (n, Some(body)) = {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    (n, more(n))
                } {
                    bench.put(n, body).await;
                }
            })
        };
        try_join_all((0..writers).map(write)).await.unwrap();
    }
}

async fn ask_of(kernel: &Kernel, name: &str, args: Value) -> Value {
    let Value::Object(map) = args else { panic!("arguments are an object") };
    let roles = orchestr8_contract::RoleSet::named(["owner"]);
    let principal = Principal::new("bench", Tenant::local(), roles);
    let correlation = CorrelationId::parse("bench").unwrap();
    let wish = Submission::new(name, Args::new(map), Arc::new(principal), correlation);
    settled::value(kernel.submit(wish).await)
}

/// Documents of one passage, each durable before its writer goes on.
pub async fn create(writers: usize, extent: Extent) {
    let (bench, began) = (Arc::new(Bench::new()), Instant::now());
    let written = Arc::new(AtomicUsize::new(0));
    let counted = written.clone();
    let more = move |n: usize| {
        let more = began.elapsed() < extent.writing;
        counted.fetch_add(usize::from(more), Ordering::Relaxed);
        more.then(|| Dice(n as u64 + 7).words(WORDS))
    };
    bench.fill(writers, more).await;
    let rate = written.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    print(&format!("documents created, {writers} writers"), rate, "/s");
}

pub async fn query(passages: usize, extent: Extent) {
    let (bench, began) = (Arc::new(Bench::new()), Instant::now());
    let more = move |n: usize| {
        let mut dice = Dice(n as u64 + 7);
        let section = |at: usize| format!("# Part {at}\n{}\n\n", dice.words(WORDS));
        (n < passages / EACH).then(|| (0..EACH).map(section).collect())
    };
    bench.fill(WRITERS, more).await;
    print(&format!("{passages} passages, written in"), began.elapsed().as_secs_f64(), "s");
    let began = Instant::now();
    while bench.hub.follow_all().await.unwrap() == Step::More {}
    print(&format!("{passages} passages, indexed by meaning in"), began.elapsed().as_secs_f64(), "s");
    let (began, spent_ms, before) = (Instant::now(), cpu_ms("self"), memory_mb("self"));
    assert!(bench.hub.take_up_words(Tenant::local().as_str()).await.unwrap(), "they fit");
    print(&format!("{passages} passages, words in memory in"), began.elapsed().as_secs_f64(), "s");
    print(&format!("{passages} passages, words in memory, CPU"), (cpu_ms("self") - spent_ms) / 1e3, "s");
    print(&format!("{passages} passages, words in memory take"), bench.hub.words_bytes() as f64 / 1e6, "MB");
    print(&format!("{passages} passages, words in memory grew it by"), memory_mb("self") - before, "MB");
    let (words, meaning, even) =
        (json!({"retrieval": "lexical"}), json!({"retrieval": "dense"}), json!({"tags": ["even"]}));
    let both = json!({});
    for (name, kernel, routing, filters) in [
        ("query", &bench.kernel, &both, &both),
        ("query by words alone", &bench.kernel, &words, &both),
        ("query by meaning alone", &bench.kernel, &meaning, &both),
        ("query, one in 2 passes", &bench.kernel, &both, &even),
        ("query by words alone, one in 2 passes", &bench.kernel, &words, &even),
        ("query, words in the store", &bench.stored, &both, &both),
        ("query by words alone, words in the store", &bench.stored, &words, &both),
        ("query, one in 2 passes, words in the store", &bench.stored, &both, &even),
    ] {
        let (kernel, routing, filters) = (kernel.clone(), routing.clone(), filters.clone());
        let one = move |n: usize| {
            let kernel = kernel.clone();
            let query = Dice(n as u64 * 31 + 5).words(6);
            let args = json!({"query": query, "top_k": 5, "routing": routing, "filters": filters});
            let asked: BoxFuture<'static, ()> =
                Box::pin(async move { drop(ask_of(&kernel, "knowledge.query_knowledge", args).await) });
            asked
        };
        ask(extent.queries / WHOLE, &own(), Arc::new(one))
            .await
            .show(&format!("{passages} passages, {name}"));
    }
    print(&format!("{passages} passages, memory of the process"), memory_mb("self"), "MB");
}

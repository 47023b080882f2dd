//! Words in memory: they find what the store would, follow what is written, and are bounded.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::clock::Simulated;
use orchestr8_kernel::{Cancel, Why};
use orchestr8_knowledge::retrieval::lexical::{self, Found};
use orchestr8_knowledge::retrieval::{Filter, Mend};
use orchestr8_knowledge::{Hub, Settings, limits, tables, words};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, until, within};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, id};

const DOCUMENTS: usize = 8;
const TENANTS: [&str; 2] = ["acme", "globex"];
const TAGS: [&str; 3] = ["bird", "fish", "cá"];

/// Words that are alike: with marks and without, of one stem, spelled out as several, without spaces.
const POOL: [&str; 24] = [
    "falcon",
    "falcons",
    "run",
    "running",
    "ma",
    "má",
    "mã",
    "mạ",
    "đường",
    "duong",
    "Đuờng",
    "nguồn",
    "nguon",
    "mở",
    "mo",
    "東京都",
    "京",
    "⑴",
    "1",
    "ﷺ",
    "صلى",
    "½",
    "w7",
    "straße",
];

#[derive(Debug, Clone)]
enum Op {
    Put {
        n: usize,
        parent: usize,
        title: Vec<usize>,
        body: Vec<usize>,
        long: usize,
        tag: Option<usize>,
    },
    Update {
        n: usize,
        body: Vec<usize>,
        long: usize,
    },
    Retitle {
        n: usize,
        title: Vec<usize>,
        tag: Option<usize>,
    },
    Move {
        n: usize,
        parent: usize,
    },
    Delete(usize),
    Restore(usize),
    /// Long after everything that was deleted so far.
    Purge,
    /// All passages get other numbers.
    Reindex,
    Query {
        words: Vec<usize>,
        filter: Narrowed,
        limit: usize,
    },
}

#[derive(Debug, Clone)]
enum Narrowed {
    No,
    Tag(usize),
    Below(usize),
    Even,
}

fn some(count: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..POOL.len(), count)
}

fn ops() -> impl Strategy<Value = Vec<(usize, Op)>> {
    let (n, tag) = (1..=DOCUMENTS, proptest::option::of(0..TAGS.len()));
    let long = prop_oneof![3 => Just(1usize), 1 => 20..60usize];
    let filter = prop_oneof![
        3 => Just(Narrowed::No),
        1 => (0..TAGS.len()).prop_map(Narrowed::Tag),
        1 => n.clone().prop_map(Narrowed::Below),
        1 => Just(Narrowed::Even),
    ];
    let op = prop_oneof![
        6 => (n.clone(), 0..=DOCUMENTS, some(1..4), some(0..30), long.clone(), tag.clone())
            .prop_map(|(n, parent, title, body, long, tag)| Op::Put { n, parent, title, body, long, tag }),
        3 => (n.clone(), some(0..30), long).prop_map(|(n, body, long)| Op::Update { n, body, long }),
        1 => (n.clone(), some(1..4), tag).prop_map(|(n, title, tag)| Op::Retitle { n, title, tag }),
        1 => (n.clone(), 0..=DOCUMENTS).prop_map(|(n, parent)| Op::Move { n, parent }),
        2 => n.clone().prop_map(Op::Delete),
        1 => n.prop_map(Op::Restore),
        1 => Just(Op::Purge),
        1 => Just(Op::Reindex),
        8 => (some(1..6), filter, 1..12usize).prop_map(|(words, filter, limit)| Op::Query { words, filter, limit }),
    ];
    proptest::collection::vec((0..TENANTS.len(), op), 1..50)
}

fn text(words: &[usize]) -> String {
    words.iter().map(|word| POOL[*word]).collect::<Vec<_>>().join(" ")
}

/// Several passages if it is long, some below headings.
fn body(words: &[usize], long: usize) -> String {
    let sentence = format!("{}. ", text(words));
    (0..long)
        .map(|at| if at % 15 == 7 { format!("\n\n# {sentence}\n\n") } else { sentence.clone() })
        .collect()
}

fn metadata(n: usize, title: &[usize], tag: Option<usize>) -> Value {
    json!({"title": text(title), "tags": tag.map(|tag| TAGS[tag]).into_iter().collect::<Vec<_>>(), "even": n.is_multiple_of(2)})
}

fn parent(n: usize) -> String {
    if n == 0 { "root".into() } else { id(n) }
}

/// One store, asked from memory and without it.
struct Both {
    memory: World,
    store: Hub,
    clock: Arc<Simulated>,
}

impl Both {
    fn new() -> Self {
        let (store, clock) = (memory(&[tables::MIGRATIONS]), Arc::new(Simulated::default()));
        let parts = || Parts { clock: clock.clone(), ..Parts::on(Arc::new(store.clone())) };
        let none = words::Settings { memory_bytes: 0, ..words::Settings::default() };
        let without = Hub::new(parts().kernel(), Settings { words: none, ..Settings::default() });
        Self { memory: World::from_parts(parts(), store.clone(), always()), store: without, clock }
    }

    async fn act(&self, tenant: &str, op: Op) {
        let call = |name: &'static str, args: Value| async move {
            // What the tree does not allow is refused, which is as good as nothing.
            self.memory.settle_as(tenant, "owner", &format!("knowledge.{name}"), args).await;
        };
        match op {
            Op::Put { n, parent: above, title, body: words, long, tag } => {
                let args = json!({"document_id": id(n), "parent_id": parent(above), "metadata": metadata(n, &title, tag),
                                  "content": {"mime_type": "text/markdown", "body": body(&words, long)}});
                call("create_document", args).await;
            }
            Op::Update { n, body: words, long } => {
                let patch = json!({"content": {"body": body(&words, long)}});
                call(
                    "update_document",
                    json!({"document_id": id(n), "update_mask": ["content.body"], "patch": patch}),
                )
                .await;
            }
            Op::Retitle { n, title, tag } => {
                let patch = json!({"metadata": metadata(n, &title, tag)});
                call(
                    "update_document",
                    json!({"document_id": id(n), "update_mask": ["metadata"], "patch": patch}),
                )
                .await;
            }
            Op::Move { n, parent: above } => {
                call("move_document", json!({"document_id": id(n), "new_parent_id": parent(above)})).await;
            }
            Op::Delete(n) => call("delete_document", json!({"document_id": id(n)})).await,
            Op::Restore(n) => call("restore_document", json!({"document_id": id(n)})).await,
            Op::Purge => {
                self.clock.advance(Duration::from_millis(limits::PURGE_MS.unsigned_abs() + 1));
                self.memory.hub.keep().await.unwrap();
            }
            Op::Reindex => drop(self.memory.hub.check_index(Mend::All).await.unwrap()),
            Op::Query { words, filter, limit } => self.compare(tenant, &text(&words), &filter, limit).await,
        }
    }

    async fn compare(&self, tenant: &str, query: &str, narrowed: &Narrowed, limit: usize) {
        let mut filter = Filter::default();
        match narrowed {
            Narrowed::No => {}
            Narrowed::Tag(tag) => filter.tags = vec![TAGS[*tag].to_owned()],
            Narrowed::Below(n) => filter.below = Some(id(*n)),
            Narrowed::Even => drop(filter.metadata.insert("even".into(), json!(true))),
        }
        let taken_up = self.memory.hub.take_up_words(tenant).await.unwrap();
        let ask = async |hub: &Hub| lexical::search(hub, tenant, query, &filter, limit).await.unwrap();
        let (here, there) = (ask(&self.memory.hub).await, ask(&self.store).await);
        assert_eq!((here.in_memory, there.in_memory), (taken_up, false));
        assert_same(&here, &there);
    }
}

/// Every tenant in memory, however small.
fn always() -> Settings {
    let words = words::Settings { from_passages: 0, ..words::Settings::default() };
    Settings { words, ..Settings::default() }
}

/// The same documents with the same passages, in the same order. Scores may differ in their last digits, which the store reads
/// from text.
fn assert_same(one: &Found, other: &Found) {
    assert_eq!(one.wanted, other.wanted);
    let passages = |found: &Found| -> Vec<(String, i64)> {
        found.hits.iter().map(|hit| (hit.document.clone(), hit.passage)).collect()
    };
    assert_eq!(passages(one), passages(other), "{one:#?}\n{other:#?}");
    for (one, other) in one.hits.iter().zip(&other.hits) {
        assert!((one.score - other.score).abs() <= 1e-12 * other.score, "{one:?} {other:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn memory_finds_what_the_store_finds_whatever_happens_to_documents(ops in ops()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let both = Both::new();
            for (tenant, op) in ops {
                both.act(TENANTS[tenant], op).await;
            }
            for tenant in TENANTS {
                for word in POOL {
                    both.compare(tenant, word, &Narrowed::No, 20).await;
                }
                both.compare(tenant, &POOL.join(" "), &Narrowed::Even, 20).await;
            }
        });
    }
}

async fn searched(hub: &Hub, query: &str) -> Found {
    lexical::search(hub, "acme", query, &Filter::default(), 10).await.unwrap()
}

fn served(store: &Sqlite, settings: Settings) -> (World, Cancel, tokio::task::JoinHandle<()>) {
    let world = World::with(store.clone(), settings);
    let (cancel, hub) = (Cancel::new(), world.hub.clone());
    let stop = cancel.clone();
    (world, cancel, tokio::spawn(async move { hub.run(stop).await }))
}

#[tokio::test]
async fn the_first_query_is_answered_by_the_store_and_others_from_memory_with_every_write() {
    let store = memory(&[tables::MIGRATIONS]);
    let (world, cancel, running) = served(&store, always());
    for n in 1..=100 {
        world.put(n, "root", &format!("T{n}"), "a falcon").await;
    }
    assert_eq!(world.hub.words_bytes(), 0, "nothing before somebody asks");
    // More is to be taken up than a query waits for.
    let first = searched(&world.hub, "falcon").await;
    assert_eq!((first.hits.len(), first.in_memory), (10, false));
    until("the words to be in memory", || world.hub.words_bytes() > 0).await;
    let mut from_memory = 0;
    for n in 101..=150 {
        world.put(n, "root", &format!("T{n}"), &format!("zebra{n}")).await;
        let found = searched(&world.hub, &format!("zebra{n}")).await;
        assert_eq!(found.hits.len(), 1, "a writer's next query finds it, wherever it is asked");
        from_memory += usize::from(found.in_memory);
        world.ask("delete_document", json!({"document_id": id(n)})).await;
        assert!(searched(&world.hub, &format!("zebra{n}")).await.hits.is_empty());
    }
    assert!(from_memory > 0);
    cancel.fire(Why::Client);
    within(running).await.unwrap();
}

#[tokio::test]
async fn what_is_small_or_too_large_or_not_wanted_is_left_to_the_store() {
    let store = memory(&[tables::MIGRATIONS]);
    let settings = |words: words::Settings| Settings { words, ..Settings::default() };
    let (small, tight, off) = (
        words::Settings { from_passages: 31, ..words::Settings::default() },
        // An estimate says that thirty passages fit, and then they do not.
        words::Settings { from_passages: 0, memory_bytes: 3_000 },
        words::Settings { from_passages: 0, memory_bytes: 0 },
    );
    let (world, cancel, running) = served(&store, settings(small));
    for n in 1..=30 {
        world.put(n, "root", &format!("T{n}"), "a falcon").await;
    }
    for (settings, from) in
        [(settings(small), false), (settings(tight), false), (settings(off), false), (always(), true)]
    {
        let hub = World::with(store.clone(), settings).hub;
        assert_eq!(hub.take_up_words("acme").await.unwrap(), from);
        let found = searched(&hub, "falcon").await;
        assert_eq!((found.in_memory, found.hits.len()), (from, 10));
        assert_eq!(hub.words_bytes() > 0, from);
    }
    // A command that asks once has nobody who follows, and does not read everything for it.
    let alone = World::with(store, always()).hub;
    assert!(!searched(&alone, "falcon").await.in_memory && alone.words_bytes() == 0);
    assert!(!searched(&world.hub, "falcon").await.in_memory);
    world.put(31, "root", "T31", "a falcon").await;
    let taken_up = async {
        while !searched(&world.hub, "falcon").await.in_memory {
            tokio::task::yield_now().await;
        }
    };
    within(taken_up).await;
    cancel.fire(Why::Client);
    within(running).await.unwrap();
}

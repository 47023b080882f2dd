//! Processes that die at any commit: whatever was written is learned in the end, and the index is what the documents say,
//! whether it died with the process or outlived it.

use std::sync::Arc;

use orchestr8_contract::id::{CorrelationId, Tenant};
use orchestr8_kernel::ports::random::{Random, Seeded};
use orchestr8_kernel::{Args, Kernel, Principal, Submission};
use orchestr8_knowledge::retrieval::Mend;
use orchestr8_knowledge::vectors::Embedded;
use orchestr8_knowledge::{Hub, Meaning, Settings, actions, tables};
use orchestr8_stores::sqlite::simulated::{Rates, Simulated};
use orchestr8_testing::{Parts, migrations};
use serde_json::{Value, json};

use crate::letters::{DIMENSIONS, Letters};
use crate::world::{document, id};

/// Lives that one run tries; `O8_SEEDS` tries more.
const SEEDS: u64 = 150;

fn hub(store: &Simulated, letters: &Letters, dense: &Arc<Embedded>) -> Hub {
    let kernel = Parts::on(Arc::new(store.clone())).kernel();
    let meaning = Meaning { embedder: Arc::new(letters.clone()), dense: dense.clone() };
    let hub = Hub::with_meaning(kernel, Settings::default(), meaning);
    for action in actions::all(&hub).unwrap() {
        hub.kernel().registry().register(action).unwrap();
    }
    hub
}

async fn submit(kernel: &Kernel, name: &str, args: Value) {
    let Value::Object(map) = args else { panic!("arguments are an object") };
    let roles = orchestr8_contract::RoleSet::named(["owner"]);
    let principal = Principal::new("tester", Tenant::parse("acme").unwrap(), roles);
    let correlation = CorrelationId::parse("test").unwrap();
    let name = format!("knowledge.{name}");
    // Most of them fail: the document is there already, or not there.
    drop(kernel.submit(Submission::new(name, Args::new(map), Arc::new(principal), correlation)).await);
}

/// A while in the life of a process.
async fn live(hub: &Hub, dice: &Seeded) {
    let below = |limit: usize| (dice.unit() * limit as f64) as usize;
    for _ in 0..12 {
        let n = 1 + below(6);
        match below(5) {
            0 | 1 => {
                let text = format!("word{} word{}", below(9), below(9));
                submit(hub.kernel(), "create_document", document(n, "root", &format!("T{n}"), &text)).await;
            }
            2 => {
                let text = format!("word{}", below(9));
                let args = json!({"document_id": id(n), "update_mask": ["content.body"], "patch": {"content": {"body": text}}});
                submit(hub.kernel(), "update_document", args).await;
            }
            3 => submit(hub.kernel(), "delete_document", json!({"document_id": id(n)})).await,
            _ => submit(hub.kernel(), "restore_document", json!({"document_id": id(n)})).await,
        }
        if below(2) == 0 {
            // A disk that is full for a moment is one of the things that may happen.
            let _ = hub.follow_all().await;
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "tests are told by the environment how long to go on")]
fn whenever_a_process_dies_the_index_is_right_in_the_end() {
    let blank = Simulated::faultless(&migrations(&[tables::MIGRATIONS])).unwrap();
    let seeds = std::env::var("O8_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let rates = Rates { full: 0.02, crash_before: 0.03, crash_after: 0.03 };
            let (mut store, dice) = (blank.copy(seed, rates).unwrap(), Seeded::new(seed));
            let (letters, mut dense) = (Letters::new("a"), Arc::new(Embedded::new(DIMENSIONS, 1 << 20)));
            for _ in 0..6 {
                let hub = hub(&store, &letters, &dense);
                tokio::select! {
                    () = live(&hub, &dice) => {}
                    () = store.crashed() => {
                        store = store.restart();
                        // Half of the indexes are servers, which stay; the others go with the process.
                        if dice.unit() < 0.5 {
                            dense = Arc::new(Embedded::new(DIMENSIONS, 1 << 20));
                        }
                    }
                }
            }
            store.set_rates(Rates::default());
            let store = store.restart();
            let hub = hub(&store, &letters, &dense);
            while hub.follow_all().await.unwrap() != orchestr8_knowledge::vectors::Step::Done {}
            let found = hub.check_vectors("acme", Mend::No).await.unwrap().unwrap();
            assert_eq!((found.wrong, found.astray, found.behind), (0, 0, 0), "seed {seed}: {found:?}");
            assert_eq!(found.passages, found.indexed, "seed {seed}");
        });
    }
}

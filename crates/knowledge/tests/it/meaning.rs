//! The index over vectors follows the documents: whatever happens to these, to the model, or to the process.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::Cancel;
use orchestr8_kernel::cancel::Why;
use orchestr8_knowledge::retrieval::dense::Dense;
use orchestr8_knowledge::retrieval::{Filter, Mend};
use orchestr8_knowledge::vectors::{Embedded, Vectors, search};
use orchestr8_knowledge::{Meaning, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Parts, memory, until, within};
use serde_json::{Value, json};

use crate::letters::{DIMENSIONS, Letters, POISON};
use crate::world::{World, document, id};

/// Long enough for a model that answers at once.
const WAIT: Duration = Duration::from_secs(30);

fn embedded() -> Arc<Embedded> {
    Arc::new(Embedded::new(DIMENSIONS, 64 << 20))
}

fn world(store: &Sqlite, letters: &Letters, dense: Arc<dyn Dense>) -> World {
    let meaning = Meaning { embedder: Arc::new(letters.clone()), dense };
    World::meaning(Parts::on(Arc::new(store.clone())), store.clone(), meaning)
}

fn fresh() -> (World, Letters, Arc<Embedded>) {
    let (letters, dense) = (Letters::new("a"), embedded());
    (world(&memory(&[tables::MIGRATIONS]), &letters, dense.clone()), letters, dense)
}

async fn found(world: &World, query: &str, filter: &Filter, wait: Duration) -> search::Found {
    let meaning = world.hub.meaning().unwrap();
    search::search(&world.hub, meaning, "acme", query, filter, (5, wait)).await.unwrap()
}

/// The numbers of the documents found, nearest first.
async fn near(world: &World, query: &str) -> Vec<String> {
    let found = found(world, query, &Filter::default(), WAIT).await;
    assert!(!found.around.behind);
    found.hits.into_iter().map(|hit| hit.document).collect()
}

async fn checked(world: &World) -> Vectors {
    world.hub.check_vectors("acme", Mend::No).await.unwrap().unwrap()
}

async fn assert_right(world: &World) {
    near(world, "anything").await;
    let found = checked(world).await;
    assert_eq!((found.wrong, found.astray, found.behind), (0, 0, 0), "{found:?}");
    assert_eq!(found.passages, found.indexed);
}

#[tokio::test]
async fn a_writer_finds_by_meaning_what_it_has_written_with_the_next_query() {
    let (world, _, _) = fresh();
    for n in 1..=20 {
        world.put(n, "root", &format!("T{n}"), &format!("zebra{n} stands here")).await;
        assert_eq!(near(&world, &format!("zebra{n} stands")).await[0], id(n));
    }
    let update = json!({"document_id": id(3), "update_mask": ["content.body"], "patch": {"content": {"body": "giraffe"}}});
    world.ask("update_document", update).await;
    assert_eq!(near(&world, "giraffe").await[0], id(3));
    world.ask("delete_document", json!({"document_id": id(3)})).await;
    assert!(!near(&world, "giraffe").await.contains(&id(3)));
    world.ask("restore_document", json!({"document_id": id(3)})).await;
    assert_eq!(near(&world, "giraffe").await[0], id(3));
    assert_right(&world).await;
}

#[tokio::test]
async fn whoever_follows_takes_up_what_is_written_and_stops_when_told() {
    let (world, letters, dense) = fresh();
    let (cancel, hub) = (Cancel::new(), world.hub.clone());
    let stop = cancel.clone();
    let running = tokio::spawn(async move { hub.run(stop).await });
    for n in 1..=30 {
        world.put(n, "root", &format!("T{n}"), "one and the same text").await;
    }
    let all = found(&world, "same text", &Filter::default(), WAIT).await;
    assert_eq!((all.hits.len(), all.around.behind, dense.len()), (5, false, 30));
    // A model that fails keeps nobody from writing; the answer says what it lacks; and all is made up for later.
    letters.fail(true);
    world.put(31, "root", "Late", "a giraffe").await;
    let meaning = world.hub.meaning().unwrap();
    let args = (5, Duration::from_millis(50));
    assert!(search::search(&world.hub, meaning, "acme", "giraffe", &Filter::default(), args).await.is_err());
    letters.fail(false);
    until("the model to be asked again", || dense.len() == 31).await;
    assert_eq!(near(&world, "giraffe").await[0], id(31));
    cancel.fire(Why::Client);
    within(running).await.unwrap();
}

/// KNO, Engines: without an embedder the answer goes by words, and says so; one that is fetched meanwhile is taken up.
#[tokio::test]
async fn a_model_that_comes_later_learns_what_was_written_before() {
    let (world, letters, dense) = fresh();
    letters.miss(true);
    let (cancel, hub) = (Cancel::new(), world.hub.clone());
    let stop = cancel.clone();
    let running = tokio::spawn(async move { hub.follow(stop).await });
    for n in 1..=3 {
        world.put(n, "root", &format!("T{n}"), "a zebra stands here").await;
    }
    let ask = async || world.ask("query_knowledge", json!({"query": "zebra"})).await;
    let before = ask().await;
    assert_eq!((&before["retrieval"], before.get("degraded")), (&json!("lexical only"), None));
    assert_eq!((letters.passages(), dense.len()), (0, 0));
    letters.miss(false);
    until("what was written before to be learned", || dense.len() == 3).await;
    assert_eq!(ask().await["retrieval"], "hybrid");
    cancel.fire(Why::Client);
    within(running).await.unwrap();
}

#[tokio::test]
async fn whoever_waits_for_a_model_stops_when_told() {
    let (world, letters, _) = fresh();
    letters.miss(true);
    let (cancel, hub) = (Cancel::new(), world.hub.clone());
    cancel.fire(Why::Client);
    within(hub.follow(cancel)).await;
    assert_eq!(world.hub.check_vectors("acme", Mend::No).await.unwrap(), None);
}

#[tokio::test]
async fn an_index_that_is_late_is_said_to_be() {
    let (world, letters, _) = fresh();
    let _following = tokio::spawn({
        let hub = world.hub.clone();
        async move { hub.follow(Cancel::new()).await }
    });
    world.put(1, "root", "One", "zebra").await;
    assert_eq!(near(&world, "zebra").await, [id(1)]);
    letters.fail_passages(true);
    world.put(2, "root", "Two", "zebra").await;
    let late = found(&world, "zebra", &Filter::default(), Duration::from_millis(20)).await;
    assert!(late.around.behind && late.hits.len() == 1);
    letters.fail_passages(false);
    assert_eq!(near(&world, "zebra").await.len(), 2, "and it catches up");
}

#[tokio::test]
async fn filters_never_cost_a_hit_by_meaning() {
    let (world, _, _) = fresh();
    world.put(1000, "root", "Shelf", "").await;
    for n in 1..=300 {
        world.put(n, "root", &format!("Better {n}"), "falcon").await;
    }
    let mut rare = document(500, &id(1000), "Rare", "many other things and one falcon among them");
    rare["metadata"]["tags"] = json!(["bird"]);
    rare["metadata"]["year"] = json!(2024);
    world.ask("create_document", rare).await;
    let by = |tags: &[&str], below: Option<String>, metadata: Value| Filter {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        below,
        metadata: metadata.as_object().unwrap().clone(),
    };
    for filter in [by(&["bird", "fish"], None, json!({})), by(&[], None, json!({"year": 2024}))] {
        let hits = found(&world, "falcon", &filter, WAIT).await.hits;
        assert_eq!(hits.iter().map(|hit| hit.document.clone()).collect::<Vec<_>>(), [id(500)], "{filter:?}");
    }
    let below = found(&world, "falcon", &by(&[], Some(id(1000)), json!({})), WAIT).await.hits;
    assert_eq!(below.len(), 2);
    assert!(found(&world, "falcon", &by(&["fish"], None, json!({})), WAIT).await.hits.is_empty());
    // Those that are nearer and gone leave room for those that stay, even before the index knows of it.
    world.ask("delete_document", json!({"document_id": id(1000)})).await;
    for n in 6..=300 {
        world.ask("delete_document", json!({"document_id": id(n)})).await;
    }
    assert_eq!(found(&world, "falcon", &Filter::default(), Duration::ZERO).await.hits.len(), 5);
    assert_right(&world).await;
}

#[tokio::test]
async fn another_tenant_is_never_near() {
    let (world, _, _) = fresh();
    world.put(1, "root", "Mine", "zebra").await;
    let theirs = document(1, "root", "Theirs", "zebra zebra zebra");
    world.settle_as("globex", "owner", "knowledge.create_document", theirs).await;
    let hits = found(&world, "zebra", &Filter::default(), WAIT).await.hits;
    assert_eq!(hits.len(), 1);
    let meaning = world.hub.meaning().unwrap();
    let none = search::search(&world.hub, meaning, "nobody", "zebra", &Filter::default(), (5, WAIT)).await;
    assert!(none.unwrap().hits.is_empty());
}

#[tokio::test]
async fn a_text_that_was_there_before_is_not_learned_again() {
    let (world, letters, _) = fresh();
    let section =
        |n: usize, word: &str| format!("# Part {n}\n{}\n\n", format!("{word} and more. ").repeat(30));
    let body: String = (1..=10).map(|n| section(n, "zebra")).collect();
    world.put(1, "root", "Long", &body).await;
    near(&world, "zebra").await;
    let before = letters.passages();
    assert_eq!(before, 10);
    let edit =
        json!({"document_id": id(1), "old_str": section(5, "zebra"), "new_str": section(5, "giraffe")});
    world.ask("edit", edit).await;
    near(&world, "giraffe").await;
    assert_eq!(letters.passages(), before + 1);
    let moved = json!({"document_id": id(1), "update_mask": ["metadata.source"], "patch": {"metadata": {"source": "x"}}});
    world.ask("update_document", moved).await;
    world.hub.check_tenant("acme", Mend::All).await.unwrap();
    assert_right(&world).await;
    assert_eq!(letters.passages(), before + 1, "writing the index anew costs no model");
}

#[tokio::test]
async fn another_model_learns_everything_anew_and_the_store_remembers_whose_vectors_they_are() {
    let (letters, store) = (Letters::new("a"), memory(&[tables::MIGRATIONS]));
    let first = world(&store, &letters, embedded());
    for n in 1..=40 {
        first.put(n, "root", &format!("T{n}"), &format!("zebra{n}")).await;
    }
    assert_right(&first).await;
    // The same model again reads its vectors from the store.
    let again = world(&store, &letters, embedded());
    assert_right(&again).await;
    assert_eq!(letters.passages(), 40);
    let other = Letters::new("b");
    let second = world(&store, &other, embedded());
    other.fail(true);
    assert_eq!(second.find(json!({"query": "zebra7"})).await, ["T7"], "queries go on");
    other.fail(false);
    assert_eq!(near(&second, "zebra7").await[0], id(7));
    assert_right(&second).await;
    assert_eq!(other.passages(), 40);
    let rows = second.rows("SELECT DISTINCT model FROM knowledge_vector").await;
    assert_eq!((rows.len(), rows[0].text(0).unwrap()), (1, "b"));
}

#[tokio::test]
async fn a_text_that_the_model_refuses_keeps_no_other() {
    let (world, _, _) = fresh();
    for n in 1..=5 {
        world.put(n, "root", "T", if n == 3 { POISON } else { "zebra" }).await;
    }
    assert_eq!(near(&world, "zebra").await.len(), 4);
    assert_eq!(world.find(json!({"query": POISON})).await.len(), 1, "words still find it");
}

#[tokio::test]
async fn damaged_vectors_are_noticed_and_mended() {
    let (world, _, dense) = fresh();
    for n in 1..=30 {
        world.put(n, "root", &format!("T{n}"), &format!("zebra{n}")).await;
    }
    assert_right(&world).await;
    let harms = [
        "DELETE FROM knowledge_vector WHERE document = '00000000-0000-4000-8000-000000000002'",
        "UPDATE knowledge_vector SET print = x'00' WHERE document = '00000000-0000-4000-8000-000000000005'",
        "UPDATE knowledge_vector SET document = 'nobody' WHERE document = '00000000-0000-4000-8000-000000000007'",
    ];
    for harm in harms {
        let mut batch = orchestr8_kernel::ports::store::Batch::new();
        batch.then_one(orchestr8_kernel::ports::store::Statement::new(harm, vec![]));
        orchestr8_kernel::ports::store::Store::commit(&world.store, batch).await.unwrap();
    }
    dense.remove("acme", vec![id(9)]).await.unwrap();
    let damaged = checked(&world).await;
    assert_eq!((damaged.wrong, damaged.astray, damaged.indexed), (4, 1, 29), "{damaged:?}");
    let told = world.ask("verify", json!({})).await;
    assert_eq!(
        (&told["ok"], &told["wrong"], &told["mended"]),
        (&json!(false), &json!(5), &json!(0)),
        "{told}"
    );
    let mended = world.ask("verify", json!({"repair": true})).await;
    assert_eq!((&mended["ok"], &mended["mended"]), (&json!(true), &json!(5)), "{mended}");
    assert_right(&world).await;
    world.ask("reindex", json!({})).await;
    assert_right(&world).await;
    assert_eq!(world.ask("verify", json!({})).await["wrong"], json!(0));
    let refused = world.settle_as("acme", "editor", "knowledge.verify", json!({})).await;
    assert!(refused.code().is_some(), "only owners may");
}

#[tokio::test]
async fn memory_for_vectors_has_an_end_that_is_told() {
    let letters = Letters::new("a");
    let store = memory(&[tables::MIGRATIONS]);
    let small = Arc::new(Embedded::new(DIMENSIONS, 3_000));
    let world = world(&store, &letters, small.clone());
    for n in 1..=30 {
        world.put(n, "root", &format!("T{n}"), "zebra").await;
    }
    let fault = world.hub.follow_all().await.unwrap_err();
    assert_eq!(fault.code, orchestr8_contract::Code::ResourceExhausted);
    assert!(small.len() <= 30 && world.find(json!({"query": "zebra"})).await.len() == 5);
}

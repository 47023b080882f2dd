//! What goes on beside the calls: deletions in time, purges, and an index that heals.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::Code;
use orchestr8_kernel::ports::clock::{Simulated, iso};
use orchestr8_kernel::ports::store::{Batch, Statement, Store};
use orchestr8_kernel::{Cancel, Why};
use orchestr8_knowledge::retrieval::Mend;
use orchestr8_knowledge::{Kept, Settings, limits, tables};
use orchestr8_testing::{Parts, memory};
use serde_json::json;

use crate::world::{World, id};

/// A world whose clock moves only when told to.
fn timed() -> (World, Arc<Simulated>) {
    let (store, clock) = (memory(&[tables::MIGRATIONS]), Arc::new(Simulated::default()));
    let parts = Parts { clock: clock.clone(), ..Parts::on(Arc::new(store.clone())) };
    (World::from_parts(parts, store, Settings::default()), clock)
}

#[tokio::test]
async fn a_deletion_can_wait_for_its_time_and_is_purged_ninety_days_later() {
    let (world, clock) = timed();
    world.put(1, "root", "One", "alpha").await;
    world.put(2, &id(1), "Two", "beta").await;
    world.put(3, "root", "Three", "gamma").await;
    let at_ms = Simulated::START_MS + 3_600_000;
    let deleted = world.ask("delete_document", json!({"document_id": id(1), "delete_at": iso(at_ms)})).await;
    assert_eq!((&deleted["deleted"], &deleted["delete_at"]), (&json!(false), &json!(iso(at_ms))));
    assert_eq!(world.hub.keep().await.unwrap(), Kept::default());
    assert_eq!(world.find(json!({"query": "alpha"})).await, ["One"]);
    clock.advance(Duration::from_millis(3_600_001));
    assert_eq!(world.hub.keep().await.unwrap(), Kept { deleted: 1, purged: 0 });
    assert_eq!(world.code("get_document", json!({"document_id": id(2)})).await, Code::NotFound);
    let history = world.ask("document_history", json!({"document_id": id(1)})).await;
    assert_eq!(
        (&history["revisions"][0]["op"], &history["revisions"][0]["by"]),
        (&json!("delete"), &json!("schedule"))
    );
    clock.advance(Duration::from_millis(limits::PURGE_MS.unsigned_abs() - 1));
    assert_eq!(world.hub.keep().await.unwrap(), Kept::default());
    clock.advance(Duration::from_millis(2));
    assert_eq!(world.hub.keep().await.unwrap(), Kept { deleted: 0, purged: 1 });
    assert_eq!(world.code("restore_document", json!({"document_id": id(1)})).await, Code::NotFound);
    for table in [
        "SELECT 1 FROM knowledge_document",
        "SELECT 1 FROM knowledge_revision",
        "SELECT 1 FROM knowledge_chunk",
        "SELECT rowid FROM knowledge_lexical",
    ] {
        assert_eq!(world.rows(table).await.len(), 1, "{table}");
    }
    assert_eq!(world.hub.check_index(Mend::No).await.unwrap().wrong, 0);
    world.put(1, "root", "One", "alpha").await;
}

/// KNO-8.3: the task that runs beside the calls does it, without being asked.
#[tokio::test]
async fn kno_8_3_the_background_task_deletes_in_time_and_purges_after_ninety_days() {
    let (world, clock) = timed();
    world.put(1, "root", "Old", "alpha").await;
    world.put(2, &id(1), "Below", "beta").await;
    world.put(3, "root", "Planned", "gamma").await;
    world.put(4, "root", "Kept", "delta").await;
    world.ask("delete_document", json!({"document_id": id(1)})).await;
    let later = iso(Simulated::START_MS + 1_000);
    world.ask("delete_document", json!({"document_id": id(3), "delete_at": later})).await;
    clock.advance(Duration::from_millis(limits::PURGE_MS.unsigned_abs() + 1));
    let mut changed = world.store.watch("knowledge.changes");
    let (cancel, hub) = (Cancel::new(), world.hub.clone());
    let running = tokio::spawn({
        let cancel = cancel.clone();
        async move { hub.run(cancel).await }
    });
    while world
        .rows("SELECT id FROM knowledge_document WHERE hidden_by IS NULL OR id <> hidden_by")
        .await
        .len()
        > 1
        || world.rows("SELECT id FROM knowledge_document").await.len() > 2
    {
        changed.changed().await.unwrap();
    }
    let left = world.rows("SELECT id FROM knowledge_document ORDER BY id").await;
    let left: Vec<&str> = left.iter().map(|row| row.text(0).unwrap()).collect();
    assert_eq!(left, [id(3), id(4)], "what was deleted just now is kept for its ninety days");
    assert_eq!(world.find(json!({"query": "alpha beta gamma delta"})).await, ["Kept"]);
    cancel.fire(Why::Client);
    running.await.unwrap();
}

#[tokio::test]
async fn a_damaged_index_is_noticed_and_mended() {
    let world = World::new();
    for n in 1..=30 {
        let text = format!("# Số {n}\n{}", format!("zebra{n} đường phố và nhiều chữ. ").repeat(80));
        world.put(n, "root", &format!("T{n}"), &text).await;
    }
    world.ask("delete_document", json!({"document_id": id(30)})).await;
    let whole = world.hub.check_index(Mend::No).await.unwrap();
    assert_eq!((whole.documents, whole.wrong), (30, 0), "{:?}", whole.examples);
    let harms = [
        "DELETE FROM knowledge_lexical WHERE rowid = (SELECT MIN(number) FROM knowledge_chunk)",
        "DELETE FROM knowledge_chunk WHERE document = '00000000-0000-4000-8000-000000000007' AND place = 1",
        "UPDATE knowledge_chunk SET start_char = start_char + 1 WHERE document = '00000000-0000-4000-8000-000000000009' AND place = 0",
        "UPDATE knowledge_tree SET words = words + 5",
        "INSERT INTO knowledge_lexical (rowid, head, body, fold) VALUES (4096000001, 'a', 'b', 'c')",
    ];
    for harm in harms {
        let mut batch = Batch::new();
        batch.then_one(Statement::new(harm, vec![]));
        world.store.commit(batch).await.unwrap();
    }
    let found = world.hub.check_index(Mend::No).await.unwrap();
    assert!(found.wrong >= 5 && found.mended == 0, "{found:?}");
    let mended = world.hub.check_index(Mend::Wrong).await.unwrap();
    assert!(mended.mended >= 4, "{mended:?}");
    assert_eq!(world.hub.check_index(Mend::No).await.unwrap().wrong, 0);
    assert_eq!(world.find(json!({"query": "zebra1"})).await, ["T1"]);
    world.hub.check_index(Mend::All).await.unwrap();
    assert_eq!(world.hub.check_index(Mend::No).await.unwrap().wrong, 0);
    assert_eq!(world.find(json!({"query": "zebra7"})).await, ["T7"]);
}

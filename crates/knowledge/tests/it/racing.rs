//! What happens between two steps of an action or of the upkeep: somebody else changes what the first step read.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use orchestr8_kernel::ports::clock::{Simulated, iso};
use orchestr8_knowledge::{Kept, Settings, tables};
use orchestr8_stores::Sqlite;
use orchestr8_testing::{Hold, Holding, Parts, memory};
use serde_json::{Value, json};

use crate::world::{World, id};

const DAY_MS: i64 = 86_400_000;

/// A program on a store that others may use as well.
fn on(store: &Sqlite, clock: &Arc<Simulated>) -> (World, Arc<Holding>) {
    let holding = Holding::on(Arc::new(store.clone()));
    let parts = Parts { clock: clock.clone(), ..Parts::on(holding.clone()) };
    (World::from_parts(parts, store.clone(), Settings::default()), holding)
}

/// Two programs on one store, and a document whose time to be deleted has come.
async fn due() -> (World, Arc<Holding>, World) {
    let (store, clock) = (memory(&[tables::MIGRATIONS]), Arc::new(Simulated::default()));
    let ((world, holding), (other, _)) = (on(&store, &clock), on(&store, &clock));
    world.put(1, "root", "One", "alpha").await;
    delete_at(&world, Simulated::START_MS + 1_000).await;
    clock.advance(Duration::from_secs(2));
    (world, holding, other)
}

async fn delete_at(world: &World, at_ms: i64) -> Value {
    world.ask("delete_document", json!({"document_id": id(1), "delete_at": iso(at_ms)})).await
}

/// Puts the deletion off while the upkeep is held up at a statement.
async fn put_off_during(world: &World, other: &World, hold: &Hold) {
    let later_ms = Simulated::START_MS + DAY_MS;
    let put_off = async {
        hold.reached().await;
        assert_eq!(delete_at(other, later_ms).await["deleted"], false);
        hold.release();
    };
    let (kept, ()) = join(world.hub.keep(), put_off).await;
    assert_eq!(kept.unwrap(), Kept::default());
    let found = world.ask("get_document", json!({"document_id": id(1)})).await;
    assert_eq!((&found["delete_at"], &found["revision"]), (&json!(iso(later_ms)), &json!(1)));
}

#[tokio::test]
async fn kno_8_3_a_deletion_that_was_put_off_after_it_was_found_due_waits() {
    let (world, holding, _) = due().await;
    put_off_during(&world, &world, &holding.after("SELECT tenant, id FROM knowledge_document")).await;
}

#[tokio::test]
async fn kno_8_3_a_deletion_that_another_program_puts_off_at_the_last_moment_waits() {
    let (world, holding, other) = due().await;
    put_off_during(&world, &other, &holding.before("SET hidden_by = ?2")).await;
}

#[tokio::test]
async fn a_document_that_moves_away_from_a_parent_that_goes_is_found() {
    let clock = Arc::new(Simulated::default());
    let (world, holding) = on(&memory(&[tables::MIGRATIONS]), &clock);
    world.put(1, "root", "One", "alpha").await;
    world.put(2, &id(1), "Two", "beta").await;
    let read = holding.after("delete_ms FROM knowledge_document WHERE tenant = ?1 AND id = ?2");
    let moved = async {
        read.reached().await;
        world.ask("move_document", json!({"document_id": id(2), "new_parent_id": "root"})).await;
        world.ask("delete_document", json!({"document_id": id(1)})).await;
        read.release();
    };
    let (found, ()) = join(world.ask("get_document", json!({"document_id": id(2)})), moved).await;
    assert_eq!((&found["path"], &found["parent_id"]), (&json!("/Two"), &json!("root")));
}

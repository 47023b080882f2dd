//! What is written: effects with their outcome, the journal, the audit chain.

use orchestr8_contract::Code;
use orchestr8_kernel::End;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn effects_happen_with_the_outcome_or_not_at_all() {
    let world = World::new();
    let first = world.kernel.submit(world.keyed("store", "one", json!({"name": "a"}))).await;
    assert_eq!(first.end, End::Success);
    // The same row again breaks the guard of the work's own statement.
    let second = world.kernel.submit(world.keyed("store", "two", json!({"name": "a"}))).await;
    assert_eq!((second.end, second.code()), (End::ToolError, Some(Code::VersionMismatch)));
    let again = world.kernel.submit(world.keyed("store", "two", json!({"name": "a"}))).await;
    assert_eq!((again.code(), again.replayed), (Some(Code::VersionMismatch), true));
    assert_eq!(world.rows("SELECT name FROM effects").await.len(), 1);
}

#[tokio::test]
async fn a_change_is_journalled_and_audited_in_one_commit() {
    let world = World::new();
    world.kernel.submit(world.keyed("store", "k", json!({"name": "a"}))).await;
    assert_eq!(world.store.commits.load(std::sync::atomic::Ordering::SeqCst), 1);
    let journal = world.rows("SELECT entry, action FROM journal").await;
    assert_eq!(journal.len(), 1);
    assert_eq!((journal[0].text(0).unwrap(), journal[0].text(1).unwrap()), ("finished", "store"));
    let chain = world.rows("SELECT body FROM chain WHERE name = 'actions'").await;
    let body: serde_json::Value = serde_json::from_str(chain[0].text(0).unwrap()).unwrap();
    assert_eq!((body["tool_name"].as_str(), body["end"].as_str()), (Some("store"), Some("success")));
    assert!(body.get("args").is_none(), "arguments appear only as a hash");
}

#[tokio::test]
async fn what_happens_outside_is_journalled_before_it_begins() {
    let world = World::new();
    let call = world.spawn(world.ask("outside", json!({})));
    world.until(|world| world.begun() == 1).await;
    assert_eq!(world.rows("SELECT entry FROM journal WHERE entry = 'accepted'").await.len(), 1);
    world.gate.add_permits(1);
    call.await.unwrap();
    assert_eq!(world.rows("SELECT entry FROM journal WHERE entry = 'finished'").await.len(), 1);
}

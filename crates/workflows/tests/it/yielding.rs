//! Long loops of pure steps let other tasks run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::world::World;

/// The most pure steps that ran between two turns of another task. The first commit of an execution may directly follow the one of its start,
/// so that two commits are between two turns at most.
async fn longest_turn(input: serde_json::Value, rounds: usize) -> usize {
    let world = World::new().await;
    let (desk, longest) = (world.desk.clone(), Arc::new(AtomicUsize::new(0)));
    // It runs on the same thread: between two of its turns, the loop has had one.
    let observer = tokio::spawn({
        let longest = longest.clone();
        async move {
            let mut before = 0;
            loop {
                let now = desk.calls.lock().len();
                longest.fetch_max(now - before, Ordering::Relaxed);
                before = now;
                tokio::task::yield_now().await;
            }
        }
    });
    let looped = json!({"condition": format!("${{iteration}} < {rounds}"), "maxIterations": rounds});
    let step = json!({"id": "a", "type": "agent", "agentId": "@test/pure", "input": input, "while": looped});
    let end = world.run(json!([step])).await;
    observer.abort();
    assert_eq!(end["status"], "completed", "{end:#}");
    assert_eq!(world.desk.count("a"), rounds);
    longest.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_loop_over_small_values_yields_after_some_steps() {
    let longest = longest_turn(json!({"value": 1}), 2000).await;
    assert!((1..=260).contains(&longest), "{longest} steps in one turn");
}

#[tokio::test]
async fn a_loop_over_large_values_yields_after_a_few_steps() {
    let longest = longest_turn(json!({"value": "x".repeat(50_000)}), 100).await;
    assert!((1..=13).contains(&longest), "{longest} steps in one turn");
}

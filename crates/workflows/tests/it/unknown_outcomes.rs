//! Attempts that may have had their effect: what they did is undone, however the step ended afterwards.

use serde_json::json;

use crate::world::{World, step, with};

#[tokio::test]
async fn an_attempt_that_timed_out_is_undone_although_the_next_one_failed_for_sure() {
    let world = World::new().await;
    let undo = json!({"agentId": "@test/agent", "input": {"value": 1}});
    let limits =
        json!({"timeout": 1_000, "resilience": {"maxAttempts": 2, "baseDelayMs": 0}, "compensate": undo});
    let charge = step("charge", &[], json!({"hold": true, "fail": "INVALID_ARGUMENT"}));
    let id = world.start(json!([with(charge, limits)])).await;
    // The first attempt times out; the second one is let go and is refused.
    world.desk.called("charge", 2).await;
    world.desk.gate("charge").notify_one();
    let end = world.end(&id).await;
    assert_eq!(end["errors"][0]["code"], "INVALID_ARGUMENT", "{end:#}");
    assert_eq!(end["status"], "compensated", "the first attempt may have charged: {end:#}");
    assert_eq!(world.desk.count("charge"), 3, "two attempts and one undo");
}

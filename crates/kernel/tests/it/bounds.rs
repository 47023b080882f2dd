//! Sizes, slots, deadlines, cancellation, panics: what bounds a run.

use orchestr8_contract::Code;
use orchestr8_kernel::{End, Policy, Why};
use serde_json::json;

use crate::world::{Kind, World};

#[tokio::test]
async fn a_read_without_a_key_touches_no_store() {
    let world = World::new();
    let settled = world.kernel.submit(world.ask("read", json!({"name": "x"}))).await;
    assert_eq!(settled.end, End::Success);
    assert_eq!(world.store.commits.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(world.store.queries.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// MCP-ORDER-4 before MCP-ORDER-5.
#[tokio::test]
async fn size_is_checked_before_the_name() {
    let world = World::new();
    let large = json!({"name": "x".repeat(2000)});
    let settled = world.kernel.submit(world.ask("no-such-tool", large)).await;
    assert_eq!((settled.end, settled.code()), (End::Refused, Some(Code::ResourceExhausted)));
    let settled = world.kernel.submit(world.ask("no-such-tool", json!({}))).await;
    assert_eq!((settled.end, settled.code()), (End::Refused, Some(Code::NotFound)));
}

/// MCP-ORDER-6 before MCP-ORDER-7, and MCP-PROP-7.
#[tokio::test]
async fn the_slot_is_taken_before_the_arguments_are_checked() {
    let world = World::new();
    let (one, two) = (world.spawn(world.ask("wait", json!({}))), world.spawn(world.ask("wait", json!({}))));
    world.until(|world| world.begun() == 2).await;
    let settled = world.kernel.submit(world.ask("read", json!({"name": 1}))).await;
    assert_eq!(settled.code(), Some(Code::ResourceExhausted));
    world.gate.add_permits(2);
    assert_eq!((one.await.unwrap().end, two.await.unwrap().end), (End::Success, End::Success));
    let settled = world.kernel.submit(world.ask("read", json!({"name": 1}))).await;
    assert_eq!(settled.code(), Some(Code::InvalidArgument));
    assert_eq!(world.begun(), 2, "neither ran");
}

/// MCP-TIMEOUT-2, MCP-TIMEOUT-3, MCP-TIMEOUT-4, MCP-TIMEOUT-5.
#[tokio::test]
async fn after_a_timeout_the_slot_is_held_until_the_work_returns() {
    let world = World::new();
    let submission = world.ask("wait", json!({}));
    let cancel = submission.cancel.clone();
    let call = world.spawn(submission);
    world.until(|world| world.begun() == 1).await;
    world.clock.by_ms(30_000);
    let settled = call.await.unwrap();
    assert_eq!((settled.end, settled.code()), (End::Timeout, Some(Code::Timeout)));
    assert_eq!(cancel.why(), Some(Why::Deadline), "the work is told to stop");
    assert_eq!(world.kernel.running(), 1, "the slot is still held");
    world.gate.add_permits(1);
    world.until(|world| world.kernel.in_flight() == 0).await;
    let late = world.rows("SELECT entry FROM journal WHERE entry = 'late_completed'").await;
    assert_eq!(late.len(), 1, "the late end is on record");
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_its_slot_later() {
    let world = World::new();
    let submission = world.ask("wait", json!({}));
    let cancel = submission.cancel.clone();
    let call = world.spawn(submission);
    world.until(|world| world.begun() == 1).await;
    cancel.fire(Why::Client);
    assert_eq!(call.await.unwrap().end, End::Aborted);
    assert_eq!(world.kernel.running(), 1);
    world.gate.add_permits(1);
    world.until(|world| world.kernel.in_flight() == 0).await;
    assert_eq!(world.rows("SELECT entry FROM journal WHERE entry = 'aborted'").await.len(), 1);
}

#[tokio::test]
async fn a_late_end_that_takes_long_to_record_holds_no_slot() {
    let world = World::new();
    let call = world.spawn(world.ask("wait", json!({})));
    world.until(|world| world.begun() == 1).await;
    world.clock.by_ms(30_000);
    assert_eq!(call.await.unwrap().end, End::Timeout);
    world.store.stuck.send_replace(true);
    world.gate.add_permits(1);
    world.until(|world| world.kernel.running() == 0).await;
    assert_eq!(world.kernel.in_flight(), 1, "a shutdown waits for the record");
    assert_eq!(world.kernel.submit(world.ask("read", json!({}))).await.end, End::Success);
    world.store.stuck.send_replace(false);
    world.until(|world| world.kernel.in_flight() == 0).await;
    let late = world.rows("SELECT entry FROM journal WHERE entry = 'late_completed'").await;
    assert_eq!(late.len(), 1);
}

#[tokio::test]
async fn work_goes_on_when_its_client_is_gone() {
    let world = World::new();
    world.register("cooperate", Policy::read(), Kind::Cooperates);
    for (action, end) in [("wait", End::DisconnectedCompleted), ("cooperate", End::Aborted)] {
        let submission = world.ask(action, json!({}));
        let cancel = submission.cancel.clone();
        let call = world.spawn(submission);
        let begun = world.begun();
        world.until(|world| world.begun() > begun || world.kernel.running() > 0).await;
        cancel.fire(Why::Disconnect);
        world.gate.add_permits(1);
        assert_eq!(call.await.unwrap().end, end, "{action}");
        let _ = world.gate.try_acquire().map(|permit| permit.forget());
    }
}

/// After a disconnect the deadline remains the driver.
#[tokio::test]
async fn a_deadline_after_a_disconnect_is_a_timeout() {
    let world = World::new();
    let submission = world.ask("wait", json!({}));
    let cancel = submission.cancel.clone();
    let call = world.spawn(submission);
    world.until(|world| world.begun() == 1).await;
    cancel.fire(Why::Disconnect);
    tokio::task::yield_now().await;
    world.clock.by_ms(30_000);
    assert_eq!(call.await.unwrap().end, End::Timeout);
    world.gate.add_permits(1);
}

#[tokio::test]
async fn a_panic_is_answered_and_the_kernel_lives() {
    let world = World::new();
    for action in ["panic", "quick-panic"] {
        let settled = world.kernel.submit(world.ask(action, json!({}))).await;
        assert_eq!((settled.end, settled.code()), (End::ToolError, Some(Code::Internal)), "{action}");
    }
    assert_eq!(world.kernel.running(), 0);
    assert_eq!(world.kernel.submit(world.ask("read", json!({}))).await.end, End::Success);
}

#[tokio::test]
async fn a_drained_kernel_takes_nothing_new_and_waits_for_the_rest() {
    let world = World::new();
    let call = world.spawn(world.ask("wait", json!({})));
    world.until(|world| world.begun() == 1).await;
    let draining = tokio::spawn({
        let kernel = world.kernel.clone();
        async move { kernel.drain(std::time::Duration::from_secs(10)).await }
    });
    tokio::task::yield_now().await;
    let refused = world.kernel.submit(world.ask("read", json!({}))).await;
    assert_eq!(refused.code(), Some(Code::ShuttingDown));
    world.gate.add_permits(1);
    assert_eq!(call.await.unwrap().end, End::Success);
    while !draining.is_finished() {
        world.clock.by_ms(5);
        tokio::task::yield_now().await;
    }
    assert!(draining.await.unwrap());
}

#[tokio::test]
async fn an_action_may_have_a_limit_of_its_own() {
    let world = World::new();
    world.register("single", Policy { concurrent_runs: Some(1), ..Policy::read() }, Kind::Waits);
    let call = world.spawn(world.ask("single", json!({})));
    world.until(|world| world.begun() == 1).await;
    assert_eq!(
        world.kernel.submit(world.ask("single", json!({}))).await.code(),
        Some(Code::ResourceExhausted)
    );
    assert_eq!(world.kernel.submit(world.ask("read", json!({}))).await.end, End::Success, "others have room");
    world.gate.add_permits(1);
    assert_eq!(call.await.unwrap().end, End::Success);
}

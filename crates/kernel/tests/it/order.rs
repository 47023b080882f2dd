//! Lanes, dependencies and versions: what comes before what.

use std::sync::Arc;

use orchestr8_contract::Code;
use orchestr8_contract::id::{Lane, SubmissionId};
use orchestr8_kernel::action::Versioning;
use orchestr8_kernel::ports::Store;
use orchestr8_kernel::ports::store::Batch;
use orchestr8_kernel::submission::{Scope, Version};
use orchestr8_kernel::{End, Policy, Submission, tables};
use serde_json::json;

use crate::world::{Kind, World};

fn id(text: &str) -> SubmissionId {
    SubmissionId::parse(text).unwrap()
}

fn placed(world: &World, action: &str, name: &str, lane: &str, depends_on: &[&str]) -> Submission {
    let mut submission = world.ask(action, json!({})).named(Scope("ids".into()), id(name), 60_000);
    submission.lane = Some(Lane::parse(lane).unwrap());
    submission.depends_on = depends_on.iter().map(|text| id(text)).collect();
    submission
}

/// SES-7.3
#[tokio::test]
async fn a_lane_runs_one_at_a_time_in_order_of_arrival() {
    let world = World::new();
    let calls: Vec<_> =
        ["a", "b", "c"].map(|name| world.kernel.start(placed(&world, "wait", name, "x", &[]))).into();
    world.until(|world| world.begun() == 1).await;
    for count in 1..=3 {
        assert_eq!(world.begun(), count, "one at a time");
        world.gate.add_permits(1);
        world.until(|world| world.done.load(std::sync::atomic::Ordering::SeqCst) == count).await;
        if count < 3 {
            world.until(|world| world.begun() == count + 1).await;
        }
    }
    drop(calls);
}

/// SES-9
#[tokio::test]
async fn a_dependency_must_be_known_and_succeed() {
    let world = World::new();
    let unknown = world.kernel.submit(placed(&world, "read", "a", "x", &["nobody"])).await;
    assert_eq!((unknown.end, unknown.code()), (End::ToolError, Some(Code::DependencyUnknown)));
    world.kernel.submit(placed(&world, "fail", "bad", "y", &[])).await;
    let failed = world.kernel.submit(placed(&world, "read", "b", "x", &["bad"])).await;
    assert_eq!(failed.code(), Some(Code::DependencyFailed));
    world.kernel.submit(placed(&world, "read", "good", "y", &[])).await;
    let after = world.kernel.submit(placed(&world, "read", "c", "x", &["good"])).await;
    assert_eq!(after.end, End::Success);
    let own = world.kernel.submit(placed(&world, "read", "d", "x", &["d"])).await;
    assert_eq!(own.code(), Some(Code::DependencyCycle));
}

#[tokio::test]
async fn a_dependency_in_flight_is_waited_for_and_not_for_ever() {
    let world = World::new();
    let slow = world.spawn(placed(&world, "wait", "slow", "x", &[]));
    world.until(|world| world.begun() == 1).await;
    let after = world.spawn(placed(&world, "read", "after", "y", &["slow"]));
    world.gate.add_permits(1);
    assert_eq!((slow.await.unwrap().end, after.await.unwrap().end), (End::Success, End::Success));
    let stuck = world.spawn(placed(&world, "wait", "stuck", "x", &[]));
    world.until(|world| world.begun() == 3).await;
    let waits = world.clock.waits();
    let waiter = world.spawn(placed(&world, "read", "waiter", "y", &["stuck"]));
    // It waits before time moves: on a busy machine what it waits for would else end first.
    world.until(|world| world.clock.waits() > waits).await;
    while !waiter.is_finished() {
        world.clock.by_ms(100);
        tokio::task::yield_now().await;
    }
    assert_eq!(waiter.await.unwrap().code(), Some(Code::DependencyTimeout));
    world.gate.add_permits(1);
    stuck.await.unwrap();
}

/// A timed-out submission has failed for those who wait, even while its work goes on.
#[tokio::test]
async fn who_waits_for_a_timed_out_submission_is_told_at_once() {
    let world = World::new();
    let mut slow = placed(&world, "wait", "slow", "x", &[]);
    slow.timeout_ms = Some(10);
    let slow = world.spawn(slow);
    world.until(|world| world.begun() == 1).await;
    let waiter = world.spawn(placed(&world, "read", "waiter", "y", &["slow"]));
    while !slow.is_finished() {
        world.clock.by_ms(10);
        tokio::task::yield_now().await;
    }
    assert_eq!(slow.await.unwrap().end, End::Timeout);
    assert_eq!(waiter.await.unwrap().code(), Some(Code::DependencyFailed));
    assert_eq!(world.kernel.running(), 1, "the work goes on");
    world.gate.add_permits(1);
}

/// SES-9.2, and cycles across lanes, refused at once.
#[tokio::test]
async fn waits_that_would_never_end_are_refused_at_once() {
    let world = World::new();
    let first = world.spawn(placed(&world, "wait", "first", "x", &[]));
    world.until(|world| world.begun() == 1).await;
    let second = world.kernel.start(placed(&world, "read", "second", "x", &["third"]));
    let third = world.spawn(placed(&world, "read", "third", "x", &[]));
    world.gate.add_permits(1);
    first.await.unwrap();
    let orchestr8_kernel::Started::Running(second) = second else { panic!("it has to wait for its turn") };
    assert_eq!(second.await.unwrap().code(), Some(Code::DependencyInversion));
    assert_eq!(third.await.unwrap().end, End::Success);
}

/// SES-10
#[tokio::test]
async fn a_version_guards_against_what_was_not_seen() {
    let world = World::new();
    world.register("change", Policy { versioning: Versioning::Bump, ..Policy::stored() }, Kind::Now);
    let at = |expected: Option<u64>, action: &str| {
        let mut submission = world.ask(action, json!({}));
        submission.version = Some(Version { subject: Arc::from("s"), expected });
        submission
    };
    let missing = world.kernel.submit(at(Some(0), "change")).await;
    assert_eq!(missing.code(), Some(Code::NotFound));
    let mut batch = Batch::new();
    batch.then(tables::version_create("local", "s"));
    world.store.commit(batch).await.unwrap();
    let first = world.kernel.submit(at(Some(0), "change")).await;
    assert_eq!((first.end, first.version), (End::Success, Some(1)));
    let stale = world.kernel.submit(at(Some(0), "change")).await;
    assert_eq!(stale.code(), Some(Code::VersionMismatch));
    let read = world.kernel.submit(at(Some(1), "read")).await;
    assert_eq!((read.end, read.version), (End::Success, Some(1)), "reading does not count as a change");
}

//! Keys: a repeat is answered and not run again, whatever happened in between.

use std::sync::atomic::Ordering;

use orchestr8_contract::{AllowedRoles, Code, Fault, Output};
use orchestr8_kernel::{Action, End, Limits, Policy};
use serde_json::json;

use crate::world::{Kind, World};

#[tokio::test]
async fn a_repeat_gets_the_first_outcome() {
    let world = World::new();
    let first = world.kernel.submit(world.keyed("store", "k", json!({"name": "a"}))).await;
    let second = world.kernel.submit(world.keyed("store", "k", json!({"name": "a"}))).await;
    assert_eq!((first.replayed, second.replayed), (false, true));
    assert_eq!(first.run, second.run);
    assert_eq!(first.result.unwrap(), second.result.unwrap());
    assert_eq!(world.begun(), 1);
}

#[tokio::test]
async fn the_same_key_for_something_else_is_a_conflict() {
    let world = World::new();
    world.kernel.submit(world.keyed("store", "k", json!({"name": "a"}))).await;
    for (action, args) in [("store", json!({"name": "b"})), ("read", json!({"name": "a"}))] {
        let settled = world.kernel.submit(world.keyed(action, "k", args)).await;
        assert_eq!((settled.end, settled.code()), (End::Refused, Some(Code::KeyConflict)));
    }
    assert_eq!(world.begun(), 1);
}

#[tokio::test]
async fn of_many_at_once_exactly_one_runs() {
    let world = World::new();
    let calls: Vec<_> = (0..64).map(|_| world.spawn(world.keyed("wait", "k", json!({})))).collect();
    world.until(|world| world.begun() == 1).await;
    world.gate.add_permits(64);
    let mut replayed = 0;
    for call in calls {
        let settled = call.await.unwrap();
        assert_eq!(settled.end, End::Success);
        replayed += usize::from(settled.replayed);
    }
    assert_eq!((world.begun(), replayed), (1, 63));
}

#[tokio::test]
async fn failures_and_timeouts_are_outcomes_too() {
    let world = World::new();
    let first = world.kernel.submit(world.keyed("fail", "f", json!({}))).await;
    let again = world.kernel.submit(world.keyed("fail", "f", json!({}))).await;
    assert_eq!(
        (first.code(), again.code(), again.replayed),
        (Some(Code::InvalidArgument), Some(Code::InvalidArgument), true)
    );
    let call = world.spawn(world.keyed("wait", "t", json!({})));
    world.until(|world| world.begun() == 2).await;
    world.clock.by_ms(30_000);
    assert_eq!(call.await.unwrap().end, End::Timeout);
    let again = world.kernel.submit(world.keyed("wait", "t", json!({}))).await;
    assert_eq!(
        (again.end, again.replayed),
        (End::Timeout, true),
        "the work goes on, and nothing else is known"
    );
}

/// Seed 000: a completion after the timeout is recorded, and available for recovery.
#[tokio::test]
async fn a_repeat_after_the_late_end_gets_what_the_work_gave() {
    for action in ["wait", "outside"] {
        let world = World::new();
        let args = json!({"name": "late"});
        let call = world.spawn(world.keyed(action, "t", args.clone()));
        world.until(|world| world.begun() == 1).await;
        world.clock.by_ms(30_000);
        let first = call.await.unwrap();
        assert_eq!(first.end, End::Timeout, "the answer that was given stays the only one");
        world.gate.add_permits(1);
        world.until(|world| world.kernel.in_flight() == 0).await;
        let after = World::on(world.store.clone(), Limits::default());
        for world in [&world, &after] {
            let again = world.kernel.submit(world.keyed(action, "t", args.clone())).await;
            assert_eq!((again.end, again.replayed, again.run), (End::LateCompleted, true, first.run));
            assert_eq!(again.result.unwrap(), Output::json(args.clone()));
        }
        assert_eq!((world.begun(), after.begun()), (1, 0));
    }
}

/// Work that ends while its timeout is still being written does not lose what it gave.
#[tokio::test]
async fn a_late_end_waits_for_the_answer_to_be_on_record() {
    let world = World::new();
    let call = world.spawn(world.keyed("wait", "t", json!({})));
    world.until(|world| world.begun() == 1).await;
    world.store.stuck.send_replace(true);
    let commits = world.store.commits.load(Ordering::SeqCst);
    world.clock.by_ms(30_000);
    world.until(|world| world.store.commits.load(Ordering::SeqCst) > commits).await;
    world.gate.add_permits(1);
    world.until(|world| world.kernel.running() == 0).await;
    world.store.stuck.send_replace(false);
    assert_eq!(call.await.unwrap().end, End::Timeout);
    world.until(|world| world.kernel.in_flight() == 0).await;
    let again = world.kernel.submit(world.keyed("wait", "t", json!({}))).await;
    assert_eq!((again.end, again.replayed), (End::LateCompleted, true));
}

#[tokio::test]
async fn work_that_stops_for_its_deadline_leaves_the_timeout_as_it_is() {
    let world = World::new();
    world.register("cooperate", Policy::read(), Kind::Cooperates);
    world.register("store-late", Policy::stored(), Kind::StoresLate);
    for (action, begun) in [("cooperate", 1), ("store-late", 2)] {
        let call = world.spawn(world.keyed(action, action, json!({})));
        world.until(|world| world.begun() == begun).await;
        world.clock.by_ms(30_000);
        assert_eq!(call.await.unwrap().end, End::Timeout);
        world.gate.add_permits(1);
        world.until(|world| world.kernel.in_flight() == 0).await;
        let again = world.kernel.submit(world.keyed(action, action, json!({}))).await;
        assert_eq!((again.end, again.replayed), (End::Timeout, true), "{action}");
        let _ = world.gate.try_acquire().map(|permit| permit.forget());
    }
    assert!(
        world.rows("SELECT name FROM effects").await.is_empty(),
        "nothing of it happened, and no repeat says so"
    );
}

#[tokio::test]
async fn refusals_are_not_remembered() {
    let world = World::new();
    let wrong = world.kernel.submit(world.keyed("read", "k", json!({"name": 1}))).await;
    assert_eq!(wrong.end, End::Refused);
    let right = world.kernel.submit(world.keyed("read", "k", json!({"name": "a"}))).await;
    assert_eq!((right.end, right.replayed), (End::Success, false));
}

#[tokio::test]
async fn an_expired_key_is_free_again() {
    let world = World::new();
    world.kernel.submit(world.keyed("read", "k", json!({"name": "a"}))).await;
    world.clock.by_ms(59_999);
    assert!(world.kernel.submit(world.keyed("read", "k", json!({"name": "a"}))).await.replayed);
    world.clock.by_ms(1);
    let settled = world.kernel.submit(world.keyed("read", "k", json!({"name": "b"}))).await;
    assert_eq!((settled.end, settled.replayed), (End::Success, false));
}

#[tokio::test]
async fn a_key_is_remembered_after_a_restart() {
    let world = World::new();
    let first = world.kernel.submit(world.keyed("store", "k", json!({"name": "a"}))).await;
    let after = World::on(world.store.clone(), Limits::default());
    let again = after.kernel.submit(after.keyed("store", "k", json!({"name": "a"}))).await;
    assert_eq!((again.replayed, again.run), (true, first.run));
    let other = after.kernel.submit(after.keyed("store", "k", json!({"name": "b"}))).await;
    assert_eq!(other.code(), Some(Code::KeyConflict));
    assert_eq!(after.begun(), 0);
}

/// What runs outside the store is marked before it begins, so that a crash in the middle is noticed.
#[tokio::test]
async fn a_run_cut_off_in_the_middle_is_not_repeated_unless_the_action_says_so() {
    let world = World::new();
    for (action, key) in [("outside", "o"), ("again", "a")] {
        let begun = world.begun();
        world.spawn(world.keyed(action, key, json!({})));
        world.until(|world| world.begun() == begun + 1).await;
    }
    // The first world's process is dead from here on: its kernel is never asked again.
    let after = World::on(world.store.clone(), Limits::default());
    after.gate.add_permits(1);
    let unknown = after.kernel.submit(after.keyed("outside", "o", json!({}))).await;
    assert_eq!((unknown.end, unknown.code()), (End::Refused, Some(Code::OutcomeUnknown)));
    let again = after.kernel.submit(after.keyed("again", "a", json!({}))).await;
    assert_eq!((again.end, again.replayed, after.begun()), (End::Success, false, 1));
}

#[tokio::test]
async fn a_refused_outside_action_gives_its_key_back() {
    let world = World::new();
    let wrong = world.kernel.submit(world.keyed("outside", "k", json!({"name": 1}))).await;
    assert_eq!(wrong.code(), Some(Code::InvalidArgument));
    assert!(world.rows("SELECT key FROM ledger").await.is_empty());
    world.gate.add_permits(1);
    assert_eq!(world.kernel.submit(world.keyed("outside", "k", json!({}))).await.end, End::Success);
}

#[tokio::test]
async fn work_that_says_it_did_nothing_is_refused_and_gives_its_key_back() {
    let world = World::new();
    let picky =
        Action::tool("picky", "Wants a name.", json!({"type": "object"}), picky_policy(), |args, _| {
            let found = args.text("name").map(str::to_owned);
            std::future::ready(match found.as_deref() {
                None => Err(Fault::invalid("a name is missing").into()),
                Some("nobody") => Err(Fault::internal("it broke").into()),
                Some(name) => Ok(Output::text(name).into()),
            })
        });
    world.kernel.registry().register(picky.unwrap().allowed_to(AllowedRoles::ANYONE)).unwrap();
    let wrong = world.kernel.submit(world.keyed("picky", "k", json!({}))).await;
    assert_eq!((wrong.end, wrong.code()), (End::Refused, Some(Code::InvalidArgument)));
    assert!(world.rows("SELECT key FROM ledger").await.is_empty());
    let right = world.kernel.submit(world.keyed("picky", "k", json!({"name": "ann"}))).await;
    assert_eq!((right.end, right.replayed), (End::Success, false));
    // Every other failure is an outcome, and stays one.
    let broken = world.kernel.submit(world.keyed("picky", "b", json!({"name": "nobody"}))).await;
    let again = world.kernel.submit(world.keyed("picky", "b", json!({"name": "nobody"}))).await;
    assert_eq!((broken.end, again.end, again.replayed), (End::ToolError, End::ToolError, true));
}

fn picky_policy() -> Policy {
    Policy { refusals: &[orchestr8_contract::Kind::Invalid], ..Policy::stored() }
}

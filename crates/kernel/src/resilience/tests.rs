//! Tests of the whole stack: what is tried when, what counts, what stops at once. Time is simulated.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use orchestr8_contract::{Code, Fault};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::breaker::{Policy, key};
use super::*;
use crate::bus::{self, Bus, Filter};
use crate::log::Log;
use crate::ports::clock::Simulated;
use crate::ports::random::Seeded;

pub struct World {
    pub clock: Arc<Simulated>,
    pub bus: Bus,
    pub breakers: Breakers,
    random: Seeded,
    cancel: CancellationToken,
    /// When each attempt began, and which it was.
    begun: Mutex<Vec<(u64, u32)>>,
}

impl World {
    pub fn new() -> Self {
        let clock = Arc::new(Simulated::new());
        let bus = Bus::new(&bus::Config::default(), clock.clone(), Log::off());
        Self {
            breakers: Breakers::new(clock.clone(), bus.clone()),
            clock,
            bus,
            random: Seeded::new(1),
            cancel: CancellationToken::new(),
            begun: Mutex::default(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.clock.elapsed_us() / 1000
    }

    async fn run<T, W: Future<Output = Result<T, Fault>>>(
        &self,
        policy: &Resilience,
        mut work: impl FnMut(Attempt) -> W,
    ) -> Result<T, Fault> {
        let noted = |attempt: Attempt| {
            self.begun.lock().push((self.now_ms(), attempt.number));
            work(attempt)
        };
        run(policy, "cb:test", noted, &self.cancel, &self.breakers, &*self.clock, &self.random).await
    }

    /// Always ends so, at once.
    async fn run_failing(&self, policy: &Resilience, code: Code) -> Fault {
        self.run(policy, |_| async move { Err::<(), _>(Fault::new(code, "no")) }).await.unwrap_err()
    }

    fn attempts(&self) -> usize {
        self.begun.lock().len()
    }
}

fn once() -> Resilience {
    Resilience { max_attempts: 1, ..Resilience::default() }
}

#[test]
fn the_defaults_and_names_are_those_of_the_seed() {
    let wanted = json!({
        "maxAttempts": 3, "baseDelayMs": 1000, "maxDelayMs": 30_000, "totalBudgetMs": 90_000, "timeoutMs": 30_000,
        "jitter": "full", "breaker": {"failureThreshold": 5, "openDurationMs": 60_000},
    });
    assert_eq!(serde_json::to_value(Resilience::default()).unwrap(), wanted);
    let equal: Resilience = serde_json::from_value(json!({"jitter": "equal", "breaker": null})).unwrap();
    assert_eq!(equal, Resilience { jitter: Jitter::Equal, breaker: None, ..Resilience::default() });
    assert!(serde_json::from_value::<Resilience>(json!({"retries": 1})).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_success_is_given_back_at_once() {
    let world = World::new();
    let done = world.run(&Resilience::default(), |attempt| async move { Ok(attempt.number) }).await;
    assert_eq!(done.unwrap(), 1);
    assert_eq!((world.attempts(), world.now_ms()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_after_waits_with_full_jitter() {
    let world = World::new();
    let work = |attempt: Attempt| async move {
        if attempt.number < 3 { Err(Fault::new(Code::Unavailable, "no")) } else { Ok(attempt.number) }
    };
    assert_eq!(world.run(&Resilience::default(), work).await.unwrap(), 3);
    let begun = world.begun.lock().clone();
    let numbers: Vec<u32> = begun.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let units = Seeded::new(1);
    let first_ms = retry::delay_ms(Jitter::Full, 1000, units.unit());
    let second_ms = retry::delay_ms(Jitter::Full, 2000, units.unit());
    assert_eq!((begun[1].0, begun[2].0), (first_ms, first_ms + second_ms));
}

#[tokio::test(start_paused = true)]
async fn the_last_fault_says_how_often_it_was_tried() {
    let world = World::new();
    let fault = world.run_failing(&Resilience::default(), Code::Unavailable).await;
    assert_eq!((fault.code, fault.details.unwrap()["attempts"].as_u64()), (Code::Unavailable, Some(3)));
    let fault = world.run_failing(&Resilience::default(), Code::InvalidArgument).await;
    assert_eq!((world.attempts(), fault.code, fault.details), (4, Code::InvalidArgument, None));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_stopped_and_the_budget_caps_the_last_one() {
    let world = World::new();
    let tokens = Mutex::new(Vec::new());
    let fault = world
        .run(&Resilience::default(), |attempt| {
            tokens.lock().push(attempt.cancel);
            std::future::pending::<Result<(), Fault>>()
        })
        .await
        .unwrap_err();
    assert_eq!(fault.code, Code::Timeout);
    assert_eq!((world.attempts(), world.now_ms()), (3, 90_000));
    assert!(fault.details.unwrap()["timeoutMs"].as_u64().unwrap() < 30_000);
    assert!(tokens.lock().iter().all(CancellationToken::is_cancelled));
    assert!(!world.cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn what_the_other_side_asks_for_is_waited_for_within_the_budget() {
    let world = World::new();
    let busy = |ms: u64| {
        move |_| async move {
            Err::<(), _>(Fault::new(Code::ResourceExhausted, "429").with(retry::RETRY_AFTER_MS, ms))
        }
    };
    world.run(&Resilience::default(), busy(40_000)).await.unwrap_err();
    assert_eq!(world.begun.lock().clone(), [(0, 1), (40_000, 2), (80_000, 3)]);
    let world = World::new();
    world.run(&Resilience::default(), busy(90_000)).await.unwrap_err();
    assert_eq!((world.attempts(), world.now_ms()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_open_circuit_stops_retrying_at_once() {
    let world = World::new();
    world.run_failing(&Resilience::default(), Code::Timeout).await;
    let before_ms = world.now_ms();
    // The fifth failure in a row is the second attempt here; the third is refused without being made.
    let fault = world.run_failing(&Resilience::default(), Code::Timeout).await;
    assert_eq!((fault.code, world.attempts()), (Code::CircuitOpen, 5));
    let details = fault.details.unwrap();
    assert_eq!((details["key"].as_str(), details["attempts"].as_u64()), (Some("cb:test"), Some(3)));
    let waited_ms = world.now_ms() - before_ms;
    let fault = world.run_failing(&Resilience::default(), Code::Timeout).await;
    assert_eq!((fault.code, world.attempts()), (Code::CircuitOpen, 5));
    assert!(
        fault.message.starts_with("Circuit breaker open for cb:test, reopens at 2026-01-01T00:01:"),
        "{}",
        fault.message
    );
    assert_eq!(world.now_ms() - before_ms, waited_ms, "refusing takes no time");
}

#[tokio::test(start_paused = true)]
async fn half_open_lets_exactly_one_probe_through_and_its_success_closes() {
    let world = World::new();
    let mut news = world.bus.subscribe(&Filter::all().about("cb:test")).unwrap();
    for _ in 0..5 {
        world.run_failing(&once(), Code::Unavailable).await;
    }
    let opened = news.try_next().unwrap();
    assert_eq!(
        (opened.name, &*opened.data),
        ("circuit-open", &json!({"key": "cb:test", "reopensAt": "2026-01-01T00:01:00.000Z"}))
    );
    world.clock.advance(Duration::from_millis(59_999));
    assert_eq!(world.run_failing(&once(), Code::Unavailable).await.code, Code::CircuitOpen);
    world.clock.advance(Duration::from_millis(1));
    let policy = once();
    let mut probe = Box::pin(world.run(&policy, |_| async {
        tokio::task::yield_now().await;
        Ok(())
    }));
    assert!(probe.as_mut().now_or_never().is_none());
    assert_eq!(world.run_failing(&once(), Code::Unavailable).await.code, Code::CircuitOpen);
    probe.await.unwrap();
    let closed = news.try_next().unwrap();
    assert_eq!((closed.name, &*closed.data), ("circuit-close", &json!({"key": "cb:test"})));
    assert_eq!(world.run_failing(&once(), Code::Unavailable).await.code, Code::Unavailable);
    assert!(news.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_failing_probe_reopens_and_a_dropped_one_gives_its_place_back() {
    let world = World::new();
    for _ in 0..5 {
        world.run_failing(&once(), Code::Unavailable).await;
    }
    world.clock.advance(Duration::from_secs(60));
    let policy = once();
    let mut dropped = Box::pin(world.run(&policy, |_| std::future::pending::<Result<(), Fault>>()));
    assert!(dropped.as_mut().now_or_never().is_none());
    drop(dropped);
    // A probe that ends in a refusal says nothing about the other side's health either.
    assert_eq!(world.run_failing(&once(), Code::NotFound).await.code, Code::NotFound);
    assert_eq!(world.run_failing(&once(), Code::Unavailable).await.code, Code::Unavailable);
    assert_eq!(world.run_failing(&once(), Code::Unavailable).await.code, Code::CircuitOpen);
}

#[tokio::test(start_paused = true)]
async fn refusals_neither_count_nor_begin_the_count_anew_but_a_success_does() {
    let world = World::new();
    for _ in 0..4 {
        world.run_failing(&once(), Code::Timeout).await;
        for code in [
            Code::InvalidArgument,
            Code::NotFound,
            Code::Unauthorized,
            Code::KeyConflict,
            Code::ResourceExhausted,
        ] {
            world.run_failing(&once(), code).await;
        }
    }
    world.run(&once(), |_| async { Ok(()) }).await.unwrap();
    for _ in 0..4 {
        world.run_failing(&once(), Code::Timeout).await;
    }
    assert_eq!(world.run_failing(&once(), Code::Timeout).await.code, Code::Timeout);
    assert_eq!(world.run_failing(&once(), Code::Timeout).await.code, Code::CircuitOpen);
}

#[tokio::test(start_paused = true)]
async fn without_a_breaker_nothing_is_refused() {
    let world = World::new();
    let policy = Resilience { breaker: None, ..once() };
    for _ in 0..20 {
        assert_eq!(world.run_failing(&policy, Code::Timeout).await.code, Code::Timeout);
    }
    assert!(world.breakers.snapshot().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelling_goes_past_all_layers_at_once() {
    // Before anything.
    let world = World::new();
    world.cancel.cancel();
    assert_eq!(world.run_failing(&Resilience::default(), Code::Timeout).await.code, Code::Cancelled);
    assert_eq!(world.attempts(), 0);

    // During an attempt, which is told; and not even a result that is just ready is given back.
    let world = World::new();
    let cancel = world.cancel.clone();
    let fault = world
        .run(&Resilience::default(), |attempt| {
            cancel.cancel();
            assert!(attempt.cancel.is_cancelled());
            async { Ok(()) }
        })
        .await
        .unwrap_err();
    assert_eq!((fault.code, world.attempts()), (Code::Cancelled, 1));
    assert!(world.breakers.snapshot().is_empty(), "cancelling does not count");

    // During the wait for the next attempt.
    let world = World::new();
    let policy = Resilience { base_delay_ms: 30_000, jitter: Jitter::Equal, ..Resilience::default() };
    let (fault, ()) = tokio::join!(world.run_failing(&policy, Code::Timeout), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        world.cancel.cancel();
    });
    assert_eq!((fault.code, world.attempts(), world.now_ms()), (Code::Cancelled, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn waking_late_does_not_overrun_the_budget() {
    let world = World::new();
    let policy = Resilience { total_budget_ms: 1000, ..Resilience::default() };
    let (fault, ()) = tokio::join!(world.run_failing(&policy, Code::Unavailable), async {
        tokio::task::yield_now().await;
        world.clock.advance(Duration::from_secs(2));
    });
    assert_eq!((fault.code, world.attempts()), (Code::Unavailable, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn attempts_and_waits_together_never_exceed_the_budget(
        max_attempts in 0_u32..8, base_delay_ms in 0_u64..5_000, timeout_ms in 0_u64..40_000,
        total_budget_ms in 0_u64..100_000, seed in any::<u64>(),
        durations_ms in prop::collection::vec(prop::option::of(0_u64..50_000), 8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let world = World { random: Seeded::new(seed), ..World::new() };
        let policy = Resilience { max_attempts, base_delay_ms, timeout_ms, total_budget_ms, breaker: None, ..Resilience::default() };
        let fault = runtime.block_on(world.run(&policy, |attempt| {
            // Fails after some time, or hangs.
            let duration_ms = durations_ms[usize::try_from(attempt.number - 1).unwrap()];
            let sleep = duration_ms.map(|ms| world.clock.sleep(Duration::from_millis(ms)));
            async move {
                match sleep {
                    Some(sleep) => sleep.await,
                    None => std::future::pending().await,
                }
                Err::<(), _>(Fault::new(Code::Unavailable, "no"))
            }
        })).unwrap_err();
        prop_assert!(matches!(fault.code, Code::Unavailable | Code::Timeout));
        prop_assert!(world.now_ms() <= total_budget_ms, "{} of {}", world.now_ms(), total_budget_ms);
        prop_assert!(world.attempts() <= max_attempts.max(1) as usize);
    }
}

#[test]
fn keys_are_made_in_one_place() {
    assert_eq!(key("test", None), "cb:test");
    assert_eq!(Policy::default(), Policy { failure_threshold: 5, open_duration_ms: 60_000 });
}

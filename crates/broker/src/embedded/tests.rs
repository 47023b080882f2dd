//! The embedded broker passes the suite, keeps its times to the millisecond, and loses nothing over a restart.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_kernel::ports::clock::{Real, Simulated};
use orchestr8_kernel::ports::random::{self, Seeded};
use orchestr8_stores::Sqlite;
use orchestr8_testing::memory;

use super::*;
use crate::suite::{Shared, message, tenant};

async fn fresh(settings: Settings) -> Shared {
    let store = Arc::new(memory(&[tables::MIGRATIONS]));
    let opened = Embedded::open(store, Arc::new(Real::new()), Arc::new(random::Real), settings).await;
    Arc::new(opened.unwrap())
}

crate::broker_suite!(fresh);

/// A broker whose time only passes when somebody waits.
struct Stage {
    store: Sqlite,
    clock: Arc<Simulated>,
    broker: Embedded,
}

impl Stage {
    async fn new() -> Self {
        Self::on(memory(&[tables::MIGRATIONS]), Arc::new(Simulated::new())).await
    }

    async fn on(store: Sqlite, clock: Arc<Simulated>) -> Self {
        let (of_store, random) = (Arc::new(store.clone()), Arc::new(Seeded::new(7)));
        let broker = Embedded::open(of_store, clock.clone(), random, Settings::default()).await.unwrap();
        Self { store, clock, broker }
    }

    /// Another process on the same store.
    async fn restart(self) -> Self {
        drop(self.broker);
        Self::on(self.store, self.clock).await
    }

    async fn one(&self) -> Delivery {
        self.broker.take(1).await.unwrap().deliveries.remove(0)
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }
}

fn again() -> Verdict {
    Verdict::Again { why: "no".to_owned(), reply: None }
}

#[tokio::test(start_paused = true)]
async fn kno_1_waits_are_jittered_below_a_ceiling_that_doubles() {
    let stage = Stage::new().await;
    let mut waits = Vec::new();
    for run in 0..40 {
        stage.broker.publish(message("acme", &run.to_string())).await.unwrap();
        for attempt in 1..=6_u32 {
            let delivery = stage.one().await;
            let before_ms = stage.now_ms();
            match stage.broker.settle(delivery, again()).await.unwrap() {
                Ended::Again { wait_ms } => {
                    let ceiling_ms = 500 << (attempt - 1);
                    assert!(wait_ms <= ceiling_ms, "attempt {attempt} waits {wait_ms}");
                    waits.push((attempt, wait_ms));
                    let next = stage.one().await;
                    let waited_ms = stage.now_ms() - before_ms;
                    assert!(waited_ms.unsigned_abs() >= wait_ms, "it came after {waited_ms}, not {wait_ms}");
                    stage.broker.settle(next, Verdict::Returned).await.unwrap();
                }
                Ended::Dead => assert_eq!(attempt, 6),
                other => panic!("{other:?}"),
            }
        }
    }
    for attempt in 1..=5 {
        let of: Vec<u64> = waits.iter().filter(|(number, _)| *number == attempt).map(|(_, ms)| *ms).collect();
        let ceiling_ms = 500 << (attempt - 1);
        assert!(of.iter().any(|ms| *ms < ceiling_ms / 4), "the jitter is full, from nothing on: {of:?}");
        assert!(of.iter().any(|ms| *ms > ceiling_ms * 3 / 4), "up to the ceiling: {of:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn kno_1_a_lease_ends_at_its_deadline_and_an_extended_one_later() {
    let stage = Stage::new().await;
    let began_ms = stage.now_ms();
    stage.broker.publish(message("acme", "1")).await.unwrap();
    let first = stage.one().await;
    stage.clock.sleep(Duration::from_secs(20)).await;
    assert!(stage.broker.extend(first.receipt.clone()).await.unwrap());
    let second = stage.one().await;
    assert_eq!(second.receipt.attempt, 2);
    assert_eq!(stage.now_ms() - began_ms, 50_000, "twenty seconds, and a whole deadline from then on");
}

#[tokio::test(start_paused = true)]
async fn kno_1_what_nobody_ever_settles_is_a_dead_letter_after_six_deliveries() {
    let stage = Stage::new().await;
    stage.broker.publish(message("acme", "poison")).await.unwrap();
    for attempt in 1..=6 {
        assert_eq!(stage.one().await.receipt.attempt, attempt);
    }
    let taken = stage.broker.take(1).await.unwrap();
    assert!(taken.deliveries.is_empty());
    assert_eq!(taken.died, [message("acme", "poison")]);
    let dead = stage.broker.dead(Some(tenant("acme")), 0, 10).await.unwrap().items;
    assert_eq!((dead.len(), dead[0].attempts), (1, 6));
}

#[tokio::test(start_paused = true)]
async fn kno_1_a_restart_loses_nothing_and_counts_what_was_in_hand() {
    let stage = Stage::new().await;
    for id in ["1", "2", "3"] {
        stage.broker.publish(message("acme", id)).await.unwrap();
    }
    let in_hand = stage.one().await;
    stage.broker.settle(stage.one().await, Verdict::Done { reply: Some(Bytes::from("r")) }).await.unwrap();
    let stage = stage.restart().await;
    let began_ms = stage.now_ms();
    let taken = stage.broker.take(9).await.unwrap().deliveries;
    let seen: Vec<(&str, u32)> =
        taken.iter().map(|delivery| (delivery.message.id.as_str(), delivery.receipt.attempt)).collect();
    assert_eq!(seen, [("1", 2), ("3", 1)]);
    assert_eq!(stage.now_ms(), began_ms, "whoever had it is gone, so nobody waits for the deadline");
    assert_eq!(stage.broker.settle(in_hand, again()).await.unwrap(), Ended::Late);
    let inbox = Subject::of_inbox(&tenant("acme"), "me").unwrap();
    assert_eq!(stage.broker.replies(tenant("acme"), inbox, None, 0, 9).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_forgotten() {
    let stage = Stage::new().await;
    for id in ["1", "2"] {
        stage.broker.publish(message("acme", id)).await.unwrap();
        let verdict = Verdict::Dead { why: String::new(), reply: Some(Bytes::from("r")) };
        stage.broker.settle(stage.one().await, verdict).await.unwrap();
        stage.clock.advance(Duration::from_millis(limits::REPLY_KEPT_MS.unsigned_abs()));
    }
    stage.broker.sweep().await.unwrap();
    let inbox = Subject::of_inbox(&tenant("acme"), "me").unwrap();
    let replies = || stage.broker.replies(tenant("acme"), inbox.clone(), None, 0, 9);
    assert_eq!(replies().await.unwrap().items.len(), 0);
    assert_eq!(stage.broker.dead(None, 0, 9).await.unwrap().items.len(), 2, "letters are kept longer");
    stage.clock.advance(Duration::from_millis(limits::DEAD_KEPT_MS.unsigned_abs()));
    stage.broker.sweep().await.unwrap();
    assert!(stage.broker.dead(None, 0, 9).await.unwrap().items.is_empty());
}

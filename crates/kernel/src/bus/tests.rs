//! Tests of the bus: who hears what, what overflows do, what is counted, and who waits for whom.

use std::sync::Arc;
use std::time::Duration;

use orchestr8_contract::{Event, Priority};
use serde_json::{Value, json};

use super::*;
use crate::log::{Captured, Level, Log};
use crate::ports::clock::Simulated;

pub fn event(name: &'static str, subject: &str, number: u64) -> Event {
    Event { name, subject: subject.into(), priority: priority(name), at_ms: 0, data: Arc::new(number.into()) }
}

fn normal(number: u64) -> Event {
    event("info", "s", number)
}

fn critical(number: u64) -> Event {
    event("error", "s", number)
}

pub struct Fixture {
    pub bus: Bus,
    pub clock: Arc<Simulated>,
    pub lines: Captured,
}

pub fn bus(overflow_policy: Overflow, max_queue_size: usize) -> Fixture {
    let (clock, lines) = (Arc::new(Simulated::new()), Captured::default());
    let log = Log::new(Level::Warn, lines.clone(), Arc::default(), clock.clone());
    let config = Config { overflow_policy, max_queue_size, ..Config::default() };
    Fixture { bus: Bus::new(&config, clock.clone(), log), clock, lines }
}

fn heard(listener: &mut Subscription) -> Vec<u64> {
    std::iter::from_fn(|| listener.try_next()).filter_map(|event| event.data.as_u64()).collect()
}

#[test]
fn a_listener_hears_the_names_and_subject_it_asked_for_each_once_and_in_order() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    let mut all = bus.subscribe(&Filter::all()).unwrap();
    let mut named = bus.subscribe(&Filter::names(["a", "b", "a"])).unwrap();
    let mut about = bus.subscribe(&Filter::all().about("x")).unwrap();
    let mut both = bus.subscribe(&Filter::names(["a"]).about("x")).unwrap();
    for (number, (name, subject)) in [("a", "x"), ("b", "y"), ("c", "x"), ("a", "y")].into_iter().enumerate()
    {
        bus.publish(event(name, subject, number as u64));
    }
    assert_eq!(heard(&mut all), [0, 1, 2, 3]);
    assert_eq!(heard(&mut named), [0, 1, 3]);
    assert_eq!(heard(&mut about), [0, 2]);
    assert_eq!(heard(&mut both), [0]);
}

#[test]
fn publishers_can_ask_whether_anybody_listens() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    assert!(bus.quiet() && !bus.has_listeners("a"));
    let named = bus.subscribe(&Filter::names(["a"]).about("x")).unwrap();
    assert!(!bus.quiet() && bus.has_listeners("a") && !bus.has_listeners("b"));
    let all = bus.subscribe(&Filter::all().about("x")).unwrap();
    assert!(bus.has_listeners("b"));
    drop((named, all));
    assert!(bus.quiet() && !bus.has_listeners("a") && !bus.has_listeners("b"));
    bus.publish(normal(1));
    assert_eq!(bus.metrics().event_queue_size, 0);
}

#[test]
fn drop_oldest_drops_the_oldest_normal_event_first() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    let mut listener = bus.subscribe(&Filter::names(["info", "error"])).unwrap();
    (0..10).for_each(|number| bus.publish(normal(number)));
    // One place in ten is reserved: the tenth normal event displaced the first.
    assert_eq!(listener.waiting(), 9);
    bus.publish(critical(10));
    bus.publish(critical(11));
    assert_eq!(heard(&mut listener), [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    let metrics = bus.metrics();
    assert_eq!((metrics.events_dropped_normal, metrics.events_dropped_critical), (2, 0));
}

#[test]
fn a_critical_event_makes_room_only_for_another_critical_one() {
    let bus = bus(Overflow::DropOldest, 3).bus;
    let mut listener = bus.subscribe(&Filter::names(["info", "error"])).unwrap();
    (0..3).for_each(|number| bus.publish(critical(number)));
    bus.publish(normal(3));
    bus.publish(critical(4));
    assert_eq!(heard(&mut listener), [1, 2, 4]);
    let metrics = bus.metrics();
    assert_eq!((metrics.events_dropped_normal, metrics.events_dropped_critical), (1, 1));
    assert_eq!(metrics.events_dropped_total, 2);
}

#[test]
fn drop_newest_keeps_what_waits() {
    let bus = bus(Overflow::DropNewest, 10).bus;
    let mut listener = bus.subscribe(&Filter::names(["info", "error"])).unwrap();
    (0..12).for_each(|number| bus.publish(normal(number)));
    bus.publish(critical(12));
    bus.publish(critical(13));
    assert_eq!(heard(&mut listener), [0, 1, 2, 3, 4, 5, 6, 7, 8, 12]);
    assert_eq!(bus.metrics().events_dropped_by_name, [("error", 1), ("info", 3)].into());
}

#[tokio::test(start_paused = true)]
async fn block_makes_the_publisher_wait_after_everybody_else_has_the_event() {
    let bus = bus(Overflow::Block, 10).bus;
    let mut slow = bus.subscribe(&Filter::all()).unwrap();
    (0..9).for_each(|number| bus.publish(normal(number)));
    let mut quick = bus.subscribe(&Filter::all()).unwrap();
    let publisher = tokio::spawn({
        let bus = bus.clone();
        async move { bus.publish_blocking(normal(9)).await }
    });
    assert_eq!(quick.next().await.unwrap().data.as_u64(), Some(9));
    assert!(!publisher.is_finished());
    // A critical event still has room, and taking it makes none for the normal one.
    bus.publish_blocking(critical(10)).await;
    assert_eq!(slow.next().await.unwrap().data.as_u64(), Some(0));
    publisher.await.unwrap();
    assert_eq!(heard(&mut slow), [1, 2, 3, 4, 5, 6, 7, 8, 10, 9]);
    assert_eq!(bus.metrics().events_dropped_total, 0);
}

#[tokio::test(start_paused = true)]
async fn block_gives_up_after_its_limit_and_counts_the_drop() {
    let Fixture { bus, clock, .. } = bus(Overflow::Block, 1);
    let listeners =
        [bus.subscribe(&Filter::names(["info"])).unwrap(), bus.subscribe(&Filter::names(["info"])).unwrap()];
    bus.publish_blocking(normal(0)).await;
    let before_us = clock.elapsed_us();
    bus.publish_blocking(normal(1)).await;
    assert_eq!(clock.elapsed_us() - before_us, 30_000_000);
    assert_eq!(bus.metrics().events_dropped_total, 2);
    assert!(listeners.iter().all(|listener| listener.waiting() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_goes_away_frees_the_publisher_that_waits_for_it() {
    let bus = bus(Overflow::Block, 1).bus;
    let listener = bus.subscribe(&Filter::all()).unwrap();
    bus.publish(critical(0));
    let publisher = tokio::spawn({
        let bus = bus.clone();
        async move { bus.publish_blocking(critical(1)).await }
    });
    tokio::task::yield_now().await;
    drop(listener);
    publisher.await.unwrap();
    assert_eq!(bus.metrics().events_dropped_total, 0);
}

#[tokio::test]
async fn publishing_without_waiting_drops_under_block_and_waits_under_no_other_policy() {
    let blocking = bus(Overflow::Block, 1).bus;
    let _listener = blocking.subscribe(&Filter::names(["error"])).unwrap();
    blocking.publish(critical(0));
    blocking.publish(critical(1));
    assert_eq!(blocking.metrics().events_dropped_critical, 1);
    let dropping = bus(Overflow::DropNewest, 1).bus;
    let _listener = dropping.subscribe(&Filter::names(["error"])).unwrap();
    dropping.publish_blocking(critical(0)).await;
    dropping.publish_blocking(critical(1)).await;
    assert_eq!(dropping.metrics().events_dropped_critical, 1);
}

#[test]
fn a_slow_listener_harms_nobody_else() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    let _stuck = bus.subscribe(&Filter::names(["info"])).unwrap();
    let mut quick = bus.subscribe(&Filter::names(["info"])).unwrap();
    for number in 0..1_000 {
        bus.publish(normal(number));
        assert_eq!(heard(&mut quick), [number]);
    }
    assert_eq!(bus.metrics().events_dropped_total, 991);
}

#[tokio::test]
async fn waiting_ends_with_the_next_event_or_with_the_bus() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    let mut listener = bus.subscribe(&Filter::all()).unwrap();
    let waiting =
        tokio::spawn(async move { (listener.next().await, listener.next().await, listener.next().await) });
    tokio::task::yield_now().await;
    bus.publish(normal(1));
    bus.publish(normal(2));
    drop(bus);
    let (first, second, third) = waiting.await.unwrap();
    assert_eq!((first.unwrap().data.as_u64(), second.unwrap().data.as_u64()), (Some(1), Some(2)));
    assert!(third.is_none());
}

#[test]
fn a_drop_is_told_to_whoever_asked_and_never_drops_or_tells_of_another() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    let mut full = bus.subscribe(&Filter::all()).unwrap();
    let mut told = bus.subscribe(&Filter::names([EVENT_DROPPED])).unwrap();
    (0..40).for_each(|number| bus.publish(normal(number)));
    // The full queue keeps its newest events: no news of drops took the place of one.
    assert_eq!(heard(&mut full), [31, 32, 33, 34, 35, 36, 37, 38, 39]);
    let first = told.try_next().unwrap();
    assert_eq!(
        *first.data,
        json!({"type": "drop-oldest", "event": "info", "priority": "normal", "count": 1, "dropRate": 1, "queueSize": 10, "tenant": null})
    );
    assert_eq!(told.waiting(), 8);
    assert_eq!(bus.metrics().events_dropped_total, 31);
}

#[test]
fn metrics_have_the_names_of_the_seed() {
    let bus = bus(Overflow::DropOldest, 10).bus;
    let _one = bus.subscribe(&Filter::names(["info", "error"])).unwrap();
    let _two = bus.subscribe(&Filter::names(["error"])).unwrap();
    (0..10).for_each(|number| bus.publish(normal(number)));
    bus.publish(critical(10));
    let metrics = serde_json::to_value(bus.metrics()).unwrap();
    assert_eq!(
        metrics,
        json!({
            "events_dropped_total": 1, "events_dropped_critical": 0, "events_dropped_normal": 1,
            "events_dropped_by_name": {"info": 1}, "event_queue_size": 11, "event_queue_utilization": 1.0,
            "event_queue_reserved_usage": 1, "event_drop_rate_per_minute": 1, "event_drop_ratio": 1.0 / 12.0,
        })
    );
}

#[test]
fn the_drop_rate_is_of_the_last_minute() {
    let Fixture { bus, clock, .. } = bus(Overflow::DropNewest, 1);
    let mut listener = bus.subscribe(&Filter::names(["error"])).unwrap();
    (0..4).for_each(|number| bus.publish(critical(number)));
    clock.advance(Duration::from_secs(30));
    heard(&mut listener);
    bus.publish(critical(4));
    let metrics = bus.metrics();
    assert_eq!((metrics.event_drop_rate_per_minute, metrics.event_drop_ratio), (3, 0.6));
    clock.advance(Duration::from_secs(30));
    let metrics = bus.metrics();
    assert_eq!((metrics.event_drop_rate_per_minute, metrics.event_drop_ratio), (0, 0.0));
    bus.publish(critical(5));
    let metrics = bus.metrics();
    assert_eq!((metrics.event_drop_rate_per_minute, metrics.event_drop_ratio), (1, 0.5));
    clock.advance(Duration::from_secs(3600));
    assert_eq!(bus.metrics().event_drop_rate_per_minute, 0);
    assert_eq!(bus.metrics().events_dropped_total, 4);
}

#[test]
fn the_log_warns_above_a_tenth_and_at_most_every_half_minute() {
    let Fixture { bus, clock, lines } = bus(Overflow::DropNewest, 90);
    let mut listener = bus.subscribe(&Filter::names(["error"])).unwrap();
    (0..100).for_each(|number| bus.publish(critical(number)));
    assert!(lines.lines().is_empty(), "a tenth is not above a tenth");
    (0..5).for_each(|number| bus.publish(critical(number)));
    assert_eq!(lines.lines().len(), 1);
    clock.advance(Duration::from_millis(29_999));
    bus.publish(critical(0));
    assert_eq!(lines.lines().len(), 1);
    clock.advance(Duration::from_millis(1));
    bus.publish(critical(0));
    let entry = &lines.entries()[1];
    assert_eq!(
        (&entry["level"], &entry["droppedInLastMinute"], &entry["event"]),
        (&json!("warn"), &json!(17), &json!("error"))
    );
    heard(&mut listener);
}

#[test]
fn drops_are_counted_under_a_bounded_number_of_names() {
    let bus = bus(Overflow::DropNewest, 1).bus;
    let _listener = bus.subscribe(&Filter::all()).unwrap();
    for number in 0..300_u64 {
        let name: &'static str = Box::leak(format!("n{number}").into_boxed_str());
        bus.publish(event(name, "s", number));
    }
    let by_name = bus.metrics().events_dropped_by_name;
    assert_eq!((by_name.len(), by_name["other"]), (257, 43));
}

#[test]
fn listeners_beyond_the_limit_are_refused() {
    let bus = bus(Overflow::DropOldest, 1).bus;
    let listeners: Vec<_> = (0..LISTENERS).map(|_| bus.subscribe(&Filter::all()).unwrap()).collect();
    let fault = bus.subscribe(&Filter::all()).err().unwrap();
    assert_eq!(fault.code, Code::ResourceExhausted);
    drop(listeners);
    assert!(bus.subscribe(&Filter::all()).is_ok());
}

#[test]
fn configuration_has_the_defaults_and_names_of_the_seed() {
    let config: Config = serde_json::from_value(json!({})).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(
        (config.max_queue_size, config.overflow_policy, config.reserved_capacity),
        (1000, Overflow::DropOldest, 0.1)
    );
    for overflow in [Overflow::DropOldest, Overflow::DropNewest, Overflow::Block] {
        let config: Config = serde_json::from_value(json!({"overflowPolicy": overflow.as_str()})).unwrap();
        assert_eq!(config.overflow_policy, overflow);
    }
    assert!(serde_json::from_value::<Config>(json!({"size": 1})).is_err());
    assert_eq!((priority("circuit-open"), priority("step-start")), (Priority::Critical, Priority::Normal));
    assert_eq!(serde_json::to_value(Config::default()).unwrap()["maxQueueSize"], Value::from(1000));
}

//! Properties of the bus: it agrees with a slow and simple model, loses nothing it does not count, and keeps the order.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::{Event, Priority};
use proptest::prelude::*;

use super::tests::{Fixture, bus, event};
use super::*;

/// Names of both priorities, so that lines merge and topics mix.
const NAMES: [&str; 4] = ["info", "debug", "error", "cancellation"];

#[derive(Debug, Clone)]
enum Step {
    Publish(usize),
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![3 => (0..NAMES.len()).prop_map(Step::Publish), 1 => Just(Step::Take)];
    prop::collection::vec(step, 0..200)
}

fn overflow() -> impl Strategy<Value = Overflow> {
    prop::sample::select(vec![Overflow::DropOldest, Overflow::DropNewest, Overflow::Block])
}

/// The queue of the seed, with its searches and splices: what ours must do.
struct Model {
    queue: Vec<(&'static str, u64)>,
    total: usize,
    overflow: Overflow,
    dropped: Vec<u64>,
}

impl Model {
    fn accepts(&self, name: &str) -> bool {
        let reserved = self.total / 10;
        let normal = self.queue.iter().filter(|(name, _)| priority(name) == Priority::Normal).count();
        let fits = priority(name) == Priority::Critical || normal < self.total - reserved;
        fits && self.queue.len() < self.total
    }

    fn publish(&mut self, name: &'static str, number: u64) {
        if self.accepts(name) {
            return self.queue.push((name, number));
        }
        let oldest_normal = self.queue.iter().position(|(name, _)| priority(name) == Priority::Normal);
        let victim = match (self.overflow, priority(name)) {
            (Overflow::DropNewest | Overflow::Block, _) => None,
            (Overflow::DropOldest, Priority::Normal) => oldest_normal,
            (Overflow::DropOldest, Priority::Critical) => oldest_normal.or(Some(0)),
        };
        match victim {
            None => self.dropped.push(number),
            Some(place) => {
                self.dropped.push(self.queue.remove(place).1);
                self.queue.push((name, number));
            }
        }
    }
}

fn number(event: &Event) -> u64 {
    event.data.as_u64().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_queue_does_what_the_model_does_and_loses_nothing_it_does_not_count(
        steps in steps(), overflow in overflow(), total in 1_usize..30,
    ) {
        let Fixture { bus, .. } = bus(overflow, total);
        let mut listener = bus.subscribe(&Filter::names(NAMES)).unwrap();
        let mut model = Model { queue: Vec::new(), total, overflow, dropped: Vec::new() };
        let (mut published, mut delivered) = (0_u64, 0_u64);
        let mut last: HashMap<&str, u64> = HashMap::new();
        for step in steps {
            match step {
                Step::Publish(name) => {
                    bus.publish(event(NAMES[name], "s", published));
                    model.publish(NAMES[name], published);
                    published += 1;
                }
                Step::Take => {
                    let (found, wanted) = (listener.try_next(), (!model.queue.is_empty()).then(|| model.queue.remove(0)));
                    prop_assert_eq!(found.as_ref().map(number), wanted.map(|(_, number)| number));
                    if let Some(event) = found {
                        delivered += 1;
                        // First in, first out within a topic, whatever was dropped between.
                        prop_assert!(last.insert(event.name, number(&event)).is_none_or(|before| before < number(&event)));
                    }
                }
            }
            let metrics = bus.metrics();
            prop_assert_eq!(published, delivered + metrics.events_dropped_total + metrics.event_queue_size as u64);
            prop_assert_eq!(metrics.events_dropped_total, model.dropped.len() as u64);
            prop_assert_eq!(metrics.events_dropped_by_name.values().sum::<u64>(), metrics.events_dropped_total);
            prop_assert!(metrics.event_queue_size <= total);
        }
    }
}

#[test]
fn several_threads_lose_nothing_and_keep_the_order_of_each_publisher() {
    const PUBLISHERS: u64 = 4;
    const EACH: u64 = 5_000;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_time().build().unwrap();
    for overflow in [Overflow::DropOldest, Overflow::DropNewest, Overflow::Block] {
        let Fixture { bus, .. } = bus(overflow, 64);
        let mut listener = bus.subscribe(&Filter::names(NAMES)).unwrap();
        let publishers: Vec<_> = (0..PUBLISHERS)
            .map(|publisher| {
                let bus = bus.clone();
                runtime.spawn(async move {
                    for number in 0..EACH {
                        let name = NAMES[usize::try_from(publisher).unwrap()];
                        bus.publish_blocking(event(name, "s", publisher * EACH + number)).await;
                    }
                })
            })
            .collect();
        let heard = runtime.spawn(async move {
            let mut heard: Vec<u64> = Vec::new();
            while let Some(event) = listener.next().await {
                heard.push(number(&event));
            }
            heard
        });
        runtime.block_on(async {
            for publisher in publishers {
                publisher.await.unwrap();
            }
        });
        let dropped = bus.metrics().events_dropped_total;
        drop(bus);
        let heard = runtime.block_on(heard).unwrap();
        assert_eq!(heard.len() as u64 + dropped, PUBLISHERS * EACH, "{overflow:?}");
        assert_eq!(dropped == 0, overflow == Overflow::Block || heard.len() as u64 == PUBLISHERS * EACH);
        for publisher in 0..PUBLISHERS {
            let own: Vec<u64> = heard.iter().copied().filter(|number| number / EACH == publisher).collect();
            assert!(own.is_sorted(), "{overflow:?}");
        }
    }
}

#[test]
fn listeners_come_and_go_while_events_are_published() {
    let Fixture { bus, .. } = bus(Overflow::DropOldest, 16);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (bus, stop) = (bus.clone(), stop.clone());
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    bus.publish(event("info", "s", 1));
                }
            });
        }
        for round in 0..500 {
            let filter = if round % 2 == 0 { Filter::all() } else { Filter::names(["info"]).about("s") };
            let mut listener = bus.subscribe(&filter).unwrap();
            while listener.try_next().is_none() {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(bus.quiet());
}

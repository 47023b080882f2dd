//! Properties of the scheduler (WF-19.3): the limit holds, nobody starves, and what is given back is used.

use std::collections::HashMap;
use std::sync::Arc;

use orchestr8_contract::id::Tenant;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::sync::oneshot;

use super::{Scheduler, Slot};

fn acme() -> Tenant {
    Tenant::parse("acme").unwrap()
}

fn flow() -> Arc<str> {
    "flow".into()
}

#[derive(Debug, Clone)]
enum Move {
    Take(i64),
    LineUp(i32),
    Release(usize),
    GiveUp(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0_i64..5).prop_map(Move::Take),
        2 => (-2_i32..3).prop_map(Move::LineUp),
        4 => (0_usize..16).prop_map(Move::Release),
        1 => (0_usize..16).prop_map(Move::GiveUp),
    ];
    prop::collection::vec(one, 1..120)
}

struct World {
    scheduler: Scheduler<i64>,
    held: Arc<Mutex<Vec<Slot>>>,
    waiting: Vec<oneshot::Receiver<Slot>>,
    number: i64,
}

impl World {
    fn new(max: usize) -> Self {
        let held: Arc<Mutex<Vec<Slot>>> = Arc::default();
        let scheduler = Scheduler::new(max);
        let sink = held.clone();
        scheduler.on_admit(Arc::new(move |_, slot| sink.lock().push(slot)));
        Self { scheduler, held, waiting: Vec::new(), number: 0 }
    }

    fn collect(&mut self) {
        let held = &self.held;
        self.waiting.retain_mut(|receiver| match receiver.try_recv() {
            Ok(slot) => {
                held.lock().push(slot);
                false
            }
            Err(oneshot::error::TryRecvError::Empty) => true,
            Err(oneshot::error::TryRecvError::Closed) => false,
        });
    }

    fn release(&self, at: usize) {
        let slot = {
            let mut held = self.held.lock();
            if held.is_empty() {
                return;
            }
            let at = at % held.len();
            held.swap_remove(at)
        };
        drop(slot);
    }

    fn play(&mut self, play: Move) {
        match play {
            Move::Take(execution) => match self.scheduler.take((&acme(), &flow(), execution)) {
                Ok(slot) => self.held.lock().push(slot),
                Err(receiver) => self.waiting.push(receiver),
            },
            Move::LineUp(priority) => {
                self.number += 1;
                self.scheduler.line_up((&acme(), &flow()), (priority, self.number), self.number);
            }
            Move::Release(at) => self.release(at),
            Move::GiveUp(at) => {
                if !self.waiting.is_empty() {
                    let at = at % self.waiting.len();
                    drop(self.waiting.swap_remove(at));
                }
            }
        }
        self.collect();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn wf_19_3_the_limit_holds_and_no_slot_is_lost(max in 1_usize..5, plays in moves()) {
        let mut world = World::new(max);
        for play in plays {
            world.play(play);
            let held = world.held.lock().len();
            prop_assert!(held <= max, "{held} slots of {max}");
            let depth = world.scheduler.depth();
            prop_assert_eq!(depth.running, held, "a slot is with nobody");
            // Work-conserving: nobody waits while there is room.
            prop_assert!(held == max || world.waiting.is_empty());
        }
        // Everything that waits gets its turn once slots come back.
        for _ in 0..10_000 {
            if world.held.lock().is_empty() && world.waiting.is_empty() {
                break;
            }
            world.release(0);
            world.collect();
        }
        let depth = world.scheduler.depth();
        prop_assert_eq!((depth.running, depth.waiting_executions), (0, 0));
        prop_assert!(world.waiting.is_empty());
    }

    #[test]
    fn wf_19_3_turns_go_round_by_execution(counts in prop::collection::vec(1_usize..6, 2..6)) {
        let scheduler: Scheduler<()> = Scheduler::new(1);
        let first = scheduler.take((&acme(), &flow(), -1)).ok();
        let mut waiting: Vec<(usize, oneshot::Receiver<Slot>)> = Vec::new();
        for (execution, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                if let Err(receiver) = scheduler.take((&acme(), &flow(), i64::try_from(execution).unwrap())) {
                    waiting.push((execution, receiver));
                }
            }
        }
        drop(first);
        let mut order = Vec::new();
        while !waiting.is_empty() {
            let at = waiting.iter_mut().position(|(_, receiver)| receiver.try_recv().is_ok());
            // The slot received above is dropped at once, which hands it to the next.
            let (execution, _) = waiting.remove(at.unwrap());
            order.push(execution);
        }
        // No execution is served twice while another with waiting steps is not served once.
        let mut served: HashMap<usize, usize> = HashMap::new();
        for execution in order {
            let before = served.get(&execution).copied().unwrap_or(0);
            for (other, count) in counts.iter().enumerate() {
                let theirs = served.get(&other).copied().unwrap_or(0);
                prop_assert!(theirs >= (*count).min(before), "{other} starves behind {execution}");
            }
            served.insert(execution, before + 1);
        }
    }
}

#[test]
fn the_higher_priority_begins_first_and_then_the_older() {
    let order: Arc<Mutex<Vec<i64>>> = Arc::default();
    let scheduler = Scheduler::new(1);
    let blocker = scheduler.take((&acme(), &flow(), 0)).ok();
    for (priority, number) in [(0, 1), (5, 2), (0, 3), (5, 4), (-1, 5)] {
        scheduler.line_up((&acme(), &flow()), (priority, number), number);
    }
    let sink = order.clone();
    scheduler.on_admit(Arc::new(move |number, _slot| sink.lock().push(number)));
    drop(blocker);
    assert_eq!(*order.lock(), [2, 4, 1, 3, 5]);
}

#[test]
fn an_execution_begins_at_once_only_when_nobody_comes_before_it() {
    let scheduler: Scheduler<i64> = Scheduler::new(1);
    let slot = scheduler.try_begin(&acme());
    assert!(slot.is_some());
    assert!(scheduler.try_begin(&acme()).is_none());
    scheduler.line_up((&acme(), &flow()), (0, 1), 1);
    drop(slot);
    assert!(scheduler.try_begin(&acme()).is_none(), "another one is in line");
    scheduler.on_admit(Arc::new(|_, _slot| {}));
    assert!(scheduler.try_begin(&acme()).is_some());
}

/// Whatever a tenant holds and lets wait, another one begins and runs.
#[test]
fn a_tenant_with_all_slots_does_not_keep_another_from_running() {
    let rival = Tenant::parse("rival").unwrap();
    let admitted: Arc<Mutex<Vec<i64>>> = Arc::default();
    let scheduler: Scheduler<i64> = Scheduler::new(10);
    let sink = admitted.clone();
    let kept: Arc<Mutex<Vec<Slot>>> = Arc::default();
    let keep = kept.clone();
    scheduler.on_admit(Arc::new(move |number, slot| {
        sink.lock().push(number);
        keep.lock().push(slot);
    }));
    let begun: Vec<_> = (0..200).map(|_| scheduler.count_begun(&rival)).collect();
    let held: Vec<Slot> =
        (0..10).map(|execution| scheduler.take((&rival, &flow(), execution)).ok().unwrap()).collect();
    let _waiting: Vec<_> =
        (0..100).map(|execution| scheduler.take((&rival, &flow(), execution)).err().unwrap()).collect();
    for number in 0..100 {
        scheduler.line_up((&rival, &flow()), (100, number), number);
    }
    assert!(admitted.lock().is_empty());
    let own = scheduler.try_begin(&acme());
    assert!(own.is_some(), "a slot of the reserve");
    assert!(scheduler.take((&acme(), &flow(), 500)).is_err(), "it has its share");
    scheduler.line_up((&acme(), &flow()), (0, 501), 501);
    drop(own);
    assert_eq!(
        *admitted.lock(),
        [501],
        "a step of acme that was given up, then its execution, before those of rival"
    );
    drop(begun);
    drop(held);
    assert!(admitted.lock().len() > 1);
}

#[test]
fn tenants_that_wait_take_turns() {
    let rival = Tenant::parse("rival").unwrap();
    let order: Arc<Mutex<Vec<i64>>> = Arc::default();
    let scheduler = Scheduler::new(1);
    for number in 10..14 {
        scheduler.line_up((&rival, &flow()), (0, number), number);
    }
    scheduler.line_up((&acme(), &flow()), (0, 20), 20);
    let sink = order.clone();
    scheduler.on_admit(Arc::new(move |number, _slot| sink.lock().push(number)));
    assert_eq!(*order.lock(), [10, 20, 11, 12, 13]);
}

/// The order in which waiting steps of these workflows and executions get the only slot.
fn served(asked: &[(&str, i64)]) -> Vec<(String, i64)> {
    let scheduler: Scheduler<()> = Scheduler::new(1);
    let first = scheduler.take((&acme(), &flow(), -1)).ok();
    let mut waiting: Vec<_> = asked
        .iter()
        .map(|(workflow, execution)| {
            let receiver = scheduler.take((&acme(), &(*workflow).into(), *execution)).err().unwrap();
            ((String::from(*workflow), *execution), receiver)
        })
        .collect();
    drop(first);
    let mut order = Vec::new();
    // The slot that is received is dropped at once, which hands it to the next.
    while let Some(at) = waiting.iter_mut().position(|(_, receiver)| receiver.try_recv().is_ok()) {
        order.push(waiting.remove(at).0);
    }
    order
}

#[test]
fn wf_19_3_workflows_take_turns_and_within_one_its_executions() {
    let asked = [("many", 1), ("many", 1), ("many", 2), ("many", 3), ("many", 3), ("few", 4)];
    let order: Vec<i64> = served(&asked).into_iter().map(|(_, execution)| execution).collect();
    assert_eq!(order, [1, 4, 2, 3, 1, 3]);
}

#[test]
fn wf_19_3_a_workflow_with_a_long_queue_does_not_keep_another_from_beginning() {
    let order: Arc<Mutex<Vec<i64>>> = Arc::default();
    let scheduler = Scheduler::new(1);
    for number in 1..=3 {
        scheduler.line_up((&acme(), &"many".into()), (0, number), number);
    }
    scheduler.line_up((&acme(), &"few".into()), (0, 10), 10);
    scheduler.line_up((&acme(), &"urgent".into()), (5, 20), 20);
    let sink = order.clone();
    scheduler.on_admit(Arc::new(move |number, _slot| sink.lock().push(number)));
    assert_eq!(*order.lock(), [20, 1, 10, 2, 3]);
}

#[test]
fn steps_that_stopped_waiting_cost_their_workflow_no_turn() {
    let scheduler: Scheduler<()> = Scheduler::new(1);
    let first = scheduler.take((&acme(), &flow(), 1)).ok();
    let many: Arc<str> = "many".into();
    drop(scheduler.take((&acme(), &many, 2)));
    let mut patient = scheduler.take((&acme(), &many, 2)).err().unwrap();
    let mut other = scheduler.take((&acme(), &"other".into(), 3)).err().unwrap();
    drop(first);
    let slot = patient.try_recv().unwrap();
    assert!(other.try_recv().is_err());
    drop(slot);
    assert!(other.try_recv().is_ok());
    assert_eq!(scheduler.depth().waiting_steps, 0);
    drop(other);
    assert!(scheduler.take((&acme(), &flow(), 4)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// While others wait, no workflow is served twice before each of them is served once; and so for the executions of one.
    #[test]
    fn wf_19_3_turns_go_round_by_workflow(asked in prop::collection::vec((0_usize..4, 0_i64..3), 1..40)) {
        let names = ["a", "b", "c", "d"];
        let asked: Vec<(&str, i64)> = asked.into_iter().map(|(workflow, one)| (names[workflow], one)).collect();
        let mut left: Vec<(String, i64)> = asked.iter().map(|(name, one)| (String::from(*name), *one)).collect();
        let mut turns: HashMap<String, usize> = HashMap::new();
        for (workflow, execution) in served(&asked) {
            let before = turns.get(&workflow).copied().unwrap_or(0);
            for (other, _) in &left {
                let theirs = turns.get(other).copied().unwrap_or(0);
                prop_assert!(theirs >= before, "{other} waits behind {workflow}");
            }
            *turns.entry(workflow.clone()).or_default() += 1;
            let at = left.iter().position(|one| *one == (workflow.clone(), execution)).unwrap();
            left.remove(at);
        }
        prop_assert!(left.is_empty());
    }
}

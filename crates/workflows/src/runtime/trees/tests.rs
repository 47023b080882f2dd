//! Places of levels: limits, turns, and what stays in memory.

use super::*;

fn at(level: usize) -> TreeLevel {
    TreeLevel { root: 1, level }
}

#[test]
fn each_level_has_its_own_places_and_they_go_to_those_that_wait_in_turn() {
    let limits = TreeLimits::new(2, 100);
    let mut first = vec![limits.take(at(1), None).ok().unwrap(), limits.take(at(1), None).ok().unwrap()];
    let mut waiting = vec![limits.take(at(1), None).err().unwrap(), limits.take(at(1), None).err().unwrap()];
    assert!(limits.take(at(2), None).is_ok(), "another level");
    assert!(limits.take(TreeLevel { root: 2, level: 1 }, None).is_ok(), "another tree");
    drop(first.pop());
    let second = waiting[0].try_recv().unwrap();
    assert!(waiting[1].try_recv().is_err());
    // One that has stopped waiting is passed over.
    drop(waiting);
    drop((first, second));
    assert!(limits.0.trees.lock().trees.is_empty());
}

#[test]
fn a_held_place_is_free_at_the_end_and_a_tree_without_executions_takes_no_memory() {
    let limits = TreeLimits::new(1, 100);
    let root = at(0);
    limits.activate(1);
    limits.set_started(1, 5);
    limits.count_started(1);
    assert_eq!(limits.started(1), Some(6));
    limits.hold(7, limits.take(at(1), None).ok().unwrap());
    let mut waiting = limits.take(at(1), None).err().unwrap();
    limits.leave(1, root, false);
    assert_eq!(limits.started(1), Some(6), "a child has not ended");
    limits.leave(7, at(1), false);
    assert!(waiting.try_recv().is_err(), "it only waits, and keeps its place");
    limits.leave(7, at(1), true);
    drop(waiting.try_recv().unwrap());
    assert!(limits.0.trees.lock().trees.is_empty() && limits.0.held.lock().is_empty());
}

#[test]
fn what_was_in_the_tree_before_enters_beyond_the_limit_and_delays_the_next() {
    let limits = TreeLimits::new(1, 100);
    limits.enter_again(7, at(1));
    limits.enter_again(7, at(1));
    limits.enter_again(8, at(1));
    let mut waiting = limits.take(at(1), None).err().unwrap();
    limits.leave(7, at(1), true);
    assert!(waiting.try_recv().is_err(), "still as many as the limit");
    limits.leave(8, at(1), true);
    assert!(waiting.try_recv().is_ok());
}

#[test]
fn a_tenant_at_its_quota_has_one_place_at_each_level_and_more_as_its_executions_end() {
    let limits = TreeLimits::new(10, 100);
    let (acme, rival) = (Tenant::parse("acme").unwrap(), Tenant::parse("rival").unwrap());
    let first = limits.take(at(1), Some(&acme)).ok().unwrap();
    let mut second = limits.take(at(1), Some(&acme)).err().unwrap();
    assert!(limits.take(at(2), Some(&acme)).is_ok(), "each level goes on");
    limits.admit_throttled(&rival);
    assert!(second.try_recv().is_err());
    limits.admit_throttled(&acme);
    let second = second.try_recv().unwrap();
    let mut third = limits.take(at(1), Some(&acme)).err().unwrap();
    drop(first);
    assert!(third.try_recv().is_ok(), "a place that comes free is given on");
    // What is left of the list is passed over.
    limits.admit_throttled(&acme);
    drop(second);
    assert!(limits.0.trees.lock().throttled.is_empty());
    assert_eq!(limits.0.throttled.load(Ordering::Relaxed), 0);
}

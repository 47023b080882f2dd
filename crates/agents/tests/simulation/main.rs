//! Seeded simulation of messages between agents: a network that loses, doubles, reorders and parts, agents that crash, and a server
//! that crashes with its disk at random moments.
//!
//! The server is the real one: kernel, actions, hub, SQL, over a simulated disk. What the agents remember is theirs; a crash takes
//! what they had not written down. At the end the promises are checked. A seed replays exactly:
//! `O8_SEED=17 cargo test -p orchestr8-agents --test simulation`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod life;
mod peer;
mod promises;

use orchestr8_testing::every_seed;
use promises::Broken;

/// How many seeds one run tries; `O8_SEEDS` tries more.
const SEEDS: u64 = 10_000;

/// A world that has not come to rest after so many lives of its server has met a crash loop, which is a finding too.
const LIVES: usize = 60;

fn simulate(seed: u64) -> Result<life::World, Broken> {
    let mut world = life::World::new(seed);
    for number in 0..LIVES {
        if life::live(&mut world, number) {
            promises::check(&mut world)?;
            return Ok(world);
        }
    }
    Err(Broken(format!("the agents did not come to rest within {LIVES} lives of the server")))
}

#[test]
fn every_promise_holds_for_every_seed() {
    every_seed(SEEDS, |seed| simulate(seed).map(drop).map_err(|broken| broken.0));
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 17, 91] {
        let told = |seed| simulate(seed).map(|world| world.history).unwrap_or_else(|broken| vec![broken.0]);
        assert_eq!(told(seed), told(seed));
    }
}

/// A simulation in which nothing goes wrong proves nothing.
#[test]
fn everything_that_can_go_wrong_does() {
    let mut seen = std::collections::BTreeMap::<&str, usize>::new();
    for seed in 0..40 {
        let world = simulate(seed).unwrap_or_else(|broken| panic!("seed {seed}: {}", broken.0));
        for (what, count) in world.mishaps {
            *seen.entry(what).or_default() += count;
        }
    }
    for what in [
        "lost",
        "answer lost",
        "doubled",
        "out of order",
        "parted",
        "agent crash",
        "server crash",
        "swallowed",
        "late",
    ] {
        assert!(seen.contains_key(what), "{what} never happened: {seen:?}");
    }
}

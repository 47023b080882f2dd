//! Seeded simulation: a random workload on the whole pipeline, over a store that fails and crashes at random moments.
//!
//! A life is one process: a kernel on a runtime of its own. A crash drops the runtime with everything in it; what the
//! store had committed is all that the next life finds. Clients remember what they were told, and ask again for what
//! they were not. At the end the promises are checked. A seed replays exactly: `O8_SEED=17 cargo test --test simulation`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod clients;
mod life;
mod promises;

use orchestr8_testing::every_seed;
use promises::Broken;

/// How many seeds one run tries; `O8_SEEDS` tries more.
const SEEDS: u64 = 10_000;

/// A workload that has not ended after so many lives has met a crash loop, which is a finding too.
const LIVES: usize = 60;

fn simulate(seed: u64) -> Result<(), Broken> {
    let mut world = life::World::new(seed);
    for number in 0..LIVES {
        if life::live(&mut world, number) {
            return promises::check(&mut world);
        }
    }
    Err(Broken(format!("the workload did not end within {LIVES} lives")))
}

#[test]
fn every_promise_holds_for_every_seed() {
    every_seed(SEEDS, |seed| simulate(seed).map_err(|broken| broken.0));
}

#[test]
fn a_seed_replays_exactly() {
    let told = |seed| {
        let mut world = life::World::new(seed);
        for number in 0..LIVES {
            if life::live(&mut world, number) {
                break;
            }
        }
        world.history
    };
    for seed in [3, 17, 91] {
        assert_eq!(told(seed), told(seed));
    }
}

//! Bursts of several clients at once, checked against a model that does one thing after the other.
//!
//! Each seed makes a burst: clients that create, prompt, steer, rename, read and delete two sessions, with ids used twice,
//! dependencies and version guards. The store gets in between at moments the seed decides. What the clients heard is then held
//! against the model. A seed replays exactly: `O8_SEED=17 cargo test -p orchestr8-sessions-face --test bursts`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop"
)]

mod burst;
mod check;
mod heard;
mod lane;

/// How many seeds one run tries; `O8_SEEDS` tries more.
const SEEDS: u64 = 10_000;

fn number(name: &str) -> Option<u64> {
    #[allow(clippy::disallowed_methods, reason = "a test is told by its environment which seeds to try")]
    let text = std::env::var(name).ok()?;
    text.parse().ok()
}

fn try_seed(seed: u64) -> Result<(), String> {
    let plan = burst::plan(seed);
    let played = burst::play(seed, &plan);
    check::all(&plan, &played)
}

/// SES-7 to SES-10 under load.
#[test]
fn what_clients_hear_is_what_the_model_says() {
    if let Some(seed) = number("O8_SEED") {
        return try_seed(seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    let seeds = number("O8_SEEDS").unwrap_or(SEEDS);
    let half = seeds / 2;
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let halves = [0..half, half..seeds].map(|range| {
            scope.spawn(move || {
                let tried = range.filter_map(|seed| Some(format!("seed {seed}: {}", try_seed(seed).err()?)));
                tried.take(5).collect::<Vec<_>>()
            })
        });
        halves.into_iter().flat_map(|half| half.join().expect("a seed panicked")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

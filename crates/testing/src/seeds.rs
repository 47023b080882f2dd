//! Simulations by the thousand: each seed is a world of its own, and one that breaks a promise is told by its number.

/// Tries every seed below `count`, on two threads; `O8_SEEDS` tries so many instead, `O8_SEED` only that one. Panics with the
/// first that breaks a promise.
pub fn every_seed(count: u64, simulate: impl Fn(u64) -> Result<(), String> + Sync) {
    if let Some(seed) = number("O8_SEED") {
        return simulate(seed).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
    try_all(number("O8_SEEDS").unwrap_or(count), simulate);
}

fn try_all(seeds: u64, simulate: impl Fn(u64) -> Result<(), String> + Sync) {
    let half = seeds / 2;
    let broken: Vec<String> = std::thread::scope(|scope| {
        let simulate = &simulate;
        let halves = [0..half, half..seeds].map(|range| {
            scope.spawn(move || {
                let wrong = |seed| simulate(seed).err().map(|broken| format!("seed {seed}: {broken}"));
                range.filter_map(wrong).collect::<Vec<_>>()
            })
        });
        halves.into_iter().flat_map(|half| half.join().expect("a seed panicked")).collect()
    });
    assert!(broken.is_empty(), "{} of {seeds} seeds broke a promise, the first: {}", broken.len(), broken[0]);
}

fn number(name: &str) -> Option<u64> {
    #[allow(clippy::disallowed_methods, reason = "a test is told by its environment which seeds to try")]
    let text = std::env::var(name).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::try_all;

    #[test]
    #[should_panic(expected = "2 of 10 seeds broke a promise, the first: seed 3: lost")]
    fn a_seed_that_breaks_a_promise_is_named() {
        try_all(10, |seed| if seed % 4 == 3 { Err("lost".to_owned()) } else { Ok(()) });
    }
}

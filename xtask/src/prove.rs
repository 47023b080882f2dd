//! The long version of the test run: what the tests cover, then the same tests with many more seeds, kills and cases. Hours, not
//! minutes.
use crate::report::Tally;
use crate::{Request, unit};
use anyhow::Result;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The tests read these and fall back to what the ordinary run uses: simulated lives, processes killed while clients submit,
/// and cases per property.
type Numbers = [(&'static str, &'static str); 3];

const LONG: Numbers = [("O8_SEEDS", "1000000"), ("O8_KILL_CYCLES", "10000"), ("PROPTEST_CASES", "100000")];
/// Enough to see that it runs.
const QUICK: Numbers = [("O8_SEEDS", "20000"), ("O8_KILL_CYCLES", "300"), ("PROPTEST_CASES", "2000")];

pub fn run(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    unit::counted(&mut tally, request.verbose);
    let numbers = if request.quick { QUICK } else { LONG };
    tally.stage(&format!("prove with {}", words(numbers)), || {
        let mut command = unit::rust_tests(&["--workspace", "--exclude", "xtask"], &[]);
        command.envs(numbers);
        unit::run(&mut command, LIMIT, request.verbose)
    });
    Ok(tally.close())
}

fn words(numbers: Numbers) -> String {
    numbers.map(|(name, value)| format!("{name}={value}")).join(" ")
}

#[cfg(test)]
mod tests {
    use super::{LONG, QUICK, words};

    #[test]
    fn the_quick_proof_turns_the_same_screws() {
        assert_eq!(LONG.map(|(name, _)| name), QUICK.map(|(name, _)| name));
        assert_eq!(words(LONG), "O8_SEEDS=1000000 O8_KILL_CYCLES=10000 PROPTEST_CASES=100000");
    }
}

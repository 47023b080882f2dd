//! The long version of the test run: the same tests, with many more seeds, kills and cases. Hours, not minutes.
use crate::report::Tally;
use crate::{Request, unit};
use anyhow::Result;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(24 * 3600);
/// The tests read these and fall back to what the ordinary run uses: simulated lives, processes killed while
/// clients submit, and cases per property.
const LONG: [(&str, &str); 3] =
    [("O8_SEEDS", "1000000"), ("O8_KILL_CYCLES", "10000"), ("PROPTEST_CASES", "100000")];

pub fn run(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    let numbers: Vec<String> = LONG.iter().map(|(name, value)| format!("{name}={value}")).collect();
    tally.stage(&format!("prove with {}", numbers.join(" ")), || {
        let mut command = unit::rust_tests(&["--workspace", "--exclude", "xtask"], &[]);
        command.envs(LONG);
        unit::run(&mut command, LIMIT, request.verbose)
    });
    Ok(tally.close())
}

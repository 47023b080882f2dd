//! The long versions of the randomised and crash tests: hours, not minutes.
use crate::report::Tally;
use crate::{Request, unit};
use anyhow::Result;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// The tests read these and fall back to what the ordinary test run uses.
const LONG: [(&str, &str); 3] =
    [("ORCHESTR8_PROVE_SEEDS", "1000000"), ("ORCHESTR8_PROVE_KILLS", "10000"), ("PROPTEST_CASES", "100000")];
/// Tests worth repeating have one of these words in their names.
const FAMILIES: [&str; 3] = ["simulation", "kill", "property"];

pub fn run(request: &Request) -> Result<bool> {
    let mut tally = Tally::default();
    for family in FAMILIES {
        tally.stage(&format!("prove {family}"), || {
            let mut command = unit::rust_tests(&["--workspace", "--exclude", "xtask"], &[family]);
            command.envs(LONG);
            unit::run(&mut command, LIMIT, request.verbose)
        });
    }
    Ok(tally.close())
}

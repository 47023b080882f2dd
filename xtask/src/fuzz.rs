//! `cargo xtask fuzz`: every reader of texts from outside, fed with texts that a fuzzer makes up, for a while each.
use crate::report::{Tally, Verdict, tail};
use crate::workspace::{self, BUILD_LIMIT};
use crate::{Request, cargo_tools, process};
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::Duration;

const VERSION: &str = "0.13.2";
/// Per target.
const LONG: Duration = Duration::from_secs(600);
/// Enough to see that it runs.
const QUICK: Duration = Duration::from_secs(20);
/// What a run may take longer than it fuzzes: to start, and to reduce what it found.
const GRACE: Duration = Duration::from_secs(120);
/// No text may hold a reader up for longer, in seconds, or take more memory, in MiB: these count as crashes.
const HANG: &str = "-timeout=1";
const MEMORY: &str = "-rss_limit_mb=256";
/// Longer texts are refused before they are read.
const LONGEST: &str = "-max_len=65536";
const SHOWN_LINES: usize = 60;

/// All targets, or those that are named.
pub fn run(names: &[&str], request: &Request) -> Result<bool> {
    let targets = chosen(names)?;
    let (mut tally, mut is_built) = (Tally::default(), false);
    tally.stage("build of the fuzz targets", || {
        let mut command = fuzzer(&["build"], request)?;
        process::run(&mut command, BUILD_LIMIT, request.verbose)?.require("cargo fuzz build")?;
        is_built = true;
        Ok(Verdict::pass(format!("{} targets", targets.len())))
    });
    if !is_built {
        return Ok(tally.close());
    }
    let seconds = if request.quick { QUICK } else { LONG };
    for target in &targets {
        tally.stage(&format!("fuzz {target}"), || fed(target, seconds, request));
    }
    Ok(tally.close())
}

fn fed(target: &str, seconds: Duration, request: &Request) -> Result<Verdict> {
    let mut command = fuzzer(&["run", target, "--"], request)?;
    command.args([HANG, MEMORY, LONGEST]).arg(format!("-max_total_time={}", seconds.as_secs()));
    let done = process::run(&mut command, seconds + GRACE, request.verbose)?;
    if done.success {
        return Ok(Verdict::pass(format!("{} texts", texts(&done.output))));
    }
    Ok(Verdict::fail(tail(&done.output, SHOWN_LINES)))
}

/// The fuzzer instruments the compiler's output, which only a nightly compiler lets it.
fn fuzzer(args: &[&str], request: &Request) -> Result<Command> {
    let mut command = cargo_tools::command("fuzz", VERSION, request.verbose)?;
    command.args(args).env("RUSTUP_TOOLCHAIN", "nightly");
    // Ours names the stable compiler.
    command.env_remove("CARGO").env_remove("RUSTC");
    Ok(command)
}

fn chosen(names: &[&str]) -> Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        targets.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    targets.sort();
    if let Some(unknown) = names.iter().find(|name| !targets.iter().any(|target| target == *name)) {
        bail!("no fuzz target called {unknown}; there are {}", targets.join(", "));
    }
    targets.retain(|target| names.is_empty() || names.contains(&target.as_str()));
    Ok(targets)
}

/// How many texts were tried, as the fuzzer's last line says: `Done 12345 runs in 21 second(s)`.
fn texts(output: &str) -> &str {
    let said = output.lines().rev().find_map(|line| line.trim().strip_prefix("Done "));
    said.and_then(|rest| rest.split(' ').next()).unwrap_or("some")
}

#[cfg(test)]
mod tests {
    use super::{chosen, texts};

    #[test]
    fn the_number_of_texts_is_in_the_last_line() {
        assert_eq!(
            texts("#1 INITED\nDone 5 runs in 1 second(s)\nDone 12345 runs in 21 second(s)\n"),
            "12345"
        );
        assert_eq!(texts("nothing"), "some");
    }

    #[test]
    fn targets_are_those_of_the_folder() {
        let all = chosen(&[]).unwrap();
        assert!(all.iter().any(|target| target == "jws") && all.len() > 5, "{all:?}");
        assert_eq!(chosen(&["jws"]).unwrap(), ["jws"]);
        assert!(chosen(&["nothing"]).unwrap_err().to_string().contains("merge_patch"));
    }
}

//! This build beside an earlier one: the same load on both, rounds interleaved, ratios judged against the 5 % we allow.
use super::{keep, mcp, messages, sessions, short, workflows};
use crate::{Request, process, workspace};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ROUNDS: u32 = 5;
/// How much worse than the baseline a judged figure may be.
const SLOWDOWN_MAX: f64 = 1.05;

/// One load on one part of the server.
struct Case {
    part: &'static str,
    name: &'static str,
    measure: fn(&Path, &Path, &Path, &Request) -> Result<Value>,
    figures: &'static [Figure],
}

/// A figure of the load client's line.
struct Figure {
    pointer: &'static str,
    title: &'static str,
    better: Better,
    /// CPU per operation decides; rates and latencies are shown, because they depend on what else the machine does.
    judged: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Better {
    Less,
    More,
}

const fn cost(pointer: &'static str, title: &'static str) -> Figure {
    Figure { pointer, title, better: Better::Less, judged: true }
}

const fn latency(pointer: &'static str, title: &'static str) -> Figure {
    Figure { pointer, title, better: Better::Less, judged: false }
}

const fn rate(pointer: &'static str, title: &'static str) -> Figure {
    Figure { pointer, title, better: Better::More, judged: false }
}

const CALLS: &[Figure] =
    &[cost("/cpu_us", "CPU us"), latency("/p50_us", "p50 us"), rate("/rate_per_s", "calls/s")];
const SESSIONS: &[Figure] = &[
    cost("/replay/cpu_us", "CPU of a repeat, us"),
    cost("/read/cpu_us", "CPU of a get_state, us"),
    latency("/first_delta/p50_us", "prompt to first delta, p50 us"),
    rate("/replay/rate_per_s", "repeats/s on one socket"),
];
const PAIRS: &[Figure] = &[
    cost("/cpu_us", "CPU per pair, us"),
    latency("/p50_us", "p50 us"),
    rate("/rate_per_s", "pairs/s, 64 in flight"),
];

const CASES: [Case; 6] = [
    Case {
        part: "mcp",
        name: "mcp stdio",
        measure: |load, binary, _, request| mcp::measure(load, binary, "stdio", "legacy", request.verbose),
        figures: CALLS,
    },
    Case {
        part: "mcp",
        name: "mcp http",
        measure: |load, binary, _, request| mcp::measure(load, binary, "http", "modern", request.verbose),
        figures: CALLS,
    },
    Case {
        part: "workflows",
        name: "workflows",
        measure: |load, binary, folder, request| workflows::measure(load, binary, folder, true, request),
        figures: CALLS,
    },
    Case {
        part: "workflows",
        name: "workflows, fused",
        measure: |load, binary, folder, request| workflows::measure(load, binary, folder, false, request),
        figures: CALLS,
    },
    Case {
        part: "sessions",
        name: "sessions",
        measure: |load, binary, _, request| sessions::measure(load, binary, request.verbose),
        figures: SESSIONS,
    },
    Case { part: "messages", name: "messages", measure: messages::measure, figures: PAIRS },
];

/// `bench compare COMMIT|BINARY [PART...]`. False if a judged figure is worse than allowed.
pub fn run(request: &Request) -> Result<bool> {
    let (baseline, parts) =
        request.words.get(2..).and_then(<[String]>::split_first).context("no baseline")?;
    for part in parts {
        ensure!(CASES.iter().any(|case| case.part == part), "no part called {part}");
    }
    let load = workspace::outside("benches/load", request.verbose)?;
    let binaries = [baseline_binary(baseline, request)?, workspace::orchestr8(workspace::CI, request)?];
    // Beside the build, not in the folder for temporary files: that one is often in memory, where a flush is free.
    let folder = workspace::target()?.join("bench");
    std::fs::create_dir_all(&folder)?;
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| parts.is_empty() || parts.iter().any(|part| part == case.part)) {
        let mut samples: [Vec<Value>; 2] = Default::default();
        for round in 0..request.rounds.unwrap_or(ROUNDS) {
            // The order turns around every round, so that neither build always runs on the warmer machine.
            for at in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
                eprintln!("... round {} {} {}", round + 1, case.name, ["baseline", "this build"][at]);
                let data = tempfile::tempdir_in(&folder)?;
                samples[at].push((case.measure)(&load, &binaries[at], data.path(), request)?);
            }
        }
        rows.extend(case.figures.iter().map(|figure| Row::of(case.name, figure, &samples)));
    }
    print(&rows);
    keep(
        "compare",
        json!({"baseline": baseline, "rows": rows.iter().map(Row::as_json).collect::<Vec<_>>()}),
    )?;
    Ok(rows.iter().all(Row::is_allowed))
}

/// A figure of both builds: the best round of each, since noise on a shared machine only ever makes a server look worse.
struct Row {
    case: &'static str,
    title: &'static str,
    baseline: f64,
    this: f64,
    better: Better,
    judged: bool,
}

impl Row {
    fn of(case: &'static str, figure: &Figure, samples: &[Vec<Value>; 2]) -> Row {
        let better = if figure.better == Better::More { f64::max } else { f64::min };
        let best = |rounds: &[Value]| {
            let values = rounds.iter().filter_map(|round| round.pointer(figure.pointer)?.as_f64());
            values.reduce(better).unwrap_or(f64::NAN)
        };
        let (baseline, this) = (best(&samples[0]), best(&samples[1]));
        Row { case, title: figure.title, baseline, this, better: figure.better, judged: figure.judged }
    }

    /// Above 1 this build is worse.
    fn slowdown(&self) -> f64 {
        match self.better {
            Better::Less => self.this / self.baseline,
            Better::More => self.baseline / self.this,
        }
    }

    /// A missing figure is never allowed.
    fn is_allowed(&self) -> bool {
        !self.judged || self.slowdown() <= SLOWDOWN_MAX
    }

    fn as_json(&self) -> Value {
        json!({"case": self.case, "figure": self.title, "baseline": self.baseline, "this": self.this})
    }
}

fn print(rows: &[Row]) {
    println!("\nthis build beside the baseline, best of the rounds; above 1.00x this build is worse");
    println!("{:<18} {:<30} {:>12} {:>12} {:>8}", "", "", "baseline", "this build", "ratio");
    for row in rows {
        let verdict = match (row.judged, row.is_allowed()) {
            (false, _) => "",
            (true, true) => "met",
            (true, false) => "missed",
        };
        let (baseline, this) = (short(row.baseline), short(row.this));
        let ratio = format!("{:.2}x", row.slowdown());
        println!("{:<18} {:<30} {baseline:>12} {this:>12} {ratio:>8} {verdict}", row.case, row.title);
    }
}

/// A program that exists, or else the one of a commit, built beside this one with the same profile.
fn baseline_binary(named: &str, request: &Request) -> Result<PathBuf> {
    if let Ok(path) = std::fs::canonicalize(named)
        && path.is_file()
    {
        return Ok(path);
    }
    let mut resolve = git(&["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    resolve.arg(format!("{named}^{{commit}}"));
    let found = process::run(&mut resolve, workspace::QUICK, false)?;
    let commit = found.require(&format!("{named} is neither a file nor a commit"))?.stdout.trim().to_owned();
    let folder = workspace::target()?.join("baseline").join(&commit);
    let (sources, built) = (folder.join("sources"), folder.join("orchestr8"));
    if built.is_file() {
        return Ok(built);
    }
    eprintln!("... building {commit}; this takes some minutes");
    std::fs::create_dir_all(&folder)?;
    if !sources.is_dir() {
        let mut checkout = git(&["clone", "--quiet", "--shared", "--no-checkout", "."]);
        process::run(checkout.arg(&sources), workspace::QUICK, false)?.require("git clone")?;
    }
    let mut checkout = git(&["checkout", "--quiet", "--force", &commit]);
    process::run(checkout.current_dir(&sources), workspace::QUICK, false)?.require("git checkout")?;
    let mut build = workspace::cargo(&["build", "--package", "orchestr8", "--bin", "orchestr8", "--locked"]);
    build.args(["--profile", workspace::CI]).args(workspace::AS_TESTED).current_dir(&sources);
    build.arg("--target-dir").arg(folder.join("target"));
    process::run(&mut build, workspace::BUILD_LIMIT, request.verbose)?.require("building the baseline")?;
    std::fs::copy(folder.join("target").join(workspace::CI).join("orchestr8"), &built)?;
    // Only the program is needed again.
    std::fs::remove_dir_all(folder.join("target"))?;
    Ok(built)
}

fn git(args: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new("git");
    command.args(args).current_dir(workspace::root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: &Figure, baseline: f64, this: f64) -> Row {
        let line = |value: f64| vec![json!({"cpu_us": value, "rate_per_s": value})];
        Row::of("case", figure, &[line(baseline), line(this)])
    }

    #[test]
    fn five_percent_more_cpu_is_allowed_and_six_are_not() {
        assert!(row(&CALLS[0], 100.0, 105.0).is_allowed());
        assert!(!row(&CALLS[0], 100.0, 106.0).is_allowed());
    }

    #[test]
    fn a_missing_figure_is_not_allowed() {
        let figure = cost("/absent", "absent");
        assert!(!Row::of("case", &figure, &[vec![json!({})], vec![json!({})]]).is_allowed());
    }

    #[test]
    fn a_lower_rate_is_a_slowdown() {
        assert!((row(&CALLS[2], 200.0, 100.0).slowdown() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_best_round_counts() {
        let rounds = [vec![json!({"cpu_us": 9.0}), json!({"cpu_us": 5.0})], vec![json!({"cpu_us": 5.0})]];
        assert!((Row::of("case", &CALLS[0], &rounds).slowdown() - 1.0).abs() < 1e-9);
    }
}

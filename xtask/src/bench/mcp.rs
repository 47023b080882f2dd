//! Our whole pipeline beside a bare rmcp echo server: same machine, same client, rounds interleaved.
use super::{keep, short};
use crate::process;
use crate::{Request, workspace};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const ROUNDS: u32 = 5;
const LIMIT: Duration = Duration::from_secs(300);
const CASES: [(&str, &str); 4] =
    [("stdio", "legacy"), ("stdio", "modern"), ("http", "legacy"), ("http", "modern")];
const SERVERS: [&str; 3] = ["rmcp", "orchestr8", "floor"];
const OURS: usize = 1;
/// Does the least a server can do for a call over HTTP: what is below it cannot be reached on this machine.
const FLOOR: usize = 2;
/// The rate with a core for the server and one for the client, who otherwise takes from the server what it needs itself.
const APART: &str = "rate_apart_per_s";
/// What the load client reports, and how the table calls it.
const COLUMNS: [(&str, &str); 8] = [
    ("p50_us", "p50 us"),
    ("p95_us", "p95 us"),
    ("rate_per_s", "calls/s"),
    (APART, "apart/s"),
    ("cpu_us", "CPU us"),
    ("idle_mb", "idle MB"),
    ("loaded_mb", "loaded MB"),
    ("start_ms", "start ms"),
];

/// Figures of every round, by case, server and column.
type Samples = BTreeMap<(usize, usize, &'static str), Vec<f64>>;

pub fn run(request: &Request) -> Result<()> {
    let show = request.verbose;
    let load = workspace::outside("benches/load", show)?;
    let rmcp = workspace::outside("benches/rmcp-echo", show)?;
    let ours = workspace::orchestr8("release", request)?;
    let mut samples = Samples::new();
    for round in 0..request.rounds.unwrap_or(ROUNDS) {
        for (case, (transport, era)) in CASES.iter().enumerate() {
            // The order turns around every round, so that neither server always runs on the warmer machine.
            let order = if round % 2 == 0 { [0, 1, FLOOR] } else { [FLOOR, 1, 0] };
            for server in order.into_iter().filter(|server| takes_part(*server, transport)) {
                eprintln!("... round {} {transport} {era} {}", round + 1, SERVERS[server]);
                let data = tempfile::tempdir()?;
                let mut command = Command::new(&load);
                command.args([*transport, "--era", *era, "--"]);
                command.arg([&rmcp, &ours, &load][server]).args(arguments(server, transport, data.path()));
                let done = process::run(&mut command, LIMIT, show)?
                    .require(&format!("load on {}", SERVERS[server]))?;
                let figures: Value =
                    serde_json::from_str(done.stdout.trim()).context("the load client's line")?;
                for (column, _) in COLUMNS {
                    // A machine of one core keeps nobody apart.
                    let absent = (column == APART).then_some(f64::NAN);
                    let value = figures[column].as_f64().or(absent).context(column)?;
                    samples.entry((case, server, column)).or_default().push(value);
                }
            }
        }
    }
    print(&samples);
    keep("mcp", as_json(&samples))
}

/// Starts one of our servers on an empty data directory and returns what the load client measured of it.
pub fn measure(load: &Path, binary: &Path, transport: &str, era: &str, show: bool) -> Result<Value> {
    let data = tempfile::tempdir()?;
    let mut command = Command::new(load);
    command.args([transport, "--era", era, "--"]).arg(binary).args(arguments(OURS, transport, data.path()));
    let done = process::run(&mut command, LIMIT, show)?.require("load on orchestr8")?;
    serde_json::from_str(done.stdout.trim()).context("the load client's line")
}

fn takes_part(server: usize, transport: &str) -> bool {
    server != FLOOR || transport == "http"
}

fn arguments(server: usize, transport: &str, data: &Path) -> Vec<String> {
    let data = data.to_string_lossy().into_owned();
    let words: Vec<&str> = match (server, transport) {
        (0, "stdio") => vec!["stdio"],
        (0, _) => vec!["http", "{address}"],
        (FLOOR, _) => vec!["floor", "{address}"],
        (_, "stdio") => vec!["mcp", "--data-dir", &data],
        (_, _) => vec!["serve", "--listen", "{address}", "--data-dir", &data],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// The best round of each figure: noise on a shared machine only ever makes a server look worse.
fn best(values: &[f64], column: &str) -> f64 {
    let better = if column.ends_with("_per_s") { f64::max } else { f64::min };
    values.iter().copied().reduce(better).unwrap_or(f64::NAN)
}

fn figure(samples: &Samples, case: usize, server: usize, column: &'static str) -> f64 {
    samples.get(&(case, server, column)).map_or(f64::NAN, |values| best(values, column))
}

fn print(samples: &Samples) {
    println!("\necho tool, best of the rounds");
    print!("{:<14} {:<10}", "", "server");
    for (_, title) in COLUMNS {
        print!(" {title:>10}");
    }
    println!();
    for (case, (transport, era)) in CASES.iter().enumerate() {
        for (server, name) in SERVERS.iter().enumerate().filter(|(server, _)| takes_part(*server, transport))
        {
            print!("{:<14} {name:<10}", format!("{transport} {era}"));
            for (column, _) in COLUMNS {
                print!(" {:>10}", short(figure(samples, case, server, column)));
            }
            println!();
        }
        print!("{:<14} {:<10}", "", "to rmcp");
        for (column, _) in COLUMNS {
            let ratio = figure(samples, case, 1, column) / figure(samples, case, 0, column);
            print!(" {:>10}", format!("{ratio:.2}x"));
        }
        println!();
    }
    println!();
    for (goal, met) in goals(samples) {
        println!("{} {goal}", if met { "met   " } else { "missed" });
    }
}

/// What we set out to reach, judged by the best rounds.
fn goals(samples: &Samples) -> Vec<(String, bool)> {
    let ratio = |case, column| figure(samples, case, 1, column) / figure(samples, case, 0, column);
    let mut goals = Vec::new();
    for (case, (transport, era)) in CASES.iter().enumerate() {
        if *transport == "stdio" {
            goals.push((format!("stdio {era}: at most rmcp's CPU per call"), ratio(case, "cpu_us") <= 1.0));
        } else {
            goals.push((
                format!("http {era}: at most half of rmcp's CPU per call"),
                ratio(case, "cpu_us") <= 0.5,
            ));
            let rates = [("rate_per_s", "beside the client"), (APART, "with a core of its own")];
            for (column, how) in rates {
                let goal = format!("http {era}: at least twice rmcp's rate {how}");
                goals.push((goal, ratio(case, column) >= 2.0));
            }
        }
        let idle_mb = figure(samples, case, 1, "idle_mb");
        goals.push((format!("{transport} {era}: at most 15 MB idle"), idle_mb <= 15.0));
        let start_ms = figure(samples, case, 1, "start_ms");
        goals.push((format!("{transport} {era}: first answer within 50 ms"), start_ms <= 50.0));
    }
    goals
}

fn as_json(samples: &Samples) -> Value {
    let mut rows = Vec::new();
    for (case, (transport, era)) in CASES.iter().enumerate() {
        for (server, name) in SERVERS.iter().enumerate().filter(|(server, _)| takes_part(*server, transport))
        {
            let mut row = json!({"transport": transport, "era": era, "server": name});
            for (column, _) in COLUMNS {
                row[column] = json!(figure(samples, case, server, column));
            }
            rows.push(row);
        }
    }
    Value::Array(rows)
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, FLOOR, Samples, as_json, best, goals};

    fn samples(ours: f64) -> Samples {
        let mut samples = Samples::new();
        for case in 0..4 {
            for (column, _) in COLUMNS {
                samples.insert((case, 0, column), vec![10.0]);
                samples.insert((case, 1, column), vec![ours]);
                samples.insert((case, FLOOR, column), vec![1.0]);
            }
        }
        samples
    }

    #[test]
    fn the_best_rate_is_the_highest_and_the_best_cost_the_lowest() {
        assert_eq!(best(&[5.0, 1000.0, 4.0], "cpu_us"), 4.0);
        assert_eq!(best(&[5.0, 1000.0, 4.0], "rate_per_s"), 1000.0);
    }

    #[test]
    fn goals_are_judged_by_ratio() {
        let met = |ours| goals(&samples(ours)).into_iter().filter(|(_, met)| *met).count();
        // Cheap everywhere, but then not twice as fast on the two HTTP cases.
        assert_eq!(met(5.0), 12);
        // Twice the rate, and nothing else but the start-up time.
        assert_eq!(met(20.0), 8);
    }

    #[test]
    fn results_have_one_row_per_case_and_server() {
        assert_eq!(as_json(&samples(5.0)).as_array().map(Vec::len), Some(10));
    }
}

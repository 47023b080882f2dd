//! The figures of workflows for people: one table, what they mean, and which goals are met.
use super::super::short;
use super::growth::Point;
use super::systems::{ALL, PEERS, System, Tools};
use super::{IN_FLIGHT, STEPS};
use serde_json::Value;

/// A figure of the load client and how the table shows it.
pub struct Column {
    pub name: &'static str,
    title: &'static str,
    divisor: f64,
}

const fn column(name: &'static str, title: &'static str, divisor: f64) -> Column {
    Column { name, title, divisor }
}

pub const COLUMNS: [Column; 6] = [
    column("p50_us", "p50 ms", 1000.0),
    column("p95_us", "p95 ms", 1000.0),
    column("rate_per_s", "per s", 1.0),
    column("cpu_us", "CPU us", 1.0),
    column("idle_mb", "idle MB", 1.0),
    column("loaded_mb", "loaded MB", 1.0),
];
/// A flush that takes less than this went to memory.
const NO_DISK_US: f64 = 10.0;
/// Growing less than this over four orders of magnitude is called flat.
const FLAT: f64 = 1.25;

/// The best round of a figure: noise on a shared machine only ever makes a server look worse.
pub fn best(rounds: &[Value], column: &str) -> f64 {
    let better = if column == "rate_per_s" { f64::max } else { f64::min };
    rounds.iter().filter_map(|round| round[column].as_f64()).reduce(better).unwrap_or(f64::NAN)
}

pub fn print(samples: &[Vec<Value>], points: &[Point], machine: &Value, tools: &Tools) {
    println!("\n{STEPS} steps that do nothing, each durable, over HTTP; best of the rounds");
    print!("{:<24}", "");
    for column in COLUMNS {
        print!(" {:>10}", column.title);
    }
    println!();
    for (system, rounds) in ALL.iter().zip(samples) {
        print!("{:<24}", system.name());
        for column in COLUMNS {
            print!(" {:>10}", short(best(rounds, column.name) / column.divisor));
        }
        println!();
    }
    println!(
        "\np50, p95: one at a time. per s, CPU for each, loaded MB: {IN_FLIGHT} clients. idle MB: after the warm-up."
    );
    for (system, rounds) in ALL.iter().zip(samples) {
        let own = if rounds.iter().any(|round| round["processes"][1].is_object()) {
            part(rounds)
        } else {
            String::new()
        };
        println!("{} {}: {}{own}", system.name(), system.version(tools), system.settings());
    }
    let flush_us = machine["flush_us"].as_f64().unwrap_or(f64::NAN);
    println!(
        "this machine: {} cores; appending 4 KiB and flushing it takes {} us",
        machine["cores"],
        short(flush_us)
    );
    if flush_us < NO_DISK_US {
        println!("a flush this fast does not reach a disk: the figures are not those of durable work");
    }
    print_growth(points);
    println!();
    for (goal, met) in goals(samples, points) {
        println!("{} {goal}", if met { "met   " } else { "missed" });
    }
}

/// What the second process of a system used: where the steps run, when the server does not run them itself.
fn part(rounds: &[Value]) -> String {
    let parts: Vec<Value> = rounds.iter().map(|round| round["processes"][1].clone()).collect();
    let (cpu, memory) = (short(best(&parts, "cpu_us")), short(best(&parts, "loaded_mb")));
    format!("; the process with the steps is in its figures, with {cpu} us and {memory} MB")
}

fn print_growth(points: &[Point]) {
    println!(
        "\nours without flushes (store.sync = normal), one at a time: a whole call divided by its {STEPS} steps"
    );
    println!("{:<24} {:>10} {:>10} {:>10}", "stored executions", "p50 us", "p95 us", "start ms");
    for point in points {
        let (p50, p95) = (point.per_step_us("p50_us"), point.per_step_us("p95_us"));
        let figures = [p50, p95, point.start_ms].map(|figure| format!(" {:>10}", short(figure)));
        println!("{:<24}{}", point.stored, figures.concat());
    }
}

/// What we set out to reach, judged by the best rounds.
fn goals(samples: &[Vec<Value>], points: &[Point]) -> Vec<(String, bool)> {
    let of = |system: System, column: &str| {
        let at = ALL.iter().position(|other| *other == system);
        at.and_then(|at| samples.get(at)).map_or(f64::NAN, |rounds| best(rounds, column))
    };
    let mut goals = vec![
        ("at least 5,000 executions/s with 32 clients".to_owned(), of(System::Ours, "rate_per_s") >= 5000.0),
        ("p50 at most 1.5 ms, one at a time".to_owned(), of(System::Ours, "p50_us") <= 1500.0),
    ];
    for peer in PEERS {
        // A figure that is missing is not ahead.
        let ahead = |column: &Column| {
            let (ours, theirs) = (of(System::Ours, column.name), of(peer, column.name));
            if column.name == "rate_per_s" { ours > theirs } else { ours < theirs }
        };
        let behind = COLUMNS.iter().filter(|column| !ahead(column));
        let behind: Vec<&str> = behind.map(|column| column.title).collect();
        let but =
            if behind.is_empty() { String::new() } else { format!("; behind in {}", behind.join(", ")) };
        goals.push((format!("ahead of {} in every column{but}", peer.name()), behind.is_empty()));
    }
    let worst_us = points.iter().map(|point| point.per_step_us("p95_us")).fold(0.0, f64::max);
    goals.push((
        "at most 1 ms p95 for a step, without flushes".to_owned(),
        worst_us > 0.0 && worst_us <= 1000.0,
    ));
    if let [few, many] = points {
        let ratio = |column| many.per_step_us(column) / few.per_step_us(column);
        let (p50, p95) = (ratio("p50_us"), ratio("p95_us"));
        let goal = format!(
            "flat from {} to {} stored executions (p50 {p50:.2}x, p95 {p95:.2}x)",
            few.stored, many.stored
        );
        goals.push((goal, p50 <= FLAT && p95 <= FLAT));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::{ALL, COLUMNS, System, Value, best, goals};
    use serde_json::json;

    fn samples(ours: f64, theirs: f64) -> Vec<Vec<Value>> {
        let all = ALL.iter().map(|system| {
            let value = if *system == System::Ours { ours } else { theirs };
            let mut round = json!({});
            for column in COLUMNS {
                round[column.name] = json!(value);
            }
            vec![round]
        });
        all.collect()
    }

    #[test]
    fn the_best_rate_is_the_highest_and_the_best_cost_the_lowest() {
        let rounds = [json!({"cpu_us": 5.0, "rate_per_s": 5.0}), json!({"cpu_us": 4.0, "rate_per_s": 4.0})];
        assert_eq!((best(&rounds, "cpu_us"), best(&rounds, "rate_per_s")), (4.0, 5.0));
        assert!(best(&[json!({"cpu_us": null})], "cpu_us").is_nan());
    }

    #[test]
    fn being_behind_a_peer_is_told_by_column() {
        let goals = goals(&samples(1.0, 2.0), &[]);
        let (goal, met) = &goals[2];
        assert_eq!((goal.as_str(), *met), ("ahead of Restate in every column; behind in per s", false));
    }

    #[test]
    fn a_missing_figure_is_never_a_goal_met() {
        let nothing: Vec<Vec<Value>> = vec![vec![]; ALL.len()];
        assert!(goals(&nothing, &[]).iter().all(|(_, met)| !met));
    }
}

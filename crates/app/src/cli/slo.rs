//! `orchestr8 slo`: whether the promises to agents are kept: how fast they are answered, how much is given up, how much fails.

use clap::Args;
use serde_json::Value;

use super::Shell;
use super::reaching::{Intent, Reaching};
use super::words::text;
use crate::failure::{Failure, exit};
use crate::terminal::columns;

#[derive(Args)]
pub struct Slo {
    /// End with exit code 1 if one of them is not kept.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    reaching: Reaching,
}

impl Slo {
    pub fn run(&self, shell: &Shell) -> Result<u8, Failure> {
        let report = self.reaching.run(shell, Intent::Record, async |reach| reach.get("/admin/slo").await)?;
        let report = &report["data"];
        match shell.terminal.json {
            true => shell.terminal.value(report),
            false => shell.terminal.data(&shown(report)),
        }
        let kept = ["ack_p95", "dlq", "error_budget"].iter().all(|name| report[*name]["met"] == true);
        Ok(if self.check && !kept { exit::FAILED } else { exit::OK })
    }
}

fn shown(report: &Value) -> String {
    let met = |of: &Value| if of["met"] == true { "kept" } else { "NOT KEPT" }.to_owned();
    let (ack, dlq, budget) = (&report["ack_p95"], &report["dlq"], &report["error_budget"]);
    let share = |value: &Value| format!("{:.3} %", value.as_f64().unwrap_or(0.0) * 100.0);
    let ms = |value: &Value| value.as_f64().map_or_else(|| String::from("-"), |ms| format!("{ms:.1} ms"));
    let mut rows = vec![
        ["PROMISE", "IS", "GOAL", "OVER", ""].map(String::from),
        [
            String::from("answered, p95"),
            ms(&ack["value_ms"]),
            format!("≤ {}", ms(&ack["goal_ms"])),
            text(ack, "window").to_owned(),
            met(ack),
        ],
        [
            String::from("dead letters"),
            format!("{} ({} of {})", share(&dlq["rate"]), dlq["dead_letters"], dlq["requests"]),
            format!("≤ {}", share(&dlq["goal"])),
            text(dlq, "window").to_owned(),
            met(dlq),
        ],
        [
            String::from("failures"),
            format!("{} ({} of {})", share(&budget["rate"]), budget["failures"], budget["requests"]),
            format!("≤ {}", share(&budget["budget"])),
            text(budget, "window").to_owned(),
            met(budget),
        ],
    ];
    let left = budget["left"].as_f64().unwrap_or(0.0).max(0.0) * 100.0;
    rows.push([
        String::from("error budget left"),
        format!("{left:.1} %"),
        String::new(),
        String::new(),
        String::new(),
    ]);
    let mut told = columns(&rows);
    let actions = report["actions"].as_array().cloned().unwrap_or_default();
    if !actions.is_empty() {
        let head = ["ACTION", "CALLS", "FAILED", "RETRIED", "DEAD", "P95"].map(String::from);
        let row = |action: &Value| {
            let name = text(action, "action");
            [
                if name.is_empty() { String::from("(unreadable)") } else { name.to_owned() },
                action["requests"].to_string(),
                action["failures"].to_string(),
                action["retries"].to_string(),
                action["dead_letters"].to_string(),
                ms(&action["p95_ms"]),
            ]
        };
        told.push('\n');
        told.push_str(&columns(&std::iter::once(head).chain(actions.iter().map(row)).collect::<Vec<_>>()));
    }
    told
}

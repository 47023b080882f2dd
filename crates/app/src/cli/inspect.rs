//! `orchestr8 inspect`: one execution from near: its steps in time, its errors, what it waits for.

use clap::Args;
use orchestr8_kernel::ports::Clock;
use orchestr8_kernel::ports::clock::Real;
use serde_json::Value;

use super::follow::{mark, rollback, waiting};
use super::reaching::{Intent, Reaching};
use super::words::{self, moment, moment_ms, text};
use super::{Shell, execution_id};
use crate::failure::Failure;
use crate::reach::{self, escape};
use crate::terminal::{DIM, PLAIN, styled_lines};

#[derive(Args)]
pub struct Inspect {
    /// The execution: its id, at least eight characters of its beginning, or `last`.
    execution: String,
    /// As it was after this entry of its journal.
    #[arg(long, value_name = "SEQUENCE")]
    at: Option<u64>,
    #[command(flatten)]
    reaching: Reaching,
}

/// How wide the whole time of an execution is drawn.
const BAR: usize = 32;

impl Inspect {
    pub fn run(&self, shell: &Shell) -> Result<(), Failure> {
        let at = self.at.map(|sequence| sequence.to_string());
        let execution = self.reaching.run(shell, Intent::Record, async |reach| {
            let id = execution_id::resolve(reach, &self.execution).await?;
            reach.get(&reach::path(&format!("/v1/executions/{}", escape(&id)), &[("at", at)])).await
        })?;
        match shell.terminal.json {
            true => shell.terminal.value(&execution),
            false => shell.terminal.data(&describe(&execution, Real::new().now_ms())),
        }
        Ok(())
    }
}

/// All there is to know, for people.
fn describe(execution: &Value, now_ms: i64) -> String {
    let mut lines = head(execution);
    lines.extend(steps(execution, now_ms));
    let waits = waiting(execution);
    if !waits.is_empty() {
        lines.extend(["", "waits"].map(String::from));
        lines.extend(waits.iter().map(|(step, what)| format!("  {step} {}", what.sentence())));
    }
    let errors: Vec<&Value> = execution["errors"].as_array().into_iter().flatten().collect();
    if !errors.is_empty() {
        lines.extend(["", "errors"].map(String::from));
        for error in errors {
            let again = if error["isRetryable"] == true { " (trying again may help)" } else { "" };
            let place = text(error, "stepId");
            lines.push(format!("  {place} {}: {}{again}", text(error, "code"), text(error, "message")));
        }
    }
    let rollback = rollback(execution);
    if !rollback.is_empty() {
        lines.extend(["", "compensation"].map(String::from));
        lines.extend(rollback.iter().map(|line| format!("  {line}")));
    }
    styled_lines(&lines)
}

fn head(execution: &Value) -> Vec<String> {
    let workflow = &execution["workflow"];
    let status = text(execution, "status");
    let (color, sign) = mark(status, 0);
    let mut lines = vec![format!(
        "{color}{sign} {status}{PLAIN}  {} {} ({})",
        text(workflow, "name"),
        text(workflow, "version"),
        text(workflow, "id")
    )];
    let mut row = |name: &str, value: String| {
        if !value.is_empty() && value != "-" {
            lines.push(format!("{DIM}{name:12}{PLAIN} {value}"));
        }
    };
    row("execution", text(execution, "executionId").to_owned());
    row("correlation", text(execution, "correlationId").to_owned());
    row("hash", text(workflow, "hash").to_owned());
    row("parent", text(execution, "parentExecutionId").to_owned());
    let fork = match &execution["forkedFrom"] {
        Value::String(from) => from.clone(),
        from => text(from, "executionId").to_owned(),
    };
    row("forked from", fork);
    let who = ["startedBy", "definedBy", "editedBy", "scheduledBy"].map(|name| text(execution, name));
    for (name, who) in ["started by", "defined by", "edited by", "scheduled by"].into_iter().zip(who) {
        row(name, who.to_owned());
    }
    let schedule = &execution["schedule"];
    if schedule.is_object() {
        row("schedule", format!("{}, for {}", text(schedule, "id"), moment(&schedule["time"])));
    }
    row("tool limit", tool_limit(&execution["toolLimit"]));
    row("created", moment(&execution["createdAt"]));
    row("started", moment(&execution["startedAt"]));
    row("ended", moment(&execution["completedAt"]));
    row("took", execution["duration"].as_u64().map_or_else(String::new, words::duration));
    row("paused", text(execution, "pauseReason").to_owned());
    row("cancelled", text(execution, "cancelReason").to_owned());
    row("used", figures(&execution["usage"]));
    row("budget", figures(&execution["budget"]));
    row(
        "journal",
        execution["lastSequence"].as_u64().map_or_else(String::new, |last| format!("{last} entries")),
    );
    lines
}

/// The tools that its steps are limited to. A limit that names none is not the same as no limit.
fn tool_limit(limit: &Value) -> String {
    let Some(names) = limit.as_array() else { return String::new() };
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    if names.is_empty() { String::from("no tools") } else { names.join(", ") }
}

/// `steps 3, tokens 1200`, without what is zero or unlimited.
fn figures(value: &Value) -> String {
    let figure = |(name, value): (&String, &Value)| {
        value.as_f64().filter(|number| *number > 0.0).map(|_| format!("{name} {value}"))
    };
    value.as_object().into_iter().flatten().filter_map(figure).collect::<Vec<_>>().join(", ")
}

fn steps(execution: &Value, now_ms: i64) -> Vec<String> {
    let ids: Vec<&str> =
        execution["stepOrder"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let step = |id: &str| &execution["steps"][id];
    let starts = ids.iter().filter_map(|id| moment_ms(&step(id)["startTime"]));
    let Some(from) = starts.min() else { return table(&ids, execution, (0, 0), now_ms) };
    let end =
        |id: &&str| moment_ms(&step(id)["endTime"]).or(moment_ms(&step(id)["startTime"]).map(|_| now_ms));
    let to = ids.iter().filter_map(end).max().unwrap_or(from);
    table(&ids, execution, (from, to), now_ms)
}

fn table(ids: &[&str], execution: &Value, span: (i64, i64), now_ms: i64) -> Vec<String> {
    let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0);
    let mut lines = ["", "steps"].map(String::from).to_vec();
    for id in ids {
        let step = &execution["steps"][*id];
        let status = text(step, "status");
        let (color, sign) = mark(status, 0);
        let started = moment_ms(&step["startTime"]);
        let bar = match started {
            Some(from) => bars(span, &attempts(step, from, now_ms)),
            None => " ".repeat(BAR),
        };
        let detail = super::follow::detail(step, Some(now_ms));
        let line = format!("  {color}{sign}{PLAIN} {id:width$}  {status:9}  {color}{bar}{PLAIN}  {detail}");
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// When the attempts of a step began and ended; of one without a list of them, when the step did.
fn attempts(step: &Value, started: i64, now_ms: i64) -> Vec<(i64, i64)> {
    let end = |of: &Value| moment_ms(&of["endTime"]).unwrap_or(now_ms);
    let times: Vec<(i64, i64)> = step["attemptTimes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|attempt| Some((moment_ms(&attempt["startTime"])?, end(attempt))))
        .collect();
    if times.is_empty() { vec![(started, end(step))] } else { times }
}

/// Where in the whole time the attempts of a step ran. Even the shortest is seen.
fn bars((from, to): (i64, i64), attempts: &[(i64, i64)]) -> String {
    let whole = (to - from).max(1);
    let place =
        |moment: i64| usize::try_from((moment - from).clamp(0, whole) * BAR as i64 / whole).unwrap_or(0);
    let mut drawn = [' '; BAR];
    for (start, end) in attempts {
        let first = place(*start).min(BAR - 1);
        drawn[first..place(*end).clamp(first + 1, BAR)].fill('━');
    }
    drawn.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::render;
    use serde_json::json;

    #[test]
    fn bars_stand_where_the_steps_ran() {
        let whole = (1000, 2000);
        let bar = |span, start, end| bars(span, &[(start, end)]);
        let retried = bars(whole, &[(1000, 1250), (1750, 2000)]);
        assert_eq!(
            retried,
            format!("{}{}{}", "━".repeat(8), " ".repeat(16), "━".repeat(8)),
            "backoff is no work"
        );
        assert_eq!(bar(whole, 1000, 2000), "━".repeat(32));
        assert_eq!(bar(whole, 1500, 1500).trim(), "━", "the shortest is seen");
        assert_eq!(bar(whole, 1500, 2000), format!("{}{}", " ".repeat(16), "━".repeat(16)));
        assert_eq!(bar(whole, 2000, 2000), format!("{}━", " ".repeat(31)));
        assert_eq!(bar((5, 5), 5, 5).chars().count(), 32);
        assert_eq!(bar(whole, 0, 9999).chars().count(), 32, "clocks that disagree do no harm");
    }

    #[test]
    fn everything_worth_knowing_is_there() {
        let execution = json!({"executionId": "e-1", "status": "failed", "correlationId": "c-1", "lastSequence": 9,
            "workflow": {"id": "saga", "name": "Saga", "version": "1.0.0"}, "duration": 1000,
            "usage": {"steps": 2, "tokens": 0}, "stepOrder": ["pay", "ship", "ask"],
            "steps": {"pay": {"status": "completed", "attempts": 2, "startTime": 0, "endTime": 500},
                "ship": {"status": "failed", "attempts": 1, "startTime": 500, "endTime": 1000, "error": {"message": "no courier"}},
                "ask": {"status": "waiting", "waitingFor": {"event": "paid"}}},
            "errors": [{"stepId": "ship", "code": "AGENT_FAILED", "message": "no courier", "isRetryable": true}]});
        let shown = render(&describe(&execution, 5000), false);
        for part in [
            "✗ failed  Saga 1.0.0 (saga)",
            "used         steps 2\n",
            "journal      9 entries",
            "✓ pay   completed  ━━━━━━━━━━━━━━━━                  500 ms, 2 attempts\n",
            "✗ ship  failed                     ━━━━━━━━━━━━━━━━  500 ms, no courier\n",
            "ask waits for the event 'paid'",
            "ship AGENT_FAILED: no courier (trying again may help)",
        ] {
            assert!(shown.contains(part), "{part:?} is not in\n{shown}");
        }
    }
}

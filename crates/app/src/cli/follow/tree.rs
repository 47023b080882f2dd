//! An execution as a tree of its steps, to be drawn anew whenever something changes.

use serde_json::Value;

use super::super::words::{self, cut, moment_ms, text};
use super::waiting::{self, Waiting};
use crate::terminal::{BOLD, CYAN, DIM, GREEN, PLAIN, RED, Size, YELLOW};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Lines a tree needs besides its steps: two of its head, what is left out, and the line of the cursor.
const OTHER_LINES: usize = 4;

/// The lines of the tree, none longer than the terminal is wide, not more than it has.
pub fn draw(execution: &Value, now_ms: i64, frame: usize, size: Size) -> Vec<String> {
    let ids: Vec<&str> =
        execution["stepOrder"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let step = |id: &str| &execution["steps"][id];
    let room = size.rows.saturating_sub(OTHER_LINES).max(1);
    let first = first_shown(&ids.iter().map(|id| text(step(id), "status")).collect::<Vec<_>>(), room);
    let shown = &ids[first..ids.len().min(first + room)];
    let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or(0).min(size.columns / 3);
    let mut lines = head(execution, now_ms, size);
    for (index, id) in shown.iter().enumerate() {
        let branch = if index + 1 == shown.len() && shown.len() == ids.len() { "└─" } else { "├─" };
        let (color, sign) = mark(text(step(id), "status"), frame);
        let detail = cut(&detail(step(id), Some(now_ms)), size.columns.saturating_sub(width + 8));
        lines.push(format!(
            "{DIM}{branch}{PLAIN} {color}{sign}{PLAIN} {:width$}  {DIM}{detail}{PLAIN}",
            cut(id, width)
        ));
    }
    if shown.len() < ids.len() {
        let done = ids.iter().filter(|id| is_over(text(step(id), "status"))).count();
        lines.push(format!("{DIM}└─ {done} of {} steps are over{PLAIN}", ids.len()));
    }
    lines
}

/// Keeps the first step that is not over in sight.
fn first_shown(statuses: &[&str], room: usize) -> usize {
    let active = statuses.iter().position(|status| !is_over(status)).unwrap_or(statuses.len());
    let last_start = statuses.len().saturating_sub(room);
    active.saturating_sub(room / 3).min(last_start)
}

fn is_over(status: &str) -> bool {
    matches!(status, "completed" | "failed" | "skipped" | "cancelled")
}

/// What it is and how it is; then its id, which is too long to stand beside anything.
fn head(execution: &Value, now_ms: i64, size: Size) -> Vec<String> {
    let status = text(execution, "status");
    let (color, _) = mark(status, 0);
    let started = moment_ms(&execution["startedAt"]).or_else(|| moment_ms(&execution["createdAt"]));
    let took = match execution["duration"].as_u64().filter(|_| words::is_final(status)) {
        Some(ms) => words::duration(ms),
        None => started.map_or_else(String::new, |from| since(from, now_ms)),
    };
    let name = cut(text(&execution["workflow"], "name"), size.columns / 2);
    let left = size.columns.saturating_sub(name.chars().count() + status.len() + took.len() + 6);
    let reason = match text(execution, "pauseReason") {
        "" => String::new(),
        reason => format!(" {}", cut(reason, left)),
    };
    let id = cut(text(execution, "executionId"), size.columns);
    vec![format!("{BOLD}{name}{PLAIN}  {color}{status}{PLAIN}{reason}  {took}"), format!("{DIM}{id}{PLAIN}")]
}

/// The colour and the sign of a status.
pub fn mark(status: &str, frame: usize) -> (&'static str, &'static str) {
    match status {
        "completed" => (GREEN, "✓"),
        "failed" => (RED, "✗"),
        "cancelled" | "cancelling" => (YELLOW, "✗"),
        "compensated" => (YELLOW, "↩"),
        "compensating" => (YELLOW, SPINNER[frame % SPINNER.len()]),
        "running" => (CYAN, SPINNER[frame % SPINNER.len()]),
        "retrying" => (YELLOW, "↻"),
        "waiting" | "paused" | "queued" => (CYAN, "…"),
        "unknown" => (YELLOW, "?"),
        "skipped" => (DIM, "-"),
        _ => (DIM, "·"),
    }
}

/// What there is to say about a step besides its status.
pub fn detail(step: &Value, now_ms: Option<i64>) -> String {
    let mut parts = Vec::new();
    let status = text(step, "status");
    let (started, ended) = (moment_ms(&step["startTime"]), moment_ms(&step["endTime"]));
    match (status, started, ended, now_ms) {
        ("completed" | "failed" | "cancelled", Some(from), Some(to), _) => parts.push(since(from, to)),
        ("running", Some(from), _, Some(now)) => parts.push(since(from, now)),
        _ => {}
    }
    if let Some(items) = step["items"].as_object() {
        let count = |name: &str| items.get(name).and_then(Value::as_u64).unwrap_or(0);
        let done = count("succeeded") + count("failed");
        parts.push(format!("{done}/{} items", count("total")));
    }
    if let Some(attempts) = step["attempts"].as_u64().filter(|attempts| *attempts > 1) {
        parts.push(format!("{attempts} attempts"));
    }
    if let (Some(at), Some(now)) = (moment_ms(&step["nextRetryAt"]), now_ms) {
        parts.push(format!("again in {}", since(now, at)));
    }
    match (waiting::of_step(step), now_ms) {
        (Some(Waiting::Timer { until }), Some(now)) => {
            let left = moment_ms(&until.as_str().into()).map_or_else(String::new, |at| since(now, at));
            parts.push(format!("goes on in {left}"));
        }
        (Some(waiting), _) => parts.push(waiting.sentence()),
        (None, _) => {}
    }
    if step["compensating"] == true {
        parts.push(String::from("is being undone"));
    }
    match step["compensated"].as_bool() {
        Some(true) => parts.push(String::from("undone")),
        Some(false) => parts.push(String::from("could not be undone")),
        None => {}
    }
    if let Some(alias) = step["aliasFor"].as_str() {
        parts.push(format!("stands in for {alias}"));
    }
    match (status, text(step, "skipReason"), text(&step["error"], "message")) {
        ("skipped", reason, _) if !reason.is_empty() => parts.push(reason.to_owned()),
        ("failed" | "retrying" | "unknown", _, message) if !message.is_empty() => {
            parts.push(message.to_owned())
        }
        _ => {}
    }
    parts.join(", ")
}

fn since(from: i64, to: i64) -> String {
    words::duration(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::render;
    use serde_json::json;

    const SIZE: Size = Size { columns: 60, rows: 24 };

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| render(line, false).trim_end().to_owned()).collect()
    }

    fn execution() -> Value {
        json!({"executionId": "e-1", "status": "running", "startedAt": 0, "workflow": {"name": "Nightly report"},
            "stepOrder": ["fetch", "each", "call", "rest", "tell", "last"],
            "steps": {
                "fetch": {"status": "completed", "attempts": 1, "startTime": 0, "endTime": 12},
                "each": {"status": "running", "attempts": 1, "startTime": 100, "items": {"total": 10, "succeeded": 3, "failed": 1}},
                "call": {"status": "retrying", "attempts": 2, "nextRetryAt": 3200, "error": {"message": "503 from the service, which is a long message for one line"}},
                "rest": {"status": "waiting", "waitingFor": {"until": "1970-01-01T00:01:02Z"}},
                "tell": {"status": "skipped", "attempts": 0, "skipReason": "Dependency 'x' failed"},
                "last": {"status": "pending", "attempts": 0}}})
    }

    #[test]
    fn every_step_has_its_line() {
        assert_eq!(
            plain(&draw(&execution(), 2000, 0, SIZE)),
            [
                "Nightly report  running  2.0 s",
                "e-1",
                "├─ ✓ fetch  12 ms",
                "├─ ⠋ each   1.9 s, 4/10 items",
                "├─ ↻ call   2 attempts, again in 1.2 s, 503 from the servi…",
                "├─ … rest   goes on in 1 min 0 s",
                "├─ - tell   Dependency 'x' failed",
                "└─ · last",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_tree_not_taller() {
        let mut paused = execution();
        paused["pauseReason"] = json!("a very long reason that nobody can read in one line of any terminal");
        for (columns, rows) in [(40, 5), (60, 6), (200, 7)] {
            let lines = plain(&draw(&paused, 2000, 3, Size { columns, rows }));
            assert!(lines.len() < rows, "{lines:#?}");
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:#?}");
        }
    }

    #[test]
    fn the_first_step_that_is_not_over_stays_in_sight() {
        let statuses =
            ["completed"; 50].into_iter().chain(["running"]).chain(["pending"; 49]).collect::<Vec<_>>();
        let first = first_shown(&statuses, 10);
        assert!((41..=50).contains(&first), "{first}");
        assert_eq!(first_shown(&["completed"; 50], 10), 40);
        assert_eq!(first_shown(&["pending"; 5], 10), 0);
    }
}

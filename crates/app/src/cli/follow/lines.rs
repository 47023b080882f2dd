//! How an execution gets on, for a log: one line for each step that changed.

use std::collections::HashMap;

use serde_json::Value;

use super::super::words::{self, text};

/// What was told before.
#[derive(Default)]
pub struct Lines {
    status: String,
    steps: HashMap<String, String>,
}

impl Lines {
    /// What is new about the execution, as lines.
    pub fn news(&mut self, execution: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        if self.status.is_empty() {
            let workflow = &execution["workflow"];
            lines.push(format!(
                "{} {} is execution {}",
                text(workflow, "name"),
                text(workflow, "version"),
                text(execution, "executionId")
            ));
        }
        for id in execution["stepOrder"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let step = &execution["steps"][id];
            let status = text(step, "status");
            let attempts = step["attempts"].as_u64().unwrap_or(0);
            let told = format!("{status} {attempts} {} {}", step["compensating"], step["compensated"]);
            let is_quiet = matches!(status, "" | "pending" | "ready");
            if is_quiet || self.steps.get(id) == Some(&told) {
                continue;
            }
            self.steps.insert(id.to_owned(), told);
            lines.push(line(id, step));
        }
        // That it waits is said by the lines of its steps.
        let status = match text(execution, "status") {
            "waiting" => "running",
            status => status,
        };
        if self.status != status {
            if !self.status.is_empty() || status != "running" {
                lines.push(last(execution));
            }
            self.status = status.to_owned();
        }
        lines
    }
}

fn line(id: &str, step: &Value) -> String {
    let status = text(step, "status");
    let detail = super::tree::detail(step, None);
    match detail.is_empty() {
        true => format!("  {id} {status}"),
        false => format!("  {id} {status}: {detail}"),
    }
}

fn last(execution: &Value) -> String {
    let status = text(execution, "status");
    match (execution["duration"].as_u64(), words::is_final(status)) {
        (Some(ms), true) => format!("{status} after {}", words::duration(ms)),
        (Some(_) | None, _) => match text(execution, "pauseReason") {
            "" => status.to_owned(),
            reason => format!("{status}: {reason}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_change_is_told_once() {
        let mut lines = Lines::default();
        let at = |status: &str, a: Value, b: Value| {
            json!({"executionId": "e-1", "status": status, "duration": 1500, "workflow": {"name": "Demo", "version": "1.0.0"},
                "stepOrder": ["a", "b"], "steps": {"a": a, "b": b}})
        };
        let pending = json!({"status": "pending", "attempts": 0});
        let first = at("running", json!({"status": "running", "attempts": 1}), pending.clone());
        assert_eq!(lines.news(&first), ["Demo 1.0.0 is execution e-1", "  a running"]);
        assert_eq!(lines.news(&first), Vec::<String>::new());
        let retrying =
            json!({"status": "retrying", "attempts": 1, "error": {"code": "TIMEOUT", "message": "too slow"}});
        assert_eq!(lines.news(&at("running", retrying, pending)), ["  a retrying: too slow"]);
        let done = json!({"status": "completed", "attempts": 2, "startTime": 1000, "endTime": 1012});
        let skipped =
            json!({"status": "skipped", "attempts": 0, "skipReason": "its condition does not hold"});
        assert_eq!(
            lines.news(&at("completed", done, skipped)),
            [
                "  a completed: 12 ms, 2 attempts",
                "  b skipped: its condition does not hold",
                "completed after 1.5 s"
            ]
        );
    }
}

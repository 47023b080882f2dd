//! What an execution waits for, and whether anybody could give it while this process has the store.

use serde_json::Value;

use super::super::words::{self, text};

/// What a step waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    Timer {
        until: String,
    },
    Event {
        name: String,
        until: Option<String>,
    },
    Approval {
        until: Option<String>,
    },
    Child {
        execution: String,
    },
    /// Its turn.
    Slot,
    /// A place in the queue of its workers.
    Queue {
        name: String,
    },
    /// A person has to say what became of an attempt that died with its process.
    Resolution,
}

impl Waiting {
    /// For people.
    pub fn sentence(&self) -> String {
        let limit = |until: &Option<String>| match until {
            Some(until) => format!(", until {}", words::moment(&Value::from(until.as_str()))),
            None => String::new(),
        };
        match self {
            Waiting::Timer { until } => {
                format!("waits until {}", words::moment(&Value::from(until.as_str())))
            }
            Waiting::Event { name, until } => format!("waits for the event '{name}'{}", limit(until)),
            Waiting::Approval { until } => format!("waits for approval{}", limit(until)),
            Waiting::Child { execution } => format!("is execution {execution}"),
            Waiting::Slot => String::from("waits for its turn"),
            Waiting::Queue { name } => format!("waits for a place in the worker queue '{name}'"),
            Waiting::Resolution => String::from("a person must say what became of it"),
        }
    }

    fn needs_somebody(&self) -> bool {
        match self {
            // Even one with a limit: nobody sits before a terminal until a person decides.
            Waiting::Event { .. } | Waiting::Approval { .. } | Waiting::Resolution => true,
            Waiting::Timer { .. } | Waiting::Child { .. } | Waiting::Slot | Waiting::Queue { .. } => false,
        }
    }
}

/// Everything an execution waits for, with the step.
pub fn waiting(execution: &Value) -> Vec<(String, Waiting)> {
    let ids = execution["stepOrder"].as_array().into_iter().flatten().filter_map(Value::as_str);
    ids.filter_map(|id| Some((id.to_owned(), of_step(&execution["steps"][id])?))).collect()
}

/// What one step waits for.
pub fn of_step(step: &Value) -> Option<Waiting> {
    if let Some(child) = step["childExecutionId"].as_str() {
        return Some(Waiting::Child { execution: child.to_owned() });
    }
    let what = &step["waitingFor"];
    let until = what["until"].as_str().map(str::to_owned);
    if what["resolution"] == true {
        return Some(Waiting::Resolution);
    }
    if what["approval"] == true {
        return Some(Waiting::Approval { until });
    }
    if what["slot"] == true {
        return Some(Waiting::Slot);
    }
    if let Some(name) = what["queue"].as_str() {
        return Some(Waiting::Queue { name: name.to_owned() });
    }
    match what["event"].as_str() {
        Some(name) => Some(Waiting::Event { name: name.to_owned(), until }),
        None => until.map(|until| Waiting::Timer { until }),
    }
}

/// Nothing of it can happen unless somebody else does something: all that is under way waits for a person or an event.
pub fn is_blocked(execution: &Value) -> bool {
    if text(execution, "status") == "paused" {
        return true;
    }
    let steps = || execution["steps"].as_object().into_iter().flatten().map(|(_, step)| step);
    let is_busy = steps().any(|step| matches!(text(step, "status"), "ready" | "running" | "retrying"));
    let waiting: Vec<Waiting> = steps().filter_map(of_step).collect();
    !is_busy && !waiting.is_empty() && waiting.iter().all(Waiting::needs_somebody)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(steps: Value) -> Value {
        json!({"status": "running", "stepOrder": ["a", "b"], "steps": steps})
    }

    #[test]
    fn an_execution_is_blocked_when_only_somebody_else_can_move_it() {
        let approval = json!({"status": "waiting", "waitingFor": {"approval": true, "until": null}});
        let timer =
            json!({"status": "waiting", "waitingFor": {"event": null, "until": "2026-01-01T00:00:00Z"}});
        let running = json!({"status": "running"});
        let pending = json!({"status": "pending"});
        assert!(is_blocked(&with(json!({"a": approval, "b": pending}))));
        assert!(is_blocked(&with(json!({"a": {"status": "unknown", "waitingFor": {"resolution": true}}}))));
        assert!(!is_blocked(&with(json!({"a": approval, "b": timer}))));
        assert!(!is_blocked(&with(json!({"a": approval, "b": running}))));
        assert!(!is_blocked(&with(json!({"a": pending}))));
        assert!(is_blocked(&json!({"status": "paused", "steps": {"a": timer}})));
    }

    #[test]
    fn what_it_waits_for_is_said_in_words() {
        let said = |step: Value| of_step(&step).unwrap().sentence();
        assert_eq!(
            said(json!({"waitingFor": {"event": "paid", "until": null}})),
            "waits for the event 'paid'"
        );
        assert_eq!(said(json!({"childExecutionId": "e-2"})), "is execution e-2");
        assert_eq!(said(json!({"waitingFor": {"slot": true}})), "waits for its turn");
        assert_eq!(
            said(json!({"waitingFor": {"queue": "gpu"}})),
            "waits for a place in the worker queue 'gpu'"
        );
        assert!(
            said(json!({"waitingFor": {"until": "2026-01-01T00:00:00Z"}})).starts_with("waits until 202")
        );
        assert_eq!(of_step(&json!({"status": "completed"})), None);
    }
}

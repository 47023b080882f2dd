//! How the end of an execution is told: its outputs on stdout, everything else on stderr, and the exit code.

use orchestr8_contract::Code;
use serde_json::Value;

use super::super::Shell;
use super::super::words::text;
use super::{End, Followed, Waiting, waiting};
use crate::failure::{Failure, exit};
use crate::reach::{Reach, code_of};
use crate::terminal::styled_lines;

/// Tells it, and gives the exit code.
pub fn conclude(shell: &Shell, reach: &Reach, followed: &Followed) -> u8 {
    let execution = &followed.execution;
    let terminal = shell.terminal;
    if terminal.json {
        terminal.value(execution);
    }
    let (id, status) = (text(execution, "executionId"), text(execution, "status"));
    match (followed.end, status) {
        (End::Final, "completed") if terminal.json => {}
        (End::Final, "completed") => terminal.value(&execution["outputs"]),
        (End::Final, _) if ending(execution) == "cancelled" => {
            terminal.note(&format!("execution {id} was cancelled"));
            rollback(execution).iter().for_each(|line| terminal.note(line));
        }
        (End::Final, _) => terminal.fail(&failed(execution)),
        (End::Blocked, status) => terminal.note(&blocked(execution, status)),
        (End::TimedOut, status) => {
            let message = format!("execution {id} is still {status}");
            terminal.fail(
                &Failure::new(Code::Timeout, message).hinting(how_to_go_on(reach, id).replace('\n', "; ")),
            );
        }
        (End::Interrupted, _) => {
            terminal
                .note(&format!("left execution {id}; nothing of it is lost\n{}", how_to_go_on(reach, id)));
        }
    }
    exit_code(followed)
}

/// 0 completed, 1 failed, 6 not at its end, 130 cancelled or left.
pub fn exit_code(followed: &Followed) -> u8 {
    match (followed.end, ending(&followed.execution)) {
        (End::Final, "completed") => exit::OK,
        (End::Final, "cancelled") | (End::Interrupted, _) => exit::INTERRUPTED,
        (End::Final, _) => exit::FAILED,
        (End::Blocked | End::TimedOut, _) => exit::TIMED_OUT,
    }
}

/// How it ended: a rollback does not change whether it failed or was cancelled.
fn ending(execution: &Value) -> &str {
    match text(execution, "status") {
        "compensated" => text(&execution["compensation"], "cause"),
        status => status,
    }
}

/// What a rollback undid, and what it could not undo.
pub fn rollback(execution: &Value) -> Vec<String> {
    let compensation = &execution["compensation"];
    let Some(undone) = compensation["undone"].as_u64() else { return Vec::new() };
    let left = compensation["notUndone"].as_array().map_or(&[][..], Vec::as_slice);
    let remaining = compensation["remaining"].as_u64().unwrap_or(0);
    let mut line = format!("rolled back: {undone} undone");
    if remaining > 0 {
        line += &format!(", {remaining} to do");
    }
    if !left.is_empty() {
        line += &format!(", {} not undone", left.len());
    }
    let unit = |one: &Value| {
        let item = one["index"].as_u64().map_or_else(String::new, |index| format!(" [{index}]"));
        format!("not undone: {}{item}: {}", text(one, "stepId"), text(&one["error"], "message"))
    };
    std::iter::once(line).chain(left.iter().map(unit)).collect()
}

fn how_to_go_on(reach: &Reach, id: &str) -> String {
    match reach.is_embedded() {
        true => format!("go on with it: orchestr8 resume {id}\nor end it for good: orchestr8 cancel {id}"),
        false => format!("it goes on; see it with orchestr8 inspect {id}"),
    }
}

/// Why it failed: the error that ended it, and each one of its steps.
fn failed(execution: &Value) -> Failure {
    let id = text(execution, "executionId");
    let errors: Vec<&Value> = execution["errors"].as_array().into_iter().flatten().collect();
    let first = errors.first().copied().unwrap_or(&Value::Null);
    let code =
        ["cause", "code"].iter().find_map(|name| code_of(text(first, name))).unwrap_or(Code::AgentFailed);
    let place = |error: &Value| match text(error, "stepId") {
        "" => String::new(),
        step => format!(" at step '{step}'"),
    };
    let message = format!("execution {id} failed{}: {}", place(first), text(first, "message"));
    let others = errors.iter().skip(1).map(|error| {
        format!("{} {}: {}", text(error, "stepId"), text(error, "code"), text(error, "message"))
            .trim_start()
            .to_owned()
    });
    let lines = others.chain(rollback(execution));
    let hint =
        format!("look closer: orchestr8 inspect {id}; go on from the failed step: orchestr8 retry {id}");
    Failure::new(code, message).listing(lines.collect()).hinting(hint)
}

fn blocked(execution: &Value, status: &str) -> String {
    let id = text(execution, "executionId");
    let mut lines = vec![format!("execution {id} is {status} and keeps until somebody acts:")];
    if status == "paused" {
        lines.push(format!("  paused: {}; go on: orchestr8 resume {id}", text(execution, "pauseReason")));
    }
    for (step, what) in waiting(execution) {
        let act = match &what {
            Waiting::Approval { .. } => format!("orchestr8 approve {id} (or --reject)"),
            Waiting::Event { name, .. } => format!("orchestr8 signal {id} {name}"),
            Waiting::Resolution => format!("orchestr8 resume {id} --step {step} --as retry|fail|complete"),
            Waiting::Timer { .. } | Waiting::Child { .. } | Waiting::Slot | Waiting::Queue { .. } => {
                format!("orchestr8 resume {id}")
            }
        };
        lines.push(format!("  {step} {}: {act}", what.sentence()));
    }
    styled_lines(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_failure_names_the_step_and_the_way_on() {
        let execution = json!({"executionId": "e-1", "status": "failed", "errors": [
            {"stepId": "pay", "code": "TIMEOUT", "message": "no answer"}, {"stepId": "undo", "code": "AGENT_FAILED", "message": "refused"}]});
        let failure = failed(&execution);
        assert_eq!(failure.message, "execution e-1 failed at step 'pay': no answer");
        assert_eq!(failure.lines, ["undo AGENT_FAILED: refused"]);
        assert!(failure.hint().contains("orchestr8 retry e-1"), "{}", failure.hint());
    }

    #[test]
    fn a_rollback_keeps_the_exit_code_and_lists_what_is_not_undone() {
        let end = |cause: &str| Followed {
            end: End::Final,
            execution: json!({"executionId": "e-1", "status": "compensated", "errors": [{"stepId": "ship", "message": "no courier"}],
                "compensation": {"cause": cause, "undone": 2, "remaining": 0, "notUndone": [
                    {"stepId": "pay", "index": 3, "error": {"code": "TIMEOUT", "message": "no answer"}}]}}),
        };
        assert_eq!(exit_code(&end("failed")), exit::FAILED);
        assert_eq!(exit_code(&end("cancelled")), exit::INTERRUPTED);
        let failure = failed(&end("failed").execution);
        assert_eq!(failure.message, "execution e-1 failed at step 'ship': no courier");
        assert_eq!(failure.lines, ["rolled back: 2 undone, 1 not undone", "not undone: pay [3]: no answer"]);
    }

    #[test]
    fn what_blocks_it_is_told_with_the_command_that_helps() {
        let execution = json!({"executionId": "e-1", "stepOrder": ["ask"], "steps": {"ask": {"status": "waiting",
            "waitingFor": {"approval": true}}}});
        assert_eq!(
            blocked(&execution, "waiting"),
            "execution e-1 is waiting and keeps until somebody acts:\n  ask waits for approval: orchestr8 approve e-1 (or --reject)"
        );
    }
}

//! `tools.servers`: the other MCP servers, and how it stands with each.

use std::sync::Arc;

use orchestr8_contract::Output;
use orchestr8_kernel::action::Slotting;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Action, Policy, schema};
use serde_json::{Value, json};

use super::desk::{Desk, Seen};

pub fn action(desks: Vec<Arc<Desk>>) -> Result<Action, schema::Error> {
    let input = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let policy = Policy { slotting: Slotting::Free, ..Policy::quick_read() };
    let about = "Lists the other MCP servers whose tools are offered here, and how it stands with each.";
    Action::tool("tools.servers", about, input, policy, move |_, _| {
        let servers: Vec<Value> = desks.iter().map(|desk| shown(&desk.seen())).collect();
        std::future::ready(Ok(Output::json(json!({"servers": servers})).into()))
    })
    .map(Action::hidden)
}

fn shown(seen: &Seen) -> Value {
    let refused: Vec<Value> =
        seen.refused.iter().map(|(tool, why)| json!({"tool": tool, "why": why})).collect();
    json!({
        "name": seen.server, "phase": seen.phase.as_str(), "tools": seen.tools.len(), "quarantined": seen.quarantined,
        "refused": refused, "problem": seen.problem, "exitCode": seen.exit_code, "stderr": seen.stderr,
        "lastError": seen.last_error.as_ref().map(|error| json!({"message": error.message, "at": iso(error.at_ms)})),
        "nextAttemptAt": seen.next_attempt_at_ms.map(iso),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Phase, RecentFailure};
    use super::*;

    #[test]
    fn a_server_is_told_with_what_is_wrong_with_it() {
        let seen = Seen {
            server: "files".into(),
            phase: Phase::Waiting,
            tools: vec!["files.read".into()],
            quarantined: vec!["write".into()],
            refused: vec![("odd".into(), "its schema is too deep".into())],
            pid: Some(1),
            problem: Some("it ended with 1".into()),
            exit_code: Some(1),
            stderr: vec!["no such file".into()],
            last_error: Some(RecentFailure { message: "it ended with 1".into(), at_ms: 0 }),
            next_attempt_at_ms: Some(1_000),
        };
        assert_eq!(
            shown(&seen),
            json!({"name": "files", "phase": "waiting", "tools": 1, "quarantined": ["write"],
                   "refused": [{"tool": "odd", "why": "its schema is too deep"}], "problem": "it ended with 1",
                   "exitCode": 1, "stderr": ["no such file"],
                   "lastError": {"message": "it ended with 1", "at": "1970-01-01T00:00:00.000Z"},
                   "nextAttemptAt": "1970-01-01T00:00:01.000Z"})
        );
    }
}

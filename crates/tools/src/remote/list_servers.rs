//! `tools.servers`: the other MCP servers, and how it stands with each.

use std::sync::{Arc, Weak};

use orchestr8_contract::id::Tenant;
use orchestr8_contract::{Code, Fault, Output};
use orchestr8_kernel::action::Slotting;
use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use super::desk::{Phase, Seen};
use super::served_server::ServedServer;
use super::servers::ServerRegistry;

pub fn action(registry: &Arc<ServerRegistry>) -> Result<Action, schema::Error> {
    let input = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let policy = Policy { slotting: Slotting::Free, ..Policy::quick_read() };
    let about = "Lists the other MCP servers whose tools are offered here, and how it stands with each.";
    let registry = Arc::downgrade(registry);
    let list = move |_: Args, context: Context| std::future::ready(list(&registry, &context));
    Action::tool("tools.servers", about, input, policy, list).map(Action::hidden)
}

/// The servers that the caller's tenant sees, each with the instance that serves it.
fn list(registry: &Weak<ServerRegistry>, context: &Context) -> Result<Reply, Halt> {
    let registry = upgrade(registry)?;
    let tenant = &context.principal.tenant;
    let servers = registry.visible(tenant).into_iter();
    let servers: Vec<Value> = servers.map(|served| show(&registry, &served, context)).collect();
    Ok(Output::json(json!({"servers": servers})).into())
}

/// The registry, unless the program ends.
pub fn upgrade(registry: &Weak<ServerRegistry>) -> Result<Arc<ServerRegistry>, Fault> {
    registry.upgrade().ok_or_else(|| Fault::new(Code::ShuttingDown, "the server is shutting down"))
}

/// One server as the caller may see it.
pub fn show(registry: &ServerRegistry, served: &ServedServer, context: &Context) -> Value {
    let principal = &context.principal;
    let seen = registry.seen(served, &principal.tenant);
    let seen = seen.unwrap_or_else(|| {
        // A server that has offered no tools yet cannot be called: why, its own instance knows.
        let home = registry.seen(served, &served.home()).filter(|home| home.tools.is_empty());
        Seen { problem: home.and_then(|home| home.problem), ..idle(served, principal.tenant.clone()) }
    });
    let mut value = shown(&seen);
    let is_added = served.key.owner.is_some();
    value["source"] = if is_added { "added" } else { "settings" }.into();
    value["removable"] = is_added.into();
    value["shared"] = served.server.shared.into();
    if principal.administers_machine() {
        let instances = registry.seen_everywhere(served).into_iter().map(
            |seen| json!({"tenant": seen.tenant, "phase": seen.phase.as_str(), "problem": seen.problem}),
        );
        value["instances"] = instances.collect();
    }
    value
}

/// How a server is that has no instance for a tenant.
fn idle(served: &ServedServer, tenant: Tenant) -> Seen {
    Seen {
        server: served.server.name.clone(),
        tenant,
        phase: Phase::Idle,
        tools: served.listed_names(),
        quarantined: Vec::new(),
        refused: Vec::new(),
        pid: None,
        problem: None,
        exit_code: None,
        stderr: Vec::new(),
        last_error: None,
        next_attempt_at_ms: None,
    }
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
            tenant: Tenant::local(),
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

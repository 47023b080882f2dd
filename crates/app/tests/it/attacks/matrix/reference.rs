//! The reference of the matrix: who may do what, written from the ruling on roles and not from the access table of the program.
//!
//! `viewer` reads; `agent` reads, calls tools, creates documents; `operator` runs, cancels, retries, pauses, and calls tools;
//! `editor` changes definitions, schedules, documents; `approver` decides; `worker` takes tasks; `admin` manages servers, tokens,
//! secrets, nodes and reads the audit trail, and not the data of tenants; `owner` does everything in its tenant; `planner` and
//! `executor` work in governed workspaces and do nothing else. A token without a role is a viewer.

/// A sort of right: its roles, and the actions that need it.
struct Right {
    roles: &'static [&'static str],
    actions: &'static [&'static str],
}

pub const ROLES: [&str; 10] =
    ["viewer", "agent", "operator", "editor", "approver", "worker", "admin", "owner", "planner", "executor"];

#[rustfmt::skip]
const RIGHTS: &[Right] = &[
    // Reads the data of a tenant.
    Right { roles: &["viewer", "agent", "operator", "editor", "approver", "owner"], actions: &[
        "aacp.message", "aacp.pairs", "aacp.request_status", "aacp.requests", "agent.getState", "agent.list", "agents.list",
        "analyze_workflow", "create_workflow", "execution", "executions.approvals", "executions.artifact", "executions.definition", "executions.events",
        "executions.get", "executions.journal", "executions.list", "get_document", "get_session", "get_status",
        "knowledge.changes", "knowledge.document", "knowledge.document_history", "knowledge.get_document", "knowledge.get_many", "knowledge.list",
        "knowledge.list_children", "knowledge.query_knowledge", "knowledge.replies", "list_documents", "peers.list",
        "requests.show", "schedules.list", "schedules.show", "search_knowledge", "session", "session.events",
        "session.get_available_models", "session.get_command_history", "session.get_commands", "session.get_context_usage",
        "session.get_fork_messages", "session.get_last_assistant_text", "session.get_messages", "session.get_session_stats",
        "session.get_skills", "session.get_startup_recovery", "session.get_state", "session.get_tools", "session.get_tree",
        "session.list_session_files", "session.list_sessions", "session.list_stored_sessions", "session.switch_session",
        "plans.get", "plans.list", "tool_search", "trails.show", "triggers.list", "triggers.show", "upstream.complete", "upstream.follow",
        "upstream.list", "upstream.prompt", "upstream.read", "witness.heads", "workflow", "workflows.list", "workflows.metrics", "workflows.show",
        "workflows.validate",
    ]},
    // Reads how the server is, which tells nothing of a tenant's data.
    Right { roles: &["viewer", "agent", "operator", "editor", "approver", "admin", "owner"], actions: &[
        "echo", "health", "server.metrics", "session.get_metrics", "servers.show", "session.health_check", "tools.servers", "workflows.agents",
        "workflows.system",
    ]},
    // Calls tools, sends messages, talks to sessions.
    Right { roles: &["agent", "operator", "owner"], actions: &[
        "aacp.ack", "aacp.inbox", "aacp.send", "agent.sendMessage", "agents.heartbeat", "agents.register", "agents.unregister",
        "cancel_workflow", "llm.complete", "peers.heartbeat", "prompt_session", "run_workflow", "session.abort",
        "session.abort_bash", "session.abort_compaction", "session.abort_retry", "session.compact", "session.create_session",
        "session.cycle_model", "session.cycle_thinking_level", "session.delete_session", "session.export_html",
        "session.export_session", "session.extension_ui_response", "session.follow_up", "session.fork", "session.load_session",
        "session.navigate_tree", "session.new_session", "session.prompt", "session.run", "session.set_auto_compaction",
        "session.set_auto_retry", "session.set_model", "session.set_session_name", "session.set_thinking_level",
        "session.share_session", "session.steer", "session.switch_session_file", "start_session", "witness.submit",
    ]},
    // Stops what the caller has sent.
    Right { roles: &["agent", "operator", "editor", "owner"], actions: &["requests.cancel"] },
    // Adds documents.
    Right { roles: &["agent", "editor", "owner"], actions: &["artifacts.create", "knowledge.create_document"] },
    // Runs.
    Right { roles: &["operator", "owner"], actions: &[
        "aacp.purge_expired", "events.send", "executions.cancel", "executions.cancel_many", "executions.fork", "executions.pause", "executions.resolve", "executions.resume",
        "executions.retry", "executions.retry_many", "executions.signal", "schedules.pause", "schedules.resume",
        "schedules.trigger", "send_event", "session.bash", "triggers.pause", "triggers.redrive", "triggers.resume", "workflows.execute",
    ]},
    // Changes definitions, schedules, documents.
    Right { roles: &["editor", "owner"], actions: &[
        "knowledge.delete_document", "knowledge.edit", "knowledge.move_document", "knowledge.restore_document",
        "knowledge.update_document", "schedules.apply", "schedules.delete", "triggers.apply", "triggers.delete",
        "workflows.apply", "workflows.delete",
    ]},
    Right { roles: &["approver", "owner"], actions: &["executions.approve", "plans.decide"] },
    Right { roles: &["worker", "owner"], actions: &[
        "workers.complete", "workers.fail", "workers.heartbeat", "workers.poll",
    ]},
    // Manages servers, tokens, secrets, keys; reads the audit trail.
    Right { roles: &["admin", "owner"], actions: &[
        "audit.entries", "audit.verify", "keys.manage", "limits.list", "limits.set", "limits.unset", "secrets.delete", "secrets.list", "secrets.rotate", "secrets.set",
        "servers.add", "servers.logs", "servers.remove", "servers.restart",
        "tokens.create", "tokens.list", "tokens.revoke", "tokens.rotate", "tools.quarantined", "trails.accept", "witness.forget",
    ]},
    // In token mode the tools of admins ask for the role itself, as seed 000 has it.
    Right { roles: &["admin"], actions: &[
        "admin.listQuarantined", "admin.registerTool", "admin.unregisterTool",
    ]},
    // Decides what of a tenant's data leaves the server; repairs its indexes.
    Right { roles: &["owner"], actions: &[
        "executions.delete_many", "knowledge.delete_due", "knowledge.reindex", "knowledge.verify", "knowledge.webhooks_add", "knowledge.webhooks_list",
        "knowledge.webhooks_remove",
    ]},
    // What is the same for all tenants: for those who administer the machine, who are not in this tenant.
    Right { roles: &[], actions: &["admin.acceptTool", "server.objectives", "tools.accept"] },
    // An address without the signature of the server.
    Right { roles: &[], actions: &["link"] },
    // Descriptions, results whose address is the proof, and deliveries whose signature is.
    Right { roles: &ROLES, actions: &["hooks.deliver", "mcp.result", "open"] },
];

/// The tools of a governed workspace.
pub const GOVERNED: &str = "workspace.";

/// The roles that may do this; none: the reference does not know it.
pub fn roles(action: &str) -> Option<&'static [&'static str]> {
    if action.starts_with(GOVERNED) {
        return Some(&["planner", "executor"]);
    }
    let mut rights = RIGHTS.iter().filter(|right| right.actions.contains(&action));
    let found = rights.next()?;
    assert!(rights.next().is_none(), "{action} is in two rows of the reference");
    Some(found.roles)
}

pub fn allows(action: &str, role: &str) -> bool {
    let role = if role == "plain" { "viewer" } else { role };
    roles(action).unwrap_or_else(|| panic!("{action} has no row in the reference")).contains(&role)
}

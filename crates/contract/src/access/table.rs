//! The access table: every action of the program, and the roles that may run it. An action without a row cannot be registered.

use super::AccessRole::{Admin, Agent, Approver, Editor, Executor, Operator, Owner, Planner, Viewer, Worker};
use super::AllowedRoles;

/// Reads the data of a tenant.
const READ: AllowedRoles = AllowedRoles::any_of(&[Viewer]);
/// Reads how the server is, which tells nothing of a tenant's data.
const OBSERVE: AllowedRoles = AllowedRoles::any_of(&[Viewer, Admin]);
/// Calls tools, sends messages, talks to sessions.
const CALL: AllowedRoles = AllowedRoles::any_of(&[Agent, Operator, Owner]);
/// Starts, cancels, retries and pauses executions.
const OPERATE: AllowedRoles = AllowedRoles::any_of(&[Operator, Owner]);
/// Changes definitions, schedules and documents.
const EDIT: AllowedRoles = AllowedRoles::any_of(&[Editor, Owner]);
/// Adds documents (KNO-6).
const CREATE: AllowedRoles = AllowedRoles::any_of(&[Agent, Editor, Owner]);
/// Stops what the caller itself has sent.
const SEND: AllowedRoles = AllowedRoles::any_of(&[Agent, Operator, Editor, Owner]);
/// Decides approvals.
const APPROVE: AllowedRoles = AllowedRoles::any_of(&[Approver, Owner]);
/// Takes tasks of worker queues.
const WORK: AllowedRoles = AllowedRoles::any_of(&[Worker, Owner]);
/// Manages what the server runs on and reads the audit trail.
const ADMINISTER: AllowedRoles = AllowedRoles::any_of(&[Admin, Owner]);
/// Decides what of a tenant's data leaves the server, and repairs its indexes.
const OWN: AllowedRoles = AllowedRoles::any_of(&[Owner]);
/// Works in a governed workspace; which of the two may do what is the workspace's to say (ERR-5).
const GOVERN: AllowedRoles = AllowedRoles::any_of(&[Planner, Executor]);

/// Who may call the tools of other MCP servers and those that an admin registers while the server runs.
pub const FOREIGN_TOOLS: AllowedRoles = CALL;

/// Action × roles, in order of name.
#[rustfmt::skip]
pub const ACCESS: &[(&str, AllowedRoles)] = &[
    ("aacp.ack", CALL),
    ("aacp.inbox", CALL),
    ("aacp.message", READ),
    ("aacp.pairs", READ),
    ("aacp.purge_expired", OPERATE),
    ("aacp.request_status", READ),
    ("aacp.requests", READ),
    ("aacp.send", CALL),
    ("admin.acceptTool", ADMINISTER),
    ("admin.listQuarantined", ADMINISTER),
    ("admin.registerTool", ADMINISTER),
    ("admin.unregisterTool", ADMINISTER),
    ("agent.getState", READ),
    ("agent.list", READ),
    ("agent.sendMessage", CALL),
    ("agents.heartbeat", CALL),
    ("agents.list", READ),
    ("agents.register", CALL),
    ("agents.unregister", CALL),
    ("analyze_workflow", READ),
    ("artifacts.create", CREATE),
    ("audit.entries", ADMINISTER),
    ("audit.verify", ADMINISTER),
    ("cancel_workflow", CALL),
    ("create_workflow", READ),
    ("echo", OBSERVE),
    ("events.send", OPERATE),
    ("execution", READ),
    ("executions.approvals", READ),
    ("executions.approve", APPROVE),
    ("executions.artifact", READ),
    ("executions.cancel", OPERATE),
    ("executions.cancel_many", OPERATE),
    ("executions.definition", READ),
    ("executions.delete_many", OWN),
    ("executions.events", READ),
    ("executions.fork", OPERATE),
    ("executions.get", READ),
    ("executions.journal", READ),
    ("executions.list", READ),
    ("executions.pause", OPERATE),
    ("executions.resolve", OPERATE),
    ("executions.resume", OPERATE),
    ("executions.retry", OPERATE),
    ("executions.retry_many", OPERATE),
    ("executions.signal", OPERATE),
    ("get_document", READ),
    ("get_session", READ),
    ("get_status", READ),
    ("health", OBSERVE),
    ("hooks.deliver", AllowedRoles::ANYONE),
    ("keys.manage", ADMINISTER),
    ("knowledge.changes", READ),
    ("knowledge.create_document", CREATE),
    ("knowledge.delete_document", EDIT),
    ("knowledge.delete_due", OWN),
    ("knowledge.document", READ),
    ("knowledge.document_history", READ),
    ("knowledge.edit", EDIT),
    ("knowledge.get_document", READ),
    ("knowledge.get_many", READ),
    ("knowledge.list", READ),
    ("knowledge.list_children", READ),
    ("knowledge.move_document", EDIT),
    ("knowledge.query_knowledge", READ),
    ("knowledge.reindex", OWN),
    ("knowledge.replies", READ),
    ("knowledge.restore_document", EDIT),
    ("knowledge.update_document", EDIT),
    ("knowledge.verify", OWN),
    ("knowledge.webhooks_add", OWN),
    ("knowledge.webhooks_list", OWN),
    ("knowledge.webhooks_remove", OWN),
    ("limits.list", ADMINISTER),
    ("limits.set", ADMINISTER),
    ("limits.unset", ADMINISTER),
    ("list_documents", READ),
    ("llm.complete", CALL),
    ("mcp.result", AllowedRoles::ANYONE),
    ("peers.heartbeat", CALL),
    ("peers.list", READ),
    ("plans.decide", APPROVE),
    ("plans.get", READ),
    ("plans.list", READ),
    ("prompt_session", CALL),
    ("requests.cancel", SEND),
    ("requests.show", READ),
    ("run_workflow", CALL),
    ("schedules.apply", EDIT),
    ("schedules.delete", EDIT),
    ("schedules.list", READ),
    ("schedules.pause", OPERATE),
    ("schedules.resume", OPERATE),
    ("schedules.show", READ),
    ("schedules.trigger", OPERATE),
    ("search_knowledge", READ),
    ("secrets.delete", ADMINISTER),
    ("secrets.list", ADMINISTER),
    ("secrets.rotate", ADMINISTER),
    ("secrets.set", ADMINISTER),
    ("send_event", OPERATE),
    ("server.metrics", OBSERVE),
    ("servers.add", ADMINISTER),
    ("servers.logs", ADMINISTER),
    ("servers.remove", ADMINISTER),
    ("servers.restart", ADMINISTER),
    ("servers.show", OBSERVE),
    ("session", READ),
    ("session.abort", CALL),
    ("session.abort_bash", CALL),
    ("session.abort_compaction", CALL),
    ("session.abort_retry", CALL),
    ("session.bash", OPERATE),
    ("session.compact", CALL),
    ("session.create_session", CALL),
    ("session.cycle_model", CALL),
    ("session.cycle_thinking_level", CALL),
    ("session.delete_session", CALL),
    ("session.events", READ),
    ("session.export_html", CALL),
    ("session.export_session", CALL),
    ("session.extension_ui_response", CALL),
    ("session.follow_up", CALL),
    ("session.fork", CALL),
    ("session.get_available_models", READ),
    ("session.get_command_history", READ),
    ("session.get_commands", READ),
    ("session.get_context_usage", READ),
    ("session.get_fork_messages", READ),
    ("session.get_last_assistant_text", READ),
    ("session.get_messages", READ),
    ("session.get_metrics", OBSERVE),
    ("session.get_session_stats", READ),
    ("session.get_skills", READ),
    ("session.get_startup_recovery", READ),
    ("session.get_state", READ),
    ("session.get_tools", READ),
    ("session.get_tree", READ),
    ("session.health_check", OBSERVE),
    ("session.list_session_files", READ),
    ("session.list_sessions", READ),
    ("session.list_stored_sessions", READ),
    ("session.load_session", CALL),
    ("session.navigate_tree", CALL),
    ("session.new_session", CALL),
    ("session.prompt", CALL),
    ("session.run", CALL),
    ("session.set_auto_compaction", CALL),
    ("session.set_auto_retry", CALL),
    ("session.set_model", CALL),
    ("session.set_session_name", CALL),
    ("session.set_thinking_level", CALL),
    ("session.share_session", CALL),
    ("session.steer", CALL),
    ("session.switch_session", READ),
    ("session.switch_session_file", CALL),
    ("start_session", CALL),
    ("tokens.create", ADMINISTER),
    ("tokens.list", ADMINISTER),
    ("tokens.revoke", ADMINISTER),
    ("tokens.rotate", ADMINISTER),
    ("tool_search", READ),
    ("tools.accept", ADMINISTER),
    ("tools.quarantined", ADMINISTER),
    ("tools.servers", OBSERVE),
    ("trails.accept", ADMINISTER),
    ("trails.show", READ),
    ("triggers.apply", EDIT),
    ("triggers.delete", EDIT),
    ("triggers.list", READ),
    ("triggers.pause", OPERATE),
    ("triggers.redrive", OPERATE),
    ("triggers.resume", OPERATE),
    ("triggers.show", READ),
    ("upstream.complete", READ),
    ("upstream.follow", READ),
    ("upstream.list", READ),
    ("upstream.prompt", READ),
    ("upstream.read", READ),
    ("witness.forget", ADMINISTER),
    ("witness.heads", READ),
    ("witness.submit", CALL),
    ("workers.complete", WORK),
    ("workers.fail", WORK),
    ("workers.heartbeat", WORK),
    ("workers.poll", WORK),
    ("workflow", READ),
    ("workflows.agents", OBSERVE),
    ("workflows.apply", EDIT),
    ("workflows.delete", EDIT),
    ("workflows.execute", OPERATE),
    ("workflows.list", READ),
    ("workflows.metrics", READ),
    ("workflows.show", READ),
    ("workflows.system", OBSERVE),
    ("workflows.validate", READ),
];

/// The rows of operations that a face serves without an action of the kernel.
pub const OPERATIONS: [&str; 8] = [
    "artifacts.create",
    "keys.manage",
    "knowledge.replies",
    "peers.heartbeat",
    "peers.list",
    "requests.cancel",
    "requests.show",
    "server.metrics",
];

/// The tools of a governed workspace are many and share one row.
const GOVERNED: &str = crate::envelope::GOVERNED;

/// The roles that may run an action of the program. None: it has no row.
pub fn roles_for(action: &str) -> Option<AllowedRoles> {
    if action.starts_with(GOVERNED) {
        return Some(GOVERN);
    }
    ACCESS.binary_search_by(|(name, _)| (*name).cmp(action)).ok().map(|index| ACCESS[index].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessRole, RoleSet};

    #[test]
    fn rows_are_in_order_so_that_they_are_found() {
        assert!(ACCESS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(ACCESS.iter().all(|(name, _)| roles_for(name).is_some()));
        assert!(roles_for("workspace.write_file").is_some());
        assert!(roles_for("unknown").is_none());
        assert!(OPERATIONS.iter().all(|name| roles_for(name).is_some()));
    }

    /// decisions.md: an owner does everything but work in a governed workspace, which asks for a role of its own.
    #[test]
    fn an_owner_may_run_every_action() {
        let owner = RoleSet::of(&[AccessRole::Owner]);
        for (name, allowed) in ACCESS {
            assert!(allowed.admit(owner), "{name}");
            // The link to a result is the proof, and the signature of a delivery.
            let is_open = matches!(*name, "mcp.result" | "hooks.deliver");
            assert_eq!(allowed.admit(RoleSet::NONE), is_open, "{name}");
        }
    }

    #[test]
    fn a_viewer_changes_nothing() {
        let viewer = RoleSet::of(&[AccessRole::Viewer]);
        for name in [
            "workflows.execute",
            "run_workflow",
            "aacp.send",
            "workers.poll",
            "session.prompt",
            "executions.approve",
            "audit.entries",
            "knowledge.create_document",
        ] {
            assert!(roles_for(name).is_some_and(|allowed| !allowed.admit(viewer)), "{name}");
        }
    }
}

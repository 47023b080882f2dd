//! The names of the actions this face submits; what they take and give is the domain's.

pub const EXECUTE: &str = "workflows.execute";
pub const VALIDATE: &str = "workflows.validate";
pub const APPLY: &str = "workflows.apply";
pub const WORKFLOWS: &str = "workflows.list";
pub const WORKFLOW: &str = "workflows.show";
pub const DELETE_WORKFLOW: &str = "workflows.delete";
pub const METRICS: &str = "workflows.metrics";
pub const SYSTEM: &str = "workflows.system";
pub const SERVERS: &str = "tools.servers";
pub const ADD_SERVER: &str = "servers.add";
pub const SERVER: &str = "servers.show";
pub const REMOVE_SERVER: &str = "servers.remove";
pub const RESTART_SERVER: &str = "servers.restart";
pub const SERVER_LOGS: &str = "servers.logs";
pub const QUARANTINED: &str = "tools.quarantined";
pub const ACCEPT_TOOL: &str = "tools.accept";
pub const AUDIT: &str = "audit.entries";
pub const VERIFY_AUDIT: &str = "audit.verify";
pub const WITNESS_HEADS: &str = "witness.heads";
pub const SUBMIT_HEADS: &str = "witness.submit";
pub const FORGET_HEADS: &str = "witness.forget";
pub const TOKENS: &str = "tokens.list";
pub const CREATE_TOKEN: &str = "tokens.create";
pub const ROTATE_TOKEN: &str = "tokens.rotate";
pub const REVOKE_TOKEN: &str = "tokens.revoke";
pub const AGENTS: &str = "workflows.agents";

pub const EXECUTION: &str = "executions.get";
pub const DEFINITION: &str = "executions.definition";
pub const ARTIFACT: &str = "executions.artifact";
pub const EXECUTIONS: &str = "executions.list";
pub const JOURNAL: &str = "executions.journal";
pub const CANCEL: &str = "executions.cancel";
pub const CANCEL_MANY: &str = "executions.cancel_many";
pub const DELETE_MANY: &str = "executions.delete_many";
pub const PAUSE: &str = "executions.pause";
pub const RESUME: &str = "executions.resume";
pub const RETRY: &str = "executions.retry";
pub const RETRY_MANY: &str = "executions.retry_many";
pub const FORK: &str = "executions.fork";
pub const SIGNAL: &str = "executions.signal";
pub const APPROVE: &str = "executions.approve";
pub const APPROVALS: &str = "executions.approvals";
pub const RESOLVE: &str = "executions.resolve";
pub const SEND_EVENT: &str = "events.send";
pub const EVENTS: &str = "executions.events";

pub const APPLY_SCHEDULE: &str = "schedules.apply";
pub const SCHEDULES: &str = "schedules.list";
pub const SCHEDULE: &str = "schedules.show";
pub const DELETE_SCHEDULE: &str = "schedules.delete";
pub const PAUSE_SCHEDULE: &str = "schedules.pause";
pub const RESUME_SCHEDULE: &str = "schedules.resume";
pub const TRIGGER_SCHEDULE: &str = "schedules.trigger";

pub const PLANS: &str = "plans.list";
pub const PLAN: &str = "plans.get";
pub const DECIDE_PLAN: &str = "plans.decide";
pub const TRAIL: &str = "trails.show";
pub const ACCEPT_TRAIL: &str = "trails.accept";

pub const LIMITS: &str = "limits.list";
pub const SET_LIMIT: &str = "limits.set";
pub const UNSET_LIMIT: &str = "limits.unset";
pub const APPLY_TRIGGER: &str = "triggers.apply";
pub const TRIGGERS: &str = "triggers.list";
pub const TRIGGER: &str = "triggers.show";
pub const DELETE_TRIGGER: &str = "triggers.delete";
pub const PAUSE_TRIGGER: &str = "triggers.pause";
pub const REDRIVE_TRIGGER: &str = "triggers.redrive";
pub const RESUME_TRIGGER: &str = "triggers.resume";
pub const DELIVER: &str = "hooks.deliver";

pub const SET_SECRET: &str = "secrets.set";
pub const SECRETS: &str = "secrets.list";
pub const ROTATE_SECRET: &str = "secrets.rotate";
pub const DELETE_SECRET: &str = "secrets.delete";

pub const POLL: &str = "workers.poll";
pub const COMPLETE_TASK: &str = "workers.complete";
pub const FAIL_TASK: &str = "workers.fail";
pub const HEARTBEAT_TASK: &str = "workers.heartbeat";

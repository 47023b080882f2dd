//! Which actions of the registry an envelope may name, and what the registry says of them.

use std::sync::Arc;

use orchestr8_kernel::{Action, Kernel};
use serde_json::Value;

use crate::failure::Failure;
use crate::versions;

pub(crate) const CREATE: &str = "knowledge.create_document";
pub(crate) const UPDATE: &str = "knowledge.update_document";
pub(crate) const QUERY: &str = "knowledge.query_knowledge";
pub(crate) const DELETE: &str = "knowledge.delete_document";
pub(crate) const MOVE: &str = "knowledge.move_document";
pub(crate) const GET: &str = "knowledge.get_document";
pub(crate) const CHILDREN: &str = "knowledge.list_children";
pub(crate) const RESTORE: &str = "knowledge.restore_document";
pub(crate) const HISTORY: &str = "knowledge.document_history";
pub(crate) const LIST: &str = "knowledge.list";
pub(crate) const GET_MANY: &str = "knowledge.get_many";
pub(crate) const EDIT: &str = "knowledge.edit";
pub(crate) const VERIFY: &str = "knowledge.verify";
pub(crate) const REINDEX: &str = "knowledge.reindex";
pub(crate) const HOOKS_LIST: &str = "knowledge.webhooks_list";
pub(crate) const HOOKS_ADD: &str = "knowledge.webhooks_add";
pub(crate) const HOOKS_REMOVE: &str = "knowledge.webhooks_remove";

/// The actions of the contract; others say in their `meta` that they take envelopes.
const PUBLIC: [&str; 9] = [CREATE, UPDATE, DELETE, MOVE, QUERY, GET, CHILDREN, RESTORE, HISTORY];

/// The seed's limits of arguments in an envelope, in bytes (Appendix D).
const PAYLOADS: [(&str, usize); 3] = [(CREATE, 131_072), (UPDATE, 131_072), (QUERY, 65_536)];

/// What an action says in its `meta`: that it takes envelopes, how much of them, and that an agent of another make runs it.
const A2A: &str = "a2a";
const MAX_PAYLOAD_BYTES: &str = "max_payload_bytes";
const EXECUTOR: &str = "executor";
const LANGROID: &str = "langroid";

/// Every action an envelope may name, in order of name.
pub(crate) fn public(kernel: &Kernel) -> Vec<Arc<Action>> {
    let table = kernel.registry().table();
    table.all().iter().filter(|action| is_public(action)).cloned().collect()
}

/// The action an envelope names. The error lists what could have been named.
pub(crate) fn find(kernel: &Kernel, name: &str) -> Result<Arc<Action>, Failure> {
    match kernel.registry().find(name).filter(|action| is_public(action)) {
        Some(action) => Ok(action),
        None => {
            let known: Vec<Value> = public(kernel).iter().map(|action| action.name.as_str().into()).collect();
            Err(Failure::invalid("/action", "there is no such action").with("supported_actions", known))
        }
    }
}

pub(crate) fn version(action: &Action) -> &str {
    action.about.version.as_deref().unwrap_or(versions::FIRST)
}

/// How long the arguments inside an envelope may be (Appendix D), unless the action says otherwise. What the action itself can
/// take is more: an artifact brings it.
pub(crate) fn max_payload_bytes(action: &Action) -> Option<usize> {
    let said = action.about.meta.get(MAX_PAYLOAD_BYTES).and_then(Value::as_u64);
    let known = || PAYLOADS.iter().find(|(name, _)| *name == action.name.as_str()).map(|(_, bytes)| *bytes);
    said.and_then(|bytes| usize::try_from(bytes).ok()).or_else(known)
}

/// Whether an agent runs it that wants its arguments as a ToolMessage (KNO-8).
pub(crate) fn wants_tool_message(action: &Action) -> bool {
    action.about.meta.get(EXECUTOR).and_then(Value::as_str) == Some(LANGROID)
}

fn is_public(action: &Action) -> bool {
    PUBLIC.contains(&action.name.as_str())
        || action.about.meta.get(A2A).and_then(Value::as_bool) == Some(true)
}

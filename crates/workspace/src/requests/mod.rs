//! What people ask of governed workspaces outside of a governed connection: which plans wait, approving or rejecting one, and
//! where a trail ends.

mod decide;
mod plans;
mod trails;

use std::future::Future;

use orchestr8_contract::Output;
use orchestr8_kernel::action::{Effect, OnUnknown};
use orchestr8_kernel::{Action, Args, Context, Halt, Policy, Reply, schema};
use serde_json::{Value, json};

use crate::hub::Hub;
use crate::refusal::Refusal;

/// The longest path of a workspace in a request.
const PATH: usize = crate::limits::PATH_BYTES;

/// Every action of this folder.
pub fn all(hub: &Hub) -> Result<Vec<Action>, schema::Error> {
    let reading = Policy { audited: false, ..Policy::read() };
    let changing = Policy {
        effect: Effect::Outside(OnUnknown::Retry),
        journalled: false,
        audited: true,
        ..Policy::stored()
    };
    let workspace = json!({"type": "string", "minLength": 1, "maxLength": PATH});
    let plan = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    let list = json!({
        "workspace": workspace, "status": {"enum": ["waiting", "approved", "rejected"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": crate::limits::PLANS_PAGE},
    });
    let decide = json!({
        "id": plan, "workspace": workspace, "decision": {"enum": ["approve", "reject"]},
        "comment": {"type": "string", "maxLength": crate::limits::COMMENT_BYTES},
    });
    Ok(vec![
        action(
            hub,
            "plans.list",
            "Lists plans of governed workspaces.",
            object(list, &[]),
            &reading,
            plans::list,
        )?,
        action(
            hub,
            "plans.get",
            "Shows a plan with its text.",
            object(json!({"id": plan, "workspace": workspace}), &["id"]),
            &reading,
            plans::get,
        )?,
        action(
            hub,
            "plans.decide",
            "Approves or rejects a plan.",
            object(decide, &["id", "decision"]),
            &changing,
            decide::decide,
        )?,
        action(
            hub,
            "trails.show",
            "Shows where the audit trail of a workspace ends, as the server signed it.",
            object(json!({"id": workspace}), &["id"]),
            &reading,
            trails::show,
        )?,
        action(
            hub,
            "trails.accept",
            "Goes on with the audit trail of a workspace as it is.",
            object(
                json!({"id": workspace, "reason": {"type": "string", "maxLength": crate::limits::COMMENT_BYTES}}),
                &["id"],
            ),
            &changing,
            trails::accept,
        )?,
    ])
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn action<F, R>(
    hub: &Hub,
    name: &str,
    about: &str,
    input: Value,
    policy: &Policy,
    work: F,
) -> Result<Action, schema::Error>
where
    F: Fn(Hub, Args, Context) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Result<Value, Refusal>> + Send + 'static,
{
    let hub = hub.clone();
    let run = orchestr8_kernel::action::work(move |args: Args, context: Context| {
        let work = work(hub.clone(), args, context);
        async move {
            match work.await {
                Ok(value) => Ok(Reply::from(Output::json(value))),
                Err(refusal) => Err(Halt::Fault(refusal.into_fault())),
            }
        }
    });
    Action::unlisted(name, about, input, policy.clone(), run)
}

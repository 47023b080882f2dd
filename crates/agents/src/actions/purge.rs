//! `aacp.purge_expired`: deletes the messages and requests of a tenant whose time is over.

use orchestr8_kernel::action::Slotting;
use orchestr8_kernel::{Action, Policy, schema};
use serde_json::json;

use super::{answer, object, working};
use crate::aacp::Hub;

pub fn purge(hub: &Hub) -> Result<Action, schema::Error> {
    let about = "Deletes messages and requests whose expiresAt is over, and says how many (AACP-PURGE). The server does the same by \
                 itself every ten minutes; what has expired is not shown in between.";
    let input = object(json!({}), &[]);
    // What it deletes is on record as expired; the kernel records who asked for it.
    let policy = Policy { slotting: Slotting::Free, idempotent: true, ..Policy::stored() };
    let action = working(("aacp.purge_expired", about), input, policy, hub, |hub, _, context| async move {
        hub.ready().await?;
        let purged = hub.purge_expired(hub.now_ms(), Some(&context.principal.tenant)).await?;
        answer(json!({"purged": purged}))
    })?;
    Ok(action.titled("Delete expired messages"))
}

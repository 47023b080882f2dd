//! `aacp.purge_expired`: deletes the messages and requests of a tenant whose time is over.

use orchestr8_kernel::{Action, schema};
use serde_json::json;

use super::{answer, object, recording, working};
use crate::aacp::Hub;

pub fn purge(hub: &Hub) -> Result<Action, schema::Error> {
    let about = "Deletes messages and requests whose expiresAt is over, and says how many (AACP-PURGE). The server does the same by \
                 itself every ten minutes; what has expired is not shown in between.";
    let input = object(json!({}), &[]);
    let action =
        working(("aacp.purge_expired", about), input, recording(), hub, |hub, _, context| async move {
            hub.ready().await?;
            let purged = hub.purge_expired(hub.now_ms(), Some(&context.principal.tenant)).await?;
            answer(json!({"purged": purged}))
        })?;
    Ok(action.titled("Delete expired messages"))
}

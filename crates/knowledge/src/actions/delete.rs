//! Hides a document and all below it, now or at a given time (KNO-8.3).

use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::json;

use super::{document_id, known_revision, moment};
use crate::hub::{Hub, tenant};
use crate::limits::PURGE_MS;
use crate::record::{Document, Op};
use crate::tables::{self, Whose};
use crate::write::{Write, check_revision};

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let turn = hub.turns().in_tree(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let old = hub.document(whose).await?;
    check_revision(&old, known_revision(&args))?;
    let now_ms = hub.now_ms();
    let mut write = Write::new(tenant, &context.principal.name, hub.fresh());
    if let Some(later_ms) = moment(&args, "delete_at")?.filter(|at_ms| *at_ms > now_ms) {
        write.batch().then_one(tables::document_schedule(whose, old.revision, later_ms));
        let output = json!({"id": id, "deleted": false, "delete_at": iso(later_ms), "purge_at": iso(later_ms + PURGE_MS)});
        return Ok(write.reply(output, turn));
    }
    let purge_ms = now_ms + PURGE_MS;
    let new = Document { revision: old.revision + 1, updated_ms: now_ms, purge_ms: Some(purge_ms), ..old };
    write.batch().then_one(tables::document_hide(tenant, &new));
    write.batch().then(tables::below_hide(whose));
    write.record(&new, Op::Delete, args.text("reason"), None);
    Ok(write.reply(json!({"id": id, "deleted": true, "purge_at": iso(purge_ms)}), turn))
}

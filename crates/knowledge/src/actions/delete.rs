//! Hides a document and all below it, now or at a given time (KNO-8.3).

use orchestr8_kernel::ports::clock::iso;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::json;

use super::{document_id, known_revision, moment};
use crate::hub::{Hub, tenant};
use crate::limits::PURGE_MS;
use crate::record::{Document, Op};
use crate::tables::{self, Whose};
use crate::turns::Turn;
use crate::write::{Write, check_revision};

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let turn = hub.turns().in_tree(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let old = hub.document(whose).await?;
    check_revision(&old, known_revision(&args))?;
    let mut write = Write::new(&context, hub.fresh());
    let now_ms = hub.now_ms();
    let Some(later_ms) = moment(&args, "delete_at")?.filter(|at_ms| *at_ms > now_ms) else {
        let new = hidden(old, now_ms);
        return Ok(hide(write, &new, args.text("reason"), turn));
    };
    write.batch().then_one(tables::document_schedule(whose, old.revision, later_ms));
    let output =
        json!({"id": id, "deleted": false, "delete_at": iso(later_ms), "purge_at": iso(later_ms + PURGE_MS)});
    Ok(write.reply(output, turn))
}

/// The same for one whose time has come. One that was put off since it was found due stays: that its time has changed shows in no
/// revision, so the commit itself looks whether it has come.
pub async fn due(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let turn = hub.turns().in_tree(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let (old, now_ms) = (hub.document(whose).await?, hub.now_ms());
    let mut write = Write::new(&context, hub.fresh());
    write.batch().then_one(tables::due_hold(whose, now_ms));
    let new = hidden(old, now_ms);
    Ok(hide(write, &new, Some("its time has come"), turn))
}

fn hidden(old: Document, now_ms: i64) -> Document {
    let purge_ms = Some(now_ms + PURGE_MS);
    Document { revision: old.revision + 1, updated_ms: now_ms, purge_ms, ..old }
}

fn hide<'a>(mut write: Write<'a>, new: &'a Document, reason: Option<&str>, turn: Turn) -> Reply {
    let tenant = write.tenant;
    write.batch().then_one(tables::document_hide(tenant, new));
    write.batch().then(tables::below_hide(Whose { tenant, id: &new.id }));
    write.record(new, Op::Delete, reason, None);
    write.reply(json!({"id": new.id, "deleted": true, "purge_at": new.purge_ms.map(iso)}), turn)
}

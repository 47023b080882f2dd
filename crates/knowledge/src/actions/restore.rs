//! Brings a deleted document back, with all that went with it.

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::json;

use super::document_id;
use crate::hub::{Hub, tenant};
use crate::reading::missing;
use crate::record::{Document, Op, ROOT};
use crate::tables::{self, Whose};
use crate::write::Write;

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let turn = hub.turns().in_tree(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let old = hub.any_document(whose).await?.ok_or_else(|| missing("document", &id))?;
    check(&hub, tenant, &old).await?;
    let new = Document {
        revision: old.revision + 1,
        updated_ms: hub.now_ms(),
        purge_ms: None,
        hidden_by: None,
        ..old
    };
    let mut write = Write::new(&context, hub.fresh());
    write.batch().then_one(tables::document_show(tenant, &new));
    // Noted while it is still known what comes back with it.
    write.batch().then(tables::change_note(whose));
    write.batch().then(tables::below_show(whose));
    write.record(&new, Op::Restore, None, None);
    Ok(write.reply(json!({"id": new.id, "revision": new.revision, "parent_id": new.parent}), turn))
}

async fn check(hub: &Hub, tenant: &str, old: &Document) -> Result<(), Fault> {
    let conflict =
        |message: &'static str| Fault::new(Code::StateConflict, message).with("id", old.id.as_str());
    match &old.hidden_by {
        None => return Err(conflict("the document is not deleted")),
        Some(by) if *by != old.id => {
            return Err(conflict("the document went with one above it")
                .with("hint", format!("restore that one: {by}")));
        }
        Some(_) => {}
    }
    if old.parent == ROOT {
        return Ok(());
    }
    let above = hub.any_document(Whose { tenant, id: &old.parent }).await?;
    match above.and_then(|above| above.hidden_by) {
        None => Ok(()),
        Some(by) => {
            Err(conflict("the document it is below is deleted")
                .with("hint", format!("restore that first: {by}")))
        }
    }
}

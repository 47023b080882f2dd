//! Adds a document to the tree (KNO-8.1).

use orchestr8_contract::{Code, Fault};
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::{document_id, moment, named, wished_place};
use crate::hub::{Hub, tenant};
use crate::limits::DEPTH;
use crate::order;
use crate::reading;
use crate::record::{Document, Mime, Op, check_body, check_metadata, read};
use crate::tables::{self, Whose};
use crate::write::{Write, number};

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id, parent) = (tenant(&context), document_id(&args)?, named(&args, "parent_id")?);
    let turn = hub.turns().at_document(tenant, &id).await;
    if let Some(there) = hub.any_document(Whose { tenant, id: &id }).await? {
        return Err(taken(&there).into());
    }
    if hub.lineage(tenant, &parent).await?.len() >= DEPTH {
        return Err(too_deep().into());
    }
    let now_ms = hub.now_ms();
    let created_ms = moment(&args, "created_at")?.unwrap_or(now_ms);
    let place = match wished_place(&args)? {
        Some(place) => place,
        None => last_place(&hub, tenant, &parent, &id).await?,
    };
    let (new, body) = document(&args, id, parent, place, (created_ms, now_ms))?;
    let mut write = Write::new(&context, hub.fresh());
    write.batch().then_one(tables::document_insert(tenant, &new));
    write.record(&new, Op::Create, None, Some(&body));
    write.tags(&new);
    write.index(&new, &body);
    let mut output = json!({"id": new.id, "revision": new.revision});
    if let Some(uri) = hub.web_uri(&new.id, new.human) {
        output["web_uri"] = json!(uri);
    }
    Ok(write.reply(output, turn))
}

/// Behind everything that is there. At the very end of all places, which nobody reaches by appending, one shares the last.
pub async fn last_place(hub: &Hub, tenant: &str, parent: &str, id: &str) -> Result<String, Fault> {
    let last = hub.row(reading::tables::last_place(Whose { tenant, id: parent }, id)).await?;
    let last = last.as_ref().map(|row| row.text(0)).transpose().map_err(read)?;
    Ok(order::between(last, None, id).unwrap_or_else(|| last.unwrap_or_default().to_owned()))
}

pub fn too_deep() -> Fault {
    Fault::new(Code::ResourceExhausted, format!("a document may be at most {DEPTH} levels below the root"))
}

fn document(
    args: &Args,
    id: String,
    parent: String,
    place: String,
    (created_ms, updated_ms): (i64, i64),
) -> Result<(Document, String), Fault> {
    let content = args.get("content").and_then(Value::as_object);
    let text = |name: &str| content.and_then(|content| content.get(name)).and_then(Value::as_str);
    let (Some(mime), Some(body)) = (text("mime_type").and_then(Mime::parse), text("body")) else {
        return Err(
            Fault::invalid("`content` needs a known `mime_type` and a `body`").with("path", "content")
        );
    };
    check_body(mime, body)?;
    let metadata = args.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let title = check_metadata(&metadata)?;
    let new = Document {
        id,
        parent,
        place,
        revision: 1,
        content_revision: 1,
        title,
        mime,
        human: args.get("is_human_readable").and_then(Value::as_bool).unwrap_or(true),
        metadata,
        chars: number(body.chars().count()),
        created_ms,
        updated_ms,
        hidden_by: None,
        purge_ms: None,
        delete_ms: None,
    };
    Ok((new, body.to_owned()))
}

fn taken(there: &Document) -> Fault {
    let fault =
        |message: &'static str| Fault::new(Code::StateConflict, message).with("id", there.id.as_str());
    match &there.hidden_by {
        None => fault("the document exists").with("actual", there.revision),
        Some(by) if *by == there.id => fault("the document exists and is deleted")
            .with("hint", "bring it back with knowledge.restore_document"),
        Some(by) => fault("the document exists and went with one above it that is deleted")
            .with("hint", format!("bring that back with knowledge.restore_document: {by}")),
    }
}

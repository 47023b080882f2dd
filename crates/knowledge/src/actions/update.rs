//! Changes a document: a merge patch within its mask (KNO-8.2).

use orchestr8_contract::Fault;
use orchestr8_kernel::{Args, Context, Halt, Reply};
use serde_json::{Value, json};

use super::{document_id, known_revision};
use crate::hub::{Hub, tenant};
use crate::patch;
use crate::record::{Document, Mime, Op, check_body, check_metadata, unprocessable};
use crate::tables::{self, Whose};
use crate::turns::Turn;
use crate::write::{Write, check_revision, number, patchable};

pub async fn run(hub: Hub, args: Args, context: Context) -> Result<Reply, Halt> {
    let (tenant, id) = (tenant(&context), document_id(&args)?);
    let turn = hub.turns().at_document(tenant, &id).await;
    let whose = Whose { tenant, id: &id };
    let old = hub.document(whose).await?;
    check_revision(&old, known_revision(&args))?;
    let body = hub.body(whose, old.content_revision).await?;
    let mut members = patchable(&old, &body);
    let paths = args.get("update_mask").and_then(Value::as_array);
    let mask: Vec<String> =
        paths.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    patch::apply(&mut members, args.get("patch").unwrap_or(&Value::Null), &mask)?;
    let (new, changed) = changed(&hub, &old, &body, members)?;
    Ok(reply(&hub, &context, &old, &new, (&body, &changed), turn))
}

/// The reply of whatever gives a document new content.
pub fn reply(
    hub: &Hub,
    context: &Context,
    old: &Document,
    new: &Document,
    (before, after): (&str, &str),
    turn: Turn,
) -> Reply {
    let mut write = Write::new(context, hub.fresh());
    write.batch().then_one(tables::document_update(tenant(context), new));
    let body = (new.content_revision == new.revision).then_some(after);
    write.record(new, Op::Update, None, body);
    if old.tags() != new.tags() {
        write.tags(new);
    }
    if before != after || old.title != new.title || old.mime != new.mime {
        write.index(new, after);
    }
    write.reply(json!({"id": new.id, "revision": new.revision}), turn)
}

/// The next revision of a document with these members, and its body.
pub fn changed(hub: &Hub, old: &Document, before: &str, members: Value) -> Result<(Document, String), Fault> {
    let wrong = |path: &str, what: &str| Err(unprocessable(format!("`{path}` {what}")).with("path", path));
    let Some(mime) = members.pointer("/content/mime_type").and_then(Value::as_str).and_then(Mime::parse)
    else {
        return wrong("content.mime_type", "must be text/markdown, text/plain or application/json");
    };
    let Some(body) = members.pointer("/content/body").and_then(Value::as_str) else {
        return wrong("content.body", "must be a text");
    };
    let Some(metadata) = members.get("metadata").and_then(Value::as_object) else {
        return wrong("metadata", "must be an object with a title");
    };
    let human = match members.get("is_human_readable") {
        None => true,
        Some(Value::Bool(human)) => *human,
        Some(_) => return wrong("is_human_readable", "must be true or false"),
    };
    check_body(mime, body)?;
    let title = check_metadata(metadata)?;
    let revision = old.revision + 1;
    let new = Document {
        revision,
        content_revision: if body == before { old.content_revision } else { revision },
        title,
        mime,
        human,
        metadata: metadata.clone(),
        chars: number(body.chars().count()),
        updated_ms: hub.now_ms(),
        ..old.clone()
    };
    Ok((new, body.to_owned()))
}
